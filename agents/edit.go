package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Change is what to do to the grants of a record.
type Change struct {
	Grant   []capability.Spec
	Revoke  []capability.Spec
	Options Options // what records are loaded with; the zero value compares paths as they are written
}

// Edited is a record with a change made to it.
type Edited struct {
	Data    []byte            // the file; the bytes that went in when nothing had to change
	Changed bool              // whether they differ
	Grants  []capability.Spec // what the record grants now

	// Lost holds the grants that were in effect because the configuration clamped
	// sandbox:, and are inert now that its directory is written out.
	Lost []capability.Spec

	// Still holds the grants that cover something that was to be revoked all
	// the same: a wider one, or one of another dialect. As long as there are
	// any, the revocation has narrowed nothing.
	Still []capability.Spec
}

// Edit grants and revokes in the text of an Egghead record. The first change
// dissolves access: and sandbox: into the explicit list; comments, the order of
// keys, line ends and everything outside the list stay as they are. To revoke is
// to remove entries that say the same, or all entries of a bare verb; what is
// only a part of an entry is an error that says what is held. The result is read
// back and must grant what was intended, or the change is refused.
func Edit(file string, data []byte, change Change) (*Edited, error) {
	p, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	e := &edit{parser: p, change: change, data: data}
	if p.rec.Dialect != capability.Egghead {
		return nil, e.refuse("edit the file", "the record is written in the dialect %s, in which grants are not edited by command", p.rec.Dialect)
	}
	if err := e.plan(); err != nil {
		return nil, err
	}
	if !e.changed {
		return &Edited{Data: data, Grants: p.rec.Grants}, nil
	}
	lost, err := e.lost()
	if err != nil {
		return nil, err
	}
	out, err := e.write()
	if err != nil {
		return nil, err
	}
	if err := e.verify(out); err != nil {
		return nil, err
	}
	return &Edited{Data: out, Changed: true, Grants: e.after(), Lost: lost, Still: e.still()}, nil
}

// Refusal is why a change was not made. The record itself may be sound.
type Refusal struct {
	Pos  capability.Pos
	Text string
	Hint string // what to do instead, "" if nothing comes to mind
}

// Error writes the refusal as one sentence, place first.
func (e *Refusal) Error() string { return (*Invalid)(e).Error() }

// refuse is a refusal that concerns the record as a whole.
func (e *edit) refuse(hint, format string, a ...any) *Refusal {
	return &Refusal{Pos: capability.Pos{File: e.file}, Text: fmt.Sprintf(format, a...), Hint: hint}
}

// byHand refuses a record whose writing is beyond this editor.
func (e *edit) byHand(n *yaml.Node) *Refusal {
	return &Refusal{Pos: e.pos(n), Text: "the record is written in a way that cannot be edited by command", Hint: "edit the file"}
}

// item is one grant of the list that is being written.
type item struct {
	entry   *entry          // where it stands in the file; nil for a new one
	spec    capability.Spec // as it will stand there
	moved   bool            // in: has to be written into the entry
	dropped bool
}

// edit is one change in the making.
type edit struct {
	*parser
	change  Change
	data    []byte
	items   []item // the list capabilities:
	passed  []item // the list delegable:
	changed bool
}

// plan dissolves the shorthand and makes the change, in memory.
func (e *edit) plan() error {
	var err error
	if e.items, err = e.hung(e.parser.entries); err != nil {
		return err
	}
	if e.passed, err = e.hung(e.parser.delegable); err != nil {
		return err
	}
	for _, s := range e.rec.Grants {
		if s.Origin == "" {
			continue
		}
		if s.Origin == originSandbox { // the shorthand stands in for the bare form
			e.drop(func(i item) bool { return i.spec.Bare && i.spec.Verb == s.Verb })
		}
		e.add(s)
	}
	e.changed = false
	for _, s := range e.change.Revoke {
		if err := e.revoke(s); err != nil {
			return err
		}
	}
	for _, s := range e.change.Grant {
		if err := e.grant(s); err != nil {
			return err
		}
	}
	return nil
}

// hung returns the entries with the root that they inherit from sandbox: written
// out.
func (e *edit) hung(entries []entry) ([]item, error) {
	items := make([]item, len(entries))
	for i := range entries {
		items[i] = item{entry: &entries[i], spec: entries[i].spec}
		if entries[i].bad {
			continue
		}
		spec, err := e.hang(entries[i].spec)
		if err != nil {
			return nil, err
		}
		items[i].spec, items[i].moved = spec, !spec.Equal(entries[i].spec)
	}
	return items, nil
}

// hang writes the root of sandbox: into a grant that inherits it. A root of its
// own that is relative hangs from there; one that may lie elsewhere was held back
// by sandbox: and cannot be written out without widening it.
func (e *edit) hang(s capability.Spec) (capability.Spec, error) {
	entry, ok := capability.Lookup(capability.Verb(s.Verb))
	if _, rooted := entry.Key("in"); !ok || !rooted || e.rec.Sandbox == "" || s.Token || len(s.Scope) == 0 {
		return s, nil
	}
	in, ok := s.Get("in")
	if !ok {
		root := capability.Param{Key: "in", Values: []string{e.rec.Sandbox}, Single: true, Pos: s.Pos}
		s.Scope = append([]capability.Param{root}, s.Scope...)
		return s, nil
	}
	in.Values = slices.Clone(in.Values)
	for i, dir := range in.Values {
		hung, ok := e.below(dir, e.rec.Sandbox)
		if !ok || !e.within(hung, e.rec.Sandbox) {
			return s, &Refusal{
				Pos:  in.Pos,
				Text: fmt.Sprintf("in: %s does not lie beneath sandbox: %s as written, or once links are followed, so that the shorthand cannot be dissolved", dir, e.rec.Sandbox),
				Hint: "write in: with the whole path of the directory that is meant",
			}
		}
		in.Values[i] = hung
	}
	s.Scope = slices.Clone(s.Scope)
	s.Scope[slices.IndexFunc(s.Scope, func(p capability.Param) bool { return p.Key == "in" })] = in
	return s, nil
}

// within reports whether a directory lies beneath another one where links lead
// elsewhere, as far as that can be seen.
func (e *edit) within(dir, root string) bool {
	o := e.change.Options
	if o.View.FS == nil {
		return true
	}
	inner, err1 := capability.ParseRoot(dir, o.Config.Dir, o.View)
	outer, err2 := capability.ParseRoot(root, o.Config.Dir, o.View)
	return err1 == nil && err2 == nil && inner.Within(outer)
}

// below hangs a directory from the root it is relative to; an absolute one must
// lie beneath that root, by its text or where both really are.
func (e *edit) below(dir, root string) (string, bool) {
	root = strings.TrimSuffix(root, "/")
	switch {
	case dir == "." || dir == "./":
		return cmp.Or(root, "/"), true
	case strings.HasPrefix(dir, "/") || dir == "~" || strings.HasPrefix(dir, "~/"):
		return dir, dir == root || strings.HasPrefix(dir, root+"/") || e.change.Options.View.FS != nil && e.within(dir, root)
	}
	return root + "/" + strings.TrimPrefix(dir, "./"), true
}

// add appends a grant that the list does not have.
func (e *edit) add(s capability.Spec) {
	if slices.ContainsFunc(e.items, func(i item) bool { return i.is(s) }) {
		return
	}
	e.items = append(e.items, item{spec: s})
	e.changed = true
}

// is reports whether an item stands for a grant that says the same.
func (i item) is(s capability.Spec) bool {
	return !i.dropped && (i.entry == nil || !i.entry.bad) && plainForm(i.spec) == plainForm(s)
}

// plainForm writes a grant with keys and values in order, for comparing.
func plainForm(s capability.Spec) string {
	s.Scope = slices.Clone(s.Scope)
	for i, p := range s.Scope {
		s.Scope[i].Values = slices.Compact(slices.Sorted(slices.Values(p.Values)))
		s.Scope[i].Single = false
	}
	slices.SortStableFunc(s.Scope, func(a, b capability.Param) int { return strings.Compare(a.Key, b.Key) })
	return s.String()
}

// drop takes items out of the list and reports whether there were any.
func (e *edit) drop(match func(item) bool) bool {
	found := false
	for i, it := range e.items {
		if !it.dropped && (it.entry == nil || !it.entry.bad) && match(it) {
			e.items[i].dropped, e.changed, found = true, true, true
		}
	}
	return found
}

func (e *edit) revoke(s capability.Spec) error {
	hung, err := e.hang(s)
	if err != nil {
		return err
	}
	meant := e.effect(hung)
	matches := func(i item) bool { return i.is(s) || i.is(hung) || e.effect(i.spec) == meant }
	if s.Bare {
		matches = func(i item) bool { return i.spec.Verb == s.Verb }
	}
	if e.drop(matches) {
		return nil
	}
	var held []string
	for _, g := range e.after() {
		if g.Verb == s.Verb {
			held = append(held, g.String())
		}
	}
	if len(held) == 0 {
		return e.refuse("", "%s holds no %s", e.rec.ID, s.Verb)
	}
	return e.refuse("revoke one of these, and grant what is to stay",
		"%s does not hold %s as a grant of its own; it holds %s", e.rec.ID, s, strings.Join(held, ", "))
}

// grant adds one grant, unless it would grant nothing.
func (e *edit) grant(s capability.Spec) error {
	hung, err := e.hang(s)
	if err != nil {
		return err
	}
	set, findings := capability.Compile([]capability.Spec{hung}, e.options())
	grants := slices.Collect(set.All())
	if len(grants) == 0 {
		return e.useless(s, findings, "it is in no catalogue")
	}
	for _, g := range grants {
		if g.Inert() != "" {
			return e.useless(s, findings, g.Inert())
		}
	}
	hung.Origin = ""
	e.add(hung)
	return nil
}

// useless refuses a grant that would grant nothing.
func (e *edit) useless(s capability.Spec, findings []capability.Finding, why string) error {
	hint := ""
	if len(findings) > 0 {
		hint = findings[0].Hint
	}
	return e.refuse(hint, "%s would grant nothing: %s", s, why)
}

// options are what grants are compared under. Without a root and a home, paths
// are compared by their text.
func (e *edit) options() capability.Options {
	o := capability.Options{Config: e.change.Options.Config, View: e.change.Options.View}
	if o.Config.IsZero() {
		o.Agent = capability.Root{Dir: "/", Real: "/"}
	}
	if o.View.Home == "" {
		o.View.Home = "/~"
	}
	return o
}

// after returns the grants of the list as it will be.
func (e *edit) after() []capability.Spec {
	var specs []capability.Spec
	for _, i := range e.items {
		if !i.dropped && (i.entry == nil || !i.entry.bad) {
			specs = append(specs, i.spec)
		}
	}
	return specs
}

// still finds the grants that leave something of what was revoked in force: each
// that covers a part of it or lies within it, all that cover it together, and
// those that may still be passed on.
func (e *edit) still() []capability.Spec {
	var out []capability.Spec
	left := e.after()
	for _, i := range e.passed {
		if i.entry == nil || !i.entry.bad {
			left = append(left, i.spec)
		}
	}
	for _, s := range e.change.Revoke {
		gone := e.compiled(s)
		together := holdsAny(gone) && len(e.compiled(left...).Covers(gone)) == 0
		for _, l := range left {
			if e.overlaps(l, s, gone, together) && !slices.ContainsFunc(out, l.Equal) {
				out = append(out, l)
			}
		}
	}
	return out
}

// overlaps reports whether a grant that is left allows some of what was revoked,
// as far as that can be told value by value.
func (e *edit) overlaps(left, revoked capability.Spec, gone *capability.Set, together bool) bool {
	set := e.compiled(left)
	if !set.Holds(capability.Verb(revoked.Verb)) || !holdsAny(set) {
		return false
	}
	if revoked.Bare || together || len(gone.Covers(set)) == 0 {
		return true
	}
	return slices.ContainsFunc(pieces(revoked), func(p capability.Spec) bool {
		part := e.compiled(p)
		return holdsAny(part) && len(set.Covers(part)) == 0
	})
}

// pieces returns a grant once for each value of its lists.
func pieces(s capability.Spec) []capability.Spec {
	out := []capability.Spec{s}
	for i, p := range s.Scope {
		for _, v := range p.Values {
			one := s
			one.Scope = slices.Clone(s.Scope)
			one.Scope[i].Values = []string{v}
			out = append(out, one)
		}
	}
	return out
}

func (e *edit) compiled(specs ...capability.Spec) *capability.Set {
	set, _ := capability.Compile(specs, e.options())
	return set
}

// effect writes what a grant means where the record stands, so that it can be
// revoked by what capabilities shows of it as well.
func (e *edit) effect(s capability.Spec) string {
	var text []string
	for g := range e.compiled(s).All() {
		text = append(text, plainForm(g.Spec()))
	}
	return strings.Join(text, "\n")
}

// holdsAny reports whether any grant of a set is in effect.
func holdsAny(s *capability.Set) bool {
	for g := range s.All() {
		if g.Inert() == "" {
			return true
		}
	}
	return false
}

// verify reads the result back: it must grant what was intended, and say
// everything else as before.
func (e *edit) verify(out []byte) error {
	p, err := parse(e.file, out)
	if err != nil {
		return e.refuse("edit the file", "the record cannot be edited by command: %v", err)
	}
	was, is := e.rec, p.rec
	same := is.Dialect == was.Dialect && is.ID == was.ID && is.Parent == was.Parent && is.Sandbox == "" &&
		slices.Equal(is.Toolset, was.Toolset) && (is.Toolset == nil) == (was.Toolset == nil) &&
		slices.Equal(is.Approve, was.Approve) && is.Body == was.Body
	var passed []capability.Spec
	for _, i := range e.passed {
		if !i.entry.bad {
			passed = append(passed, i.spec)
		}
	}
	if !same || !sameSpecs(is.Grants, e.after()) || !sameSpecs(is.Delegable, passed) {
		return e.byHand(e.root)
	}
	return nil
}

// sameSpecs compares two lists without regard to order and repetition.
func sameSpecs(a, b []capability.Spec) bool {
	texts := func(specs []capability.Spec) []string {
		var out []string
		for _, s := range specs {
			out = append(out, s.String())
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(texts(a), texts(b))
}
