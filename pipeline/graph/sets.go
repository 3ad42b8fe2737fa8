package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	keynames "github.com/rlhost/rlhost/core/names"
	"github.com/rlhost/rlhost/core/table"
)

// setReader reads and applies --set arguments.
type setReader struct{ check *checker }

// readSets reads the --set arguments. All of them are lines of one source, so that a problem can point at them.
func (r *setReader) readSets(args []string) []assignment {
	lines := make([]string, len(args))
	for i, arg := range args {
		lines[i] = strings.Map(oneLine, arg)
	}
	src := newSource("--set", strings.Join(lines, "\n"), setOrder)
	var sets []assignment
	for i, line := range lines {
		whole := Span{src, src.lines[i], src.lines[i] + len(line)}
		if a, ok := r.readSet(src, whole); ok {
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

func (r *setReader) readSet(src *source, whole Span) (assignment, bool) {
	s := &scanner{src: src, s: src.text[:whole.end], i: whole.off}
	parts, err := s.setParts()
	if err != nil || !s.take('=') {
		r.check.Add("E008", whole, "write key=value, such as run.seed=3", "%q is not key=value", src.text[whole.off:whole.end])
		return assignment{}, false
	}
	s.skip(false)
	at := Span{src, s.i, whole.end}
	value := readValue(src.text[at.off:at.end])
	if value == nil {
		r.check.Add("E008", at, `values are TOML: put text with blanks or quotes in "…"`, "%q is not a value",
			src.text[at.off:at.end])
		return assignment{}, false
	}
	value.move(at)
	(&inserter{r.check}).insert(value)
	a := assignment{path: names(parts), value: value}
	for _, p := range parts {
		a.spans = append(a.spans, p.Span)
	}
	value.key = a.spans[len(a.spans)-1]
	return a, r.begins(&a)
}

// begins checks that an argument begins with a key of a file: the reader of a table takes its own arguments and leaves the others.
func (r *setReader) begins(a *assignment) bool {
	known := sectionNames()
	if slices.Contains(known, a.path[0]) {
		return true
	}
	if a.path[0] == extendsKey {
		r.check.Add("E008", a.spans[0], "write it into the file", "`%s` is read before the arguments", extendsKey)
		return false
	}
	help := table.DidYouMean(a.path[0], "`%s`", "a pipeline has", known)
	if _, near := table.Nearest(a.path[0], known); !near && len(a.path) > 1 {
		help = fmt.Sprintf("for a component of that name write component.%s; a pipeline has: %s", pathText(a.path), strings.Join(known, ", "))
	}
	if meant := keynames.Meant(a.path[0], known); meant != "" {
		help = meant
	}
	r.check.Add("E008", a.spans[0], help, "a pipeline has no key `%s`", a.path[0])
	return false
}

// setParts reads a dotted key whose parts may have an index: env.pole.wrap[0].time_limit. An index is a separate part, with its brackets.
func (s *scanner) setParts() (parts []keyPart, err error) {
	for {
		more, err := s.keyParts()
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
		for start := s.i; s.take('['); start = s.i {
			digits := s.i
			for s.i < len(s.s) && s.s[s.i] >= '0' && s.s[s.i] <= '9' {
				s.i++
			}
			if s.i == digits || !s.take(']') {
				return nil, errScan
			}
			parts = append(parts, keyPart{s.s[start:s.i], s.Span(start)})
		}
		if len(parts) > maxDepth {
			return nil, errDeep
		}
		s.skip(false)
		if !s.take('.') {
			return parts, nil
		}
	}
}

// placeOf returns the place that a part of a path names in a list; ok is false for a key.
func placeOf(part string) (place int, ok bool) {
	digits, ok := strings.CutPrefix(part, "[")
	if !ok {
		return 0, false
	}
	place, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	if err != nil {
		place = math.MaxInt // beyond any end
	}
	return place, true
}

// pathText writes parts of a path as they are given.
func pathText(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
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

// assign sets the wanted arguments in root, and returns the others.
func (r *setReader) assign(root *node, sets []assignment, wanted func(assignment) bool) (rest []assignment) {
	for _, a := range sets {
		if !wanted(a) {
			rest = append(rest, a)
			continue
		}
		r.set(root, a)
	}
	return rest
}

func (r *setReader) set(root *node, a assignment) {
	n := root
	last := len(a.path) - 1
	for i, name := range a.path[:last] {
		if place, ok := placeOf(name); ok {
			if n = r.item(n, &a, i, place); n == nil {
				return
			}
			continue
		}
		child := n.at(name)
		_, list := placeOf(a.path[i+1])
		if child == nil && i == 1 && slices.Contains([]string{"component", "env", "policy"}, a.path[0]) {
			if r.check.bad[a.path[0]] {
				return
			}
			r.check.Add("E008", a.spans[i], table.DidYouMean(name, "`%s`", "declared", n.names), "there is no %s %q", a.path[0], name)
			return
		}
		if child == nil && !list {
			child = newTable(a.spans[i], a.spans[i])
			n.put(name, child)
		}
		if !list && child.kind != tableNode {
			r.noTable(child, a.spans[i], pathText(a.path[:i+1]))
			return
		}
		n = child
	}
	place, ok := placeOf(a.path[last])
	switch {
	case ok && r.item(n, &a, last, place) != nil:
		n.items[place] = a.value
	case !ok && n.kind == tableNode:
		n.put(a.path[last], a.value)
	case !ok:
		r.noTable(n, a.spans[last-1], pathText(a.path[:last]))
	}
}

// noTable reports a path that leads through a value without keys.
func (r *setReader) noTable(n *node, at Span, path string) {
	help := ""
	if n.kind == arrayNode && len(n.items) > 0 {
		help = fmt.Sprintf("it is a list: name one item by its place, such as %s[0]", path)
	}
	r.check.Add("E008", at, help, "`%s` is not a table", path)
}

// item returns the item of a list that the part at i of a path names, or nil, and says so.
func (r *setReader) item(n *node, a *assignment, i, place int) *node {
	path := pathText(a.path[:i])
	switch {
	case n != nil && n.kind != arrayNode:
		r.check.Add("E008", a.spans[i], "", "`%s` is not a list", path)
	case n == nil || len(n.items) == 0:
		r.check.Add("E008", a.spans[i], fmt.Sprintf("write the whole list: %s=[...]", path), "`%s` has no items", path)
	case place >= len(n.items):
		r.check.Add("E008", a.spans[i], fmt.Sprintf("its items are [0] to [%d]; a further one needs the whole list: %s=[...]", len(n.items)-1, path),
			"`%s` has %d items, and %s is none of them", path, len(n.items), a.path[i])
	default:
		return n.items[place]
	}
	return nil
}
