package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"capgate/skills"
)

// shelf is a folder with as many skills as large collections have.
func shelf(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	const count = 500
	for i := range count {
		at := filepath.Join(dir, fmt.Sprintf("skill-%d", i))
		text := md(fmt.Sprintf("skill-%d", i), "allowed-tools: Read, Grep, Bash(git:*), WebFetch(domain:docs.example.com)")
		if err := os.MkdirAll(at, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, data := range map[string][]byte{"SKILL.md": []byte(text), "ref.md": make([]byte, 8<<10), "run.sh": []byte("#!/bin/sh\n")} {
			if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

func BenchmarkLoad(b *testing.B) {
	dir := shelf(b)
	for b.Loop() {
		skills.Load(skills.Options{}, dir)
	}
}

func BenchmarkStamp(b *testing.B) {
	dir := shelf(b)
	for b.Loop() {
		skills.Stamp(dir)
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(md("one", "allowed-tools: Read, Grep, Bash(git:*), WebFetch(domain:docs.example.com)"))
	for b.Loop() {
		skills.Parse("one", text, skills.Options{})
	}
}
