package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// setReader reads and applies --set arguments.
type setReader struct{ *checker }

// readSets reads the --set arguments. All of them are lines of one source, so that a problem can point at them.
func (c *setReader) readSets(args []string) []assignment {
	lines := make([]string, len(args))
	for i, arg := range args {
		lines[i] = strings.Map(oneLine, arg)
	}
	src := newSource("--set", strings.Join(lines, "\n"), setOrder)
	var sets []assignment
	for i, line := range lines {
		whole := Span{src, src.lines[i], src.lines[i] + len(line)}
		if a, ok := c.readSet(src, whole); ok {
			sets = append(sets, a)
		}
	}
	return sets
}

// oneLine maps line ends so that an argument stays on one line of the source.
func oneLine(r rune) rune {
	if r == '\n' || r == '\r' {
		return ' '
	}
	return r
}

func (c *setReader) readSet(src *source, whole Span) (assignment, bool) {
	s := &scanner{src: src, s: src.text[:whole.end], i: whole.off}
	parts, err := s.keyParts()
	if err != nil || !s.take('=') {
		c.Add("E008", whole, "write key=value, such as run.seed=3", "%q is not key=value", src.text[whole.off:whole.end])
		return assignment{}, false
	}
	s.skip(false)
	at := Span{src, s.i, whole.end}
	value := readValue(src.text[at.off:at.end])
	if value == nil {
		c.Add("E008", at, `values are TOML: put text with blanks or quotes in "…"`, "%q is not a value",
			src.text[at.off:at.end])
		return assignment{}, false
	}
	value.move(at)
	a := assignment{path: names(parts), value: value}
	for _, p := range parts {
		a.spans = append(a.spans, p.Span)
	}
	value.key = a.spans[len(a.spans)-1]
	return a, true
}

// readValue decodes one TOML value. A bare word is a string.
func readValue(text string) *node {
	doc := "v = " + text
	if len(doc) > MaxBytes {
		return nil
	}
	var values map[string]any
	if _, err := decode(doc, &values); err != nil {
		if !isWord(text) {
			return nil
		}
		return &node{value: text}
	}
	s, err := scan(newSource("", doc, setOrder))
	if err != nil || len(values) != 1 || s.root.attach(values) != nil {
		return nil
	}
	return s.root.at("v")
}

// isWord reports whether a value can be nothing but text: a name, a path, a duration.
func isWord(s string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./~"
	return s != "" && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s, first+"-+@:%,*[]") == ""
}

// move makes a place that of a whole tree.
func (n *node) move(to Span) {
	n.key, n.val = to, to
	for _, child := range n.table {
		child.move(to)
	}
	for _, item := range n.items {
		item.move(to)
	}
}

// assign sets those of the arguments in root that are wanted, and returns the others.
func (c *setReader) assign(root *node, sets []assignment, wanted func(assignment) bool) (rest []assignment) {
	for _, a := range sets {
		if !wanted(a) {
			rest = append(rest, a)
			continue
		}
		c.set(root, a)
	}
	return rest
}

func (c *setReader) set(root *node, a assignment) {
	n := root
	for i, name := range a.path[:len(a.path)-1] {
		child := n.at(name)
		if child == nil && i == 1 && slices.Contains([]string{"component", "env", "policy"}, a.path[0]) {
			if c.bad[a.path[0]] {
				return
			}
			c.Add("E008", a.spans[i], table.DidYouMean(name, "`%s`", "declared", n.names), "there is no %s %q", a.path[0], name)
			return
		}
		if child == nil {
			child = newTable(a.spans[i], a.spans[i])
			n.put(name, child)
		}
		if child.kind != tableNode {
			c.Add("E008", a.spans[i], "", "`%s` is not a table", strings.Join(a.path[:i+1], "."))
			return
		}
		n = child
	}
	n.put(a.path[len(a.path)-1], a.value)
}
