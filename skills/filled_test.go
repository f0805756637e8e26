package skills_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capgate/skills"
)

// TestFilledIn: whatever is left of a text once a real client has filled something in, the
// text as it is needs all that the rest would need.
func TestFilledIn(t *testing.T) {
	// What Claude Code and opencode take out, in the order in which they do.
	named := regexp.MustCompile(`\$(?:x\+y|a b|z)($|[^\w\[])`) // of arguments: that follow no word
	clients := map[string][]*regexp.Regexp{
		"claude":   {regexp.MustCompile(`\$ARGUMENTS\[\d+\]`), regexp.MustCompile(`\$\d+\b`), regexp.MustCompile(`\$ARGUMENTS`), regexp.MustCompile(`\$\{CLAUDE_[A-Z]+\}`)},
		"opencode": {regexp.MustCompile(`\$\d+`), regexp.MustCompile(`\$ARGUMENTS`)},
	}
	pieces := strings.Fields("! ` ` @ @ $1 $2 $ARGUMENTS $ARGUMENTS[0] ${CLAUDE_X} $ ARGUMENTS 1 _ . a date / .. general plan agent- \\ \" ``` etc/x ")
	pieces = append(pieces, " ", "\n", " (agent)", "$x+y", "$a b", "$z")
	r := rand.New(rand.NewPCG(1, 2))
	verbs := func(keys, text string) (all []string) {
		for _, n := range skills.Parse("one", []byte(top+keys+"---\n"+text), skills.Options{}).Needs {
			all = append(all, n.Spec.Verb)
		}
		return all
	}
	for range 60_000 {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		held := verbs("", b.String())
		for _, verb := range verbs("", named.ReplaceAllString(named.ReplaceAllString(b.String(), "$1"), "$1")) {
			if !slices.Contains(verbs("arguments: [x+y, a b, z]\n", b.String()), verb) {
				t.Fatalf("%q with names of its own does not need %s", b.String(), verb)
			}
		}
		for client, steps := range clients {
			text := b.String()
			for _, step := range steps {
				text = step.ReplaceAllStringFunc(text, func(string) string { return []string{"", " "}[r.IntN(2)] })
			}
			text = strings.ReplaceAll(text, "$", "%") // nothing is filled in twice
			for _, verb := range verbs("", text) {
				if !slices.Contains(held, verb) {
					t.Fatalf("%q needs %v, and what %s makes of it, %q, %s", b.String(), held, client, text, verb)
				}
			}
		}
	}
}

// TestTypedIn: whatever becomes a command once a client fills in what its user has typed
// needs a shell, as the skill chooses what stands around that.
func TestTypedIn(t *testing.T) {
	place := regexp.MustCompile(`\$\d+|\$ARGUMENTS(?:\[\d+\])?|\$issue`)
	commands := []*regexp.Regexp{regexp.MustCompile("!`[^`]+`"), regexp.MustCompile("(?s)```!.*?```")}
	pieces := append(strings.Fields("! ! ` ` `` ``` $1 $12 $ARGUMENTS $ARGUMENTS[0] $issue $else a date"), " ", "\n")
	r := rand.New(rand.NewPCG(3, 4))
	for range 60_000 {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := b.String()
		if s := skills.Parse("one", []byte(top+"arguments: issue\n---\n"+text), skills.Options{}); len(s.Needs) > 0 {
			continue
		}
		for _, arg := range []string{"fix `foo` now", "`go test`", "why it fails!", "use ```x```", "why does `go test` fail!"} {
			filled := place.ReplaceAllLiteralString(text, arg)
			if filled == text {
				filled += "\n\n" + arg
			}
			for _, c := range commands {
				if found := c.FindString(filled); found != "" {
					t.Fatalf("%q needs nothing, and runs %q once %q is filled in", text, found, arg)
				}
			}
		}
	}
}

// TestSplit: what is filled in may be put together by what is filled in before it, as clients
// do one kind after the other, and what nothing was typed for is nothing.
func TestSplit(t *testing.T) {
	index, number := regexp.MustCompile(`\$ARGUMENTS\[\d+\]`), regexp.MustCompile(`\$\d+`)
	command := regexp.MustCompile("!`[^`]+`")
	pieces := append(strings.Fields("! ` $9 $12 9 $ $ $ARG UMENTS $ARGUMENTS ARGUMENTS $ARGUMENTS[9] ARG [9] date $issue"), " ")
	r := rand.New(rand.NewPCG(5, 6))
	for _, text := range []string{"!$$issue", "Do: !$$ARGUMENTS[9]9`date`", "$ARG$9UMENTS`date`", "x !$ARG$9UMENTS y", "!$ARG$ARGUMENTS[9]UMENTS`date`"} {
		if skills.Parse("one", []byte(top+"arguments: issue\n---\n"+text), skills.Options{}).Needs == nil {
			t.Errorf("%q needs nothing", text)
		}
	}
	found := 0
	for range 150_000 {
		var b strings.Builder
		for range 3 + r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := b.String()
		for i, arg := range []string{"why it fails!", "`go test` x", "!", ""} {
			first, words := []string{"9", "x"}[r.IntN(2)], strings.NewReplacer("$9", arg, "$12", "")
			filled := strings.ReplaceAll(text, "$issue", first)
			if i%2 == 1 || r.IntN(2) == 0 { // not all clients know these
				filled = index.ReplaceAllLiteralString(filled, "")
			}
			if first == "9" { // that many words are typed, of which this is the last
				filled = words.Replace(filled)
			}
			filled = strings.ReplaceAll(number.ReplaceAllLiteralString(filled, ""), "$ARGUMENTS", arg)
			if !command.MatchString(filled) {
				continue
			}
			if found++; skills.Parse("one", []byte(top+"arguments: issue\n---\n"+text), skills.Options{}).Needs == nil {
				t.Fatalf("%q needs nothing, and is %q once %q is filled in", text, filled, arg)
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d commands", found)
	}
}
