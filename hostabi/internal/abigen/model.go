package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// model is the content of a view.
type model struct {
	groups  []group
	records []record
	exports []function
	imports []function
	module  string            // of the imports
	names   map[string]string // Go names that comments use, and the view's names
}

// group is one const block: its comment and its exported constants.
type group struct {
	doc       []string
	alone     bool // not a block, but one constant with that comment
	constants []number
}

// number is one constant. typ is the Go name of its type, "" for an untyped one.
type number struct {
	name, typ string
	value     constant.Value
	doc       []string
}

// record is one struct that host and guest share.
type record struct {
	name   string
	size   uintptr
	doc    []string
	fields []field
}

type field struct {
	name   string
	typ    reflect.Type
	offset uintptr
	doc    string
}

// function is an export or import with the names of its parameters.
type function struct {
	hostabi.Function
	params []string
	doc    []string
}

// abi is one of the ABIs of guests.
type abi struct {
	// files are the parts of hostabi that its views show, in their order; besides are further files whose comments they use.
	files, besides []string
	records        []reflect.Type // structs that host and guest share; the views assert the compiler's layout of them
	exports        []hostabi.Function
	imports        []hostabi.Function
	module         string // of the imports
}

// envABI is the ABI between environments and their hosts.
func envABI() abi {
	return abi{
		files: []string{"tensor.go", "record.go", "status.go", "env.go"},
		records: []reflect.Type{
			reflect.TypeFor[hostabi.Spec](),
			reflect.TypeFor[hostabi.GroupDesc](),
			reflect.TypeFor[hostabi.TensorDesc](),
			reflect.TypeFor[hostabi.ArgDesc](),
			reflect.TypeFor[hostabi.Binding](),
			reflect.TypeFor[hostabi.HostDesc](),
		},
		exports: hostabi.EnvExports(), imports: hostabi.EnvImports(), module: hostabi.ImportModule,
	}
}

// componentABI is the part of the ABI that only components and their hosts share.
func componentABI() abi {
	return abi{
		files: []string{"component_record.go", "answer.go", "component.go"}, besides: []string{"env.go", "tensor.go"},
		records: []reflect.Type{
			reflect.TypeFor[hostabi.ComponentSpec](),
			reflect.TypeFor[hostabi.PortDesc](),
			reflect.TypeFor[hostabi.ColumnDesc](),
			reflect.TypeFor[hostabi.ComponentMessage](),
			reflect.TypeFor[hostabi.ColumnBinding](),
			reflect.TypeFor[hostabi.Identity](),
			reflect.TypeFor[hostabi.RequestDesc](),
			reflect.TypeFor[hostabi.RequestCall](),
			reflect.TypeFor[hostabi.AnswerCall](),
		},
		exports: hostabi.ComponentExports(), imports: hostabi.ComponentImports(), module: hostabi.ImportComponent,
	}
}

// read returns the const blocks of some files of a folder and of the files besides, which may have their types, and all types by name.
func read(dir string, names, besides []string) (groups, more []group, structs map[string]*ast.TypeSpec, err error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range slices.Concat(names, besides) {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, nil, nil, err
		}
		parsed = append(parsed, f)
	}
	// Imports stay unresolved: the constants, which are all that is needed here, do not depend on them.
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Error: func(error) {}, Importer: nothing{}}
	_, _ = conf.Check(filepath.Base(dir), fset, parsed, info)
	structs = map[string]*ast.TypeSpec{}
	for i, f := range parsed {
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			switch {
			case ok && decl.Tok == token.CONST && i >= len(names):
				more = append(more, newGroup(decl, info))
			case ok && decl.Tok == token.CONST:
				groups = append(groups, newGroup(decl, info))
			case ok && decl.Tok == token.TYPE:
				for _, s := range decl.Specs {
					spec := s.(*ast.TypeSpec)
					if spec.Doc == nil {
						spec.Doc = decl.Doc
					}
					structs[spec.Name.Name] = spec
				}
			}
		}
	}
	return groups, more, structs, nil
}

func newGroup(decl *ast.GenDecl, info *types.Info) group {
	g := group{doc: lines(decl.Doc), alone: !decl.Lparen.IsValid()}
	for _, s := range decl.Specs {
		spec := s.(*ast.ValueSpec)
		doc := append(lines(spec.Doc), lines(spec.Comment)...)
		for _, id := range spec.Names {
			c, ok := info.Defs[id].(*types.Const)
			if !ok || !c.Exported() {
				continue
			}
			typ := ""
			if named, ok := c.Type().(*types.Named); ok {
				typ = named.Obj().Name()
			}
			g.constants = append(g.constants, number{c.Name(), typ, c.Val(), doc})
		}
	}
	return g
}

// load returns the view of an ABI from the folder of package hostabi.
func load(dir string, a abi) (*model, error) {
	groups, more, structs, err := read(dir, a.files, a.besides)
	if err != nil {
		return nil, err
	}
	m := &model{names: map[string]string{"Ptr": "ptr"}, module: a.module}
	docs := map[string][]string{} // comments of string constants, by value
	other := &model{names: m.names}
	for _, g := range more {
		other.addGroup(g, docs)
	}
	for _, g := range groups {
		m.addGroup(g, docs)
	}
	for _, t := range a.records {
		m.addRecord(t, structs)
	}
	if m.exports, err = newFunctions(a.exports, docs); err != nil {
		return nil, err
	}
	m.imports, err = newFunctions(a.imports, docs)
	return m, err
}

// addGroup keeps the numbers that guests use, and the comments of names.
func (m *model) addGroup(g group, docs map[string][]string) {
	all := g.constants
	g.constants = nil
	for _, c := range all {
		switch {
		case c.value.Kind() == constant.String:
			name := constant.StringVal(c.value)
			docs[name], m.names[c.name] = c.doc, name
		case c.typ != "ValueType":
			c.doc = unnamed(c.name, c.doc)
			g.constants = append(g.constants, c)
		}
	}
	if len(g.constants) > 0 {
		m.groups = append(m.groups, g)
	}
}

// addRecord adds a struct, and the names of its fields.
func (m *model) addRecord(t reflect.Type, structs map[string]*ast.TypeSpec) {
	m.records = append(m.records, newRecord(t, structs[t.Name()]))
	for i := range t.NumField() {
		if name := t.Field(i).Name; strings.ToLower(name) != snake(name) {
			m.names[name] = snake(name)
		}
	}
}

var word = regexp.MustCompile(`\w+`)

// translate puts the views' names in place of Go's.
func (m *model) translate(line string) string {
	return word.ReplaceAllStringFunc(line, func(w string) string {
		if name, ok := m.names[w]; ok {
			return name
		}
		return w
	})
}

// nothing is an importer that finds no package.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s: not imported", path)
}

// unnamed returns the comment of a constant without the Go name that it begins with.
func unnamed(name string, doc []string) []string {
	if len(doc) == 0 {
		return nil
	}
	first := strings.TrimPrefix(strings.TrimPrefix(doc[0], name), ": ")
	return append([]string{first}, doc[1:]...)
}

// lines returns the text of a comment without its marks.
func lines(c *ast.CommentGroup) []string {
	if text := strings.TrimSpace(c.Text()); text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}

func newRecord(t reflect.Type, spec *ast.TypeSpec) record {
	r := record{name: t.Name(), size: t.Size(), doc: lines(spec.Doc)}
	comments := map[string]string{}
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		for _, id := range f.Names {
			comments[id.Name] = strings.Join(lines(f.Comment), " ")
		}
	}
	reserved := 0
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Size() == 0 {
			continue // structs.HostLayout
		}
		name, doc := f.Name, comments[f.Name]
		if name == "_" {
			reserved++
			name, doc = "Reserved", "reserved, 0"
			if reserved > 1 {
				name += strconv.Itoa(reserved)
			}
		}
		r.fields = append(r.fields, field{name, f.Type, f.Offset, offset.ReplaceAllString(doc, "")})
	}
	return r
}

// offset is the byte offset that comments of fields begin with; the views assert it instead.
var offset = regexp.MustCompile(`^\d+(: )?`)

// signature finds the parameter names in a comment such as "ExportBind (optional): (batch, bindings, n) -> status".
var signature = regexp.MustCompile(`\(([^)]*)\)(?:[^(]*->|\.)`)

func newFunctions(list []hostabi.Function, docs map[string][]string) ([]function, error) {
	var out []function
	for _, f := range list {
		fn := function{Function: f, doc: docs[f.Name]}
		for _, part := range parameters(fn.doc) {
			if words := strings.Fields(part); len(words) > 0 {
				fn.params = append(fn.params, words[0])
			}
		}
		if len(f.Params) == 0 {
			fn.params = nil
		}
		if len(fn.params) != len(f.Params) {
			return nil, fmt.Errorf("%s: the comment names %d parameters, the signature has %d", f.Name, len(fn.params), len(f.Params))
		}
		out = append(out, fn)
	}
	return out, nil
}

func parameters(doc []string) []string {
	if len(doc) == 0 {
		return nil
	}
	match := signature.FindStringSubmatch(strings.Replace(doc[0], "(optional", "", 1))
	if match == nil {
		return nil
	}
	return strings.Split(match[1], ",")
}
