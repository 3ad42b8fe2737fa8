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

func (s *scanner) Span(off int) Span { return Span{s.src, off, s.i} }

func (s *scanner) peek() byte {
	if s.i < len(s.s) {
		return s.s[s.i]
	}
	return 0
}

// take consumes one expected byte.
func (s *scanner) take(b byte) bool {
	if s.i >= len(s.s) || s.s[s.i] != b {
		return false
	}
	s.i++
	return true
}

// skip passes blanks, and with lines also ends of lines and comments.
func (s *scanner) skip(lines bool) {
	for s.i < len(s.s) {
		switch b := s.s[s.i]; {
		case b == ' ' || b == '\t':
		case lines && (b == '\n' || b == '\r'):
		case lines && b == '#':
			for s.i < len(s.s) && s.s[s.i] != '\n' {
				s.i++
			}
			continue
		default:
			return
		}
		s.i++
	}
}

// statement reads a header or a key with its value.
func (s *scanner) statement() error {
	if s.peek() == '[' {
		return s.header()
	}
	start := s.i
	return s.pair(s.cur, s.path, start, true)
}

// header reads [a.b] or [[a.b]].
func (s *scanner) header() error {
	start := s.i
	s.closeDuplicate(start)
	s.i++
	many := s.take('[')
	parts, err := s.keyParts()
	if err != nil {
		return err
	}
	if !s.take(']') || many && !s.take(']') {
		return errScan
	}
	parent, err := s.descend(s.root, parts[:len(parts)-1])
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
		s.dups = append(s.dups, duplicate{path: names(parts), first: old.key, second: last.Span,
			whole: Span{s.src, start, s.i}, isStatement: true})
		s.open = len(s.dups) - 1
	}
	s.cur, s.path = n, names(parts)
	s.entries = append(s.entries, entry{s.path, n})
	return nil
}

// closeDuplicate notes where the table of a second header ends.
func (s *scanner) closeDuplicate(end int) {
	if s.open >= 0 {
		s.dups[s.open].whole.end = end
		s.open = -1
	}
}

// descend follows parts from a table, into the last element of arrays, making tables on the way.
func (s *scanner) descend(n *node, parts []keyPart) (*node, error) {
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
func (s *scanner) pair(n *node, path []string, start int, isStatement bool) error {
	parts, err := s.keyParts()
	if err != nil {
		return err
	}
	if !s.take('=') {
		return errScan
	}
	into, err := s.descend(n, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	whole := append(path[:len(path):len(path)], names(parts)...)
	at := len(s.entries)
	s.entries = append(s.entries, entry{path: whole})
	value, err := s.value(whole)
	if err != nil {
		return err
	}
	value.key = last.Span
	s.entries[at].node = value
	if old := into.at(last.name); old != nil {
		s.dups = append(s.dups, duplicate{path: whole, first: old.key, second: last.Span,
			whole: s.Span(start), isStatement: isStatement})
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
func (s *scanner) keyParts() ([]keyPart, error) {
	var parts []keyPart
	for {
		s.skip(false)
		start := s.i
		name, err := s.keyPart()
		if err != nil {
			return nil, err
		}
		if parts = append(parts, keyPart{name, s.Span(start)}); len(parts) > maxDepth {
			return nil, errDeep
		}
		s.skip(false)
		if !s.take('.') {
			return parts, nil
		}
	}
}

func (s *scanner) keyPart() (string, error) {
	start := s.i
	switch s.peek() {
	case '"':
		if err := s.quoted('"', false); err != nil {
			return "", err
		}
		return unescape(s.s[start+1 : s.i-1])
	case '\'':
		if err := s.quoted('\'', false); err != nil {
			return "", err
		}
		return s.s[start+1 : s.i-1], nil
	}
	for s.i < len(s.s) && isBare(s.s[s.i]) {
		s.i++
	}
	if s.i == start {
		return "", errScan
	}
	return s.s[start:s.i], nil
}

// quoted passes a string in one kind of quotes, in threes when many.
func (s *scanner) quoted(quote byte, many bool) error {
	if !many {
		for s.i++; s.i < len(s.s) && s.s[s.i] != '\n'; s.i++ {
			switch {
			case s.s[s.i] == '\\' && quote == '"':
				s.i++
			case s.s[s.i] == quote:
				s.i++
				return nil
			}
		}
		return errScan
	}
	three := strings.Repeat(string(quote), 3)
	for s.i += 3; s.i < len(s.s); s.i++ {
		switch {
		case s.s[s.i] == '\\' && quote == '"':
			s.i++
		case strings.HasPrefix(s.s[s.i:], three):
			// Up to two quotes belong to the text in a row of five.
			for n := 0; n < 2 && strings.HasPrefix(s.s[s.i+1:], three); n++ {
				s.i++
			}
			s.i += 3
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

// value reads a key's value, or one element of an array. Scalars get no value yet.
func (s *scanner) value(path []string) (*node, error) {
	s.skip(false)
	if s.depth++; s.depth > maxDepth || len(path) > maxDepth {
		return nil, errDeep
	}
	defer func() { s.depth-- }()
	start := s.i
	switch b := s.peek(); b {
	case '[':
		return s.array(path)
	case '{':
		return s.inlineTable(path)
	case '"', '\'':
		many := strings.HasPrefix(s.s[s.i:], strings.Repeat(string(b), 3))
		if err := s.quoted(b, many); err != nil {
			return nil, err
		}
		return &node{val: s.Span(start)}, nil
	}
	for s.i < len(s.s) && !strings.ContainsRune(",]}#\r\n", rune(s.s[s.i])) {
		s.i++
	}
	// A date and its time of day have a blank between them, so only blanks at the end are none of the value.
	for s.i > start && (s.s[s.i-1] == ' ' || s.s[s.i-1] == '\t') {
		s.i--
	}
	if s.i == start {
		return nil, errScan
	}
	return &node{val: s.Span(start)}, nil
}

func (s *scanner) array(path []string) (*node, error) {
	start := s.i
	n := &node{kind: arrayNode, inline: true}
	s.i++
	for {
		s.skip(true)
		if s.take(']') {
			n.val = s.Span(start)
			return n, nil
		}
		if s.i >= len(s.s) {
			return nil, errScan
		}
		item, err := s.value(path)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		s.skip(true)
		if !s.take(',') && s.peek() != ']' {
			return nil, errScan
		}
	}
}

func (s *scanner) inlineTable(path []string) (*node, error) {
	start := s.i
	n := newTable(Span{}, Span{})
	n.inline = true
	s.i++
	for {
		s.skip(true)
		if s.take('}') {
			n.val = s.Span(start)
			return n, nil
		}
		if s.i >= len(s.s) {
			return nil, errScan
		}
		if err := s.pair(n, path, s.i, false); err != nil {
			return nil, err
		}
		s.skip(true)
		if !s.take(',') && s.peek() != '}' {
			return nil, errScan
		}
	}
}
