package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
		"su", "sudo", "runuser", "pkexec", "machinectl", "systemd-run", "chroot", "nsenter", "unshare", "bwrap", "firejail", "proot",
	}
	// unfiled are arguments that are no path: addresses, packages and what versions of them,
	// modules.
	unfiled = regexp.MustCompile(`^((@[\w.-]+/)?[A-Za-z][\w.-]*(\[[\w,.-]+\])?@?( ?,? ?(===?|[<>~!]=?|\^) ?v?(\d[\w.*+-]*|\*))+|[A-Za-z][\w+.-]*://[^\s;|<>()` + "`" + `'"$]*|(npm:|jsr:)?@[\w.-]+/[\w.-]+(@[\w.^~*-]+)?|` +
		`(github|gitlab|bitbucket):[\w.-]+/[\w.-]+(#[\w./-]+)?|[\w-]+(\.[\w-]+)+/[\w./-]+@[\w.+-]+)$`)
)

const (
	spoken = " \t\r\n;&|()<>`$"   // what several words, or a text of a shell, are written with
	joints = spoken + `,:=[]{}'"` // what stands between folders that are written in one argument
)

// told returns the directories among the arguments of a program, from which some take
// relative paths to hang, in place of their own: absolute ones, those below the directory
// that it runs in or below each other, and below home for programs that know a ~ themselves.
// Where one may be overlooked, "" is among them, and nobody knows what a path hangs from.
func told(u *config.Upstream, cwd, home string) []string {
	t := &tellings{bases: []string{cwd}, home: home, unsure: slices.Contains(elsewhere, programName(u.Command[0]))}
	for _, arg := range u.Command[1:] {
		t.read(arg)
	}
	if t.unsure {
		t.bases = append(t.bases, "")
	}
	return t.bases[1:]
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
	address := unfiled.MatchString(arg) && !strings.Contains(strings.ToLower(arg), "file:")
	t.unsure = t.unsure || runs
	if !there && !address {
		t.readParts(arg)
	}
}

func (t *tellings) readParts(arg string) {
	t.unsure = t.unsure || strings.ContainsAny(arg, spoken)
	for _, part := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(joints, r) }) {
		if len(part) > 2 && part[0] == '-' && part[1] != '-' { // -C/srv
			part = part[2:]
		}
		path := (strings.ContainsAny(part, `/\`) || part[0] == '~') && filepath.Ext(part) == ""
		t.unsure = !t.look(part) && path || t.unsure
	}
}

// look reports whether something is where a name leads, and counts it if it is a folder.
func (t *tellings) look(name string) (there bool) {
	var places []string
	switch {
	case name == "":
		return false
	case filepath.IsAbs(name):
		places = []string{name}
	case name != "~" && !strings.HasPrefix(name, "~/"):
		for _, base := range t.bases {
			places = append(places, filepath.Join(base, name))
		}
	case t.home == "":
		t.unsure = true // there may be one, and nobody knows where
		return false
	default:
		places = []string{t.home + name[1:]}
	}
	for _, place := range places {
		info, err := os.Stat(place)
		there = there || err == nil
		if place = filepath.Clean(place); err == nil && info.IsDir() && !slices.Contains(t.bases[1:], place) {
			t.bases = append(t.bases, place)
		}
	}
	return there
}
