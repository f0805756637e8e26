package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"capgate/config"
)

// What arguments say of folders.
var (
	// elsewhere are programs that run another one in a folder, or from a text, that nobody
	// finds among their arguments.
	elsewhere = []string{
		"sh", "bash", "zsh", "dash", "ksh", "ash", "csh", "tcsh", "fish", "nu", "busybox", "cmd", "powershell", "pwsh", "just", "make",
		"docker", "docker-compose", "podman", "podman-compose", "nerdctl", "lxc", "incus", "distrobox", "toolbox", "apptainer", "singularity",
		"devcontainer", "limactl", "lima", "multipass", "vagrant", "ssh", "mosh", "autossh", "sshpass", "kubectl", "oc", "flatpak", "snap", "wsl",
		"finch", "container", "crictl", "ctr", "buildah", "lxc-attach", "lxc-execute", "systemd-nspawn", "orb", "orbctl", "colima", "minikube", "devpod",
		"heroku", "tsh", "slogin", "nix", "nix-shell", "guix", "toolbx", "schroot", "arch-chroot", "jexec",
		"su", "sudo", "sudo-rs", "doas", "dzdo", "run0", "su-exec", "gosu", "runuser", "pkexec", "machinectl", "systemd-run",
		"chroot", "nsenter", "unshare", "bwrap", "firejail", "proot",
	}
	// unfiled are arguments that are no path: packages and what versions of them, modules, and
	// addresses of a host. Under other schemes, as in local:///srv, there may be a folder.
	unfiled = whenAsked(`^((@[\w.-]+/)?[A-Za-z][\w.-]*(\[[\w,.-]+\])?@?( ?,? ?(===?|[<>~!]=?|\^) ?v?(\d[\w.*+-]*|\*))+|(npm:|jsr:)?@[\w.-]+/[\w.-]+(@[\w.^~*-]+)?|` +
		`(github|gitlab|bitbucket):[\w.-]+/[\w.-]+(#[\w./-]+)?|git@[\w.-]+:[\w./-]+|[\w-]+(\.[\w-]+)+/[\w./-]+@[\w.+-]+|` +
		`(?i:https?|wss?|ssh|git(\+https?|\+ssh)?|(postgres|postgresql|mysql|mariadb|mongodb|neo4j|bolt)(\+\w+)?|rediss?|amqps?|nats|mqtts?|ldaps?|grpcs?|tcp|s3|gs)` +
		`://([^\s/?#;|<>()` + "`" + `'"$]*@)?[\w\[][^\s;|<>()` + "`" + `'"$]*)$`)
	// within is a path inside of such an argument, as in a list or a query.
	within = whenAsked(`(?i)file:|[,=:](/[^/]|[~.]|%2f|%7e|%2e)`)
	// pathlike is what is more than a word.
	pathlike = whenAsked(`[/\\]|^~|^\.[A-Za-z_]`)
	// filed are names that nobody gives to a folder: what has one, and is not there yet, becomes
	// a file. Others with a dot, as my.project or .memory, are as good for a folder.
	filed = whenAsked(`(?i)(\*\.|\.(env|[cm]?[jt]sx?|pyz?|rb|php|pl|lua|go|rs|jar|exe|dll|so|dylib|wasm|sh|ps1|bat|cmd|jsonc?|json5|jsonl|ndjson|` +
		`ya?ml|toml|ini|cfg|conf|xml|html?|csv|tsv|txt|md|mdx|log|lock|pid|sock|pem|crt|key|pub|db|sqlite3?|duckdb|sql))$`)
)

const (
	spoken = " \t\r\n;&|()<>`$"   // what several words, or a text of a shell, are written with
	joints = spoken + `,:=[]{}'"` // what stands between folders that are written in one argument
)

// whenAsked compiles a form when something is first held against it.
func whenAsked(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}

// told returns the directories among the arguments of a program, from which some take
// relative paths to hang, in place of their own: absolute ones, those below the directory
// that it runs in or below each other, and below home for programs that know a ~ themselves.
// Where one may be overlooked, "" is among them, and nobody knows what a path hangs from.
func told(u *config.Upstream, cwd, home string) []string {
	orders := [][]string{u.Command[1:], slices.Clone(u.Command[1:])}
	slices.Reverse(orders[1]) // what a path hangs from may stand behind it
	unsure, found := true, []string{}
	for _, args := range orders {
		t := &tellings{bases: []string{cwd}, home: home, unsure: slices.Contains(elsewhere, programName(u.Command[0]))}
		for _, arg := range args {
			t.read(arg)
		}
		unsure = unsure && t.unsure
		for _, dir := range t.bases[1:] {
			if !slices.Contains(found, dir) {
				found = append(found, dir)
			}
		}
	}
	if unsure {
		found = append(found, "")
	}
	return found
}

// tellings are the arguments of a program, as far as they are read.
type tellings struct {
	bases  []string // the directory that it runs in, and those that it is told of
	home   string
	unsure bool
}

// read takes an argument for a folder, or else what it is made of.
func (t *tellings) read(arg string) {
	if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "-") {
		arg = value
	}
	there := t.look(arg)
	runs := slices.Contains(elsewhere, programName(arg)) && (!there || filepath.Base(arg) == arg)
	t.unsure = t.unsure || runs
	if !there && (!unfiled().MatchString(arg) || within().MatchString(arg)) {
		t.readParts(arg)
	}
}

func (t *tellings) readParts(arg string) {
	t.unsure = t.unsure || strings.ContainsAny(arg, spoken)
	for _, part := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(joints, r) }) {
		if len(part) > 2 && part[0] == '-' && part[1] != '-' { // -C/srv
			part = part[2:]
		}
		t.unsure = !t.knows(part) || t.unsure
	}
}

// knows reports whether a part of an argument leads to something, or is no path to a folder.
func (t *tellings) knows(part string) bool {
	names := spellings(part)
	switch i := strings.IndexAny(part, "*?"); {
	case part == "//", t.look(part), !slices.ContainsFunc(names, pathlike().MatchString):
		return true
	case slices.ContainsFunc(names, func(name string) bool { return !filed().MatchString(name) }):
		return false
	case i >= 0: // docs/*.md is of docs
		folder := part[:strings.LastIndexAny(part[:i], `/\`)+1]
		return folder == "" || t.look(folder)
	}
	return true
}

// spellings are the ways in which a program may read a name: as it is, as what it is in an
// address, and with the slashes of Windows.
func spellings(name string) []string {
	names := []string{name}
	add := func(other func(string) string) {
		for _, name := range names {
			if other := other(name); other != "" && !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	add(func(name string) string { plain, _ := url.PathUnescape(name); return plain })
	add(func(name string) string { return strings.ReplaceAll(name, `\`, "/") })
	add(func(name string) string {
		if strings.HasPrefix(name, "//") { // sqlite:///notes
			return strings.TrimLeft(name, "/")
		}
		return name
	})
	return names
}

// look reports whether something is where a name leads, and counts it if it is a folder.
func (t *tellings) look(name string) (there bool) {
	for _, spelled := range spellings(name) {
		there = t.lookAt(spelled) || there
	}
	return there
}

func (t *tellings) lookAt(name string) (there bool) {
	var places []string
	switch {
	case name == "":
		return false
	case filepath.IsAbs(name):
		places = []string{name}
	case name != "~" && !strings.HasPrefix(name, "~/"):
		for _, base := range t.bases {
			places = append(places, base+"/"+name)
		}
	case t.home == "":
		t.unsure = true // there may be one, and nobody knows where
		return false
	default:
		places = []string{t.home + name[1:]}
	}
	for _, place := range places {
		there = t.count(filepath.Clean(place)) || there
		if strings.Contains(place, "..") { // current/../data is beside what the link leads to
			real, _ := filepath.EvalSymlinks(place)
			there = t.count(real) || there
		}
	}
	return there
}

// count reports whether something is in a place, and counts it if it is a folder.
func (t *tellings) count(place string) bool {
	info, err := os.Stat(place)
	if err == nil && info.IsDir() && !slices.Contains(t.bases[1:], place) {
		t.bases = append(t.bases, place)
	}
	return err == nil
}
