package shape

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// promised are the packages that programs may rely on; doc.go at the root says so.
const promised = "rlhost hostabi/... sdk/... pipeline/graph pipeline/session"

// Examples import promised packages, and packages whose types a promised package takes or returns: an environment in Go implements
// core/env. This holds for example plugins, except a learner with its own kernels, and for the examples that go doc shows.
func TestShape_ExamplesUsePromisedPackages(t *testing.T) {
	t.Parallel()
	may := append(namedByPromised(t), strings.Fields(promised+" examples/plugins/...")...)
	t.Log("named by promised packages:", may)
	for _, s := range sources(t) {
		shown := fitsAny(promised, s.dir) && strings.HasPrefix(path.Base(s.path), "example_")
		plugin := strings.HasPrefix(s.dir, "examples/plugins/") && !s.test && s.dir != "examples/plugins/gorgonia-learner"
		if !shown && !plugin {
			continue
		}
		for _, name := range s.imports() {
			if !fitsAny(strings.Join(may, " "), name) {
				t.Errorf("%s imports %s, which is not promised", s.path, name)
			}
		}
	}
}

// namedByPromised lists the folders of packages whose types stand in what promised packages export.
func namedByPromised(t *testing.T) (list []string) {
	for _, c := range mustPackages(t) {
		if !fitsAny(promised, c.dir) || strings.Contains(c.dir, "internal") {
			continue
		}
		for _, file := range c.files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BlockStmt:
					return false
				case *ast.Field:
					return len(n.Names) == 0 || slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
				case *ast.FuncDecl:
					return n.Name.IsExported()
				case *ast.TypeSpec:
					return n.Name.IsExported()
				case *ast.ValueSpec:
					return false
				case *ast.SelectorExpr:
					if o, ok := c.info.Uses[n.Sel].(*types.TypeName); ok && o.Pkg() != nil {
						if dir, ours := folderOf(o.Pkg().Path()); ours && !slices.Contains(list, dir) {
							list = append(list, dir)
						}
					}
				}
				return true
			})
		}
	}
	slices.Sort(list)
	return list
}

func fitsAny(patterns, name string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool { return fits(pattern, name, "") })
}
