package pattern_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/capability/pattern"
)

func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, text, s string }{
		{"literal", "/home/agent/notes/todo.md", "/home/agent/notes/todo.md"},
		{"open", "/home/agent/**", "/home/agent/src/deep/down/main.go"},
		{"star", "/home/agent/src/*.go", "/home/agent/src/main_test.go"},
		{"alternatives", "{src/**,docs/**,*.go}", "docs/guide/start.md"},
		{"globstar", "/home/agent/**/*.go", "/home/agent/src/deep/down/main.go"},
		{"braces", "/srv/*/data/{a,b}*.json", "/srv/alpha/data/b17.json"},
		{"class", "/srv/[a-z0-9_]*", "/srv/alpha_17"},
		{"miss", "/home/agent/**/*.go", "/etc/passwd"},
		{"20stars4096", strings.Repeat("*a", 20) + "b", strings.Repeat("a", 4096)},
		{"500states4096", "**" + strings.Repeat("?", 500), strings.Repeat("a", 4096)},
	} {
		p := parse(b, c.text, pattern.Slash)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Match(c.s)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := pattern.Parse("/home/agent/**/*.{go,md}", pattern.Slash); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCovers(b *testing.B) {
	var union []string
	for i := range 20 {
		union = append(union, fmt.Sprintf("/home/agent/proj%d/**/*.{go,md}", i))
	}
	bomb := []string{"/**a" + strings.Repeat("?", 40), "/**[b-z]" + strings.Repeat("?", 40)}
	for _, c := range []struct {
		name, a string
		b       []string
	}{
		{"plain", "/home/agent/src/**/*.go", []string{"/home/agent/src/**"}},
		{"yes", "/home/agent/src/**/*_test.go", []string{"/home/agent/**/*.go"}},
		{"no", "/home/agent/**", []string{"/home/agent/src/**/*.go"}},
		{"split", "/srv/{abc,xyz}.txt", []string{"/srv/[a-m]*", "/srv/[n-z]*"}},
		{"union20yes", "/home/agent/{proj7,proj17,proj3}/**/x*.go", union},
		{"union20no", "/home/agent/*/**/*.go", union},
		{"cap", "/" + strings.Repeat("{a,b}", 40), bomb},
	} {
		held, asked := rows(b, pattern.Slash, c.b...), rows(b, pattern.Slash, c.a)[0]
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pattern.Covers(held, asked, absolute)
			}
		})
	}
}

func BenchmarkMeets(b *testing.B) {
	held, asked := rows(b, pattern.Slash, "/srv/**", "/etc/*"), rows(b, pattern.Slash, "**/x*.go")
	for b.Loop() {
		pattern.Meets(absolute, held, asked)
	}
}
