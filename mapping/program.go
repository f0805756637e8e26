package mapping

import (
	"capgate/capability"
	"capgate/wire"
)

// The verbs of programs, whose requirements are made of several arguments.
const (
	exec = capability.Verb("proc.exec")
	eval = capability.Verb("proc.eval")
)

// command is a whole command: a command line, or for proc.exec an argv too.
type command struct{ verb capability.Verb }

func (c command) read(r *reading, at place) (err error) {
	s := start{at: at}
	if c.verb == exec && at.value.Kind() == wire.Array {
		s.argv, err = at.texts()
	} else {
		s.line, err = at.text()
	}
	p := r.programs.of(c.verb)
	p.starts = append(p.starts, s)
	return err
}

func (c command) verbs() []capability.Verb { return []capability.Verb{c.verb} }
func (command) derives() bool              { return true }

// part is one of the arguments that describe a program together.
type part struct {
	verb capability.Verb
	what string
}

// What a part can be.
const (
	partDir  = "in"    // the working directory
	partName = "argv0" // the program
	partArgv = "argv"  // what it is called with; all of the argv where no argument is the program
	partEnv  = "env"   // variables
)

func (p part) read(r *reading, at place) error {
	into := r.programs.of(p.verb)
	switch p.what {
	case partArgv:
		words, err := at.texts()
		into.argv = &start{at: at, argv: words}
		return err
	case partEnv:
		if kind := at.value.Kind(); kind != wire.Object && kind != wire.Array {
			return at.wrong("an object")
		}
		into.env = &at
		return nil
	}
	text, err := at.text()
	if p.what == partName {
		into.name = &given{at, text}
	} else {
		into.dir = &given{at, text}
	}
	return err
}

func (p part) verbs() []capability.Verb { return []capability.Verb{p.verb} }

// derives is true of what is the program; the rest only says how it runs.
func (p part) derives() bool { return p.what == partName || p.what == partArgv }

// start is one program that a call starts.
type start struct {
	at   place
	line string   // the command line, where there is no argv
	argv []string // nil for a command line
}

// program collects what the arguments of a call say of the programs it starts
// under one verb. What is nil was not said.
type program struct {
	starts    []start
	name, dir *given
	argv      *start
	env       *place
}

type programs struct{ exec, eval program }

func (p *programs) of(v capability.Verb) *program {
	if v == eval {
		return &p.eval
	}
	return &p.exec
}

// all returns the programs that are started, the one described in parts too.
func (p *program) all() []start {
	switch {
	case p.name != nil && p.argv != nil:
		return append(p.starts, start{at: p.name.at, argv: append([]string{p.name.text}, p.argv.argv...)})
	case p.name != nil:
		return append(p.starts, start{at: p.name.at, argv: []string{p.name.text}})
	case p.argv != nil:
		return append(p.starts, *p.argv)
	}
	return p.starts
}

// programNeeds adds the requirements of the programs that the call starts, each
// in the directory that it names, or else in the upstream's own.
func (r *reading) programNeeds() error {
	for _, v := range [...]capability.Verb{exec, eval} {
		p := r.programs.of(v)
		switch starts := p.all(); {
		case len(starts) > 0:
			if err := r.start(v, p, starts); err != nil {
				return err
			}
		case p.dir != nil:
			return malformed(p.dir.at.name, "is the directory of a program, and the call names none")
		case p.env != nil:
			return malformed(p.env.name, "is the environment of a program, and the call names none")
		}
	}
	return nil
}

func (r *reading) start(v capability.Verb, p *program, starts []start) error {
	dir := given{text: "."} // any that the upstream may work in
	if p.dir != nil {
		dir = *p.dir
	}
	cwd, err := r.View.Path(dir.text)
	if err != nil {
		return r.need(dir.at, nil, err)
	}
	if p.env != nil && p.env.value.Len() > 0 {
		const reason = "the call sets environment variables of the program"
		if err := r.need(*p.env, capability.Beyond(v, reason), nil); err != nil {
			return err
		}
	}
	for _, s := range starts {
		var q *capability.Requirement
		if s.argv != nil {
			q, err = capability.Exec(r.View, cwd, s.argv)
		} else {
			q, err = capability.Shell(v, r.View, cwd, s.line)
		}
		if err := r.need(s.at, q, err); err != nil {
			return err
		}
	}
	return nil
}
