package skills

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/capability"
)

const (
	maxDocument = 1 << 20 // bytes of one SKILL.md
	maxName     = 64      // characters of a skill's name
)

// Options says what the requirements of skills are read against. Its zero value
// knows no upstream, no home and no folder.
type Options struct {
	// Upstreams are the prefixes that the tools of each upstream have; "" is an
	// upstream whose tools have none. A token mcp__files__read means the tool
	// files.read when files is among them.
	Upstreams []string

	// Home is what ~ stands for in the path of a token, "" when that is unknown.
	Home string

	// HideUndeclared hides a skill that declares no tools; otherwise it requires
	// nothing.
	HideUndeclared bool

	// IgnoreUnknown leaves out the tokens that nobody knows; otherwise nobody
	// satisfies a skill that has one.
	IgnoreUnknown bool

	// Vouched is the digest, by path, of each skill that somebody has read: what
	// clients do by themselves with its text is then not required. A skill that
	// has another digest by now is one that nobody has read.
	Vouched map[string]string
}

// Skill is one SKILL.md and the files that come with it. It is immutable. The
// zero Skill is satisfied by nobody.
type Skill struct {
	Path        string // what tells it from others: folders and its name, slash separated
	Name        string
	Description string
	Frontmatter []byte // as JSON, values as they were written; nil when it cannot be read
	Needs       []Need // what it requires, in the order of its tokens
	Files       []File // SKILL.md and what lies beside it, by path; empty for one that was parsed alone
	Digest      string // of all of them, "" for one that was parsed alone

	// HeadSize is how many bytes of frontmatter were read, which is what takes longest.
	HeadSize int

	// Broken says why the skill is hidden from everybody, "" for a sound one.
	Broken string

	// Irregular says what of the format of skills it departs from, as many real ones do, "" for
	// nothing. Clients that go by the letter refuse every skill that is listed beside one.
	Irregular string

	// Findings is what is to be said of it. The position is in its SKILL.md.
	Findings []capability.Finding

	dir      string   // the folder it lies in, "" for one that was parsed alone
	declared bool     // it says which tools it uses
	names    []string // the skills that it uses by name
	inner    []*Skill // the skills that lie in its folder
}

// Need is one thing that a skill requires: some use of a verb, all that a scope
// allows, or something that nobody can have.
type Need struct {
	Token string // as it was written: WebFetch(domain:github.com)

	// Spec is the verb that is needed. Written bare it means some use of the
	// verb; with a scope, everything that the scope allows, a relative path
	// hanging from the agent's root. The zero Spec can be satisfied by nobody.
	Spec capability.Spec

	// Unknown says why nobody can satisfy the need, "" when somebody could.
	Unknown string

	// Untold is what clients do by themselves with the text of the skill itself,
	// which does not say so anywhere.
	Untold bool
}

// String writes the need as a grant in compact form, or why there is none.
func (n Need) String() string {
	if n.Unknown != "" {
		return n.Unknown
	}
	return n.Spec.String()
}

// Requires returns what an agent's set must cover before it may see the skill. When
// ok is false nobody may, whatever they hold.
func (s *Skill) Requires() (needs []capability.Spec, ok bool) {
	if s == nil || s.Path == "" || s.Broken != "" {
		return nil, false
	}
	for _, n := range s.Needs {
		if n.Unknown != "" {
			return nil, false
		}
		needs = append(needs, n.Spec)
	}
	return needs, true
}

// Parse reads the SKILL.md of a skill at a path, whose last segment is its name.
// It never fails: a skill that cannot be read strictly is broken, and hidden.
func Parse(path string, skillMD []byte, o Options) *Skill {
	s := parse(place{}, skillMD, o)
	s.Path = path
	for _, name := range s.names {
		s.Needs = append(s.Needs, Need{Token: skillTool + "(" + name + ")", Unknown: "which skill that is cannot be told here"})
	}
	if s.Broken == "" && path[strings.LastIndexByte(path, '/')+1:] != s.Name {
		s.fail("the path does not end in the name of the skill")
	}
	return s
}

// place is where a skill lies, as far as its tokens can speak of that. What is not
// known is "".
type place struct {
	dir     string // its folder
	project string // the project that it belongs to
	plugin  string // the plugin that it belongs to
}

// parse reads a skill without a path, and what lies beside its SKILL.md.
func parse(at place, text []byte, o Options) *Skill {
	s := &Skill{dir: at.dir, HeadSize: headSize(text)}
	head, err := readHead(text)
	if err != nil {
		s.fail(err.Error())
		return s
	}
	s.identify(head)
	d := derivation{place: at, opts: o}
	s.Needs, s.names = d.needs(slices.Concat(head.tools, head.forks)), d.names
	s.declared = head.declared
	s.Findings = append(s.Findings, d.findings...)
	if !s.declared && o.HideUndeclared {
		s.Needs = append(s.Needs, Need{Token: "allowed-tools", Unknown: "the skill does not say which tools it uses"})
	}
	s.Needs = append(s.Needs, injected(head, string(text))...)
	return s
}

// hold takes account of the names of the files that come with the skill.
func (s *Skill) hold(files []string) {
	s.Needs = append(s.Needs, laid(files)...)
	for _, name := range files {
		if name != Manifest && oneCase(name) == Manifest {
			s.fail(fmt.Sprintf("its file %s is %s where case does not count", clip(name), Manifest))
		}
		if isDocument(path.Base(name)) && !isPlainFolder(path.Dir(name)) {
			s.fail(fmt.Sprintf("its file %s is a skill in a folder whose name clients could take for a command", clip(name)))
		}
	}
}

// isPlainFolder reports whether the path of a folder is made of names. Clients put the one
// that a skill lies in before its text, and then look in both for commands and mentions.
func isPlainFolder(dir string) bool {
	for seg := range strings.SplitSeq(dir, "/") {
		if seg != "." && !isName(strings.TrimLeft(seg, ".")) {
			return false
		}
	}
	return true
}

// vouch leaves out what clients do by themselves with the text of a skill that somebody has
// read, as it is now.
func (s *Skill) vouch(read map[string]string) {
	switch digest, known := read[s.Path]; {
	case !known:
	case digest == s.Digest:
		s.Needs = slices.DeleteFunc(s.Needs, func(n Need) bool { return n.Untold })
	default:
		s.warn("vouched", "the skill is not the one that was vouched for", "read it again; it is "+s.Digest+" now")
	}
}

// identify takes over what the skill says of itself.
func (s *Skill) identify(h *head) {
	s.Name, s.Description, s.Frontmatter, s.Irregular = h.name, h.description, h.json, h.irregular
	switch {
	case !isName(s.Name):
		s.fail(fmt.Sprintf("%q is no name: it takes 1 to %d letters, digits, spaces and - _ .", clip(s.Name), maxName))
	case strings.TrimSpace(s.Description) == "":
		s.fail("the skill has no description")
	case s.Irregular != "":
		s.say(capability.Note, "format", "the skill is a resource and a prompt, and not in the protocol's list of skills: "+s.Irregular, "")
	}
}

// isName reports whether a text can be a segment of a path, a URI and a file name
// everywhere. Real skills are freer than the specification, which knows lower case
// and hyphens only.
func isName(text string) bool {
	if text == "" || utf8.RuneCountInString(text) > maxName || strings.Trim(text, " .") != text {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("-_. ", r)
	})
}

// fail hides the skill. The first reason is the one that is told.
func (s *Skill) fail(text string) {
	if s.Broken == "" {
		s.Broken = text
	}
	s.warn("hidden", "the skill is hidden: "+text, "")
}

func (s *Skill) warn(code, text, hint string) { s.say(capability.Warning, code, text, hint) }

func (s *Skill) say(sev capability.Severity, code, text, hint string) {
	s.Findings = append(s.Findings, capability.Finding{Code: "skill_" + code, Severity: sev, Text: text, Hint: hint})
}

// clip shortens a text that is quoted.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
