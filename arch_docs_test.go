package capgate_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkPackageDoc: each package has one doc.go, which alone holds the package
// comment, and the comment says what the package does not do.
func checkPackageDoc(tr *tree) (found []breach) {
	for _, pkg := range packages(tr.code()) {
		var doc *source
		for _, s := range pkg {
			switch {
			case path.Base(s.path) == "doc.go":
				doc = s
			case s.syntax.Doc != nil:
				found = append(found, tr.at(s.syntax, "the package comment belongs in doc.go"))
			}
		}
		switch {
		case doc == nil:
			found = append(found, breach{pkg[0].dir + "/doc.go", 1, "the package has no doc.go"})
		case doc.syntax.Doc == nil:
			found = append(found, tr.at(doc.syntax, "doc.go holds no package comment"))
		case !slices.Contains(strings.Split(doc.syntax.Doc.Text(), "\n"), "# Limitations"):
			found = append(found, tr.at(doc.syntax, "the package comment has no section # Limitations"))
		}
	}
	return found
}

// export is one exported name at the top of a file, or an exported method of
// an exported type.
type export struct {
	node       ast.Node
	name       string
	documented bool
	counts     bool // a type or a function: what a reader of the package must learn
}

func exports(s *source) (all []export) {
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			owner, isMethod := receiver(d)
			if d.Name.IsExported() && (!isMethod || ast.IsExported(owner)) {
				all = append(all, export{d, d.Name.Name, d.Doc != nil, !isMethod})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				all = append(all, specExports(d, spec)...)
			}
		}
	}
	return all
}

func specExports(d *ast.GenDecl, spec ast.Spec) (all []export) {
	switch sp := spec.(type) {
	case *ast.TypeSpec:
		if sp.Name.IsExported() {
			alone := len(d.Specs) == 1 && d.Doc != nil
			all = append(all, export{sp, sp.Name.Name, sp.Doc != nil || alone, true})
		}
	case *ast.ValueSpec:
		for _, name := range sp.Names {
			if name.IsExported() {
				// A comment on a group of constants stands for each of them.
				documented := sp.Doc != nil || sp.Comment != nil || d.Doc != nil
				all = append(all, export{sp, name.Name, documented, false})
			}
		}
	}
	return all
}

// receiver is the type a method belongs to.
func receiver(d *ast.FuncDecl) (name string, isMethod bool) {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return "", false
	}
	for expr := d.Recv.List[0].Type; ; {
		switch x := expr.(type) {
		case *ast.StarExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.IndexListExpr:
			expr = x.X
		case *ast.Ident:
			return x.Name, true
		default:
			return "", true
		}
	}
}

func checkDocumented(tr *tree) (found []breach) {
	for _, s := range tr.code() {
		for _, e := range exports(s) {
			if !e.documented {
				found = append(found, tr.at(e.node, "%s has no comment", e.name))
			}
		}
	}
	return found
}

func checkExported(tr *tree) (found []breach) {
	for _, pkg := range packages(tr.code()) {
		n := 0
		for _, s := range pkg {
			for _, e := range exports(s) {
				if e.counts {
					n++
				}
			}
		}
		if n > maxExported {
			found = append(found, tr.at(pkg[0].syntax, "package %s exports %d types and functions, the most is %d", pkg[0].dir, n, maxExported))
		}
	}
	return found
}

var (
	quoted     = regexp.MustCompile("`([^`\\s]+)`")
	linked     = regexp.MustCompile(`\]\(([^)\s#:]+)(?:#[^)\s]*)?\)`)
	lineSuffix = regexp.MustCompile(`:\d+$`)
	ourFile    = regexp.MustCompile(`\.(go|md|yml)$`)
)

// checkPaths: what the docs point at is there.
func checkPaths(tr *tree) (found []breach) {
	roots := topFolders(tr)
	for _, txt := range tr.texts {
		if path.Ext(txt.path) != ".md" || underTestdata(txt.path) {
			continue
		}
		fenced := false
		for i, line := range txt.lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, name := range pathsIn(line, roots) {
				if !tr.exists(name) && !tr.exists(path.Join(path.Dir(txt.path), name)) {
					found = append(found, breach{txt.path, i + 1, fmt.Sprintf("there is no %s", name)})
				}
			}
		}
	}
	return found
}

// pathsIn finds what a line of Markdown says is a path of this repository.
func pathsIn(line string, roots map[string]bool) (names []string) {
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		name := strings.TrimSuffix(lineSuffix.ReplaceAllString(m[1], ""), "/...")
		first, _, nested := strings.Cut(name, "/")
		named := ourFile.MatchString(name) && !strings.ContainsAny(name, "*?[{") // a pattern is an example
		if (nested && roots[first] || named) && !notOurs.MatchString(name) {
			names = append(names, name)
		}
	}
	for _, m := range linked.FindAllStringSubmatch(line, -1) {
		names = append(names, m[1])
	}
	return names
}

// topFolders are the folders at the root, those of the imports table that are
// not built yet among them.
func topFolders(tr *tree) map[string]bool {
	roots := map[string]bool{}
	for pkg := range readTable(imports) {
		first, _, _ := strings.Cut(pkg, "/")
		roots[first] = true
	}
	for _, txt := range tr.texts {
		if first, _, nested := strings.Cut(txt.path, "/"); nested {
			roots[first] = true
		}
	}
	return roots
}

func (tr *tree) exists(name string) bool {
	name = path.Clean(name)
	if strings.ContainsAny(name, "*?[") {
		hits, err := fs.Glob(tr.fsys, name)
		return err == nil && len(hits) > 0
	}
	_, err := fs.Stat(tr.fsys, name)
	return err == nil
}

// checkText: no file says what is true of one machine only. Checksums are
// noise, and the fixtures of this law hold what it forbids.
func checkText(tr *tree) (found []breach) {
	for _, txt := range tr.texts {
		if path.Ext(txt.path) == ".sum" || path.Dir(txt.path) == fixtures {
			continue
		}
		for i, line := range txt.lines {
			for _, f := range forbidden {
				if hit := f.re.FindString(line); hit != "" {
					found = append(found, breach{txt.path, i + 1, fmt.Sprintf("%q %s", strings.TrimSpace(hit), f.why)})
				}
			}
		}
	}
	return found
}

// checkNames: a package and a file are called by a noun of the domain.
func checkNames(tr *tree) (found []breach) {
	for _, s := range tr.sources {
		stem := strings.TrimSuffix(path.Base(s.path), ".go")
		words := append(strings.Split(stem, "_"), path.Base(s.dir), strings.TrimSuffix(s.syntax.Name.Name, "_test"))
		for _, word := range words {
			if slices.Contains(emptyWords, word) {
				found = append(found, breach{s.path, 1, fmt.Sprintf("%q says nothing about what is in it", word)})
				break
			}
		}
	}
	return found
}

// checkFiles: no file is longer than a sitting.
func checkFiles(tr *tree) (found []breach) {
	for _, s := range tr.sources {
		if s.lines > maxFileLines {
			found = append(found, breach{s.path, s.lines, fmt.Sprintf("the file has %d lines, the most is %d", s.lines, maxFileLines)})
		}
	}
	return found
}
