package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/mapping"
)

const (
	maxMappings = 1000 // files in one folder of mappings

	mappingSuffix = ".yml"
	aBuiltin      = "a built-in mapping" // what gives a name that ships with capgate
)

// LoadMappings reads the mappings in the folders of mappings:, by the name that each
// gives its server, and of those that ship with capgate the ones that upstreams use. A
// name that an upstream uses and nobody gives is an error, and so is one that is
// given twice: which of two applies would be a guess.
func LoadMappings(c *Config) (map[string]*mapping.Mapping, []capability.Finding, error) {
	l := library{faults: newFaults(c.File), byName: map[string]*mapping.Mapping{}, from: map[string]string{}}
	for _, name := range mapping.Builtins() {
		l.from[name] = aBuiltin
	}
	for _, dir := range c.Mappings {
		l.folder(dir)
	}
	unread := l.err() != nil
	for _, u := range c.Upstreams {
		if u.Mapping == "" {
			continue
		}
		all := slices.Sorted(maps.Keys(l.from))
		switch from, ok := l.from[u.Mapping]; {
		case !ok && unread && capability.Closest(u.Mapping, all) == "": // perhaps it stands in what cannot be read
		case !ok:
			l.add(u.MappingPos, meant(u.Mapping, all, "there are "+strings.Join(all, ", ")), "there is no mapping %q", clip(u.Mapping))
		case from == aBuiltin:
			m, err := mapping.Builtin(u.Mapping)
			if err != nil {
				return nil, nil, fmt.Errorf("the built-in mapping %s: %w", u.Mapping, err)
			}
			l.byName[u.Mapping] = m
		}
	}
	if err := l.err(); err != nil {
		return nil, nil, err
	}
	return l.byName, l.findings, nil
}

// library is the mappings while they are read.
type library struct {
	*faults
	byName   map[string]*mapping.Mapping // those that were read
	from     map[string]string           // what each name was given by
	findings []capability.Finding
}

func (l *library) folder(dir string) {
	pos := capability.Pos{File: dir}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		l.add(pos, "", "the folder of mappings cannot be read: %v", errors.Unwrap(err))
		return
	case len(entries) > maxMappings:
		l.add(pos, "", "the folder of mappings holds more than %d files", maxMappings)
		return
	}
	for _, e := range entries {
		file := capability.Pos{File: path.Join(dir, e.Name())}
		switch suffix := path.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."): // of an editor, or of nobody's concern
		case suffix == ".yaml":
			l.add(file, "name it "+strings.TrimSuffix(e.Name(), suffix)+mappingSuffix, "a mapping is a %s file, and this one would not be read", mappingSuffix)
		case suffix != mappingSuffix: // a README
		case !e.Type().IsRegular(): // what a link leads to may be within an agent's reach
			l.add(file, "put the file itself here", "this is not a regular file")
		default:
			l.file(file)
		}
	}
}

func (l *library) file(pos capability.Pos) {
	data, err := read(pos.File)
	if err != nil {
		l.add(pos, "", "%v", err)
		return
	}
	m, findings, err := mapping.Parse(pos.File, data)
	if invalid, ok := errors.AsType[*mapping.Invalid](err); ok {
		l.add(invalid.Pos, invalid.Hint, "%s", invalid.Text)
		return
	} else if err != nil {
		l.add(pos, "", "%v", err)
		return
	}
	if from, taken := l.from[m.Server()]; taken {
		l.add(pos, "give it another name with server:", "the name %q is taken by %s", clip(m.Server()), from)
		return
	}
	l.byName[m.Server()], l.from[m.Server()] = m, pos.File
	l.findings = append(l.findings, findings...)
}
