package capgate_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// checkGlobals: a package variable is a table or a sentinel, written once,
// where it is declared. Anything that changes belongs to a value someone holds.
func checkGlobals(tr *tree) (found []breach) {
	for _, pkg := range packages(tr.sources) {
		names := resolve(tr.fset, pkg)
		for _, s := range pkg {
			for _, decl := range s.syntax.Decls {
				if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
					found = append(found, declaredState(tr, s, d)...)
				}
			}
			ast.Inspect(s.syntax, func(n ast.Node) bool {
				for _, expr := range written(n) {
					if name, ok := globalUnder(names, expr); ok {
						found = append(found, tr.at(expr, "writes to the package variable %s", name))
					}
				}
				return true
			})
		}
	}
	return found
}

// stateful are the types whose only use is to change.
var stateful = map[string][]string{
	"sync":   {"Mutex", "RWMutex", "Once", "Map", "Pool", "WaitGroup", "Cond"},
	"atomic": {"Bool", "Int32", "Int64", "Uint32", "Uint64", "Uintptr", "Pointer", "Value"},
}

// declaredState finds variables that are state as they are declared, and
// exported ones, which any package could write.
func declaredState(tr *tree, s *source, d *ast.GenDecl) (found []breach) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, name := range v.Names {
			if name.IsExported() && !strings.HasPrefix(name.Name, "Err") && !s.test {
				found = append(found, tr.at(name, "the variable %s can be written by anyone: make it a function", name.Name))
			}
		}
		ast.Inspect(v, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ChanType:
				found = append(found, tr.at(x, "a package variable holds a channel"))
			case *ast.SelectorExpr:
				id, ok := x.X.(*ast.Ident)
				if ok && slices.Contains(stateful[id.Name], x.Sel.Name) {
					found = append(found, tr.at(x, "a package variable holds %s.%s", id.Name, x.Sel.Name))
				}
			}
			return true
		})
	}
	return found
}

// written are the expressions that a node changes, or lets others change by
// taking their address.
func written(n ast.Node) []ast.Expr {
	switch x := n.(type) {
	case *ast.AssignStmt:
		return x.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{x.X}
	case *ast.RangeStmt:
		return slices.DeleteFunc([]ast.Expr{x.Key, x.Value}, func(e ast.Expr) bool { return e == nil })
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return []ast.Expr{x.X}
		}
	case *ast.CallExpr:
		id, ok := x.Fun.(*ast.Ident)
		if ok && len(x.Args) > 0 && slices.Contains([]string{"delete", "clear", "copy", "append"}, id.Name) {
			return x.Args[:1]
		}
	}
	return nil
}

// globalUnder is the package variable, of this package or another, that a
// written expression is, or is a part of.
func globalUnder(info *types.Info, expr ast.Expr) (string, bool) {
	for {
		switch x := expr.(type) {
		case *ast.ParenExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.SliceExpr:
			expr = x.X
		case *ast.StarExpr:
			expr = x.X
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				if _, isPkg := info.Uses[id].(*types.PkgName); isPkg {
					return id.Name + "." + x.Sel.Name, true
				}
			}
			expr = x.X
		case *ast.Ident:
			v, ok := info.Uses[x].(*types.Var)
			return x.Name, ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
		default:
			return "", false
		}
	}
}

// resolve says what each name of a package stands for. What the package
// imports is not read: an import is a name like any other here, so the errors
// of a check without them say nothing.
func resolve(fset *token.FileSet, pkg []*source) *types.Info {
	files := make([]*ast.File, len(pkg))
	for i, s := range pkg {
		files[i] = s.syntax
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: unread{}, Error: func(error) {}}
	_, _ = conf.Check(pkg[0].dir, fset, files, info)
	return info
}

// unread imports every package as an empty one.
type unread struct{}

func (unread) Import(name string) (*types.Package, error) {
	base := path.Base(name)
	if strings.HasPrefix(base, "v") && path.Dir(name) != "." {
		base = path.Base(path.Dir(name)) // .../yaml/v3 is called yaml
	}
	pkg := types.NewPackage(name, base)
	pkg.MarkComplete()
	return pkg, nil
}
