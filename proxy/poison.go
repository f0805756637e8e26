package proxy

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"
)

// lint looks for texts that are written for a model and against its user. It
// knows what the published attacks have in common, in English. Whoever words it
// otherwise is not found, and one sign alone is found in honest definitions too.
type lint struct {
	words int                         // read so far
	steps [len(phrases)][maxSteps]int // the word at which each step of a phrase was last taken
	signs [signs]bool
}

// sign is something that attacks have in common.
type sign uint8

const (
	markup       sign = iota // text that is dressed up as an instruction
	secrecy                  // the user is not to know
	override                 // what the model was told before is not to count
	precondition             // something is to be done before a tool is used
	material                 // keys, conversations
	signs
)

// verdict says what is wrong with the texts that were read, "" if nothing is.
func (l *lint) verdict() string {
	switch has := l.signs; {
	case has[override]:
		return "the definition tells the model to ignore its instructions"
	case has[markup] && has[secrecy]:
		return "the definition holds instructions that the user is not to know of"
	case has[material] && (has[markup] || has[secrecy] || has[precondition]):
		return "the definition sends the model for keys or conversations"
	case has[precondition] && has[secrecy]:
		return "the definition has something done that the user is not to know of"
	}
	return ""
}

// role is what a word can be in a phrase, as bits.
type role uint32

const (
	roleNot role = 1 << iota
	roleTell
	rolePerson
	roleHide
	roleFrom
	roleKnow
	roleIgnore
	roleEarlier
	roleOrders
	roleBefore
	roleUse
	roleTool
	roleKeyFile
	roleHolder // of a secret, with the next
	roleHeld
	roleTag
)

const maxSteps = 3

// step is a word of a phrase, and how many words behind the last one it may stand.
type step struct {
	role   role
	within int
}

var phrases = [...]struct {
	sign  sign
	steps []step
}{
	{secrecy, []step{{roleNot, 0}, {roleTell, 3}, {rolePerson, 5}}},
	{secrecy, []step{{rolePerson, 0}, {roleNot, 3}, {roleKnow, 3}}},
	{secrecy, []step{{roleHide, 0}, {roleFrom, 3}, {rolePerson, 3}}},
	{override, []step{{roleIgnore, 0}, {roleEarlier, 3}, {roleOrders, 3}}},
	{precondition, []step{{roleBefore, 0}, {roleUse, 1}, {roleTool, 4}}},
	{material, []step{{roleKeyFile, 0}}},
	{material, []step{{roleHolder, 0}, {roleHeld, 1}}},
}

// roles are those of words in small letters.
var roles = rolesOf([]vocabulary{
	{roleNot, "not never without don't dont mustn't shouldn't cannot can't avoid no"},
	{roleTell, `mention mentioning tell telling reveal revealing disclose disclosing inform informing
		notify notifying alert alerting show showing say explain`},
	{rolePerson, "user users human humans anyone anybody operator person people"},
	{roleHide, "hide hidden secret conceal concealed confidential"},
	{roleFrom, "from"},
	{roleKnow, "know aware notice see"},
	{roleIgnore, "ignore disregard forget"},
	{roleEarlier, "previous prior earlier preceding above all any your other"},
	{roleOrders, "instructions instruction directives guidelines"},
	{roleBefore, "before"},
	{roleUse, "using calling invoking running executing use call"},
	{roleTool, "tool tools function functions"},
	{roleKeyFile, "id_rsa id_ed25519 id_ecdsa .ssh .aws .netrc .gnupg .kube .cursor claude_desktop_config"},
	{roleHolder, "mcp private seed conversation chat etc"},
	{roleHeld, "json key keys phrase history passwd shadow"},
	{roleTag, "important critical system sys inst instruction instructions assistant admin override hidden secret confidential"},
})

type vocabulary struct {
	role  role
	words string
}

func rolesOf(all []vocabulary) map[string]role {
	roles := map[string]role{}
	for _, v := range all {
		for word := range strings.FieldsSeq(v.words) {
			roles[word] |= v.role
		}
	}
	return roles
}

const (
	longestWord = 32  // longer ones have no role
	apart       = 100 // words between two texts: no phrase goes on in the next
)

// read looks at one text.
func (l *lint) read(text []byte) {
	if l.words == 0 {
		for i := range l.steps {
			l.steps[i] = [maxSteps]int{math.MinInt32, math.MinInt32, math.MinInt32}
		}
	}
	l.words += apart
	if bytes.Contains(text, []byte("’")) {
		text = bytes.ReplaceAll(text, []byte("’"), []byte("'"))
	}
	if bytes.Contains(text, []byte("<|")) || bytes.Contains(text, []byte("<!--")) {
		l.signs[markup] = true
	}
	var word [longestWord]byte
	for start := 0; start < len(text); {
		n := 0
		for ; start+n < len(text) && isWordByte(text, start+n); n++ {
			if n < len(word) {
				word[n] = lower(text[start+n])
			}
		}
		if n > 0 && n <= len(word) {
			l.take(roles[string(word[:n])], isTagged(text[:start]))
		}
		start += n + 1
	}
}

// take goes on with every phrase that the next word can be in.
func (l *lint) take(r role, tagged bool) {
	l.words++
	if r == 0 {
		return
	}
	if tagged && r&roleTag != 0 {
		l.signs[markup] = true
	}
	for i := range phrases {
		steps := phrases[i].steps
		for k := len(steps) - 1; k >= 0; k-- {
			if r&steps[k].role == 0 || k > 0 && l.words-l.steps[i][k-1] > steps[k].within {
				continue
			}
			l.steps[i][k] = l.words
			if k == len(steps)-1 {
				l.signs[phrases[i].sign] = true
			}
		}
	}
}

// isWordByte reports whether a byte belongs to a word. A dot does where it begins
// one, as in the names of hidden files.
func isWordByte(text []byte, i int) bool {
	if text[i] != '.' {
		return isLetter(text[i])
	}
	return i+1 < len(text) && isLetter(text[i+1]) && (i == 0 || text[i-1] != '.' && !isLetter(text[i-1]))
}

func isLetter(c byte) bool {
	c = lower(c)
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '\'' || c >= utf8.RuneSelf
}

// isTagged reports whether a word behind the text begins what looks like a tag.
func isTagged(text []byte) bool {
	text = bytes.TrimSuffix(text, []byte("/"))
	return len(text) > 0 && (text[len(text)-1] == '<' || text[len(text)-1] == '[')
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
