package mapping

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed builtin/*.yml
var builtins embed.FS

// Builtins returns the names of the mappings that ship with capgate, sorted.
func Builtins() []string {
	entries, _ := builtins.ReadDir("builtin") // embedded, so that it is there
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yml")
	}
	return names
}

// Source returns the text of a mapping that ships with capgate.
func Source(name string) ([]byte, error) {
	data, err := builtins.ReadFile("builtin/" + name + ".yml")
	if err != nil {
		return nil, fmt.Errorf("there is no mapping %q; capgate has %s", name, strings.Join(Builtins(), ", "))
	}
	return data, nil
}

// Builtin returns a mapping that ships with capgate.
func Builtin(name string) (*Mapping, error) {
	data, err := Source(name)
	if err != nil {
		return nil, err
	}
	m, _, err := Parse("builtin/"+name+".yml", data)
	return m, err
}
