package graph

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// schema is a node of a JSON schema of draft 7, with the keywords that pipelines need.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Const       string             `json:"const,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Maximum     *float64           `json:"maximum,omitempty"`
	Default     json.RawMessage    `json:"default,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Further     *further           `json:"additionalProperties,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	AnyOf       []*schema          `json:"anyOf,omitempty"`
	AllOf       []*schema          `json:"allOf,omitempty"`
	If          *schema            `json:"if,omitempty"`
	Then        *schema            `json:"then,omitempty"`
	Else        *schema            `json:"else,omitempty"`
	Definitions map[string]*schema `json:"definitions,omitempty"`
}

// further says which keys a table may have besides its own: none, or any whose values fit.
type further struct{ fits *schema }

// MarshalJSON writes false, or the schema.
func (f *further) MarshalJSON() ([]byte, error) {
	if f.fits == nil {
		return []byte("false"), nil
	}
	return json.Marshal(f.fits)
}

// Schema returns the JSON schema (draft 7) of pipeline files, made from the same tables that files are decoded into. Editors complete and
// check keys by it. It takes what decoding takes, and some more: what a key's value means for other keys is for rlhost validate.
func (p *Parts) Schema() ([]byte, error) {
	root := tableSchema("rlhost trains the policies that this file describes.")
	root.Schema, root.Title = "http://json-schema.org/draft-07/schema#", "Pipeline of rlhost"
	root.Definitions = map[string]*schema{}
	kinds := slices.Sorted(maps.Keys(p.Kinds))
	var common []table.Description
	for _, t := range p.Describe() {
		switch {
		case t.Header == "":
			root.add(t.Keys)
		case t.Header == "[component.NAME]":
			if t.Kind == "" {
				common = t.Keys
			}
			addComponent(root, t, common, kinds)
		case strings.HasPrefix(t.Header, "[["):
			one := tableSchema(t.About)
			one.add(t.Keys)
			root.Properties[t.Path] = &schema{Type: "array", Items: one}
		default:
			path := strings.Split(strings.Trim(t.Header, "[]"), ".")
			one := tableSchema(t.About)
			one.add(t.Keys)
			root.place(path, one)
		}
	}
	text, err := json.MarshalIndent(root, "", " ")
	return append(text, '\n'), err
}

// addComponent adds the keys of components of one kind, or the common keys of all kinds, which come first. Components of modules and of
// programs have keys of their own.
func addComponent(root *schema, t TableDescription, common []table.Description, kinds []string) {
	own := func() *schema {
		return &schema{AnyOf: []*schema{{Required: []string{"plugin"}}, {Required: []string{"runtime"}}}}
	}
	ref := func(name string) *schema { return &schema{Ref: "#/definitions/" + name} }
	switch t.Kind {
	case "":
		open := tableSchema(t.About)
		open.add(t.Keys)
		open.Further = nil
		root.Definitions["component"] = open
		closed := &schema{AllOf: []*schema{ref("component")}}
		for _, kind := range kinds {
			closed.AllOf = append(closed.AllOf, &schema{
				If:   &schema{Properties: map[string]*schema{"kind": {Const: kind}}, Required: []string{"kind"}},
				Then: ref("component_" + kind),
			})
		}
		root.Definitions["component_any"] = &schema{If: own(), Then: ref("component"), Else: closed}
		root.Properties["component"] = &schema{Type: "object", Properties: map[string]*schema{}, Further: &further{ref("component_any")}}
	case RuntimeWasm:
		open := root.Definitions["component"]
		open.add(t.Keys)
		open.Further = nil
	default:
		one := tableSchema(t.About)
		one.add(common)
		one.add(t.Keys)
		root.Definitions["component_"+t.Kind] = one
		elsewhere := own()
		elsewhere.AnyOf = append(elsewhere.AnyOf, &schema{Required: []string{"kind"}})
		root.Properties["component"].Properties[t.Kind] = &schema{If: elsewhere, Then: ref("component_any"), Else: ref("component_" + t.Kind)}
	}
}

// tableSchema is a table without keys.
func tableSchema(about string) *schema {
	return &schema{Type: "object", Description: about, Properties: map[string]*schema{}, Further: &further{}}
}

// add adds keys to a table.
func (s *schema) add(keys []table.Description) {
	for _, k := range keys {
		s.place(strings.Split(k.Key, "."), keySchema(&k))
		if k.Key == "rlhost" { // what else is required may come from a preset
			s.Required = append(s.Required, k.Key)
		}
	}
}

// place puts a schema at a path below a table. A word in capitals stands for any name, and [] after a key for the elements of its list.
func (s *schema) place(path []string, at *schema) {
	key, list := strings.CutSuffix(path[0], "[]")
	var next *schema
	switch {
	case strings.ToUpper(key) == key:
		if s.Further == nil || s.Further.fits == nil {
			s.Further = &further{tableSchema("")}
		}
		next = s.Further.fits
	case s.Properties[key] == nil:
		s.Properties[key] = tableSchema("")
		next = s.Properties[key]
	default:
		next = s.Properties[key]
	}
	if list {
		next = next.Items
	}
	if len(path) > 1 {
		next.asTable().place(path[1:], at)
		return
	}
	*next = *at
}

// asTable is the table of a value that has keys: the value itself, or the one of its forms that is a table.
func (s *schema) asTable() *schema {
	for _, form := range s.AnyOf {
		if form.Type == "object" {
			return form.asTable()
		}
	}
	if s.Properties == nil {
		s.Properties, s.Further = map[string]*schema{}, &further{}
	}
	return s
}

var (
	words   = regexp.MustCompile(`^[a-z][a-z0-9_]*(, [a-z][a-z0-9_]*)+$`)
	between = regexp.MustCompile(`^(-?[\d.,e-]+) to (-?[\d.,e-]+)$`)
	orMore  = regexp.MustCompile(`^(-?[\d.,]+) or more`)
)

// keySchema is the schema of a key's value.
func keySchema(k *table.Description) *schema {
	s := valueSchema(k.Type)
	s.Description = strings.TrimSpace(k.Meaning + " " + unitText(k.Unit))
	of := s
	if s.Items != nil {
		of = s.Items
	}
	switch {
	case of.Type == "string" && of.Pattern == "" && words.MatchString(k.Range):
		of.Enum = strings.Split(k.Range, ", ")
	case of.Type == "integer" || of.Type == "number":
		if m := between.FindStringSubmatch(k.Range); m != nil {
			of.Minimum, of.Maximum = bound(m[1]), bound(m[2])
		} else if m := orMore.FindStringSubmatch(k.Range); m != nil {
			of.Minimum = bound(m[1])
		}
	}
	if json.Valid([]byte(k.Default)) {
		s.Default = json.RawMessage(k.Default)
	}
	return s
}

func unitText(unit string) string {
	if unit == "" {
		return ""
	}
	return "(" + unit + ")"
}

func bound(text string) *float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return nil
	}
	return &v
}

// valueSchema is the schema of a type, by its name in the reference.
func valueSchema(name string) *schema {
	if first, second, ok := strings.Cut(name, " or "); ok {
		return &schema{AnyOf: []*schema{valueSchema(first), valueSchema(second)}}
	}
	if of, ok := strings.CutPrefix(name, "list of "); ok {
		return &schema{Type: "array", Items: valueSchema(strings.TrimSuffix(of, "s"))}
	}
	if of, ok := strings.CutPrefix(name, "table of "); ok {
		return &schema{Type: "object", Further: &further{valueSchema(strings.TrimSuffix(of, "s"))}}
	}
	switch name {
	case "text":
		return &schema{Type: "string"}
	case "duration":
		return &schema{Type: "string", Pattern: `^(\$\{.*|(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+|0)$`}
	case "size":
		return &schema{Type: "string", Pattern: `^(\$\{.*|\d+(\.\d*)? ?[KMGT]?i?B)$`}
	case "any":
		return &schema{}
	case "table", "empty table":
		return &schema{Type: "object"}
	}
	return &schema{Type: name}
}
