package shape

import (
	"go/ast"
	"strings"
	"testing"
)

// untyped are the exported places whose values may have any type, by package and name: encoded and decoded values, values of a
// table, types of authors, methods of interfaces from elsewhere.
const untyped = `
core/component.Meta core/component.Number
core/control.Do core/control.Notice
core/table.Value core/table.Plain core/table.Scalar core/table.EncodeValue
core/loop.Value
pipeline/graph.Scalar
pipeline/search.Choices pipeline/search.Literal
plugins/process/spawn.Call plugins/process/spawn.GRPCClient
plugins/wasm/guest.Value
sdk/component.Config sdk/component.State
`

// TestShape_WhereATypeExistsItIsNamed: exported fields, parameters and results have a type. any is for tables (map[string]any), for
// values to decode into or to format, and for the places above.
func TestShape_WhereATypeExistsItIsNamed(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{}
	for _, name := range strings.Fields(untyped) {
		allowed[name] = true
	}
	for _, s := range sources(t) {
		if s.test || s.generated || strings.HasPrefix(s.dir, "internal/") || strings.Contains(s.dir, "/internal/") {
			continue
		}
		for name, place := range untypedIn(s.file) {
			if !allowed[s.dir+"."+name] {
				t.Errorf("%v: %s.%s is of any type", s.set.Position(place.Pos()), s.dir, name)
			}
		}
	}
}

// untypedIn returns the exported fields, functions and methods of a file that are, take or return something of any type, by name.
func untypedIn(f *ast.File) map[string]ast.Node {
	found := map[string]ast.Node{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (isAny(d.Type.Params) || isAny(d.Type.Results)) {
				found[d.Name.Name] = d
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					untypedFields(spec, found)
				}
			}
		}
	}
	return found
}

func untypedFields(spec *ast.TypeSpec, found map[string]ast.Node) {
	var list *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	case *ast.FuncType:
		if isAny(t.Params) || isAny(t.Results) {
			found[spec.Name.Name] = spec
		}
		return
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			method, isMethod := field.Type.(*ast.FuncType)
			if name.IsExported() && (isMethod && (isAny(method.Params) || isAny(method.Results)) || !isMethod && anyType(field.Type)) {
				found[name.Name] = field
			}
		}
	}
}

// isAny reports whether a parameter or result is of any type, except a value to decode into.
func isAny(list *ast.FieldList) bool {
	if list == nil {
		return false
	}
	for _, field := range list.List {
		into := len(field.Names) == 1 && field.Names[0].Name == "into"
		if anyType(field.Type) && !into {
			return true
		}
	}
	return false
}

func anyType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "any"
	case *ast.ArrayType:
		return anyType(e.Elt)
	case *ast.InterfaceType:
		return len(e.Methods.List) == 0
	}
	return false
}
