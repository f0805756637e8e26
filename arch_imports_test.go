package capgate_test

import (
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// imported is the path an import names.
func imported(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has let no such thing through
	}
	return name
}

// ours is the package of this module that an import names.
func ours(spec *ast.ImportSpec) (string, bool) {
	if name := imported(spec); name != module {
		return strings.CutPrefix(name, module+"/")
	}
	return ".", true
}

// mayImport is the answer of the imports table.
func mayImport(rules map[string][]string, from, to string) bool {
	row := rules[from]
	if len(row) > 0 && row[0] == "everything" {
		_, known := rules[to]
		return known && !slices.Contains(row[1:], to)
	}
	return slices.Contains(row, to)
}

func checkImports(tr *tree) (found []breach) {
	rules := readTable(imports)
	for _, s := range tr.sources {
		if s.test && s.dir != outside {
			continue
		}
		if _, ok := rules[s.dir]; !ok {
			found = append(found, tr.at(s.syntax, "package %s is not in the imports table", s.dir))
			continue
		}
		for _, spec := range s.syntax.Imports {
			if to, ok := ours(spec); ok && !mayImport(rules, s.dir, to) {
				found = append(found, tr.at(spec, "%s may not import %s", s.dir, to))
			}
		}
	}
	return found
}

// edges maps a package to those it imports, each with the first import that says so.
type edges map[string]map[string]*ast.ImportSpec

func importGraph(tr *tree) edges {
	graph := edges{}
	for _, s := range tr.code() {
		for _, spec := range s.syntax.Imports {
			to, ok := ours(spec)
			if !ok {
				continue
			}
			if graph[s.dir] == nil {
				graph[s.dir] = map[string]*ast.ImportSpec{}
			}
			if graph[s.dir][to] == nil {
				graph[s.dir][to] = spec
			}
		}
	}
	return graph
}

// chain is a path down the imports. A package and the engine in its own
// subfolder count as one: the step between them is no layer.
type chain struct {
	pkgs  []string
	steps int
}

// longest finds the longest chain from pkg, or the first cycle.
func (g edges) longest(pkg string, above []string) (best chain, cycle []string) {
	if i := slices.Index(above, pkg); i >= 0 {
		return chain{}, append(slices.Clone(above[i:]), pkg)
	}
	above = append(above, pkg)
	best = chain{pkgs: []string{pkg}}
	for _, to := range slices.Sorted(maps.Keys(g[pkg])) {
		below, cycle := g.longest(to, above)
		if cycle != nil {
			return chain{}, cycle
		}
		if !strings.HasPrefix(to, pkg+"/") {
			below.steps++
		}
		if below.steps > best.steps || len(best.pkgs) == 1 {
			best = chain{append([]string{pkg}, below.pkgs...), below.steps}
		}
	}
	return best, nil
}

func checkChain(tr *tree) []breach {
	graph := importGraph(tr)
	for _, pkg := range slices.Sorted(maps.Keys(graph)) {
		best, cycle := graph.longest(pkg, nil)
		switch {
		case cycle != nil:
			return []breach{tr.at(graph[cycle[0]][cycle[1]], "imports go round: %s", strings.Join(cycle, " → "))}
		case best.steps > maxChain:
			return []breach{tr.at(graph[pkg][best.pkgs[1]], "a chain of %d imports, the longest may be %d: %s",
				best.steps, maxChain, strings.Join(best.pkgs, " → "))}
		}
	}
	return nil
}

func checkHomes(tr *tree) (found []breach) {
	table := readTable(homes)
	design, err := fs.ReadFile(tr.fsys, "docs/design.md")
	if err != nil {
		return []breach{{"docs/design.md", 1, "has no sentence on any dependency: " + err.Error()}}
	}
	for _, s := range tr.sources {
		for _, spec := range s.syntax.Imports {
			name := imported(spec)
			first, _, _ := strings.Cut(name, "/")
			if first == module || !strings.Contains(first, ".") && name != "unsafe" {
				continue // ours, or the standard library's, but what escapes its checks
			}
			mod := homeOf(table, name)
			switch row := table[mod]; {
			case mod == "":
				found = append(found, tr.at(spec, "%s has no home: a new dependency needs a row and a sentence", name))
			case !slices.Contains(row, s.dir) && (!s.test || !slices.Contains(row, "tests")):
				found = append(found, tr.at(spec, "%s may not be imported by %s: its home is %s", mod, s.path, strings.Join(row, ", ")))
			case !strings.Contains(string(design), mod):
				found = append(found, tr.at(spec, "%s has no sentence in docs/design.md", mod))
			}
		}
	}
	return found
}

// homeOf is the row of the table that an import falls under.
func homeOf(table map[string][]string, name string) string {
	for mod := range table {
		if name == mod || strings.HasPrefix(name, mod+"/") {
			return mod
		}
	}
	return ""
}
