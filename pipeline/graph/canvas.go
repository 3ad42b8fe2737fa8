package graph

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// anchor is the end at the box that is not in the arc's row.
func (a *arc) anchor() *end {
	if a.beside == a.from {
		return a.in
	}
	return a.out
}

// The picture of a connected part of the graph: its longest path stands in the first row, with the wires between
// neighbours in line. Every other component has a row of its own below, between two of its neighbours, and every
// other wire is an arc below the components at its ends. Short arcs come first, so that few lines cross.

// box is a component in the picture.
type box struct {
	title    string
	row, col int // of the first character
	width    int // room for its title and its ports
	step     int // columns from port to port
	ports    []*end
	placed   bool
}

// arrow is all wires from one component to another.
type arrow struct {
	from, to *box
	label    string
	straight bool // may be a part of the first row
}

// end is where a vertical line leaves a box downwards.
type end struct {
	row    int // where the line turns
	toward int // column that it turns to
	head   bool
	col    int
}

// arc is an arrow below its boxes.
type arc struct {
	*arrow
	row      int
	out, in  *end
	beside   *box // if set, a box that stands in the row, at one end of the line
	leftward bool // the line is on the left of beside
}

// picture lays out one connected part.
type picture struct {
	boxes  []*box
	arrows []*arrow
	spine  []*box
	arcs   []*arc
	rows   int
	// below holds arrows that turned out not to fit in the row of a box.
	below map[*arrow]bool
}

func length(s string) int { return utf8.RuneCountInString(s) }

// between returns the arrow from one box to another, or nil.
func (p *picture) between(from, to *box) *arrow {
	i := slices.IndexFunc(p.arrows, func(a *arrow) bool { return a.from == from && a.to == to })
	if i < 0 {
		return nil
	}
	return p.arrows[i]
}

// maxArrows is how many arrows a readable picture can have.
const maxArrows = 100

// canvas is a grid of characters that grows.
type canvas [][]rune

func (c *canvas) at(row, col int) *rune {
	for len(*c) <= row {
		*c = append(*c, nil)
	}
	line := &(*c)[row]
	for len(*line) <= col {
		*line = append(*line, ' ')
	}
	return &(*line)[col]
}

func (c *canvas) text(row, col int, s string) {
	for _, r := range s {
		*c.at(row, col) = r
		col++
	}
}

// line draws one character of a line; where lines cross it draws a crossing.
func (c *canvas) line(row, col int, r rune) {
	p := c.at(row, col)
	if (*p == '│' || *p == '─' || *p == '┼') && *p != r {
		r = '┼'
	}
	*p = r
}

func (c *canvas) horizontal(row, from, to int) {
	for col := from; col <= to; col++ {
		c.line(row, col, '─')
	}
}

// vertical draws the line of an end, from below its box to where it turns.
func (c *canvas) vertical(top int, e *end) {
	for row := top + 1; row < e.row; row++ {
		c.line(row, e.col, '│')
	}
	if e.head {
		*c.at(top+1, e.col) = '▲'
	}
}

// label writes a text into a horizontal line where nothing crosses it, else next to its end, else behind the row.
func (c *canvas) label(row, from, to int, s string) {
	n := length(s)
	for _, margin := range []int{2, 1, 0} {
		run := 0
		for col := from; col <= to; col++ {
			if *c.at(row, col) != '─' {
				run = 0
			} else if run++; run == n+2*margin {
				c.text(row, col-n-margin+1, s)
				return
			}
		}
	}
	c.at(row, to+n+4) // the row is at least so long
	line := (*c)[row]
	if strings.TrimSpace(string(line[to+2:to+n+5])) == "" {
		c.text(row, to+3, s)
		return
	}
	c.text(row, len([]rune(strings.TrimRight(string(line), " ")))+1, s)
}

func (c canvas) String() string {
	var b strings.Builder
	for _, line := range c {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// render draws what layOut has placed.
func (p *picture) render() string {
	var c canvas
	for i, b := range p.spine {
		c.text(0, b.col, b.title)
		if i > 0 {
			left := p.spine[i-1]
			from := left.col + left.width + 1
			c.horizontal(0, from, b.col-3)
			c.text(0, b.col-2, "▶")
			c.text(0, left.col+left.width+3, p.between(left, b).label)
		}
	}
	for _, a := range p.arcs {
		if a.beside != a.from {
			c.vertical(a.from.row, a.out)
		}
		if a.beside != a.to {
			c.vertical(a.to.row, a.in)
		}
	}
	for _, a := range p.arcs {
		if a.beside == nil {
			c.arc(a)
		} else {
			c.besideBox(a)
		}
	}
	for _, b := range p.boxes {
		c.text(b.row, b.col, b.title+strings.Repeat("─", b.width-length(b.title)))
	}
	for _, a := range p.arcs {
		from, to := a.columns()
		c.label(a.row, from+1, to-1, a.label)
	}
	return c.String()
}

// columns returns the ends of an arc's horizontal line.
func (a *arc) columns() (from, to int) {
	switch {
	case a.beside == nil:
		return min(a.out.col, a.in.col), max(a.out.col, a.in.col)
	case a.leftward:
		return a.anchor().col, a.beside.col - 1
	}
	return a.beside.col + length(a.beside.title), a.anchor().col
}

// arc draws the horizontal line between two ends.
func (c *canvas) arc(a *arc) {
	from, to := a.columns()
	c.horizontal(a.row, from+1, to-1)
	*c.at(a.row, from) = '└'
	*c.at(a.row, to) = '┘'
}

// besideBox draws the line between an end and a box in the same row.
func (c *canvas) besideBox(a *arc) {
	from, to := a.columns()
	toBox := a.beside == a.to
	if a.leftward {
		*c.at(a.row, from) = '└'
		c.horizontal(a.row, from+1, to-1)
		if toBox {
			*c.at(a.row, to-1) = '▶'
		}
		return
	}
	*c.at(a.row, to) = '┘'
	c.horizontal(a.row, from+1, to-1)
	if toBox {
		*c.at(a.row, from+1) = '◀'
	}
}
