package main

import (
	"encoding/json"
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
	// launchers start the program that is among their arguments. Shells are some, for -c.
	launchers = []string{
		"env", "nice", "nohup", "setsid", "stdbuf", "timeout", "sudo", "doas", "npx", "bunx", "npm", "pnpm", "yarn", "uv", "uvx", "pipx", "poetry",
		"sh", "bash", "zsh", "dash", "ksh",
	}
	// valued are options that have a value behind them in some interpreter, which may be a
	// file too, and last those behind which nothing else is run.
	valued = []string{
		"-r", "--require", "--import", "--loader", "--experimental-loader", "--preload", "--env-file", "--cwd", "--tsconfig", "--config",
		"-C", "--conditions", "-W", "-X", "-I", "-o", "-O", "-d",
	}
	last = []string{"-m", "-c", "-e", "--eval", "-p", "--print"}
	// subcommands stand before what bun, deno and tsx run.
	subcommands = []string{"run", "serve", "watch"}
)

// sealing is what agents may read and never change: what the configuration keeps so, and
// what servers are started from.
func sealing(cfg *config.Config, view capability.View) ([]capability.Root, error) {
	sealed, err := cfg.Sealed(view)
	if err != nil {
		return nil, err
	}
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

// programFiles are the files that a server is started from: its program, and the scripts
// among its arguments. Whoever could write them would be the server, with all that it is
// given. They need not be there yet.
func (s *servers) programFiles(u *config.Upstream) []string {
	if u.Command == nil {
		return nil
	}
	program, args, cwd, home := u.Command[0], words(u.Command), s.cwd(u), s.home(u)
	if filepath.Base(program) == program {
		program, _ = exec.LookPath(program)
	}
	bases := []string{cwd}
	found := places(program, bases, "")
	started := startedBy(args)
	for i, arg := range args {
		if i == 0 {
			continue
		}
		for _, name := range started[i] {
			for _, place := range places(name, bases, home) {
				found = append(found, moduleFiles(place, true)...)
			}
		}
		for _, place := range places(argument(arg), bases, home) {
			found = append(found, scriptFiles(place)...)
		}
		for _, dir := range told(&config.Upstream{Command: []string{program, arg}}, cwd, home) {
			if dir != "" { // what stands behind it may hang from it
				bases = append(bases, dir)
			}
		}
	}
	return found
}

// words are the arguments of a command, each text among them with its words behind it, as
// that of sh -c.
func words(command []string) []string {
	all := command[:1:1]
	for _, arg := range command[1:] {
		all = append(all, arg)
		if list := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) }); len(list) > 1 {
			all = append(all, list...)
		}
	}
	return all
}

// startedBy finds the arguments that interpreters run, or load before that, by their
// place: whatever those are called, they are programs.
func startedBy(args []string) map[int][]string {
	found := map[int][]string{}
	launcher := slices.Contains(launchers, programName(args[0]))
	running, option := false, "" // what stands before
	for i, arg := range args {
		switch {
		case (i == 0 || launcher) && isInterpreter(programName(arg)):
			running, option = true, ""
		case !running:
		case len(arg) > 1 && arg[0] == '-':
			option = arg
			if end := "-" + arg[len(arg)-1:]; arg[:2] != "--" && slices.Contains(last, end) {
				option = end // several in one, as -lc
			}
		case slices.Contains(last, option):
			running = false
			if !strings.Contains(arg, " ") { // a text is no file
				found[i] = []string{argument(arg), strings.ReplaceAll(arg, ".", "/")} // python reads dots as slashes
			}
		default:
			found[i] = []string{argument(arg)}
			running = slices.Contains(valued, option) || slices.Contains(subcommands, arg)
			option = ""
		}
	}
	return found
}

func programName(file string) string {
	return strings.TrimSuffix(strings.ToLower(filepath.Base(file)), ".exe")
}

func isInterpreter(name string) bool {
	return slices.Contains(interpreters, name) || strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy")
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

// launcherFiles are what npx, uvx, node and python read where they are started, and what
// they find there says what they run.
func (s *servers) launcherFiles(u *config.Upstream) []string {
	if u.Command == nil {
		return nil
	}
	var found []string
	for _, name := range []string{".npmrc", "package.json", "node_modules", "pyproject.toml", "uv.toml", ".venv", "sitecustomize.py"} {
		found = append(found, filepath.Join(s.cwd(u), name))
	}
	return found
}
