package graph

import "strings"

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
