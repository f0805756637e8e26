package agents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// form is a way to write a record: its dialect, the keys it has, and the
// keys of other forms that would be ignored where their author relies on them.
type form struct {
	dialect capability.Dialect
	known   []string
	foreign []string
	closed  bool // no keys but the known and the descriptive ones
	read    func(p *parser) error
}

// The keys of records. Those of every form come first.
func commonKeys() []string {
	return []string{"id", "class", "dialect", "sandbox", "toolset", "parent", "delegable", "approve"}
}

func ethosKeys() []string {
	return []string{"fs_reach", "safety", "network", "secrets", "storage", "process"}
}

// proseKeys describe an agent and bear no authority.
func proseKeys() []string {
	return []string{"name", "title", "description", "model", "provider", "tags", "version", "author", "category"}
}

func eggheadForm() form {
	return form{
		dialect: capability.Egghead,
		known:   append(commonKeys(), "capabilities", "access"),
		foreign: append(ethosKeys(), "spec", "permissions"),
		read:    (*parser).egghead,
	}
}

func scarabForm() form {
	return form{
		dialect: capability.Scarab,
		known:   append(commonKeys(), "apiVersion", "kind", "metadata", "spec"),
		foreign: append(ethosKeys(), "capabilities", "access", "permissions"),
		read:    (*parser).scarab,
	}
}

func ryeForm() form {
	return form{
		dialect: capability.Rye,
		known:   commonKeys(),
		foreign: append(ethosKeys(), "capabilities", "access", "spec", "permissions"),
		read:    (*parser).rye,
	}
}

func ethosForm() form {
	return form{
		dialect: capability.Ethos,
		known:   append(commonKeys(), ethosKeys()...),
		foreign: []string{"capabilities", "access", "spec", "permissions"},
		closed:  true,
		read:    (*parser).ethos,
	}
}

// form finds out how the record is written: by its dialect: key, else by what
// it holds. A file that shows no sign of an agent is [ErrNoAgent].
func (p *parser) form() (form, error) {
	if err := p.checkClass(); err != nil {
		return form{}, err
	}
	name, at, err := p.text("dialect")
	if err != nil {
		return form{}, err
	}
	if at != nil {
		return p.named(name, at)
	}
	switch p.kind {
	case xmlFile:
		return ryeForm(), nil
	case yamlFile:
		return p.yamlForm()
	}
	return p.markdownForm()
}

// checkClass lets agents pass, and records that name no class.
func (p *parser) checkClass() error {
	class, at, err := p.text("class")
	if err != nil || at == nil || class == "agent" {
		return err
	}
	return p.wrong(at, "did you mean agent?", "class: %q is not the class of agents", class)
}

func (p *parser) named(name string, at *yaml.Node) (form, error) {
	forms := []form{eggheadForm(), scarabForm(), ryeForm(), ethosForm()}
	var names []string
	for _, f := range forms {
		if f.dialect.String() == name {
			return f, nil
		}
		names = append(names, f.dialect.String())
	}
	return form{}, p.wrong(at, "it is one of "+strings.Join(names, ", "), "dialect: %q is no dialect", name)
}

// has reports whether the record has any of the keys.
func (p *parser) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { _, ok := child(p.root, k); return ok })
}

// markdownForm tells Egghead records from Rye directives. What prose says about
// permissions is no permission: a block counts where it stands on its own, in a
// file that does not call itself an agent record.
func (p *parser) markdownForm() (form, error) {
	if key := strayKey(p.body); key != "" {
		return form{}, p.invalid(capability.Pos{Line: p.bodyLine + 1, Col: 1},
			fmt.Sprintf("the text begins with %s:, as if the frontmatter went on", key), "move it above the closing ---, or begin the text with a word")
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(p.body), "---"); ok && len(p.root.Content) == 0 && strayKey(rest) != "" {
		return form{}, p.invalid(capability.Pos{Line: 1, Col: 1}, "the frontmatter begins behind an empty line", "begin the file with ---")
	}
	if at := p.lateFront(); at >= 0 {
		return form{}, p.invalid(posAt([]byte(p.body), at), "the frontmatter begins behind other text", "begin the file with ---")
	}
	block := holdsTag(p.body, "permissions")
	switch {
	case block && p.has("class", "capabilities", "access", "sandbox"):
		return form{}, p.invalid(capability.Pos{Line: p.bodyLine + 1, Col: 1},
			"the record is an agent record by its frontmatter, and its text holds a <permissions> block",
			"write dialect: rye if the block counts, dialect: egghead if it is prose")
	case block && !ownLine(p.body, "<permissions"):
		return form{}, ErrNoAgent
	case block || holdsTag(p.body, "directive") && !p.has("capabilities", "access", "sandbox"):
		return ryeForm(), nil
	case p.has("class", "capabilities", "access", "sandbox"):
		return eggheadForm(), nil
	}
	return form{}, ErrNoAgent
}

// ownLine reports whether a tag begins a line of the text.
func ownLine(body, tag string) bool {
	for line := range strings.Lines(body) {
		if rest := strings.TrimSpace(line); strings.HasPrefix(rest, "<") && strings.Contains(rest, tag) {
			return true
		}
	}
	return false
}

// strayKey returns the key of an agent record that the text begins with, "" if it
// begins with something else.
func strayKey(body string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	key, _, found := strings.Cut(line, ":")
	key = strings.TrimSpace(key)
	if found && slices.Contains(eggheadForm().known, key) {
		return key
	}
	return ""
}

// frontLines are lines of a frontmatter, and front is one of an agent.
const frontLines = `(?:(?:[ \t#-].*|.*:.*)?\n)*?`

var front = regexp.MustCompile(`(?im)^[ \t\p{Cf}]*-{3,}[ \t]*\n` + frontLines + `["']?class["']?[ \t]*:[ \t]*["']?agents?["']?[ \t]*(?:#.*)?\n` + frontLines + `-{3,}[ \t]*$`)

// lateFront finds the frontmatter of an agent below other text, -1 if there is none. One in a
// comment or a code fence is an example, unless the file begins with the fence.
func (p *parser) lateFront() int {
	const most = 16 // examples that are passed over
	if p.fenced {
		return -1
	}
	blocks := fences(p.body)
	if len(blocks) > 0 && !strings.Contains(strings.TrimSpace(p.body[:blocks[0].start]), "\n") {
		blocks = blocks[1:]
	}
	for _, m := range front.FindAllStringIndex(p.body, most) {
		above := p.body[:m[0]]
		if strings.LastIndex(above, "<!--") <= strings.LastIndex(above, "-->") &&
			!slices.ContainsFunc(blocks, func(b fenced) bool { return b.start <= m[0] && m[0] < b.end }) {
			return m[0]
		}
	}
	return -1
}

// yamlForm tells manifests, personalities and records without prose apart.
func (p *parser) yamlForm() (form, error) {
	spec, _ := child(p.root, "spec")
	_, listed := child(spec, "capabilities")
	kind, _ := child(p.root, "kind")
	grants := p.has("capabilities", "access")
	personality := p.has("fs_reach", "safety")
	switch {
	case listed || kind != nil && strings.HasPrefix(strings.ToLower(kind.Value), "agent"):
		return scarabForm(), nil
	case personality && !grants:
		return ethosForm(), nil
	case grants || p.has("class"):
		return eggheadForm(), nil
	case p.has("toolset") && p.has("sandbox"):
		return form{}, p.invalid(capability.Pos{}, "the record could be of two dialects", "write dialect: egghead or dialect: ethos")
	case p.has("sandbox"):
		return eggheadForm(), nil
	case p.has("toolset"):
		return ethosForm(), nil
	}
	return form{}, ErrNoAgent
}

// checkKeys refuses keys that nearly are one the record could have, those of
// other dialects, and what limits agents elsewhere: ignoring them would grant what their author meant to limit.
func (p *parser) checkKeys(f form) error {
	for i := 0; i < len(p.root.Content); i += 2 {
		k := p.root.Content[i]
		if err := p.checkKey(k, f); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) checkKey(k *yaml.Node, f form) error {
	switch {
	case strings.ContainsFunc(k.Value, func(r rune) bool { return r >= 0x80 }):
		return p.wrong(k, "keys are written in ASCII", "%q holds a letter of another alphabet", k.Value)
	case slices.Contains(f.known, k.Value) || slices.Contains(proseKeys(), k.Value):
		return nil
	case slices.Contains(f.foreign, k.Value):
		return p.wrong(k, "if the record is of another dialect, say so with dialect:", "%s: has no meaning in a record of the dialect %s", k.Value, f.dialect)
	}
	if instead, ok := limiting(k.Value); ok && !f.closed {
		return p.wrong(k, instead, "%q limits nothing in an agent record", k.Value)
	}
	if near := mistyped(k.Value, f.known); near != "" {
		return p.wrong(k, fmt.Sprintf("did you mean %s?", near), "%q is no key of an agent record", k.Value)
	}
	if f.closed {
		return p.wrong(k, "", "%q is no key of an agent record in the dialect %s", k.Value, f.dialect)
	}
	return nil
}

// mistyped returns the known key that a word most likely was to be, "" when the
// word is more likely the author's own.
func mistyped(word string, known []string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
	for _, k := range known {
		if strings.ReplaceAll(strings.ToLower(k), "_", "") == plain {
			return k
		}
	}
	const shortest = 4 // below that every word is near every other
	near := capability.Closest(plain, known)
	if len(plain) < shortest || len(near) < shortest {
		return ""
	}
	if plain[0] == near[0] || plain[1:] == near || near[1:] == plain || plain[2:] == near[2:] {
		return near
	}
	return ""
}
