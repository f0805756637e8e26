package capgate_test

import (
	"go/ast"
	"go/token"
	"strings"
)

// routine is a function as it stands at the top of a file: declared, or kept
// in a package variable.
type routine struct {
	node   ast.Node
	name   string
	params *ast.FieldList
	body   *ast.BlockStmt
}

func routines(s *source) (all []routine) {
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			all = append(all, routine{d, d.Name.Name, d.Type.Params, d.Body})
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				lit, ok := n.(*ast.FuncLit)
				if ok {
					all = append(all, routine{lit, "the function in a package variable", lit.Type.Params, lit.Body})
				}
				return !ok
			})
		}
	}
	return all
}

func checkFunctions(tr *tree) (found []breach) {
	for _, s := range tr.sources {
		for _, r := range routines(s) {
			lines := tr.fset.Position(r.node.End()).Line - tr.fset.Position(r.node.Pos()).Line + 1
			if lines > maxFuncLines && !s.test {
				found = append(found, tr.at(r.node, "%s has %d lines, the most is %d", r.name, lines, maxFuncLines))
			}
			if n := r.params.NumFields(); n > maxParams {
				found = append(found, tr.at(r.node, "%s has %d parameters, the most is %d", r.name, n, maxParams))
			}
			if n := cyclomatic(r.body); n > maxCyclomatic {
				found = append(found, tr.at(r.node, "%s has a cyclomatic number of %d, the most is %d", r.name, n, maxCyclomatic))
			}
		}
	}
	return found
}

// cyclomatic is one more than the number of places where a function goes one
// way or another; functions inside it count as part of it.
func cyclomatic(body *ast.BlockStmt) int {
	n := 1
	if body == nil {
		return n // written in assembly
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// checkInit: nothing happens because a package was imported.
func checkInit(tr *tree) (found []breach) {
	for _, s := range tr.sources {
		for _, decl := range s.syntax.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, tr.at(d, "no init: what a package needs is constructed by its caller"))
			}
		}
	}
	return found
}

// checkContext: only main and the tests begin a context; all else is handed one.
func checkContext(tr *tree) (found []breach) {
	for _, s := range tr.code() {
		name := importName(s, "context")
		if name == "" || s.dir == "cmd" || strings.HasPrefix(s.dir, "cmd/") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || (sel.Sel.Name != "Background" && sel.Sel.Name != "TODO") {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
				found = append(found, tr.at(sel, "context.%s outside cmd: a context is handed down", sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

// importName is what a file calls the standard package at path, "" if it does
// not import it.
func importName(s *source, path string) string {
	for _, spec := range s.syntax.Imports {
		switch {
		case imported(spec) != path:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path
		}
	}
	return ""
}
