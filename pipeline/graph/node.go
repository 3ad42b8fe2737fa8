package graph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// nodeKind is the shape of a node.
type nodeKind uint8

const (
	scalarNode nodeKind = iota
	tableNode
	arrayNode
)

// node is one value of a decoded file with the places of its key and itself.
type node struct {
	kind  nodeKind
	key   Span // last part of the key or of the table's header; nowhere for elements of arrays
	val   Span // the value; of a table with a header, the same as key
	value any  // of a scalar: string, int64, float64, bool, time.Time

	names []string         // keys of a table, in the order of their first appearance
	table map[string]*node // by name
	items []*node          // of an array

	// implied is true for a table that only appears as a part of longer keys and headers so far.
	implied bool
	// inline is true for a table or array that is complete: nothing can be added later.
	inline bool
	// variable is true for a text that had a variable of the environment in it.
	variable bool
}

func newTable(key, val Span) *node {
	return &node{kind: tableNode, key: key, val: val, table: map[string]*node{}}
}

// at returns the child of a table, or nil.
func (n *node) at(name string) *node {
	if n == nil || n.kind != tableNode {
		return nil
	}
	return n.table[name]
}

// children returns the tables in a table, in their order.
func (n *node) children() (list []*node) {
	if n == nil {
		return nil
	}
	for _, name := range n.names {
		if child := n.table[name]; child.kind == tableNode {
			list = append(list, child)
		}
	}
	return list
}

// put adds or replaces a child of a table.
func (n *node) put(name string, child *node) {
	if _, ok := n.table[name]; !ok {
		n.names = append(n.names, name)
	}
	n.table[name] = child
}

// remove takes a child out of a table.
func (n *node) remove(name string) {
	if _, ok := n.table[name]; !ok {
		return
	}
	delete(n.table, name)
	n.names = slices.DeleteFunc(slices.Clone(n.names), func(s string) bool { return s == name })
}

// only returns a table with only the named children.
func (n *node) only(names []string) *node {
	own := newTable(n.key, n.val)
	for _, name := range names {
		if child := n.at(name); child != nil {
			own.put(name, child)
		}
	}
	return own
}

// clone returns a copy that shares no table with n.
func (n *node) clone() *node {
	c := *n
	c.names, c.items = slices.Clone(n.names), slices.Clone(n.items)
	if n.table != nil {
		c.table = make(map[string]*node, len(n.table))
	}
	for name, child := range n.table {
		c.table[name] = child.clone()
	}
	for i, item := range n.items {
		c.items[i] = item.clone()
	}
	return &c
}

// text returns the value of a string node.
func (n *node) text() (string, bool) {
	if n == nil || n.kind != scalarNode {
		return "", false
	}
	s, ok := n.value.(string)
	return s, ok
}

// attach gives the scanner's nodes the decoder's values. Both read the same text, so any difference is a bug in
// this package.
func (n *node) attach(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if n.kind != tableNode || len(v) != len(n.table) {
			return fmt.Errorf("decoder found a table of %d keys, scanner %d", len(v), len(n.table))
		}
		for name, child := range v {
			c := n.table[name]
			if c == nil {
				return fmt.Errorf("scanner missed key %q", name)
			}
			if err := c.attach(child); err != nil {
				return err
			}
		}
		return nil
	case []map[string]any:
		return attachItems(n, v)
	case []any:
		return attachItems(n, v)
	}
	if n.kind != scalarNode {
		return fmt.Errorf("decoder found a %T, scanner a table or an array", v)
	}
	n.value = v
	return nil
}

func attachItems[T any](n *node, items []T) error {
	if n.kind != arrayNode || len(items) != len(n.items) {
		return fmt.Errorf("decoder found an array of %d, scanner %d", len(items), len(n.items))
	}
	for i := range items {
		if err := n.items[i].attach(items[i]); err != nil {
			return err
		}
	}
	return nil
}

// Keys implements table.Value, as do the methods after it.
func (n *node) Keys() ([]string, bool) {
	if n == nil || n.kind != tableNode {
		return nil, false
	}
	return n.names, true
}

// Key returns a child of a table.
func (n *node) Key(name string) table.Value { return n.table[name] }

// Items returns the items of an array.
func (n *node) Items() ([]table.Value, bool) {
	if n.kind != arrayNode {
		return nil, false
	}
	items := make([]table.Value, len(n.items))
	for i, item := range n.items {
		items[i] = item
	}
	return items, true
}

// Scalar returns the value of a scalar.
func (n *node) Scalar() any {
	if n.kind != scalarNode {
		return nil
	}
	return n.value
}

// Text returns a scalar as it is written in the file.
func (n *node) Text() string {
	if n.kind != scalarNode || n.val.src == nil {
		return ""
	}
	return n.val.src.text[n.val.off:n.val.end]
}

// lookup follows a dotted key from a table.
func lookup(table *node, key string) *node {
	n := table
	for _, part := range strings.Split(key, ".") {
		name, index, _ := strings.Cut(strings.TrimSuffix(part, "]"), "[")
		if n = n.at(name); n == nil {
			return nil
		}
		if i, err := strconv.Atoi(index); err == nil && i < len(n.items) {
			n = n.items[i]
		}
	}
	return n
}

// overlay returns base with the keys of top merged over it. Wires of both are kept, the base's first; a component
// of another kind replaces the base's as a whole.
func overlay(base, top *node) *node {
	merged := *top
	merged.names, merged.table = slices.Clone(base.names), maps.Clone(base.table)
	for _, name := range top.names {
		over, under := top.table[name], base.table[name]
		switch {
		case under == nil || under.kind != over.kind || otherKind(under, over):
			merged.put(name, over)
		case over.kind == tableNode:
			merged.put(name, overlay(under, over))
		case name == "wire" && over.kind == arrayNode:
			both := *over
			both.items = slices.Concat(under.items, over.items)
			merged.put(name, &both)
		default:
			merged.put(name, over)
		}
	}
	return &merged
}

func otherKind(under, over *node) bool {
	a, ok := under.at("kind").text()
	b, given := over.at("kind").text()
	return ok && given && a != b
}
