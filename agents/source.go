package agents

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"capgate/capability"
)

// maxRecord is how large the file of one record may be.
const maxRecord = 1 << 20

// Invalid is why a record cannot be loaded. Its agent is denied with
// [capability.InvalidConfig] until the file is mended.
type Invalid struct {
	Pos  capability.Pos
	Text string // what is the case
	Hint string // what to do about it, "" if nothing comes to mind
}

// Error writes the error as one sentence, place first.
func (e *Invalid) Error() string {
	s := e.Text
	if at := e.Pos.String(); at != "" {
		s = at + ": " + s
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Finding returns the error as what load and doctor print.
func (e *Invalid) Finding() capability.Finding {
	return capability.Finding{
		Code: string(capability.InvalidConfig), Severity: capability.Error,
		Pos: e.Pos, Text: e.Text, Hint: e.Hint,
	}
}

// fileKind is what a file is by its name.
type fileKind uint8

const (
	otherFile fileKind = iota
	markdownFile
	yamlFile
	xmlFile
)

func kindOf(file string) fileKind {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".md":
		return markdownFile
	case ".yml", ".yaml":
		return yamlFile
	case ".xml":
		return xmlFile
	}
	return otherFile
}

// source is the text of a file with its line ends made plain, cut into the part
// that bears authority and the prose.
type source struct {
	file      string
	kind      fileKind
	fenced    bool   // there is a frontmatter
	yaml      string // the frontmatter, or the whole of a YAML file
	yamlLine  int    // lines above it
	body      string // the prose below the frontmatter, or the whole of an XML file
	bodyLine  int    // lines above it
	wholeText string
}

// readSource checks the bytes of a file and cuts them.
func readSource(file string, data []byte) (*source, error) {
	s := &source{file: file, kind: kindOf(file)}
	if s.kind == otherFile {
		return nil, s.invalid(capability.Pos{}, "a record is a .md, .yml, .yaml or .xml file", "")
	}
	if err := s.checkBytes(data); err != nil {
		return nil, err
	}
	s.wholeText = strings.ReplaceAll(string(data), "\r\n", "\n")
	switch s.kind {
	case yamlFile:
		s.yaml = s.wholeText
	case xmlFile:
		s.body = s.wholeText
	default:
		if err := s.cut(); err != nil {
			return nil, err
		}
	}
	return s, s.checkAuthority()
}

// fence begins and ends a frontmatter.
const fence = "---"

// cut parts a Markdown file into frontmatter and prose.
func (s *source) cut() error {
	first, rest, _ := strings.Cut(s.wholeText, "\n")
	if strings.TrimRight(first, " \t") != fence {
		s.body = s.wholeText
		return nil
	}
	for at, line := 0, 1; ; line++ {
		text, _, more := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(text, " \t") == fence {
			s.fenced, s.yaml, s.yamlLine = true, rest[:at], 1
			s.body, s.bodyLine = rest[min(at+len(text)+1, len(rest)):], line+1
			return nil
		}
		if !more {
			return s.invalid(capability.Pos{Line: 1, Col: 1}, "the frontmatter is never closed", "end it with a line of three dashes")
		}
		at += len(text) + 1
	}
}

// checkBytes refuses what an editor would not show as it is read.
func (s *source) checkBytes(data []byte) error {
	const bom = "\uFEFF"
	switch {
	case len(data) > maxRecord:
		return s.invalid(capability.Pos{}, fmt.Sprintf("the file is over %d bytes", maxRecord), "")
	case bytes.HasPrefix(data, []byte(bom)):
		return s.invalid(capability.Pos{Line: 1, Col: 1}, "the file begins with a byte order mark", "save it as plain UTF-8")
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return s.invalid(posAt(data, i), "the file is not valid UTF-8", "")
		case r == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			return s.invalid(posAt(data, i), "a carriage return stands alone", "end lines with a line feed")
		case isControl(r) && r != '\n' && r != '\r' && r != '\t':
			return s.invalid(posAt(data, i), fmt.Sprintf("the file holds the control character %U", r), "")
		}
		i += n
	}
	return nil
}

// isControl reports whether a rune is a C0 or C1 control character or DEL.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// posAt returns the position of a byte, counting characters as columns.
func posAt(data []byte, i int) capability.Pos {
	start := bytes.LastIndexByte(data[:i], '\n') + 1
	return capability.Pos{Line: bytes.Count(data[:i], []byte{'\n'}) + 1, Col: utf8.RuneCount(data[start:i]) + 1}
}

// checkAuthority refuses, in the part that bears authority, what a reader of the
// file may see in another order or on another line than its parser.
func (s *source) checkAuthority() error {
	text, above := s.yaml, s.yamlLine
	if s.kind == xmlFile {
		text, above = s.body, s.bodyLine
	}
	if i := strings.IndexFunc(text, isDeceptive); i >= 0 {
		pos := posAt([]byte(text), i)
		pos.Line += above
		r, _ := utf8.DecodeRuneInString(text[i:])
		return s.invalid(pos, fmt.Sprintf("the record holds %U, which shows otherwise than it reads", r), "")
	}
	if s.kind == xmlFile {
		return nil
	}
	line := 0
	for text := range strings.SplitSeq(text, "\n") {
		line++
		if indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]; strings.Contains(indent, "\t") && len(indent) < len(text) {
			return s.invalid(capability.Pos{Line: above + line, Col: strings.IndexByte(text, '\t') + 1}, "a tab stands in the indentation", "indent with spaces")
		}
	}
	return nil
}

// isDeceptive finds Unicode's line breaks, its direction overrides, and byte
// order marks.
func isDeceptive(r rune) bool {
	return r >= 0x2028 && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0xFEFF
}

// invalid is an error at a place in the file.
func (s *source) invalid(pos capability.Pos, text, hint string) *Invalid {
	pos.File = s.file
	if pos.Line == 0 {
		pos.Line, pos.Col = 1, 1
	}
	return &Invalid{Pos: pos, Text: text, Hint: hint}
}
