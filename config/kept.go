package config

import (
	"path"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Kept reads of a configuration file only where capgate keeps its state, and how
// it records, whatever else is wrong with the file: revoking must be possible while
// it cannot be loaded. The rest of what it returns is not filled in.
func Kept(file string, v capability.View) (*Config, error) {
	file = absolute(file, v)
	data, err := read(file)
	if err != nil {
		return nil, &Error{Pos: capability.Pos{File: file}, Text: err.Error()}
	}
	c := &Config{File: file, Guardrail: Guardrail{Fsync: fsyncInterval}}
	r := &reader{faults: newFaults(file), view: v, dir: path.Dir(file)}
	r.root = r.document(data)
	if r.root == nil {
		return nil, r.err()
	}
	r.faults = newFaults(file) // those of the sections that follow, and no others
	only := *r.root
	only.Content = nil
	for i := 0; only.Kind == yaml.MappingNode && i+1 < len(r.root.Content); i += 2 {
		if k := r.root.Content[i]; k.Value == "state" || k.Value == "guardrail" {
			only.Content = append(only.Content, k, r.root.Content[i+1])
		}
	}
	r.tree(&only, 1)
	fill(r, &only, "capgate.yml", sections(), c)
	if err := r.err(); err != nil {
		return nil, err
	}
	r.defaults(c)
	return c, nil
}
