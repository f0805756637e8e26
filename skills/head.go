package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

const (
	maxHead  = 64 << 10 // bytes of the frontmatter
	maxTools = 256      // tokens of one skill
	maxToken = 4 << 10  // bytes of one of them
	maxNames = 512      // bytes of the names of its arguments
)

// head is what the frontmatter of a SKILL.md says.
type head struct {
	name, description string
	declared          bool
	tools             []string // the tokens of allowed-tools:
	hooks             bool     // it names commands, or servers, that run by themselves
	names             []string // of its arguments
	veils             bool     // which may hide a command in the text
	odd               bool     // and they may be others to some
	forks             []string // the tokens of the agents that it is run by
	lines             []int    // in which its keys stand
	margin            int      // how many blanks stand before them
	json              []byte
	irregular         string // what of the format it departs from
}

// errNoHead is a file that does not begin with frontmatter.
var errNoHead = errors.New("it does not begin with frontmatter between lines of ---")

// readHead reads the frontmatter strictly. Clients do not agree on where it ends; a
// file in which that decides which tools the skill uses is refused.
func readHead(text []byte) (*head, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("SKILL.md is over %d bytes", maxDocument)
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("SKILL.md is not plain UTF-8 text")
	}
	raw, ok := ours(string(text))
	switch {
	case !ok:
		return nil, errNoHead
	case len(raw) > maxHead:
		return nil, fmt.Errorf("the frontmatter is over %d bytes", maxHead)
	case hasOddBreaks(raw):
		return nil, errors.New("the frontmatter holds line breaks that only some readers know")
	}
	h, err := parseHead(raw)
	if err != nil {
		return nil, err
	}
	if h.misses(raw) {
		return nil, errors.New("readers do not agree on which lines of the frontmatter are keys or comments, and so on which tools the skill uses: write them in one line, or each behind a dash")
	}
	for _, read := range []func(string) (string, bool){firstMarks, trimmedLines, lineStarts, bareLines} {
		other, ok := read(string(text))
		if same := ok && strings.TrimSpace(other) == strings.TrimSpace(raw); !same && !h.agrees(other, ok) {
			return nil, errors.New("readers do not agree on where the frontmatter ends, and so on which tools the skill uses")
		}
	}
	return h, nil
}

// headSize is how much of a SKILL.md is read as frontmatter.
func headSize(text []byte) int {
	raw, _ := ours(string(text))
	return min(len(raw), maxHead)
}

// agrees reports whether what another reader takes for the frontmatter asks for the
// same tools. Whatever that one cannot read asks for none, and a map that is refused
// here may ask for anything.
func (h *head) agrees(raw string, ok bool) bool {
	o := &head{}
	if hasOddBreaks(raw) { // so that lines are others to some
		return false
	}
	if ok && len(raw) <= maxDocument {
		if parsed, err := parseHead(raw); err == nil {
			if o = parsed; o.misses(raw) {
				return false
			}
		} else if root, _ := parseYAML(raw); root != nil {
			return false
		}
	}
	return slices.Equal(o.tools, h.tools) && o.hooks == h.hooks && o.veils == h.veils && o.odd == h.odd && slices.Equal(o.names, h.names) && o.declared == h.declared && slices.Equal(o.forks, h.forks)
}

const (
	mark      = "---"
	byteOrder = "\ufeff"
	blanks    = " \t\r"
)

// ours is capgate's own reading: one byte order mark is skipped, the first line and
// the line that ends the frontmatter are --- at the margin, with blanks after it.
func ours(text string) (string, bool) {
	text = strings.TrimPrefix(text, byteOrder)
	return between(text, func(line string) bool { return strings.TrimRight(line, blanks) == mark })
}

// trimmedLines is a reader that ends at any line which is --- between blanks, also
// inside a value, and that knows no byte order mark.
func trimmedLines(text string) (string, bool) {
	return between(text, func(line string) bool { return strings.TrimSpace(line) == mark })
}

// between returns what lies between the first line, which must be a mark, and the
// next one that is.
func between(text string, isMark func(line string) bool) (string, bool) {
	first, rest, _ := strings.Cut(text, "\n")
	if !isMark(first) {
		return "", false
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if isMark(line) {
			return rest[:at], true
		}
		at += len(line) + 1
	}
	return "", false
}

// firstMarks is a reader that splits at the first two --- wherever they stand.
func firstMarks(text string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, byteOrder), mark)
	if !ok {
		return "", false
	}
	raw, _, ok := strings.Cut(rest, mark)
	return raw, ok
}

// lineStarts is a reader that ends at any line which begins with ---.
func lineStarts(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, mark+"\n")
	if !ok {
		rest, ok = strings.CutPrefix(text, mark+"\r\n")
	}
	if !ok || strings.HasPrefix(rest, mark) {
		return "", ok
	}
	raw, _, ok := strings.Cut(rest, "\n"+mark)
	return raw + "\n", ok
}

// bareLines is a reader that begins at the first line which is --- and nothing else, so that it
// passes over a mark with blanks after it, and ends at the next mark, or at three dots.
func bareLines(text string) (string, bool) {
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if strings.TrimSuffix(strings.TrimPrefix(line, byteOrder), "\r") == mark {
			return between(strings.TrimPrefix(text[at:], byteOrder), func(line string) bool {
				line = strings.TrimRightFunc(line, isBlank)
				return line == mark || line == "..."
			})
		}
		at += len(line) + 1
	}
	return "", false
}

// hasOddBreaks reports whether a text holds characters that end a line for some
// readers of YAML only.
func hasOddBreaks(text string) bool {
	if strings.ContainsAny(text, "\u0085\u2028\u2029") {
		return true
	}
	return strings.Count(text, "\r") != strings.Count(text, "\r\n")
}

// parseHead reads the YAML between the marks.
func parseHead(raw string) (*head, error) {
	root, err := parseYAML(raw)
	if _, ok := errors.AsType[*syntaxError](err); ok {
		root, err = rescued(raw, err)
	}
	if err != nil {
		return nil, err
	}
	flow := root.Style&yaml.FlowStyle != 0
	if flow && (strings.Contains(strings.TrimSpace(raw), "\n") || !json.Valid([]byte(raw))) {
		return nil, errors.New("the frontmatter stands in braces and is no JSON in one line, so that readers find other keys in it")
	}
	h := &head{margin: root.Column - 1}
	lines := strings.Split(raw, "\n")
	for key, value := range pairs(root) {
		h.lines = append(h.lines, key.Line)
		if written, _, _ := strings.Cut(lines[min(key.Line, len(lines))-1], ":"); !flow && foldKey(written) != foldKey(key.Value) {
			return nil, fmt.Errorf("the key %q is another to who reads its line alone", clip(key.Value))
		}
		if err := h.take(key.Value, value); err != nil {
			return nil, err
		}
	}
	h.json, h.irregular = appendJSON(nil, root), irregular(h, root)
	return h, nil
}

// maxQuoted is how many values are read by themselves to find those that need quotes. Who has
// more has no YAML.
const maxQuoted = 32

// rescued reads frontmatter whose one-line values hold what YAML gives a meaning
// to, such as a colon: each value that cannot be read by itself is quoted.
func rescued(raw string, why error) (*yaml.Node, error) {
	lines := strings.SplitAfter(raw, "\n")
	changed, left := false, maxQuoted+1
	for i, line := range lines {
		if quoted, ok := quoteValue(line, &left); ok {
			lines[i], changed = quoted, true
		}
	}
	if !changed || left == 0 {
		return nil, why
	}
	root, err := parseYAML(strings.Join(lines, ""))
	if _, ok := errors.AsType[*syntaxError](err); ok {
		return nil, why
	}
	return root, err
}

// quoteValue quotes the value of a line "key: value" at the margin if the line
// cannot be read by itself. Left is how many lines may still be read.
func quoteValue(line string, left *int) (string, bool) {
	body := strings.TrimRight(line, "\r\n")
	key, value, ok := strings.Cut(body, ": ")
	value = strings.TrimSpace(value)
	if !ok || value == "" || !isKey(key) || *left == 0 {
		return "", false
	}
	*left--
	_, err := parseYAML(body)
	if _, broken := errors.AsType[*syntaxError](err); !broken {
		return "", false
	}
	return key + ": '" + strings.ReplaceAll(value, "'", "''") + "'" + line[len(body):], true
}

func isKey(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// take reads one key of the frontmatter. One that is allowed-tools, hooks, arguments,
// context or agent but for its spelling counts as that: a slip of the pen must not ask for
// less.
func (h *head) take(key string, value *yaml.Node) error {
	var err error
	folded := foldKey(key)
	switch {
	case key == "name":
		h.name, err = textOf(key, value)
	case key == "description":
		h.description, err = textOf(key, value)
	case folded == toolsKey:
		err = h.takeTools(value)
	case startsPrograms(folded):
		h.hooks = h.hooks || !isEmpty(value)
	case folded == argumentsKey:
		h.names = append(h.names, namesOf(value)...)
		slices.Sort(h.names)
		h.names = slices.Compact(h.names)
		h.veils = h.veils || slices.ContainsFunc(h.names, isVeil)
		if len(strings.Join(h.names, "")) > maxNames {
			err = fmt.Errorf("the names in %s are longer than %d bytes", key, maxNames)
		}
	case folded == contextKey && !isEmpty(value) && value.Value != "inline": // fork is the one that clients know now
		h.forks = append(h.forks, agentTool)
	case folded == agentKey && !isEmpty(value):
		var name string
		name, err = textOf(key, value)
		h.forks = append(h.forks, startOf(name))
	}
	return err
}

// startOf is the token of what starts an agent, which may have a name that none of ours has.
func startOf(agent string) string {
	if capability.AgentID(agent) == "" {
		agent = anyName
	}
	return agentTool + "(" + agent + ")"
}

// The keys that say what a skill uses, as [foldKey] writes them.
const (
	toolsKey     = "allowedtools"
	hookKeys     = "hooks lspservers monitors"
	argumentsKey = "arguments"
	contextKey   = "context"
	agentKey     = "agent"
)

// asksFor reports whether a skill may use more for what stands behind a key than what was
// read there. Nothing is more than hooks.
func (h *head) asksFor(folded string) bool {
	switch folded {
	case toolsKey, argumentsKey, contextKey, agentKey:
		return true
	}
	return !h.hooks && startsPrograms(folded)
}

// startsPrograms reports whether clients start programs that stand behind a key: hooks, or
// servers, which clients do not agree on a name for.
func startsPrograms(folded string) bool {
	return strings.HasPrefix(folded, "mcp") || slices.Contains(strings.Fields(hookKeys), folded)
}

// namesOf returns the names of arguments: a text of several, or a list. In what is neither,
// each text may be one.
func namesOf(value *yaml.Node) (names []string) {
	if value.Kind == yaml.ScalarNode {
		return strings.FieldsFunc(value.Value, isBlank)
	}
	for _, n := range value.Content {
		if n.Kind == yaml.ScalarNode && n.Value != "" {
			names = append(names, n.Value)
		}
	}
	return names
}

// isVeil reports whether the name of an argument is more than a word: a client takes $ and
// such a name out of the text, whatever stands in it, and what is left may be a command.
func isVeil(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) })
}

// foldKey is a key but for its spelling: what may stand between its words, and what
// does not show, is left out.
func foldKey(key string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, key))
}

// takeTools reads allowed-tools: in the forms that real files have: one text with
// spaces or commas between the tokens, or a list of tokens. Clients split an entry of
// a list, too; one in which there is something to split is no tool that is known.
func (h *head) takeTools(value *yaml.Node) error {
	var texts []string
	switch {
	case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
		return nil
	case isText(value):
		texts = []string{value.Value}
		h.tools = append(h.tools, Tokens(value.Value)...)
	case value.Kind == yaml.SequenceNode:
		for _, item := range value.Content {
			if !isText(item) {
				return fmt.Errorf("an entry of allowed-tools is %s, not text", nounOf(item))
			}
			texts = append(texts, item.Value)
			if token := strings.TrimSpace(item.Value); token != "" {
				h.tools = append(h.tools, token)
			}
		}
	default:
		return fmt.Errorf("allowed-tools is %s, not text or a list", nounOf(value))
	}
	h.declared = true
	switch {
	case slices.ContainsFunc(texts, divides):
		return errors.New("readers do not agree on where a token of allowed-tools ends")
	case len(h.tools) > maxTools:
		return fmt.Errorf("allowed-tools has more than %d entries", maxTools)
	case slices.ContainsFunc(h.tools, func(token string) bool { return len(token) > maxToken }):
		return fmt.Errorf("an entry of allowed-tools is over %d bytes", maxToken)
	}
	return nil
}
