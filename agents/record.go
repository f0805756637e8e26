package agents

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Record is what the file of an agent says, its shorthand expanded and nothing
// compiled yet.
type Record struct {
	ID      string // canonical: agents/…
	Dialect capability.Dialect
	File    string

	Grants    []capability.Spec // what the agent may do
	Delegable []capability.Spec // what it may pass on besides
	Sandbox   string            // the root as written, "" if none
	Toolset   []string          // the ceiling on tool names; nil is none, empty is no tool at all
	Parent    string            // canonical id, "" if none
	Approve   []string          // verbs and tools that somebody must approve
	Inherit   bool              // it declares nothing and has what its parent has
	Body      string            // the prose

	sandboxPos capability.Pos
	parentPos  capability.Pos
}

// ErrNoAgent is returned for a file that holds no agent record: prose, or a
// record of another class.
var ErrNoAgent = errors.New("the file holds no agent record")

// Parse reads the record in a file, in the dialect that the file is written in.
// A grant that cannot be read is left out with a finding; a record that cannot
// be trusted to say what its author meant is an error, an [*Invalid]. A file
// without a record is [ErrNoAgent].
func Parse(file string, data []byte) (*Record, []capability.Finding, error) {
	p, err := parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	return p.rec, p.findings, nil
}

// parser reads one record.
type parser struct {
	*source
	root     *yaml.Node // the top-level map, empty if the file has none
	rec      *Record
	findings []capability.Finding

	entries   []entry // of capabilities:, as written
	delegable []entry // of delegable:

	granted map[string]bool // what the record grants, in compact form
}

func parse(file string, data []byte) (*parser, error) {
	src, err := readSource(file, data)
	if err != nil {
		return nil, err
	}
	root, err := src.mapping()
	if err != nil {
		return nil, err
	}
	if ofOtherClass(root) {
		return nil, ErrNoAgent
	}
	if err := src.strict(root, 1); err != nil {
		return nil, err
	}
	p := &parser{source: src, root: root, rec: &Record{File: file, Body: src.body}, granted: map[string]bool{}}
	form, err := p.form()
	if errors.Is(err, ErrNoAgent) && isNamedAgent(root) {
		err = p.misspelt()
	}
	if err != nil {
		return nil, err
	}
	p.rec.Dialect = form.dialect
	if err := p.checkKeys(form); err != nil {
		return nil, err
	}
	if err := p.common(); err != nil {
		return nil, err
	}
	return p, form.read(p)
}

// ofOtherClass reports whether a record says plainly that it is none of ours, so
// that its text is its own affair.
func ofOtherClass(root *yaml.Node) bool {
	classes, other := 0, false
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value == "class" {
			v := root.Content[i+1]
			classes, other = classes+1, isText(v) && !isAgentClass(v.Value) && !(isNamedAgent(root) && isNearly(v.Value, "agent"))
		}
	}
	return classes == 1 && other
}

func isNearly(word, meant string) bool { return capability.Closest(word, []string{meant}) != "" }

// isNamedAgent reports whether a record goes by the name of an agent.
func isNamedAgent(root *yaml.Node) bool {
	id, _ := child(root, "id")
	return id != nil && strings.HasPrefix(id.Value, "agents/")
}

// misspelt says which key of a file with the id of an agent was to be capabilities: silently, it would
// be no record. It is [ErrNoAgent] where there is no such key. The other keys that make one are short, and
// near to many words.
func (p *parser) misspelt() error {
	for i := 0; i < len(p.root.Content); i += 2 {
		k := p.root.Content[i]
		if near := mistyped(k.Value, []string{"capabilities"}); near != "" {
			return p.wrong(k, fmt.Sprintf("did you mean %s?", near), "%q is no key of an agent record", k.Value)
		}
	}
	return ErrNoAgent
}

// isAgentClass reports whether a class is the one of agents, or was to be.
func isAgentClass(class string) bool {
	class = strings.ToLower(strings.TrimSpace(class))
	return class == "agent" || class == "agents"
}

// common reads the keys that records of every dialect have.
func (p *parser) common() error {
	steps := []func() error{p.readID, p.readParent, p.readSandbox, p.readToolset, p.readApprove, p.readDelegable}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) readID() error {
	text, at, err := p.text("id")
	if err != nil || at == nil {
		return err
	}
	if p.rec.ID = capability.AgentID(text); p.rec.ID == "" {
		return p.wrong(at, idForm, "id: %q is no agent id", text)
	}
	return nil
}

const idForm = "an id is made of letters, digits, - _ . and /"

// idFromFile names the agent after its file, when the record doesn't name it.
func (p *parser) idFromFile() error {
	if p.rec.ID != "" {
		return nil
	}
	if p.rec.ID = fileID(p.file); p.rec.ID == "" {
		return p.invalid(capability.Pos{}, "the record has no id:, and the name of its file cannot be one", idForm)
	}
	return nil
}

// fileID returns the id that the name of a file stands for, "" if none.
func fileID(file string) string {
	base := filepath.Base(file)
	return capability.AgentID(strings.TrimSuffix(base, filepath.Ext(base)))
}

func (p *parser) readParent() error {
	text, at, err := p.text("parent")
	if err != nil || at == nil {
		return err
	}
	p.rec.parentPos = p.pos(at)
	if p.rec.Parent = capability.AgentID(text); p.rec.Parent == "" {
		return p.wrong(at, idForm, "parent: %q is no agent id", text)
	}
	return nil
}

// readSandbox reads sandbox: ~/dir, or sandbox: { root: ~/dir }.
func (p *parser) readSandbox() error {
	at, ok := child(p.root, "sandbox")
	if !ok {
		return nil
	}
	if at.Kind == yaml.MappingNode {
		root, ok := child(at, "root")
		if !ok || len(at.Content) != 2 {
			return p.wrong(at, "", "sandbox: takes a directory, or a map with the one key root")
		}
		at = root
	}
	if !isText(at) || at.Value == "" {
		hint := ""
		if at.Value == "~" {
			hint = `~ alone is YAML for nothing; write "~"`
		}
		return p.wrong(at, hint, "sandbox: takes a directory, not %s", nounOf(at))
	}
	if strings.ContainsFunc(at.Value, isControl) {
		return p.wrong(at, "", "sandbox: holds control characters")
	}
	p.rec.Sandbox, p.rec.sandboxPos = at.Value, p.pos(at)
	return nil
}

func (p *parser) readToolset() (err error) {
	p.rec.Toolset, err = p.names("toolset")
	return err
}

// readApprove reads what needs approval. A word that is nearly a verb is said,
// because an approval that nobody is asked for would be missed late.
func (p *parser) readApprove() error {
	words, err := p.names("approve")
	if err != nil {
		return err
	}
	p.rec.Approve = words
	for _, w := range words {
		if !approvable(w) {
			at, _ := child(p.root, "approve")
			return p.wrong(at, "write a verb, a resource as fs.*, a tool as files.write or files.*, or *", "approve: %q names nothing that is ever asked for", w)
		}
	}
	return nil
}

// approvable reports whether a word can name what somebody has to approve: a
// verb, all of a resource or of an upstream, a tool, or everything. A word near a
// verb is taken for a mistake: an approval that nobody is asked for is missed late.
func approvable(word string) bool {
	if slices.Contains(verbNames(), word) || word == "*" {
		return true
	}
	name := strings.TrimSuffix(word, ".*")
	inTool := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !inTool(r) }) {
		return false
	}
	return name != word || strings.Contains(name, ".") && !nearVerb(word)
}

// nearVerb reports whether a word is a verb but for a slip: one of its halves is
// that of a verb, and the other one nearly. A server may well be called files.
func nearVerb(word string) bool {
	near := capability.Closest(word, verbNames())
	resource, action, _ := strings.Cut(word, ".")
	as, does, _ := strings.Cut(near, ".")
	return near != "" && (resource == as || action == does && slip(resource, as))
}

// slip reports whether two words differ by no more than one letter.
func slip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return a[i:] == b[i+len(b)-len(a):] || len(a) == len(b) && i < len(a) && a[i+1:] == b[i+1:]
}

func verbNames() []string {
	var names []string
	for _, e := range capability.Catalogue() {
		names = append(names, string(e.Verb))
	}
	return names
}

func (p *parser) readDelegable() error {
	list, ok := child(p.root, "delegable")
	if !ok {
		return nil
	}
	var err error
	if p.delegable, err = p.list("delegable", list); err != nil {
		return err
	}
	p.rec.Delegable = specsOf(p.delegable)
	return nil
}

// say adds a finding.
func (p *parser) say(sev capability.Severity, code string, pos capability.Pos, text, hint string) {
	p.findings = append(p.findings, capability.Finding{Code: code, Severity: sev, Pos: pos, Text: text, Hint: hint})
}

// text reads a key that takes one text. A key without a value is an error:
// whoever wrote it meant something.
func (p *parser) text(key string) (string, *yaml.Node, error) {
	at, ok := child(p.root, key)
	if !ok {
		return "", nil, nil
	}
	if !isText(at) {
		return "", nil, p.wrong(at, "", "%s: takes text, not %s", key, nounOf(at))
	}
	return at.Value, at, nil
}

// names reads a key that takes a list of texts, or one. The list is nil only
// when the key is not there.
func (p *parser) names(key string) ([]string, error) {
	at, ok := child(p.root, key)
	if !ok {
		return nil, nil
	}
	return p.nameList(key, at)
}

const maxNames = 1024 // names in one list

func (s *source) nameList(key string, at *yaml.Node) ([]string, error) {
	items := at.Content
	switch {
	case isText(at):
		items = []*yaml.Node{at}
	case at.Kind != yaml.SequenceNode:
		return nil, s.wrong(at, "write [] for none", "%s: takes a list of names, not %s", key, nounOf(at))
	case len(items) > maxNames:
		return nil, s.wrong(at, "", "%s: has more than %d names", key, maxNames)
	}
	names := make([]string, 0, len(items))
	for _, n := range items {
		switch {
		case !isText(n):
			return nil, s.wrong(n, "", "%s: takes names, not %s", key, nounOf(n))
		case n.Value == "" || strings.ContainsFunc(n.Value, isControl):
			return nil, s.wrong(n, "", "%s: holds a name that is empty or has control characters", key)
		}
		names = append(names, n.Value)
	}
	return names, nil
}

// add grants what the record does not grant yet.
func (p *parser) add(specs ...capability.Spec) {
	for _, s := range specs {
		wrong := slices.ContainsFunc(s.Scope, func(p capability.Param) bool { return p.Wrong != "" })
		if text := s.String(); wrong || !p.granted[text] {
			p.granted[text] = !wrong // what is wrong stands for nothing else
			p.rec.Grants = append(p.rec.Grants, s)
		}
	}
}
