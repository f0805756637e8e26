//go:build mutants

package capgate_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A bundle is the test binaries of all packages with many mutants in them, for
// building is most of what a mutant costs. It has those that change one function
// within its braces: the changed one lies beside the function, which begins by
// asking whether it is that one's turn. Whose turn it is stands in the binary
// itself, so that nothing that a test starts can lose it.
type bundle struct {
	root     string
	turns    map[string]string // of a mutant that is in it, by name
	binaries map[string][]byte // of a package
}

const (
	turnForm = "the turn is of mutant %04d" // all of one length, one is written over another
	turnFile = "zz_turn.go"
)

var (
	noTurn  = fmt.Sprintf(turnForm, 0)
	culprit = regexp.MustCompile(`mutant-(.+)\.txt:\d`)
)

// newBundle builds it. A mutant that does not compile is not in it.
func newBundle(ctx context.Context, root, dir string, all []mutant) (*bundle, error) {
	b := &bundle{root: root, turns: map[string]string{}, binaries: map[string][]byte{}}
	for i, m := range all {
		b.turns[m.name] = fmt.Sprintf(turnForm, i+1)
		for _, p := range m.packages {
			b.binaries[p] = nil
		}
	}
	for {
		overlay, err := b.overlay(dir, all)
		if err != nil {
			return nil, err
		}
		args := []string{"test", "-c", "-vet=off", "-overlay=" + overlay, "-o", dir + string(filepath.Separator)}
		cmd := exec.CommandContext(ctx, "go", slices.AppendSeq(args, maps.Keys(b.binaries))...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err == nil {
			return b, b.read(dir)
		}
		left := len(b.turns)
		for _, found := range culprit.FindAllStringSubmatch(string(out), -1) {
			delete(b.turns, found[1])
		}
		if len(b.turns) == left {
			return nil, fmt.Errorf("build the mutants together: %w\n%s", err, out)
		}
	}
}

func (b *bundle) read(dir string) (err error) {
	for p := range b.binaries {
		if b.binaries[p], err = os.ReadFile(filepath.Join(dir, path.Base(p)+".test")); err != nil {
			return err
		}
	}
	return nil
}

// overlay writes the changed files and the map that puts them in place.
func (b *bundle) overlay(dir string, all []mutant) (string, error) {
	places := map[string]string{}
	put := func(name, text string) error {
		changed := filepath.Join(dir, strings.ReplaceAll(filepath.ToSlash(name), "/", "_"))
		places[filepath.Join(b.root, filepath.FromSlash(name))] = changed
		return os.WriteFile(changed, []byte(text), 0o600)
	}
	byFile := map[string][]mutant{}
	for _, m := range all {
		if b.turns[m.name] != "" {
			byFile[m.file] = append(byFile[m.file], m)
		}
	}
	for file, mutants := range byFile {
		data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		text, in := weave(string(data), mutants, b.turns)
		for _, m := range mutants {
			if !slices.Contains(in, m.name) {
				delete(b.turns, m.name)
			}
		}
		name, _, _ := strings.Cut(text[strings.Index("\n"+text, "\npackage "):], "\n")
		turn := name + "\n\nvar mutantTurn = \"" + noTurn + "\"\n"
		if err := cmp.Or(put(file, text), put(filepath.Join(filepath.Dir(file), turnFile), turn)); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": places})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}

// weave puts mutants of one file beside what they change, and names those for
// which that is possible.
func weave(text string, mutants []mutant, turns map[string]string) (woven string, in []string) {
	begins := map[int]string{} // of functions, by where their braces open
	ends := ""
	for i, m := range mutants {
		if strings.Count(text, m.old) != 1 || m.old == m.new {
			continue
		}
		at := strings.Index(text, m.old)
		changed := text[:at] + m.new + text[at+len(m.old):]
		was, of := functionAround(text, at, at+len(m.old))
		is, _ := functionAround(changed, at, at+len(m.new))
		if was == nil || is == nil || was.head != is.head || strings.Contains(is.body, "recover()") {
			continue
		}
		name := fmt.Sprintf("mutant%d%s", i, of.Name)
		call, ok := callOf(of, name)
		if !ok {
			continue
		}
		begins[was.open] += fmt.Sprintf(" if mutantTurn == %q { %s };", turns[m.name], call)
		ends += "\n//line mutant-" + m.name + ".txt:1\n" + is.before + name + is.after + is.body + "\n"
		in = append(in, m.name)
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(begins))) {
		text = text[:at] + begins[at] + text[at:]
	}
	return text + ends, in
}

// function is the text of one, in parts.
type function struct {
	before, after string // its name, up to its brace
	head          string // all of that
	body          string
	open          int // where in the file the body begins, behind its brace
}

// functionAround is the function within which a stretch of a file lies.
func functionAround(text string, from, to int) (*function, *ast.FuncDecl) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		at := func(p token.Pos) int { return files.Position(p).Offset }
		open := at(f.Body.Lbrace) + 1
		if from < open || to >= at(f.End()) {
			continue
		}
		return &function{
			before: text[at(f.Pos()):at(f.Name.Pos())],
			after:  text[at(f.Name.End()):open],
			head:   text[at(f.Pos()):open],
			body:   text[open:at(f.End())],
			open:   open,
		}, f
	}
	return nil, nil
}

// callOf is how a function hands all it was given to another of its form. It
// cannot where something has no name, or there are types to tell, nor for what
// nobody calls by name.
func callOf(f *ast.FuncDecl, name string) (string, bool) {
	if f.Name.Name == "init" || f.Name.Name == "main" || f.Name.Name == "_" || f.Type.TypeParams != nil {
		return "", false
	}
	var args []string
	named := true
	read := func(fields *ast.FieldList) {
		for _, field := range fields.List {
			named = named && len(field.Names) > 0
			for _, n := range field.Names {
				named = named && n.Name != "_"
				args = append(args, n.Name)
				if _, ok := field.Type.(*ast.Ellipsis); ok {
					args[len(args)-1] += "..."
				}
			}
		}
	}
	if f.Recv != nil {
		read(f.Recv)
		name, args = strings.Join(args, "")+"."+name, nil
	}
	read(f.Type.Params)
	call := name + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", named
	}
	return "return " + call, named
}

// run is mutant.run, within the bundle where the mutant is in it.
func (b *bundle) run(ctx context.Context, m mutant, dir string) (outcome, string) {
	turn, ok := b.turns[m.name]
	if !ok {
		return m.run(ctx, b.root, dir)
	}
	ctx, cancel := context.WithTimeout(ctx, mutantTime)
	defer cancel()
	out, err := b.test(ctx, dir, top(m.kills.String()), m.packages, turn)
	return m.judge(ctx, out, err)
}

// test runs tests of the packages as `go test` does, with it being a mutant's
// turn or nobody's.
func (b *bundle) test(ctx context.Context, dir, run string, packages []string, turn string) (out string, err error) {
	limit := mutantTestTime
	if turn == noTurn {
		limit = mutantTime // it is all the tests that guard anything there
	}
	for _, p := range packages {
		name := filepath.Join(dir, "bundle.test")
		data := bytes.ReplaceAll(b.binaries[p], []byte(noTurn), []byte(turn))
		if err := os.WriteFile(name, data, 0o700); err != nil { //nolint:gosec // it is run
			return out, err
		}
		cmd := exec.CommandContext(ctx, name, "-test.paniconexit0", "-test.v",
			"-test.timeout="+limit.String(), "-test.run="+run)
		cmd.Dir = filepath.Join(b.root, filepath.FromSlash(p))
		said, failed := cmd.CombinedOutput()
		out, err = out+string(said), cmp.Or(err, failed)
	}
	return out, err
}
