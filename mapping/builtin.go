package mapping

import (
	"embed"
	"fmt"
	"strings"
	"sync"
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
	all, err := parsed()
	if err != nil {
		return nil, err
	}
	if m, ok := all[name]; ok {
		return m, nil
	}
	_, err = Source(name)
	return nil, err
}

// parsed reads the mappings that ship with capgate, which is done once: every policy has them.
var parsed = sync.OnceValues(func() (map[string]*Mapping, error) {
	all := map[string]*Mapping{}
	for _, name := range Builtins() {
		data, err := Source(name)
		if err != nil {
			return nil, err
		}
		if all[name], _, err = Parse("builtin/"+name+".yml", data); err != nil {
			return nil, err
		}
	}
	return all, nil
})
