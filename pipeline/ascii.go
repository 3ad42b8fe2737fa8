package pipeline

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/bus"
)

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

func (g *Graph) ascii() string {
	var parts []string
	for _, p := range g.pictures() {
		parts = append(parts, p.draw())
	}
	return strings.Join(parts, "\n")
}

// pictures splits the graph into its connected parts.
func (g *Graph) pictures() []*picture {
	boxes := map[string]*box{}
	of := map[*box]*picture{}
	var all []*picture
	for i := range g.Components {
		x := &g.Components[i]
		b := &box{title: x.title()}
		p := &picture{boxes: []*box{b}, below: map[*arrow]bool{}}
		boxes[x.Name], of[b] = b, p
		all = append(all, p)
	}
	for i := range g.Wires {
		w := &g.Wires[i]
		p, q := of[boxes[w.From]], of[boxes[w.To]]
		if p != q {
			for _, b := range q.boxes {
				of[b] = p
			}
			p.boxes, p.arrows = append(p.boxes, q.boxes...), append(p.arrows, q.arrows...)
			q.boxes = nil
		}
		p.addWire(w, boxes[w.From], boxes[w.To])
	}
	return slices.DeleteFunc(all, func(p *picture) bool { return len(p.boxes) == 0 })
}

// addWire adds a wire, to the arrow between the same boxes if there is one.
func (p *picture) addWire(w *Wire, from, to *box) {
	straight := w.Mode == bus.All || w.Mode == bus.Queue
	for _, a := range p.arrows {
		if a.from == from && a.to == to {
			a.label += ", " + w.label()
			a.straight = a.straight || straight
			return
		}
	}
	p.arrows = append(p.arrows, &arrow{from: from, to: to, label: w.label(), straight: straight && from != to})
}

// longest returns the longest path of straight arrows; of several the first in the order of the file.
func (p *picture) longest() []*box {
	var best, path []*box
	steps := 0
	var walk func(b *box)
	walk = func(b *box) {
		path = append(path, b)
		if len(path) > len(best) {
			best = slices.Clone(path)
		}
		for _, a := range p.arrows {
			// The number of paths can be enormous; a good one is found early.
			if steps++; a.straight && a.from == b && !slices.Contains(path, a.to) && steps < 100_000 {
				walk(a.to)
			}
		}
		path = path[:len(path)-1]
	}
	for _, b := range p.boxes {
		walk(b)
	}
	return best
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

// maxArrows is how many arrows a picture can have and still be understood.
const maxArrows = 100

// draw lays out and draws. Arrows that do not fit beside a box are put below it in another try. What has too many
// arrows becomes a list.
func (p *picture) draw() string {
	if len(p.arrows) > maxArrows {
		var b strings.Builder
		for _, a := range p.arrows {
			b.WriteString(a.from.title + " ──" + a.label + "──▶ " + a.to.title + "\n")
		}
		return b.String()
	}
	for {
		misfit := p.layOut()
		if misfit == nil {
			return p.render()
		}
		p.below[misfit] = true
	}
}

// layOut gives everything its place; it returns an arrow that does not fit in its row.
func (p *picture) layOut() (misfit *arrow) {
	p.spine, p.arcs, p.rows = p.longest(), nil, 1
	for _, b := range p.boxes {
		b.row, b.col, b.ports, b.placed = 0, 0, nil, false
	}
	left := slices.Clone(p.arrows)
	for i, b := range p.spine {
		b.placed = true
		if i > 0 {
			left = slices.DeleteFunc(left, func(a *arrow) bool { return a.from == p.spine[i-1] && a.to == b })
		}
	}
	p.spread(left)
	for len(left) > 0 {
		left = p.next(left)
	}
	for _, b := range p.boxes {
		b.orderPorts()
	}
	return p.settle()
}

// spread sets the columns of the first row.
func (p *picture) spread(arcs []*arrow) {
	for _, b := range p.boxes {
		ends := 0
		for _, a := range arcs {
			if a.from == b {
				ends++
			}
			if a.to == b {
				ends++
			}
		}
		b.step = 2
		if 2*ends-1 > length(b.title) {
			b.step = 1
		}
		b.width = max(length(b.title), ends)
	}
	for i, b := range p.spine[1:] {
		before := p.spine[i]
		b.col = before.col + before.width + length(" ──"+p.between(before, b).label+"──▶ ")
	}
}

// next puts the shortest arrow between placed boxes, or the box with the shortest ways, in the next row.
func (p *picture) next(left []*arrow) []*arrow {
	var best *arrow
	reach := func(a *arrow) int {
		if !a.from.placed || !a.to.placed {
			return p.reach(a, left)
		}
		return max(a.from.col-a.to.col, a.to.col-a.from.col)
	}
	for _, a := range left {
		if !a.from.placed && !a.to.placed {
			continue
		}
		if best == nil || reach(a) < reach(best) {
			best = a
		}
	}
	if best.from.placed && best.to.placed {
		p.addArc(&arc{arrow: best}, p.rows)
		p.rows++
		return slices.DeleteFunc(left, func(a *arrow) bool { return a == best })
	}
	return p.place(best, left)
}

// reach is how far the row of the box at the unplaced end of a reaches.
func (p *picture) reach(a *arrow, left []*arrow) int {
	known, b := a.from, a.to
	if !known.placed {
		known, b = b, known
	}
	lo, hi := known.col, known.col+length(a.label)
	for _, o := range left {
		other := o.from
		if other == b {
			other = o.to
		}
		if (o.from == b || o.to == b) && other.placed {
			lo, hi = min(lo, other.col), max(hi, other.col)
		}
	}
	return hi - lo
}

// place gives the box at the unplaced end of a row of its own, with one arrow on its left and, if there is room,
// one on its right.
func (p *picture) place(a *arrow, left []*arrow) []*arrow {
	b := a.to
	if b.placed {
		b = a.from
	}
	touching := slices.DeleteFunc(slices.Clone(left), func(o *arrow) bool {
		return o.from != b && o.to != b || o.from == o.to || !p.other(o, b).placed
	})
	slices.SortStableFunc(touching, func(x, y *arrow) int { return cmp.Compare(p.other(x, b).col, p.other(y, b).col) })
	first, last := touching[0], touching[len(touching)-1]
	anchor := p.other(first, b)
	b.col, b.placed = anchor.col+anchor.width+length(first.label)+6, true
	used := []*arrow{first}
	if last != first && !p.below[last] && p.other(last, b).col-b.col-b.width > length(last.label)+6 {
		used = append(used, last)
	}
	b.row = p.rows
	for _, o := range used {
		if o.from == b { // its head needs room between the rows
			b.row = max(b.row, o.to.row+2)
		}
	}
	p.rows = b.row + 1
	for i, o := range used {
		p.addArc(&arc{arrow: o, beside: b, leftward: i == 0}, b.row)
	}
	return slices.DeleteFunc(left, func(o *arrow) bool { return slices.Contains(used, o) })
}

// other returns the box at the other end of an arrow.
func (p *picture) other(a *arrow, b *box) *box {
	if a.from == b {
		return a.to
	}
	return a.from
}

// addArc adds an arc in a row, or further down if its head needs room below a box of that row.
func (p *picture) addArc(a *arc, row int) {
	if a.beside == nil {
		row = max(row, a.from.row+1, a.to.row+2)
		p.rows = row
	}
	a.row = row
	a.out = &end{row: row, toward: a.to.col}
	a.in = &end{row: row, toward: a.from.col, head: true}
	if a.beside != a.from {
		a.from.ports = append(a.from.ports, a.out)
	}
	if a.beside != a.to {
		a.to.ports = append(a.to.ports, a.in)
	}
	p.arcs = append(p.arcs, a)
}

// orderPorts puts the ends that turn left before those that turn right, and the shallow ones outside.
func (b *box) orderPorts() {
	slices.SortStableFunc(b.ports, func(x, y *end) int {
		xLeft, yLeft := x.toward < b.col, y.toward < b.col
		switch {
		case xLeft != yLeft && xLeft:
			return -1
		case xLeft != yLeft:
			return 1
		case xLeft:
			return cmp.Compare(x.row, y.row)
		}
		return cmp.Compare(y.row, x.row)
	})
}

// settle sets the final columns of boxes below the first row and of all ports. It returns an arrow on the right
// of a box for which there is no room.
func (p *picture) settle() (misfit *arrow) {
	var lines []*end // settled ones
	set := func(b *box) {
		for i, e := range b.ports {
			e.col = b.col + b.step*i
			lines = append(lines, e)
		}
	}
	for _, b := range p.spine {
		set(b)
	}
	for _, a := range p.arcs {
		b := a.beside
		if b == nil {
			continue
		}
		if a.leftward {
			b.col = a.anchor().col + length("└──"+a.label+"──▶ ")
			for slices.ContainsFunc(lines, func(e *end) bool { return e.row > b.row && e.col >= b.col-2 && e.col <= b.col+b.width+1 }) {
				b.col++
			}
			set(b)
		} else if a.anchor().col < b.col+length(b.title)+length(" ◀──"+a.label+"──") {
			return a.arrow
		}
	}
	return nil
}

// anchor is the end at the box that does not stand in the arc's row.
func (a *arc) anchor() *end {
	if a.beside == a.from {
		return a.in
	}
	return a.out
}
