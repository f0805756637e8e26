package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/config"
)

// What names say of files and programs.
var (
	// scripts are what the names of files end in that some program runs.
	scripts = []string{
		".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".py", ".pyc", ".pyz", ".whl", ".rb", ".pl", ".php", ".phar", ".lua",
		".go", ".java", ".kts", ".groovy", ".scala", ".cs", ".csx", ".fsx", ".r", ".jl", ".exs", ".ex", ".tcl", ".awk", ".swift", ".rs",
		".clj", ".rkt", ".scm", ".hs", ".ml", ".lisp", ".nu", ".fish", ".sh", ".bash", ".zsh", ".ps1", ".bat", ".cmd", ".exe", ".dll", ".wasm", ".jar", ".war", ".tgz",
	}
	// endings are what is put behind a name that has none.
	endings = []string{".js", ".mjs", ".cjs", ".ts", ".tsx", ".py"}
	// interpreters run the file that is their first argument, whatever it is called.
	interpreters = []string{
		"node", "nodejs", "bun", "deno", "tsx", "ts-node", "sh", "bash", "zsh", "dash", "ksh", "ruby", "perl", "php", "lua",
		"rscript", "julia", "elixir", "tclsh", "wish", "java", "jbang", "groovy", "scala", "nu", "fish", "pwsh", "powershell", "racket", "guile", "osascript",
	}
	// shells are those of them that start another with -c.
	shells = []string{"sh", "bash", "zsh", "dash", "ksh"}
	// valued are options that have a value behind them in some interpreter, which may be a
	// file too, and last those behind which nothing else is run.
	valued = []string{
		"-r", "--require", "--import", "--loader", "--experimental-loader", "--preload", "--env-file", "--cwd", "--tsconfig", "--config",
		"-C", "--conditions", "-W", "-X", "-I", "-o", "-O", "-d",
	}
	last = []string{"-m", "-c", "-e", "--eval", "-p", "--print"}
	// subcommands stand before what bun, deno and tsx run.
	subcommands = []string{"run", "serve", "watch"}
	// Variables hold options of an interpreter, files that are read before anything else,
	// or folders that what is loaded lies in.
	optionVariables = map[string]string{"NODE_OPTIONS": "node", "BUN_OPTIONS": "bun", "RUBYOPT": "ruby", "PERL5OPT": "perl"}
	fileVariables   = []string{"BASH_ENV", "ENV", "PYTHONSTARTUP", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"}
	folderVariables = []string{"PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB"}
)

// sealing is what agents may read and never change: what the configuration keeps so, and
// what servers are started from.
func sealing(cfg *config.Config, view capability.View) ([]capability.Root, error) {
	sealed, err := cfg.Sealed(view)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the gateway's own program: %w", err)
	}
	sealed = append(sealed, literal(self, view))
	for ; cfg != nil; cfg = cfg.Above {
		s := &servers{cfg: cfg, view: view}
		for i := range cfg.Upstreams {
			for _, file := range s.programFiles(&cfg.Upstreams[i]) {
				sealed = append(sealed, literal(file, view))
			}
		}
	}
	return sealed, nil
}

// literal is a place by its name, in which no pattern is read: whether a server is
// sealed must not hang on what it is called. What cannot be followed is sealed as written.
func literal(place string, view capability.View) capability.Root {
	root := capability.Root{Dir: filepath.Clean(place), Real: filepath.Clean(place)}
	if real, err := view.FS.Real(place); err == nil {
		root.Real = real
	}
	return root
}

// start is what a server is started from, as far as it is found.
type start struct {
	bases []string // what names hang from
	home  string
	found []string
}

// programFiles are the files that a server is started from: its program, and the scripts
// among its arguments and in its environment. Whoever could write them would be the
// server, with all that it is given. They need not be there yet.
func (s *servers) programFiles(u *config.Upstream) []string {
	if u.Command == nil {
		return nil
	}
	program, cwd := u.Command[0], s.cwd(u)
	if filepath.Base(program) == program {
		program, _ = exec.LookPath(program)
	}
	at := &start{bases: []string{cwd}, home: s.home(u)}
	at.found = places(program, at.bases, "")
	at.environment(u.Env)
	args := words(u.Command)
	started := startedBy(args)
	for i, arg := range args {
		if i == 0 {
			continue
		}
		at.run(started[i])
		at.argument(argument(arg))
		for _, dir := range told(&config.Upstream{Command: []string{program, arg}}, cwd, at.home) {
			if dir != "" { // what stands behind it may hang from it
				at.bases = append(at.bases, dir)
			}
		}
	}
	return at.found
}

// environment finds what variables have interpreters load.
func (s *start) environment(env map[string]string) {
	for _, name := range folderVariables {
		for _, dir := range filepath.SplitList(env[name]) {
			s.bases = append(s.bases, places(dir, s.bases[:1], s.home)...)
			s.run([]string{dir + "/sitecustomize"})
		}
	}
	for _, name := range fileVariables {
		s.run(strings.FieldsFunc(env[name], func(r rune) bool { return r == ' ' || r == filepath.ListSeparator }))
	}
	for name, program := range optionVariables {
		for _, names := range startedBy(append([]string{program}, strings.Fields(env[name])...)) {
			s.run(names)
		}
	}
}

// run adds what an interpreter runs, by the names that it may know it by.
func (s *start) run(names []string) {
	for _, name := range names {
		for _, place := range places(name, s.bases, s.home) {
			s.found = append(s.found, moduleFiles(place, true)...)
		}
	}
}

// argument adds the scripts that an argument may stand for, also as a module or file of
// python's with the name of something in it behind a colon.
func (s *start) argument(arg string) {
	file, _, ok := strings.Cut(arg, ":")
	for _, place := range append(places(arg, s.bases, s.home), places(file, s.bases, s.home)...) {
		s.found = append(s.found, scriptFiles(place)...)
	}
	if !ok {
		return
	}
	for _, place := range places(strings.ReplaceAll(file, ".", "/"), s.bases, s.home) {
		_, err := os.Stat(place + "/__init__.py")
		if err == nil || len(scriptFiles(place)) > 0 {
			s.found = append(s.found, moduleFiles(place, false)...)
		}
	}
}

// words are the arguments of a command, each text among them with its words behind it, as
// that of sh -c.
func words(command []string) []string {
	all := command[:1:1]
	for _, arg := range command[1:] {
		all = append(all, arg)
		if list := wordsOf(arg); len(list) > 1 {
			all = append(all, list...)
		}
	}
	return all
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) })
}

// startedBy finds the arguments that interpreters run, or load before that, by their
// place: whatever those are called, they are programs. An interpreter may stand behind
// any program that is none, as one that starts others.
func startedBy(args []string) map[int][]string {
	found := map[int][]string{}
	first := programName(args[0])
	launcher := !isInterpreter(first) || slices.Contains(shells, first)
	running, option, program := false, "", "" // what stands before
	for i, arg := range args {
		switch {
		case (i == 0 || launcher) && isInterpreter(programName(arg)):
			running, option, program = true, "", programName(arg)
		case !running:
		case len(arg) > 1 && arg[0] == '-':
			var ends bool
			option, found[i], ends = optionOf(program, arg)
			running = !ends
		case slices.Contains(last, option):
			running = false
			found[i] = loadedBy(option, arg)
		default:
			found[i] = []string{argument(arg)}
			running = slices.Contains(valued, option) || slices.Contains(subcommands, arg)
			option = ""
		}
	}
	return found
}

// optionOf reads an option of an interpreter: what it is called, if its value is behind
// it, what it loads else, and whether nothing behind it is run.
func optionOf(program, arg string) (option string, loaded []string, ends bool) {
	name, value, joined := strings.Cut(arg, "=")
	switch {
	case joined && slices.Contains(last, name):
		return "", loadedBy(name, value), true
	case joined && slices.Contains(valued, name):
		return "", []string{argument(arg)}, false
	case arg[:2] == "--":
		return arg, nil, false
	}
	if loaded := gluedTo(program, arg[1:]); loaded != nil {
		return "", loaded, isPython(program)
	}
	if end := "-" + arg[len(arg)-1:]; slices.Contains(last, end) {
		return end, nil, false // several in one, as -lc
	}
	return arg, nil, false
}

// gluedTo are the modules that stand right behind a short option: python's -m, perl's -M
// and -m, ruby's -r.
func gluedTo(program, option string) []string {
	switch flags, module, _ := strings.Cut(option, "m"); {
	case len(option) < 2:
		return nil
	case program == "perl" && strings.EqualFold(option[:1], "m"):
		module, _, _ = strings.Cut(option[1:], "=")
		return []string{strings.ReplaceAll(module, "::", "/") + ".pm"}
	case program == "ruby" && option[0] == 'r':
		return []string{option[1:], option[1:] + ".rb"}
	case isPython(program) && module != "" && strings.Trim(flags, "bBdEiIOPqRsSuvx") == "":
		return loadedBy("-m", module)
	}
	return nil
}

// loadedBy are the files that the value of one of the last options names.
func loadedBy(option, text string) (names []string) {
	if !strings.Contains(text, " ") { // a text is no file
		names = []string{argument(text), strings.ReplaceAll(text, ".", "/")} // python reads dots as slashes
	}
	if option == "-m" || option == "-c" {
		return names
	}
	for _, word := range wordsOf(text) { // as in require("./boot")
		if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") {
			names = append(names, word)
		}
	}
	return names
}

func programName(file string) string {
	return strings.TrimSuffix(strings.ToLower(filepath.Base(file)), ".exe")
}

func isInterpreter(name string) bool {
	return slices.Contains(interpreters, name) || isPython(name)
}

func isPython(name string) bool {
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
}

// argument is what an argument gives: the value of an option, the path of a file's address.
func argument(arg string) string {
	if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "-") {
		arg = value
	}
	if u, err := url.Parse(arg); err == nil && strings.EqualFold(u.Scheme, "file") && u.Path != "" {
		return u.Path
	}
	return arg
}

// places are where a name may lead from several folders, links and all: its .. are left in.
func places(name string, bases []string, home string) []string {
	switch {
	case name == "":
		return nil
	case filepath.IsAbs(name):
		return []string{name}
	}
	var all []string
	if strings.HasPrefix(name, "~/") && home != "" {
		all = append(all, home+name[1:])
	}
	for _, base := range bases {
		all = append(all, base+"/"+name)
	}
	return all
}

// scriptFiles are the scripts that an argument may stand for. It may as well be data, so
// that its name has to say so, or that it may be run.
func scriptFiles(place string) []string {
	info, err := os.Stat(place)
	switch {
	case err == nil && info.IsDir():
		return nil
	case slices.Contains(scripts, strings.ToLower(filepath.Ext(place))), err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
		return []string{place}
	case filepath.Ext(place) != "":
		return nil
	}
	var found []string
	for _, ending := range endings {
		if _, err := os.Stat(place + ending); err == nil {
			found = append(found, place+ending)
		}
	}
	return found
}

// moduleFiles are the files that node, python and their like look for when they are to
// run what may be a folder. In a folder the rest stays open.
func moduleFiles(place string, follow bool) []string {
	found := []string{place}
	if info, err := os.Stat(place); err == nil && info.IsDir() {
		found = []string{place + "/package.json", place + "/__main__.py", place + "/__init__.py"}
		for _, ending := range endings {
			found = append(found, place+"/index"+ending)
		}
		var about struct{ Main string }
		text, _ := os.ReadFile(place + "/package.json") // most folders have none
		if json.Unmarshal(text, &about) == nil && about.Main != "" && follow {
			found = append(found, moduleFiles(place+"/"+about.Main, false)...)
		}
	}
	for _, ending := range endings {
		found = append(found, place+ending)
	}
	return found
}

// launchers are programs that read files where they are started, and what they find there
// says what they run.
var launchers = []struct{ programs, files []string }{
	{[]string{"npx", "npm", "pnpm", "pnpx", "pnx", "yarn", "yarnpkg", "bun", "bunx", "corepack"}, []string{".npmrc", "package.json", "node_modules"}},
	{[]string{"node", "nodejs", "deno", "tsx", "ts-node"}, []string{"package.json", "node_modules"}},
	{[]string{"uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye", "fastmcp", "mcp"}, []string{"pyproject.toml", "uv.toml", ".venv", "sitecustomize.py"}},
	{[]string{"python"}, []string{"sitecustomize.py"}},
}

// launcherFiles are the files that launchers among the words of a command read. Behind a
// program that starts others, as a shell, or in a script of one, any may be.
func (s *servers) launcherFiles(u *config.Upstream) []string {
	if u.Command == nil {
		return nil
	}
	var found []string
	names := words(u.Command)
	for i, word := range names {
		name, _, _ := strings.Cut(programName(word), "@")
		if names[i] = name; isPython(name) {
			names[i] = "python"
		}
	}
	unsure := slices.Contains(elsewhere, names[0]) || slices.Contains(shells, strings.TrimPrefix(filepath.Ext(names[0]), "."))
	for _, l := range launchers {
		if !unsure && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l.programs, name) }) {
			continue
		}
		for _, name := range l.files {
			if file := filepath.Join(s.cwd(u), name); !slices.Contains(found, file) {
				found = append(found, file)
			}
		}
	}
	return found
}
