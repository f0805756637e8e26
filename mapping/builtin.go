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
	if parse, ok := parsed()[name]; ok {
		return parse()
	}
	_, err := Source(name)
	return nil, err
}

// parsed reads each mapping that ships with capgate once, when it is asked for: policies
// have the same ones again and again, and few of them.
var parsed = sync.OnceValue(func() map[string]func() (*Mapping, error) {
	all := map[string]func() (*Mapping, error){}
	for _, name := range Builtins() {
		all[name] = sync.OnceValues(func() (*Mapping, error) {
			data, err := Source(name)
			if err != nil {
				return nil, err
			}
			m, _, err := Parse("builtin/"+name+".yml", data)
			return m, err
		})
	}
	return all
})
