package graph

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errScan: the decoder accepted a text that the scanner cannot read.
var errScan = errors.New("cannot be indexed")

// errDeep says that keys, tables or lists are nested deeper than maxDepth.
var errDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// maxDepth bounds nesting, because the decoder's time and memory grow with the square of it.
const maxDepth = 32

// entry is one key or header in the order of the text, with its whole path.
type entry struct {
	path []string
	node *node
}

// duplicate is a second definition of a name.
type duplicate struct {
	path        []string
	first       Span // key of the first definition
	second      Span // key of the second
	whole       Span // all of the second: the pair, or the header and what follows
	isStatement bool // false inside of an inline table
}

// scanner finds the places of keys and values in TOML that the decoder has accepted. For other input it only
// terminates.
type scanner struct {
	src     *source
	s       string
	i       int
	root    *node
	cur     *node    // table of the latest header
	path    []string // of cur
	entries []entry
	dups    []duplicate
	open    int // index in dups of a header whose end is not known yet, or -1
	depth   int // of lists and inline tables
}

// scan indexes a source.
func scan(src *source) (*scanner, error) {
	root := newTable(Span{src: src}, Span{src: src})
	c := &scanner{src: src, s: src.text, root: root, cur: root, open: -1}
	for {
		c.skip(true)
		if c.i >= len(c.s) {
			break
		}
		if err := c.statement(); err != nil {
			return c, err
		}
	}
	c.closeDuplicate(len(c.s))
	return c, nil
}

func (c *scanner) Span(off int) Span { return Span{c.src, off, c.i} }

func (c *scanner) peek() byte {
	if c.i < len(c.s) {
		return c.s[c.i]
	}
	return 0
}

// take consumes one expected byte.
func (c *scanner) take(b byte) bool {
	if c.i >= len(c.s) || c.s[c.i] != b {
		return false
	}
	c.i++
	return true
}

// skip passes blanks, and with lines also ends of lines and comments.
func (c *scanner) skip(lines bool) {
	for c.i < len(c.s) {
		switch b := c.s[c.i]; {
		case b == ' ' || b == '\t':
		case lines && (b == '\n' || b == '\r'):
		case lines && b == '#':
			for c.i < len(c.s) && c.s[c.i] != '\n' {
				c.i++
			}
			continue
		default:
			return
		}
		c.i++
	}
}

// statement reads a header or a key with its value.
func (c *scanner) statement() error {
	if c.peek() == '[' {
		return c.header()
	}
	start := c.i
	return c.pair(c.cur, c.path, start, true)
}

// header reads [a.b] or [[a.b]].
func (c *scanner) header() error {
	start := c.i
	c.closeDuplicate(start)
	c.i++
	many := c.take('[')
	parts, err := c.keyParts()
	if err != nil {
		return err
	}
	if !c.take(']') || many && !c.take(']') {
		return errScan
	}
	parent, err := c.descend(c.root, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	old := parent.at(last.name)
	n := newTable(last.Span, last.Span)
	switch {
	case many && old == nil:
		parent.put(last.name, &node{kind: arrayNode, key: last.Span, val: last.Span, items: []*node{n}})
	case many && old.kind == arrayNode && !old.inline:
		old.items = append(old.items, n)
	case !many && old == nil:
		parent.put(last.name, n)
	case !many && old.kind == tableNode && old.implied:
		old.implied, old.key, old.val = false, last.Span, last.Span
		n = old
	default:
		c.dups = append(c.dups, duplicate{path: names(parts), first: old.key, second: last.Span,
			whole: Span{c.src, start, c.i}, isStatement: true})
		c.open = len(c.dups) - 1
	}
	c.cur, c.path = n, names(parts)
	c.entries = append(c.entries, entry{c.path, n})
	return nil
}

// closeDuplicate notes where the table of a second header ends.
func (c *scanner) closeDuplicate(end int) {
	if c.open >= 0 {
		c.dups[c.open].whole.end = end
		c.open = -1
	}
}

// descend follows parts from a table, into the last element of arrays, making tables on the way.
func (c *scanner) descend(n *node, parts []keyPart) (*node, error) {
	for _, p := range parts {
		child := n.at(p.name)
		if child == nil {
			child = newTable(p.Span, p.Span)
			child.implied = true
			n.put(p.name, child)
		}
		if child.kind == arrayNode && len(child.items) > 0 {
			child = child.items[len(child.items)-1]
		}
		if child.kind != tableNode {
			return nil, errScan
		}
		n = child
	}
	return n, nil
}

// pair reads key = value into table n, whose path is given.
func (c *scanner) pair(n *node, path []string, start int, isStatement bool) error {
	parts, err := c.keyParts()
	if err != nil {
		return err
	}
	if !c.take('=') {
		return errScan
	}
	into, err := c.descend(n, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	whole := append(path[:len(path):len(path)], names(parts)...)
	at := len(c.entries)
	c.entries = append(c.entries, entry{path: whole})
	value, err := c.value(whole)
	if err != nil {
		return err
	}
	value.key = last.Span
	c.entries[at].node = value
	if old := into.at(last.name); old != nil {
		c.dups = append(c.dups, duplicate{path: whole, first: old.key, second: last.Span,
			whole: c.Span(start), isStatement: isStatement})
		return nil
	}
	into.put(last.name, value)
	return nil
}

type keyPart struct {
	name string
	Span Span
}

func names(parts []keyPart) []string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = p.name
	}
	return list
}

// keyParts reads a dotted key and the blanks around it.
func (c *scanner) keyParts() ([]keyPart, error) {
	var parts []keyPart
	for {
		c.skip(false)
		start := c.i
		name, err := c.keyPart()
		if err != nil {
			return nil, err
		}
		if parts = append(parts, keyPart{name, c.Span(start)}); len(parts) > maxDepth {
			return nil, errDeep
		}
		c.skip(false)
		if !c.take('.') {
			return parts, nil
		}
	}
}

func (c *scanner) keyPart() (string, error) {
	start := c.i
	switch c.peek() {
	case '"':
		if err := c.quoted('"', false); err != nil {
			return "", err
		}
		return unescape(c.s[start+1 : c.i-1])
	case '\'':
		if err := c.quoted('\'', false); err != nil {
			return "", err
		}
		return c.s[start+1 : c.i-1], nil
	}
	for c.i < len(c.s) && isBare(c.s[c.i]) {
		c.i++
	}
	if c.i == start {
		return "", errScan
	}
	return c.s[start:c.i], nil
}

// quoted passes a string in one kind of quotes, in threes when many.
func (c *scanner) quoted(quote byte, many bool) error {
	if !many {
		for c.i++; c.i < len(c.s) && c.s[c.i] != '\n'; c.i++ {
			switch {
			case c.s[c.i] == '\\' && quote == '"':
				c.i++
			case c.s[c.i] == quote:
				c.i++
				return nil
			}
		}
		return errScan
	}
	three := strings.Repeat(string(quote), 3)
	for c.i += 3; c.i < len(c.s); c.i++ {
		switch {
		case c.s[c.i] == '\\' && quote == '"':
			c.i++
		case strings.HasPrefix(c.s[c.i:], three):
			// Up to two quotes belong to the text when five stand together.
			for n := 0; n < 2 && strings.HasPrefix(c.s[c.i+1:], three); n++ {
				c.i++
			}
			c.i += 3
			return nil
		}
	}
	return errScan
}

// unescape resolves the escapes of a basic string.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i >= len(s) {
			return "", errScan
		}
		if at := strings.IndexByte(`btnfre"\`, s[i]); at >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[at])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits == 0 || i+digits >= len(s) {
			return "", errScan
		}
		r, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
		if err != nil || !utf8.ValidRune(rune(r)) {
			return "", errScan
		}
		b.WriteRune(rune(r))
		i += digits
	}
	return b.String(), nil
}

// value reads what stands behind a key, or one element of an array. Scalars get no value yet.
func (c *scanner) value(path []string) (*node, error) {
	c.skip(false)
	if c.depth++; c.depth > maxDepth || len(path) > maxDepth {
		return nil, errDeep
	}
	defer func() { c.depth-- }()
	start := c.i
	switch b := c.peek(); b {
	case '[':
		return c.array(path)
	case '{':
		return c.inlineTable(path)
	case '"', '\'':
		many := strings.HasPrefix(c.s[c.i:], strings.Repeat(string(b), 3))
		if err := c.quoted(b, many); err != nil {
			return nil, err
		}
		return &node{val: c.Span(start)}, nil
	}
	for c.i < len(c.s) && !strings.ContainsRune(",]}#\r\n", rune(c.s[c.i])) {
		c.i++
	}
	// A date and its time of day have a blank between them, so only blanks at the end are none of the value.
	for c.i > start && (c.s[c.i-1] == ' ' || c.s[c.i-1] == '\t') {
		c.i--
	}
	if c.i == start {
		return nil, errScan
	}
	return &node{val: c.Span(start)}, nil
}

func (c *scanner) array(path []string) (*node, error) {
	start := c.i
	n := &node{kind: arrayNode, inline: true}
	c.i++
	for {
		c.skip(true)
		if c.take(']') {
			n.val = c.Span(start)
			return n, nil
		}
		if c.i >= len(c.s) {
			return nil, errScan
		}
		item, err := c.value(path)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		c.skip(true)
		if !c.take(',') && c.peek() != ']' {
			return nil, errScan
		}
	}
}

func (c *scanner) inlineTable(path []string) (*node, error) {
	start := c.i
	n := newTable(Span{}, Span{})
	n.inline = true
	c.i++
	for {
		c.skip(true)
		if c.take('}') {
			n.val = c.Span(start)
			return n, nil
		}
		if c.i >= len(c.s) {
			return nil, errScan
		}
		if err := c.pair(n, path, c.i, false); err != nil {
			return nil, err
		}
		c.skip(true)
		if !c.take(',') && c.peek() != '}' {
			return nil, errScan
		}
	}
}
