package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
)

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

// layOut places everything; it returns an arrow that does not fit in its row.
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
