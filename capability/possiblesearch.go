package capability

import (
	"slices"
	"strings"

	"capgate/capability/pattern"
)

const (
	firstRows  = 3  // of each table, which are tried before all others
	maxGuesses = 64 // rows of each table that are tried before all are compared
)

// guess tries fillings that are plain to see: what is in a row of some table,
// with the simplest value for whatever the row leaves open.
func (v variant) guess(demands []pattern.Demand, plain []string) bool {
	if v.check(plain) {
		return true
	}
	for _, d := range demands {
		for _, row := range d.Rows[:min(len(d.Rows), maxGuesses)] {
			texts := slices.Clone(plain)
			for i, p := range row {
				if _, pinned := v.pins[v.blanks[i]]; p != v.anything && !pinned {
					texts[i] = p.Sample()
				}
			}
			if v.check(texts) {
				return true
			}
		}
	}
	return false
}

// plain returns a simple value for each blank: one that a row of some table names.
func (v variant) plain(demands []pattern.Demand) []string {
	texts := make([]string, len(v.blanks))
	for i, b := range v.blanks {
		if texts[i] = v.pins[b]; texts[i] != "" {
			continue
		}
		texts[i] = "x"
		if v.forms[i] == formPath {
			texts[i] = "/x"
		}
		for _, d := range demands {
			if len(d.Rows) > 0 && d.Rows[0][i] != v.anything {
				texts[i] = d.Rows[0][i].Sample()
				break
			}
		}
	}
	return texts
}

// search compares everything. What it finds it tries, since not all of what makes
// a value readable can be said in patterns.
func (v variant) search(demands []pattern.Demand) answer {
	if slices.ContainsFunc(demands, func(d pattern.Demand) bool { return len(d.Rows) > maxRows }) {
		return undecided
	}
	universe, readable := v.readable()
	demands = append(demands, readable...)
	found, ok, capped := pattern.Common(universe, demands...)
	switch {
	case !ok && !capped:
		return impossible
	case ok && (v.check(found) || v.trySubcommands(found)):
		return possible
	}
	for i, f := range v.forms {
		demands = append(demands, v.demand(i, f.usual(v.cwds[i])...))
	}
	found, ok, cut := pattern.Common(universe, demands...)
	switch {
	case ok && v.check(found):
		return possible
	case capped || cut || v.inexact(demands):
		return undecided
	}
	return impossible
}

// readable returns what the values must be to be read at all.
func (v variant) readable() (universe []pattern.Universe, demands []pattern.Demand) {
	for i, f := range v.forms {
		universe = append(universe, f.universe())
		if text, ok := v.pins[v.blanks[i]]; ok {
			demands = append(demands, v.demand(i, pattern.Literal(text)))
		}
		if p := f.readable(); p != nil {
			demands = append(demands, v.demand(i, p))
		}
	}
	return universe, demands
}

// inexact reports whether a value that was found and is denied says nothing about
// others: everything but a plain path has rules that patterns do not know.
func (v variant) inexact(demands []pattern.Demand) bool {
	return slices.ContainsFunc(demands, func(d pattern.Demand) bool { return d.Tree }) ||
		slices.ContainsFunc(v.forms, func(f form) bool { return f != formPath })
}

// demands writes out what every link demands of the blanks. It is not enough when
// a link has nothing for a need.
func (v variant) demands(most int) (demands []pattern.Demand, enough bool) {
	for _, need := range v.asked {
		for _, t := range v.links(need.entry.Verb) {
			d := pattern.Demand{Tree: need.tree() > 0 && need.tree() == v.blanks[len(v.blanks)-1]}
			for row := range v.rows(t, need) {
				if d.Rows = append(d.Rows, row); len(d.Rows) > most {
					break
				}
			}
			if len(d.Rows) == 0 {
				return nil, false
			}
			demands = append(demands, d)
		}
	}
	return demands, true
}

// demand is the demand that one of the blanks match one of some patterns.
func (v variant) demand(i int, patterns ...*pattern.Pattern) pattern.Demand {
	var d pattern.Demand
	for _, p := range patterns {
		r := slices.Repeat(pattern.Row{v.anything}, len(v.blanks))
		r[i] = p
		d.Rows = append(d.Rows, r)
	}
	return d
}

func (f form) universe() pattern.Universe {
	switch f {
	case formPath:
		return pattern.AbsPath
	case formRecord:
		return pattern.RelPath
	}
	return pattern.Any
}

// Characters that patterns are made of here, as ranges.
const (
	wordChars = "azAZ09__--"
	lineChars = wordChars + "..//::==@@%%++,,"
	pathChars = wordChars + "@@++,,==##&&!!;;^^" + letterChars

	// letterChars are letters of other alphabets that look like nothing else.
	letterChars = "\u00c0\u00d6\u00d8\u00f6\u00f8\u02af\u0391\u03a1\u03a3\u03c9\u0400\u0481\u3041\u3096\u30a1\u30fa\u4e00\u9fff\uac00\ud7a3"
)

// readable returns the pattern of what can be read in a form at all, nil where its
// universe says so.
func (f form) readable() *pattern.Pattern {
	switch f {
	case formPath, formRecord:
		return nil
	case formItem:
		return pattern.Segments(pattern.Dot, false, "azAZ09__--", "azAZ09__--")
	case formLine:
		return pattern.Segments(pattern.Unit, false, lineChars, lineChars)
	case formWord:
		return parsed("?*", pattern.Unit)
	}
	return parsed("?**", pattern.None)
}

// usual returns the patterns of what nobody reads in more than one way.
func (f form) usual(cwd string) []*pattern.Pattern {
	const inner = pathChars + "..  ''"
	switch f {
	case formPath:
		list := []*pattern.Pattern{pattern.Segments(pattern.Slash, true, inner, pathChars)}
		if strings.HasPrefix(cwd, "/") {
			list = append(list, pattern.Literal(cwd), pattern.Under(cwd, pattern.Segments(pattern.Slash, false, inner, pathChars)))
		}
		return list
	case formRecord:
		return []*pattern.Pattern{pattern.Segments(pattern.Slash, false, pathChars, pathChars)}
	case formID:
		return []*pattern.Pattern{pattern.Under("agents", pattern.Segments(pattern.Slash, false, wordChars, wordChars))}
	case formArgv, formLine:
		return []*pattern.Pattern{pattern.Segments(pattern.Unit, false, wordChars, wordChars)}
	}
	return []*pattern.Pattern{anything()}
}

// parsed reads a pattern of our own, in which there is no error.
func parsed(text string, sep rune) *pattern.Pattern {
	p, _ := pattern.Parse(text, sep)
	return p
}

// trySubcommands tries each subcommand of a program that has some in place of the
// second word of an argv.
func (v variant) trySubcommands(texts []string) bool {
	for i, f := range v.forms {
		words := strings.Split(texts[i], unit)
		if f != formArgv && f != formLine || len(words) < 2 {
			continue
		}
		r := ruleFor(words[0])
		if r == nil {
			continue
		}
		for sub := range r.subs {
			words[1] = sub
			one := slices.Clone(texts)
			if one[i] = strings.Join(words, unit); v.check(one) {
				return true
			}
		}
	}
	return false
}
