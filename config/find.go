package config

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"capgate/capability"
)

// FileName is what a configuration is called where nobody names it.
const FileName = "capgate.yml"

// ErrNone is what [Find] says when there is no configuration.
var ErrNone error = &Error{
	Text: "there is no configuration: no " + FileName + " here, and none in the user's own configuration folder",
	Hint: "name one with -c, or copy config.example.yml to " + FileName,
}

// Find says which file is the configuration: the one named explicitly, else
// capgate.yml in the working directory, or the user's own, below xdg
// ($XDG_CONFIG_HOME) or ~/.config. Two are one too many: clients start programs in
// the folders of others, and what lies there would be the policy. One folder by two names
// is one. A file that is there and cannot be looked at is found all the same: the other
// one would be another policy.
func Find(explicit, cwd, xdg, home string) (string, error) {
	if explicit != "" {
		return absolute(explicit, capability.View{Cwd: cwd}), nil
	}
	var found []string
	var unseen error // why the last of them cannot be looked at
	for _, dir := range []string{cwd, userDir(xdg, home)} {
		if dir == "" || len(found) > 0 && isSame(dir, cwd) {
			continue
		}
		file := path.Join(dir, FileName)
		_, err := os.Lstat(file)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			found, unseen = append(found, file), err
		}
	}
	switch len(found) {
	case 0:
		return "", ErrNone
	case 1:
		return found[0], nil
	}
	text := "there are two configurations: " + found[0] + ", and the user's own " + found[1]
	if unseen != nil {
		text = "there is a configuration " + found[0] + ", and whether the user has one cannot be looked at: " + unseen.Error()
	}
	return "", &Error{Text: text, Hint: "name the one that is meant with -c"}
}

// isSame reports whether two names lead to one folder. A file that two folders hold means
// something else in each, as what it names hangs from its folder.
func isSame(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// userDir returns the folder of the user's own configuration, "" if nobody knows it.
func userDir(xdg, home string) string {
	if dir := configDir(xdg, home); dir != "" {
		return path.Join(dir, "capgate")
	}
	return ""
}

// configDir returns the folder that programs keep their settings below, "" if nobody
// knows it. A relative xdg is to be ignored, says the specification it comes from.
func configDir(xdg, home string) string {
	switch {
	case path.IsAbs(xdg):
		return xdg
	case path.IsAbs(home):
		return path.Join(home, ".config")
	}
	return ""
}
