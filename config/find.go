package config

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"capgate/capability"
)

// FileName is what a configuration is called where nobody names it.
const FileName = "capgate.yml"

// Find says which file is the configuration: the one named explicitly, else
// capgate.yml in the working directory, else the user's own, below xdg
// ($XDG_CONFIG_HOME) or ~/.config. A file that is there and cannot be looked at
// is found all the same: the next one in line would be another policy.
func Find(explicit, cwd, xdg, home string) (string, error) {
	if explicit != "" {
		return absolute(explicit, capability.View{Cwd: cwd}), nil
	}
	for _, dir := range []string{cwd, userDir(xdg, home)} {
		if dir == "" {
			continue
		}
		file := path.Join(dir, FileName)
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return file, nil
		}
	}
	return "", &Error{
		Text: "there is no configuration: no " + FileName + " here, and none in the user's own configuration folder",
		Hint: "write " + FileName + ", for which config.example.yml is a start, or name a file with --config",
	}
}

// userDir returns the folder of the user's own configuration, "" if nobody knows
// it. A relative xdg is to be ignored, says the specification it comes from.
func userDir(xdg, home string) string {
	switch {
	case path.IsAbs(xdg):
		return path.Join(xdg, "capgate")
	case path.IsAbs(home):
		return path.Join(home, ".config", "capgate")
	}
	return ""
}
