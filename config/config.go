package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"capgate/capability"
)

// Config is what capgate.yml says. It is plain values; nothing in it is open or
// running.
type Config struct {
	File      string            // the file itself, absolute
	Hash      [sha256.Size]byte // of its bytes
	Listen    Listen
	Agents    []string // the folders of records, absolute, in the order written
	Skills    Skills
	Sandbox   capability.Root   // the root that grants hang from, zero if none is written
	State     string            // the folder that capgate keeps between runs, absolute
	Upstreams []Upstream        // in the order written
	Mappings  []string          // the folders of mappings, absolute, in the order written
	Secrets   map[string]Secret // by name
	Providers []Provider        // in the order written
	Limits    Limits
	Guardrail Guardrail

	Unseen bool // agents do not see the tools of the gateway itself

	Tests []Test // in the order written

	// Above is the configuration that this one was made under, whose own files are
	// as much out of reach; nil for one that stands by itself.
	Above *Config

	// Wrapped says that the command line has described its one upstream.
	Wrapped bool
}

// defaultState is where state goes when nothing is said of it.
const defaultState = ".capgate"

// Load reads a configuration file. The view says what a relative file name and
// ~ stand for, and where folders really are. Nothing is loaded of a file with
// errors: take them apart with [Errors].
func Load(file string, v capability.View) (*Config, []capability.Finding, error) {
	data, err := read(absolute(file, v))
	if err != nil {
		return nil, nil, &Error{Pos: capability.Pos{File: file}, Text: err.Error()}
	}
	return Parse(file, data, v)
}

// Parse is [Load] for a file that was already read. It looks at nothing but what
// the view shows it.
func Parse(file string, data []byte, v capability.View) (*Config, []capability.Finding, error) {
	c := &Config{
		File: absolute(file, v), Hash: sha256.Sum256(data),
		Listen: Listen{Address: defaultAddress}, Limits: defaultLimits(), Guardrail: Guardrail{Fsync: fsyncInterval},
	}
	r := &reader{faults: newFaults(file), view: v, dir: path.Dir(c.File)}
	if !path.IsAbs(c.File) {
		r.add(capability.Pos{File: file}, "name it by its absolute path", "nobody can tell where this file is")
	}
	if r.root = r.document(data); r.root != nil {
		fill(r, r.root, "capgate.yml", sections(), c)
		r.defaults(c)
		for _, look := range r.later {
			look(c)
		}
	}
	if err := r.err(); err != nil {
		return nil, nil, err
	}
	return c, r.findings, nil
}

// Own returns the files and folders of the gateway itself, for the fence that no
// grant reaches through: the configuration and whatever it names that decides or
// authenticates, and what is kept.
func (c *Config) Own(v capability.View) ([]capability.Root, error) {
	places := slices.Concat([]string{c.File, c.State, c.Guardrail.Log}, c.Agents, c.Mappings, c.Listen.files())
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		places = append(places, c.Secrets[name].File)
	}
	own, err := roots(places, v)
	if err != nil || c.Above == nil {
		return own, err
	}
	above, err := c.Above.Own(v)
	return append(own, above...), err
}

// roots finds out where places are, those that are not written left out.
func roots(places []string, v capability.View) ([]capability.Root, error) {
	var found []capability.Root
	for _, place := range places {
		if place == "" {
			continue
		}
		root, err := capability.ParseRoot(place, "", v)
		if err != nil {
			return nil, unfound(place, v, err)
		}
		found = append(found, root)
	}
	return found, nil
}

// unfound says why nobody can tell where a place is: what the file system says, as the operator
// reads it and no agent does.
func unfound(place string, v capability.View, err error) *Error {
	if v.FS != nil {
		if _, why := v.FS.Real(place); why != nil {
			err = why
		}
	}
	e := &Error{Text: fmt.Sprintf("find the gateway's own %s: %s", place, err)}
	if errors.Is(err, fs.ErrPermission) {
		e.Hint = "run capgate as the user to whom " + place + " belongs"
	}
	return e
}

// absolute hangs a file name from the working directory.
func absolute(file string, v capability.View) string {
	if path.IsAbs(file) {
		return path.Clean(file)
	}
	return path.Join(v.Cwd, file)
}

// read returns what a file holds, one byte more than it may hold at most.
func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file")
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, errors.New("this is not a regular file")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }() // nothing was written
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// defaults fills in what was not written and says what that means.
func (r *reader) defaults(c *Config) {
	if c.State == "" {
		c.State = path.Join(r.dir, defaultState)
	}
	if c.Guardrail.Log == "" {
		c.Guardrail.Log = path.Join(c.State, defaultLog)
	}
	top := capability.Pos{File: r.file}
	if len(c.Agents) == 0 {
		r.warn(top, "no_agents", "there is no agents: section, so that nobody may do anything", "write agents: ./agents")
	}
	if c.Sandbox.Real == "/" {
		r.warn(top, "wide_sandbox", "the sandbox root is the whole file system", "name the folder that agents work in")
	}
}

func (r *reader) warn(pos capability.Pos, code, text, hint string) {
	r.findings = append(r.findings, capability.Finding{
		Code: code, Severity: capability.Warning, Pos: pos, Text: text, Hint: hint,
	})
}
