package graph

import (
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
