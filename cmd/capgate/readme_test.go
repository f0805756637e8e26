package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/agents"
)

var (
	shellWord = regexp.MustCompile(`'[^']*'|\S+`)
	remark    = regexp.MustCompile(`\s{3,}.*$`)
)

// TestReadmeCommands: every command line that the documentation shows is one that
// the program has.
func TestReadmeCommands(t *testing.T) {
	shown := 0
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(data)) {
			shown++
			var args []string
			for _, w := range shellWord.FindAllString(line, -1) {
				args = append(args, strings.Trim(w, "'"))
			}
			a := &app{ui: newUI(stdio{})}
			cmd, rest, err := a.command(nil).Find(args)
			if err == nil && cmd.Runnable() {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || !cmd.Runnable() {
				t.Errorf("%s: capgate %s: %v", file, line, err)
			}
		}
	}
	if shown < 6 {
		t.Errorf("only %d command lines were found", shown)
	}
}

// commandLines returns what follows "capgate" on the lines of code blocks.
func commandLines(text string) []string {
	var lines []string
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "capgate "); ok && code {
			lines = append(lines, remark.ReplaceAllString(rest, ""))
		}
	}
	return lines
}

func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(files, docs...)
}

// TestReadmeExplain: capgate explain prints what the README shows. The edit that it names allows
// the call, and no policy test of the example is against that.
func TestReadmeExplain(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```\ncapgate explain ")
	block, _, _ := strings.Cut(rest, "```\n")
	line, want, _ := strings.Cut(block, "\n\n")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")),
		os.WriteFile(filepath.Join(dir, "config.example.yml"), example, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	capgate := func(line string) (int, string) {
		var args []string
		for _, w := range shellWord.FindAllString(line, -1) {
			args = append(args, strings.Trim(w, "'"))
		}
		var out bytes.Buffer
		code := run(t.Context(), args, stdio{out: &out, err: t.Output(), dir: dir})
		return code, out.String()
	}
	code, got := capgate("explain " + line)
	if diff := cmp.Diff(want, strings.ReplaceAll(got, filepath.Join(dir, "examples", "work"), "…")); diff != "" || code != exitRed {
		t.Errorf("exit %d\n%s", code, diff)
	}
	_, edit, _ := strings.Cut(got, "  to allow capgate ")
	for _, line := range []string{strings.TrimSpace(edit) + " --yes", "explain " + line, "check -c config.example.yml"} {
		if code, said := capgate(line); code != exitOK {
			t.Errorf("capgate %s: exit %d\n%s", line, code, said)
		}
	}
}

// TestReadmeConfig: the configuration that the README begins with has nothing wrong with it, and an
// agent is made for it as is shown there.
func TestReadmeConfig(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	text, rest, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the README shows no configuration")
	}
	_, line, _ := strings.Cut(rest, "\ncapgate agents create ")
	line, _, _ = strings.Cut(line, "\n")
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	if err := errors.Join(os.WriteFile("capgate.yml", []byte(text), 0o600), os.Mkdir("agents", 0o700)); err != nil {
		t.Fatal(err)
	}
	create := []string{"agents", "create"}
	for _, w := range shellWord.FindAllString(line, -1) {
		create = append(create, strings.Trim(w, "'"))
	}
	for _, args := range [][]string{create, {"check"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(args, "-c", "capgate.yml"), stdio{out: &out, err: &errs, dir: dir}); code != exitOK {
			t.Errorf("%v: exit %d\n%s%s", args, code, &out, &errs)
		}
	}
}

// TestReadmeRecord: the record that the README shows loads without a finding.
func TestReadmeRecord(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```markdown\n")
	record, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the README shows no record")
	}
	rec, findings, err := agents.Parse("scout.md", []byte(record))
	if err != nil || len(findings) > 0 || rec.ID != "agents/scout" {
		t.Errorf("%v %v", findings, err)
	}
}

// TestLanguageRecords: so do those of the description of the language, and each is one of the
// dialect under which it stands.
func TestLanguageRecords(t *testing.T) {
	data, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	endings := map[string]string{"markdown": "md", "yaml": "yml", "xml": "xml"}
	_, rest, _ := strings.Cut(string(data), "\n## Records\n")
	shown := 0
	for section := range strings.SplitSeq(rest, "\n### ") {
		dialect, text, _ := strings.Cut(section, ":")
		_, block, found := strings.Cut(text, "\n```")
		if !found {
			continue
		}
		shown++
		form, record, _ := strings.Cut(block, "\n")
		record, _, _ = strings.Cut(record, "```\n")
		rec, findings, err := agents.Parse("scout."+endings[form], []byte(record))
		if err != nil || len(findings) > 0 || rec.Dialect.String() != strings.ToLower(dialect) {
			t.Errorf("%s: %v %v", dialect, findings, err)
		}
	}
	if shown != 4 {
		t.Errorf("%d dialects are shown", shown)
	}
}
