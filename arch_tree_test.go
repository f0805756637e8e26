package capgate_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// tree is everything the laws look at, read once.
type tree struct {
	fsys    fs.FS
	fset    *token.FileSet
	sources []*source
	texts   []text
}

// source is one Go file, wherever it stands but under testdata.
type source struct {
	path   string // with slashes, from the root
	dir    string // the package's import path without the module, "." for the root
	test   bool
	lines  int
	syntax *ast.File
}

// text is one file that people read.
type text struct {
	path  string
	lines []string
}

// breach is one place where a law does not hold.
type breach struct {
	file string
	line int
	law  string
}

func (b breach) String() string { return fmt.Sprintf("%s:%d: %s", b.file, b.line, b.law) }

func loadTree(fsys fs.FS) (*tree, error) {
	tr := &tree{fsys: fsys, fset: token.NewFileSet()}
	ignored := ignoredNames(fsys)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || d.Name() == "node_modules" || ignored[name]):
			return fs.SkipDir
		case !d.Type().IsRegular() || ignored[name]:
			return nil
		}
		return tr.add(name)
	})
	return tr, err
}

func (tr *tree) add(name string) error {
	data, err := fs.ReadFile(tr.fsys, name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil // not text
	}
	tr.texts = append(tr.texts, text{name, strings.Split(string(data), "\n")})
	if path.Ext(name) != ".go" || underTestdata(name) {
		return nil
	}
	file, err := parser.ParseFile(tr.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("read the tree: %w", err)
	}
	tr.sources = append(tr.sources, &source{
		path:   name,
		dir:    path.Dir(name),
		test:   strings.HasSuffix(name, "_test.go"),
		lines:  bytes.Count(data, []byte("\n")),
		syntax: file,
	})
	return nil
}

// ignoredNames reads the entries of .gitignore that are anchored at the root;
// there are no others.
func ignoredNames(fsys fs.FS) map[string]bool {
	names := map[string]bool{}
	data, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil {
		return names
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "/"); ok {
			names[strings.TrimSuffix(name, "/")] = true
		}
	}
	return names
}

func underTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// at is a breach at a node of a Go file.
func (tr *tree) at(n ast.Node, format string, args ...any) breach {
	p := tr.fset.Position(n.Pos())
	return breach{p.Filename, p.Line, fmt.Sprintf(format, args...)}
}

// code is every Go file that ships: all but tests.
func (tr *tree) code() []*source {
	return slices.DeleteFunc(slices.Clone(tr.sources), func(s *source) bool { return s.test })
}

// packages groups sources by folder and package clause, in order: an external
// test package is a package of its own.
func packages(sources []*source) [][]*source {
	groups := map[string][]*source{}
	for _, s := range sources {
		key := s.dir + " " + s.syntax.Name.Name
		groups[key] = append(groups[key], s)
	}
	all := make([][]*source, 0, len(groups))
	for _, g := range groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b []*source) int { return cmp.Compare(a[0].path, b[0].path) })
	return all
}

// readTable reads lines of "names: words"; every name gets the words.
func readTable(s string) map[string][]string {
	table := map[string][]string{}
	for line := range strings.Lines(strings.TrimSpace(s)) {
		names, words, _ := strings.Cut(line, ": ")
		for _, name := range strings.Fields(names) {
			table[name] = strings.Fields(words)
		}
	}
	return table
}
