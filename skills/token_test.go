package skills_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

func TestTokensSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		" , ":                             nil,
		"Read":                            {"Read"},
		"Read Write":                      {"Read", "Write"},
		"Read, Write,Edit\tGrep\nGlob":    {"Read", "Write", "Edit", "Grep", "Glob"},
		"Bash(git:*), Bash(gh pr *) Read": {"Bash(git:*)", "Bash(gh pr *)", "Read"},
		"Bash(cmd:a,cmd:b) Agent(a, b)":   {"Bash(cmd:a,cmd:b)", "Agent(a, b)"},
		`Bash(echo ")") Read`:             {`Bash(echo ")")`, "Read"},
		`Bash(echo "(") Read`:             {`Bash(echo "(")`, "Read"},
		"Bash(echo it's) Read":            {"Bash(echo it's)", "Read"},
		"Bash(f(x) y) Read":               {"Bash(f(x) y)", "Read"},
		"Bash (git) Read":                 {"Bash", "(git)", "Read"},
		"Bash(git Read Write":             {"Bash(git Read Write"},
		"Bash) Read":                      {"Bash)", "Read"},
		"mcp__a__b,mcp__c":                {"mcp__a__b", "mcp__c"},
		"Read\u00a0Write":                 {"Read\u00a0Write"}, // no separator that everybody knows
	} {
		if diff := cmp.Diff(want, skills.Tokens(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// FuzzTokens: nothing but separators is lost, and what is a token stays one.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{"Read, Write", `Bash(find . -name "X (*") Agent(a, b)`, "Bash(a 'b) c' d", "((", "))", "a)b(c d", `x("`, "a(')') b"} {
		f.Add(text)
	}
	separate := func(r rune) rune {
		if strings.ContainsRune(" \t\r\n,", r) {
			return -1
		}
		return r
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		tokens := skills.Tokens(text)
		rest := text
		for _, token := range tokens {
			at := strings.Index(rest, token)
			if token == "" || at < 0 || strings.Map(separate, rest[:at]) != "" {
				t.Fatalf("%q lost something before %q", text, token)
			}
			if again := skills.Tokens(token); len(again) != 1 || again[0] != token {
				t.Fatalf("%q is not one token but %q", token, again)
			}
			rest = rest[at+len(token):]
		}
		if strings.Map(separate, rest) != "" {
			t.Fatalf("%q lost %q", text, rest)
		}
	})
}
