package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"

	"github.com/rlhost/rlhost/hostabi"
)

// templateData is the data of a language's template: the ABIs of environments and of components; see Object, too.
type templateData struct {
	Env, Component abiData
	root           string
}

// abiData is an ABI of guests. Names are the views' names, but structs have hostabi's; a Doc is one line.
type abiData struct {
	Major, Minor     uint16
	Module           string // of the imports
	Constants        []constantData
	Records          []recordData
	Exports, Imports []functionData
}

// constantData is a constant: Type is the Go name of its type, empty for a number as such.
type constantData struct{ Name, Type, Value, Doc string }

// recordData is a struct that host and guest share, of so many bytes.
type recordData struct {
	Name, Doc string
	Size      uintptr
	Fields    []fieldData
}

// fieldData is a field: Type is such as uint32 or [16]uint8.
type fieldData struct {
	Name, Type, Doc string
	Offset          uintptr
}

// functionData is a function with the types i32, i64 and f64 of WebAssembly.
type functionData struct {
	Name, Doc string
	Params    []parameterData
	Results   []string
	Required  bool
}

type parameterData struct{ Name, Type string }

// templated renders the views of languages that have no code here: sdk/LANGUAGE/NAME.tmpl is a template of package
// text/template for the file NAME next to it.
func templated(root string, env, component *model) ([]view, error) {
	files, err := filepath.Glob(filepath.Join(root, "sdk", "*", "*.tmpl"))
	if err != nil {
		return nil, err
	}
	data := templateData{env.data(hostabi.EnvABI), component.data(hostabi.ComponentABI), root}
	var views []view
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		t, err := template.New(file).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		if err := t.Execute(&b, data); err != nil {
			return nil, err
		}
		path, err := filepath.Rel(root, strings.TrimSuffix(file, ".tmpl"))
		if err != nil {
			return nil, err
		}
		views = append(views, view{filepath.ToSlash(path), b.String()})
	}
	return views, nil
}

// data is the model for templates.
func (m *model) data(version hostabi.Version) abiData {
	d := abiData{Major: version.Major, Minor: version.Minor, Module: m.module, Exports: m.functions(m.exports), Imports: m.functions(m.imports)}
	for _, g := range m.groups {
		for _, c := range g.constants {
			d.Constants = append(d.Constants, constantData{constantName(c), c.typ, c.value.ExactString(), m.sentence(c.doc)})
		}
	}
	for _, r := range m.records {
		one := recordData{Name: r.name, Doc: m.sentence(r.doc), Size: r.size}
		for _, f := range r.fields {
			one.Fields = append(one.Fields, fieldData{snake(f.name), typeName(f.typ), m.sentence([]string{f.doc}), f.offset})
		}
		d.Records = append(d.Records, one)
	}
	return d
}

func (m *model) functions(list []function) (all []functionData) {
	for _, f := range list {
		one := functionData{Name: f.Name, Doc: m.sentence(f.doc), Required: f.Required}
		for i, name := range f.params {
			one.Params = append(one.Params, parameterData{name, valueRust(f.Params[i], "i32")})
		}
		for _, r := range f.Results {
			one.Results = append(one.Results, valueRust(r, "i32"))
		}
		all = append(all, one)
	}
	return all
}

// typeName is such as uint32 or [16]uint8.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Array {
		return fmt.Sprintf("[%d]%s", t.Len(), typeName(t.Elem()))
	}
	return t.Kind().String()
}

func (m *model) sentence(doc []string) string { return m.translate(strings.Join(doc, " ")) }
