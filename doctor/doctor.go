package doctor

import (
	"cmp"
	"slices"

	"capgate/capability"
)

// Subject is what is examined: a loaded configuration, and this machine.
type Subject struct {
	Findings  []capability.Finding // what load said
	Agents    []Agent
	Upstreams []Upstream
	Providers []Provider
	Own       []capability.Root         // the gateway's own files: configuration, records, state
	Readable  []string                  // files of keys that others may read
	Places    []Place                   // what says what agents may do, none where modes mean nothing
	User      int                       // whoever runs the gateway
	Guardrail capability.Pos            // where what is said here stands
	Lossy     bool                      // what cannot be recorded is forwarded all the same
	OS        string                    // runtime.GOOS
	Has       func(program string) bool // whether a program is installed
}

// Upstream is one server behind the gateway that is not part of it.
type Upstream struct {
	Name     string
	Pos      capability.Pos
	Program  bool              // it is started here
	Starts   []capability.Root // files that its launcher reads where it is started
	Mapped   bool              // a mapping says what its arguments mean
	Unpinned bool              // its tools may change unseen
	Tools    []string          // single tools that may
	Adrift   bool              // nobody knows what the paths of its calls hang from
	Within   string            // the top of the repository that it is started below, and that git is kept from; "" for none

	Unmediated bool // it is called although it declares nothing
}

// Provider is a model's vendor that agents reach through the gateway.
type Provider struct {
	Name   string
	Pos    capability.Pos
	Source string   // the variable that its key is read from, "" for none
	Known  []string // those that clients of the vendor read a key from by themselves
	Set    []string // those of them that hold one where doctor runs
	Relay  string   // where another gateway answers in its place, which may take no list of hosts; "" for none
}

// Agent is one agent with a sound record.
type Agent struct {
	ID  string
	Pos capability.Pos // its record
	Set *capability.Set

	Labelled []Labelled // the tools that it could call of those whose mapping has labels

	Skills []capability.Root // where skills lie that it may not be shown: the folders of all, and mirrors of others

	Wider map[string][]string // the providers that a name goes up to and that take it for more than was granted, by the name
}

// Labelled is a tool with what a mapping says that data does in it: private_in,
// untrusted_in, public_out.
type Labelled struct {
	Tool   string
	Labels []string
}

// Check is one thing that doctor looks for.
type Check struct {
	Code     string
	Severity capability.Severity
	Title    string // what the check is about, for the list of checks
	Fix      string // what to do when it finds something and has no better hint

	find func(Subject) []capability.Finding
}

// Examine runs every check and returns what they found, the worst first, then by
// place.
func Examine(s Subject) []capability.Finding {
	var all []capability.Finding
	for _, c := range Checks() {
		for _, f := range c.find(s) {
			f.Code = c.Code
			f.Severity = max(f.Severity, c.Severity)
			if f.Hint == "" {
				f.Hint = c.Fix
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b capability.Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
		)
	})
	return all
}

// loaded picks what load said under a code.
func loaded(code string) func(Subject) []capability.Finding {
	return func(s Subject) []capability.Finding {
		var found []capability.Finding
		for _, f := range s.Findings {
			if f.Code == code {
				found = append(found, f)
			}
		}
		return found
	}
}

// upstreams finds servers about which judge has something to say.
func upstreams(judge func(Upstream) string) func(Subject) []capability.Finding {
	return func(s Subject) []capability.Finding {
		var found []capability.Finding
		for _, u := range s.Upstreams {
			if text := judge(u); text != "" {
				found = append(found, capability.Finding{Pos: u.Pos, Text: "the upstream " + u.Name + " " + text})
			}
		}
		return found
	}
}

// relays finds gateways in the place of a provider: some search the web and overlook the
// list of domains that a request has for it.
func relays(s Subject) []capability.Finding {
	var found []capability.Finding
	for _, p := range s.Providers {
		if p.Relay != "" {
			found = append(found, capability.Finding{
				Pos: p.Pos, Text: "what answers at " + p.Relay + " in the place of " + p.Name + " may search the web and overlook the hosts that a request names",
			})
		}
	}
	return found
}

// exposedKeys finds keys that the client of an agent finds too. One that has a key
// of its own does not need the gateway.
func exposedKeys(s Subject) []capability.Finding {
	var found []capability.Finding
	for _, p := range s.Providers {
		if slices.Contains(p.Known, p.Source) {
			found = append(found, capability.Finding{
				Pos:  p.Pos,
				Text: "the key of " + p.Name + " stands in " + p.Source + ", which a client that is started from the same environment reads too, to ask the provider by itself",
				Hint: "keep the key in a file, or in a variable of another name",
			})
		}
		for _, name := range p.Set {
			if name != p.Source {
				found = append(found, capability.Finding{
					Pos: p.Pos, Text: name + " is set: a client that is started from here asks " + p.Name + " by itself",
				})
			}
		}
	}
	return found
}

// readableKeys finds keys that whoever uses this machine can read.
func readableKeys(s Subject) []capability.Finding {
	var found []capability.Finding
	for _, file := range s.Readable {
		found = append(found, capability.Finding{Pos: capability.Pos{File: file}, Text: "others may read this private key, and be taken for the gateway"})
	}
	return found
}

// grants finds grants in effect about which judge has something to say.
func grants(judge func(Subject, *capability.Grant) string) func(Subject) []capability.Finding {
	return grantsOf(func(s Subject, _ Agent, g *capability.Grant) string { return judge(s, g) })
}

// grantsOf does so where it matters whose they are.
func grantsOf(judge func(Subject, Agent, *capability.Grant) string) func(Subject) []capability.Finding {
	return func(s Subject) []capability.Finding {
		var found []capability.Finding
		for _, a := range s.Agents {
			for g := range a.Set.All() {
				if g.Inert() != "" {
					continue
				}
				if text := judge(s, a, g); text != "" {
					pos := g.Spec().Pos
					if pos.File == "" {
						pos = a.Pos
					}
					found = append(found, capability.Finding{Pos: pos, Text: a.ID + ": " + text})
				}
			}
		}
		return found
	}
}
