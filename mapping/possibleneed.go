package mapping

import (
	"slices"

	"capgate/capability"
	"capgate/wire"
)

// filling is one way to fill in a circle, while it is read as a call would be.
type filling struct {
	*wish
	states []state
	method string // what an argument that names a method is given

	needs    []capability.Possibility
	blanks   []*node // whose value each blank is
	words    []openWords
	programs [2]openProgram
	split    map[*node]*node // by an argv: the place of its first word
	derived  bool
	unclear  bool // nothing more is known than that it is not refused
}

// openWords collects the words of one keyed verb.
type openWords struct {
	verb capability.Verb
	dims []openDim
}

type openDim struct {
	values []capability.Part
	open   bool
}

// openProgram collects the parts of programs under one verb.
type openProgram struct {
	starts          [][]capability.Part
	name, argv, dir []capability.Part
}

// read collects what the filling needs. It reports false if the call would be
// refused.
func (f *filling) read() bool {
	for _, s := range f.states {
		for i := range s.node.roles {
			r := &s.node.roles[i]
			ok := true
			switch {
			case s.present:
				f.derived = f.derived || r.reads.derives()
				ok = f.present(s, r)
			case r.optional:
				if w, is := r.reads.(word); is && w.dim != "" {
					f.dim(w).open = true
				}
			case r.fallback.Kind() == wire.Invalid:
				ok = false
			default:
				f.derived = f.derived || r.reads.derives()
				ok = f.fallback(r)
			}
			if !ok {
				return false
			}
		}
		if _, ok := s.node.kind(); s.present && !ok {
			return false
		}
	}
	return f.start(exec) && f.start(eval) && f.keyed()
}

// blank returns the part of a requirement that the value at a place is.
func (f *filling) blank(s state, name string) capability.Part {
	if f.pinned(s.node) {
		return capability.Part{Name: name, Text: f.method}
	}
	i := slices.Index(f.blanks, s.node)
	if i < 0 {
		i = len(f.blanks)
		f.blanks = append(f.blanks, s.node)
	}
	return capability.Part{Name: name, Blank: i + 1}
}

// pinned reports whether the value at a place is the method of a URL that is given.
func (f *filling) pinned(n *node) bool {
	return slices.ContainsFunc(f.states, func(s state) bool {
		return s.present && slices.ContainsFunc(s.node.roles, func(r role) bool {
			q, ok := r.reads.(request)
			return ok && s.object.member(q.method) == n
		})
	})
}

func (f *filling) ask(v capability.Verb, parts ...capability.Part) {
	f.needs = append(f.needs, capability.Possibility{Verb: v, View: f.call.View, Parts: parts})
}

// present reads a value that is given.
func (f *filling) present(s state, r *role) bool {
	switch reads := r.reads.(type) {
	case path:
		f.ask(reads.verb, f.blank(s, reads.what))
	case host:
		f.ask(reads.verb, f.blank(s, reads.what))
	case request:
		return f.request(s, reads)
	case word:
		if reads.dim == "" {
			f.ask(reads.verb)
			return true
		}
		if s.as != "" && isResource(reads) {
			return f.elsewhere(s)
		}
		d := f.dim(reads)
		d.values = append(d.values, f.blank(s, reads.dim))
	case command:
		as := "command"
		if kind, _ := s.node.kind(); kind == wire.Array {
			as = "argv"
		}
		p := f.program(reads.verb)
		p.starts = append(p.starts, []capability.Part{f.blank(s, as)})
	case part:
		return f.part(s, reads)
	}
	return true
}

// elsewhere reads the URI of a resource that needs another verb. Of what the mapping says is something
// else no more is known than that.
func (f *filling) elsewhere(s state) bool {
	f.unclear = f.unclear || len(s.node.roles) > 1 || s.as == readResource
	switch s.as {
	case "fs.read":
		f.ask(s.as, f.blank(s, "path"))
	case "net.get":
		f.ask(s.as, f.blank(s, asURL))
	default:
		return len(f.tool.of.resources) > 0
	}
	return true
}

func (f *filling) request(s state, q request) bool {
	method := q.fallback
	if slices.ContainsFunc(f.states, func(o state) bool { return o.present && o.node == s.object.member(q.method) }) {
		method = f.method
	}
	verb, ok := methodVerb(method)
	f.ask(verb, f.blank(s, asURL))
	return ok
}

func (f *filling) part(s state, p part) bool {
	into := f.program(p.verb)
	switch p.what {
	case partDir:
		into.dir = []capability.Part{f.blank(s, "cwd")}
	case partName:
		into.name = []capability.Part{f.blank(s, "argv0")}
	case partArgv:
		into.argv = []capability.Part{f.blank(s, "argv")}
	default:
		return false // no grant allows the environment to be set
	}
	return true
}

func (f *filling) program(v capability.Verb) *openProgram {
	if v == eval {
		return &f.programs[1]
	}
	return &f.programs[0]
}

// dim finds the words that are given in one dimension.
func (f *filling) dim(w word) *openDim {
	e, _ := capability.Lookup(w.verb)
	i := slices.IndexFunc(f.words, func(o openWords) bool { return o.verb == w.verb })
	if i < 0 {
		i = len(f.words)
		f.words = append(f.words, openWords{w.verb, make([]openDim, len(wordDims(e)))})
	}
	return &f.words[i].dims[slices.Index(wordDims(e), w.dim)]
}

// fallback reads what the tool takes when an argument is absent, with the role
// itself.
func (f *filling) fallback(r *role) bool {
	one := reading{Call: f.call, tool: f.tool}
	if r.reads.read(&one, place{value: r.fallback}) != nil {
		return false
	}
	for _, need := range one.needs {
		f.needs = append(f.needs, capability.Possibility{Known: need.Requirement})
	}
	for _, k := range one.words {
		for _, d := range k.dims {
			into := f.dim(word{k.verb, d.name})
			for _, v := range d.values {
				into.values = append(into.values, capability.Part{Name: d.name, Text: v.text})
			}
		}
	}
	for _, v := range [...]capability.Verb{exec, eval} {
		f.program(v).known(one.programs.of(v))
	}
	return true
}

// known takes over the parts of a program that are settled.
func (p *openProgram) known(from *program) {
	words := func(list []string) (parts []capability.Part) {
		for _, w := range list {
			parts = append(parts, capability.Part{Name: "argv0", Text: w})
		}
		return parts
	}
	for _, s := range from.starts {
		if s.argv != nil {
			p.starts = append(p.starts, words(s.argv))
		} else {
			p.starts = append(p.starts, []capability.Part{{Name: "command", Text: s.line}})
		}
	}
	if from.name != nil {
		p.name = words([]string{from.name.text})
	}
	if from.argv != nil {
		p.argv = words(from.argv.argv)
	}
	if from.dir != nil {
		p.dir = []capability.Part{{Name: "cwd", Text: from.dir.text}}
	}
}

// start adds the programs that are started under one verb, as programNeeds does.
func (f *filling) start(v capability.Verb) bool {
	p := f.program(v)
	starts := p.starts
	switch {
	case p.name != nil && p.argv != nil:
		one, ok := f.join(p)
		if !ok {
			return false
		}
		starts = append(starts, one)
	case p.name != nil:
		starts = append(starts, p.name)
	case p.argv != nil:
		starts = append(starts, p.argv)
	}
	dir := p.dir
	switch {
	case dir == nil && f.call.View.Cwd == "":
		dir = []capability.Part{{Name: "cwd", Text: "."}}
	case dir == nil:
		dir = []capability.Part{{Name: "cwd", Text: f.call.View.Cwd}}
	case len(starts) == 0:
		return false
	}
	for _, s := range starts {
		f.ask(v, append(slices.Clone(dir), s...)...)
	}
	return true
}

// join makes one argv of a program and its arguments. Where the one is settled and
// the other is not, giving both is another filling, that allows more.
func (f *filling) join(p *openProgram) (argv []capability.Part, ok bool) {
	open := 0
	for _, part := range append(slices.Clone(p.name), p.argv...) {
		if part.Blank > 0 {
			open++
			f.unclear = f.unclear || len(f.blanks[part.Blank-1].roles) > 1
		}
	}
	switch {
	case open == 0:
		return append(slices.Clone(p.name), p.argv...), true
	case open == 2 && !f.unclear:
		f.split = map[*node]*node{f.blanks[p.argv[0].Blank-1]: f.blanks[p.name[0].Blank-1]}
		return p.argv, true
	}
	return p.argv, f.unclear
}

// keyed adds one need for each combination of the words of a verb, as keyedNeeds
// does.
func (f *filling) keyed() bool {
	for _, k := range f.words {
		dims := slices.DeleteFunc(k.dims, func(d openDim) bool { return len(d.values) == 0 })
		combinations := min(1, len(dims))
		for i := range dims {
			if dims[i].open && len(dims) > 1 {
				dims[i].values = append(dims[i].values, capability.Part{})
			}
			if combinations *= len(dims[i].values); combinations > most {
				return false
			}
		}
		for n := range combinations {
			var parts []capability.Part
			for _, d := range dims {
				if p := d.values[n%len(d.values)]; p.Name != "" {
					parts = append(parts, p)
				}
				n /= len(d.values)
			}
			f.ask(k.verb, parts...)
		}
	}
	return true
}

// try looks for values, and keeps them.
func (f *filling) try() bool {
	witness, ok := f.chain.Possible(f.ceilings, f.needs...)
	if !ok {
		return f.unclear
	}
	for _, s := range f.states {
		if !s.present {
			continue
		}
		kind, _ := s.node.kind()
		g := &gift{kind: kind, words: []string{"x"}}
		if f.pinned(s.node) {
			g.words = []string{f.method}
		} else if i := slices.Index(f.blanks, s.node); i >= 0 && i < len(witness) {
			g.words = witness[i]
			if s.as == "fs.read" && len(g.words) > 0 {
				g.words = []string{"file://" + g.words[0]}
			}
		}
		f.given[s.node] = g
	}
	for argv, name := range f.split {
		if words := f.given[argv].words; len(words) > 0 {
			f.given[name].words, f.given[argv].words = words[:1], words[1:]
		}
	}
	return true
}

// kind returns what kind of value all roles of a place read, if there is one. A
// program with its arguments is an array where nothing else is said.
func (n *node) kind() (kind wire.Kind, ok bool) {
	either := false
	for _, r := range n.roles {
		want := wire.String
		switch reads := r.reads.(type) {
		case headers:
			want = wire.Object
		case part:
			if reads.what == partArgv {
				want = wire.Array
			}
		case command:
			if reads.verb == exec {
				either = true
				continue
			}
		}
		if kind != wire.Invalid && kind != want {
			return kind, false
		}
		kind = want
	}
	switch {
	case kind == wire.Invalid && n.elements != nil:
		return wire.String, true
	case kind == wire.Invalid:
		return wire.Array, true
	}
	return kind, !either || kind != wire.Object
}
