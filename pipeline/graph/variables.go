package graph

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// codeVariable is the code of variables of the environment that a text cannot take in.
const codeVariable = "E085"

// maxVariable bounds the bytes of a variable: pipelines have names and paths in them.
const maxVariable = 4096

// inserter replaces variables of the environment in texts.
type inserter struct{ check *checker }

// insert replaces ${NAME} and ${NAME:-default} in the texts of a tree by variables of the environment, and $$ by a dollar. Keys stay
// as they are, and a text stays a text, so a variable cannot change what a file consists of.
func (r *inserter) insert(n *node) {
	if text, ok := n.text(); ok && strings.Contains(text, "$") {
		n.value = r.inserted(n, text)
	}
	for _, name := range n.names {
		r.insert(n.table[name])
	}
	for _, item := range n.items {
		r.insert(item)
	}
}

// inserted returns the text of a node with its variables.
func (r *inserter) inserted(n *node, text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inside, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				r.check.Add(codeVariable, n.val, "write ${NAME}, or $$ for a dollar", "a variable without its closing brace")
				return b.String()
			}
			b.WriteString(r.variable(n, inside))
			n.variable = true
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

// variable returns the value of what stands between the braces.
func (r *inserter) variable(n *node, inside string) string {
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	switch {
	case !isVariable(name):
		r.check.Add(codeVariable, n.val, "write ${NAME} or ${NAME:-default}, or $$ for a dollar", "%q is not the name of a variable", name)
		return ""
	case strings.Contains(fallback, "${"):
		r.check.Add(codeVariable, n.val, "", "the default of ${%s} has a variable in it", name)
		return ""
	}
	r.check.graph.origin.variable(name)
	value, set := r.check.getenv(name)
	switch {
	case hasDefault && value == "":
		return fallback
	case !set:
		r.check.Add(codeVariable, n.val, fmt.Sprintf("set it, or give a default: ${%s:-default}", name), "the variable %s of the environment is not set", name)
	case len(value) > maxVariable:
		r.check.Add(codeVariable, n.val, "", "the variable %s has %d bytes, at most %d", name, len(value), maxVariable)
	case !utf8.ValidString(value):
		r.check.Add(codeVariable, n.val, "", "the variable %s is not UTF-8", name)
	default:
		return value
	}
	return ""
}

func isVariable(name string) bool {
	for i := range len(name) {
		if !isBare(name[i]) || name[i] == '-' || i == 0 && name[0] >= '0' && name[0] <= '9' {
			return false
		}
	}
	return name != ""
}

// Literal returns a text as a TOML string that stands for the text itself, with no variables in it.
func Literal(text string) string { return quote(withoutVariables(text)) }

// withoutVariables writes a text so that insert returns it.
func withoutVariables(text string) string {
	if !strings.Contains(text, "${") && !strings.Contains(text, "$$") {
		return text
	}
	return strings.ReplaceAll(text, "$", "$$")
}

// literalValue is withoutVariables for the texts in a value that is written as TOML.
func literalValue(value string) string {
	if !strings.Contains(value, "${") && !strings.Contains(value, "$$") {
		return value
	}
	s, err := scan(newSource("", "v = "+value, 0))
	if err != nil {
		return value
	}
	places := s.root.at("v").texts(nil)
	slices.SortFunc(places, func(a, b Span) int { return a.off - b.off })
	var b strings.Builder
	last := 0
	for _, at := range places {
		b.WriteString(s.s[last:at.off])
		b.WriteString(withoutVariables(s.s[at.off:at.end]))
		last = at.end
	}
	b.WriteString(s.s[last:])
	return strings.TrimPrefix(b.String(), "v = ")
}

// texts appends the places of the scalars of a tree.
func (n *node) texts(list []Span) []Span {
	if n.kind == scalarNode {
		return append(list, n.val)
	}
	for _, child := range n.table {
		list = child.texts(list)
	}
	for _, item := range n.items {
		list = item.texts(list)
	}
	return list
}

// origin is what a graph was made of besides one file.
type origin struct {
	files     []string // the file and what it extends; empty where there is one
	presets   []string // by their paths
	variables []string // of the environment
	comment   string   // of a text that Resolved wrote
}

func (o *origin) preset(file string) { o.presets = append(o.presets, file) }

func (o *origin) variable(name string) {
	if at, found := slices.BinarySearch(o.variables, name); !found {
		o.variables = slices.Insert(o.variables, at, name)
	}
}

// lines returns the origin as comments of a file.
func (o *origin) lines() string {
	text := o.comment
	if len(o.files) > 1 {
		text += "# Made of " + strings.Join(o.files, ", ") + "\n"
	}
	if len(o.presets) > 0 {
		text += "# Presets: " + strings.Join(o.presets, ", ") + "\n"
	}
	if len(o.variables) > 0 {
		text += "# Variables of the environment: " + strings.Join(o.variables, ", ") + "\n"
	}
	return text
}

// readComment takes the comments at the top of a text that Resolved wrote.
func (o *origin) readComment(text string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "# ") {
			return
		}
		o.comment += line
	}
}
