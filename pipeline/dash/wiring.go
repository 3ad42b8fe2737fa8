package dash

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

// Measures of the picture of components, in its own units.
const (
	boxWidth, boxHeight = 170, 74
	gapAcross, gapDown  = 90, 26
	maxBoxes            = 40 // more cannot be read: the table has them all
)

// wiring is the picture of a run's components: instances of one component are one box.
type wiring struct {
	Width, Height int
	Boxes         []box
	Lines         []line
	TooMany       int // components, where there are too many to draw
}

type box struct {
	X, Y                        int
	Name, State, Detail, Queue  string
	Version                     string
	Instances                   int
	Cause                       bool // the run stands still because of it
	rate                        float64
	unit                        string
	queued, depth, layer, place int
}

type line struct {
	Path, Title string
	Text        string // what waits
	X, Y        int    // of the text
	Blocked     bool
}

// wiringOf draws the components and wires of a status.
func wiringOf(s *control.StatusReply) *wiring {
	w := &wiring{}
	index := map[string]int{}
	for i := range s.Components {
		w.join(index, &s.Components[i], s.Cause)
	}
	if len(w.Boxes) > maxBoxes {
		return &wiring{TooMany: len(w.Boxes)}
	}
	type edge struct{ from, to int }
	edges := map[edge]*line{}
	var order []edge
	for i := range s.Wires {
		x := &s.Wires[i]
		from, to, ok := strings.Cut(x.Wire, "→")
		a, hasA := index[baseOf(from)]
		b, hasB := index[baseOf(to)]
		if !ok || !hasA || !hasB {
			continue
		}
		e := edge{a, b}
		if edges[e] == nil {
			edges[e], order = &line{}, append(order, e)
		}
		edges[e].add(x)
	}
	links := make([][]int, len(w.Boxes))
	for _, e := range order {
		links[e.from] = append(links[e.from], e.to)
	}
	w.arrange(links)
	for _, e := range order {
		edges[e].between(&w.Boxes[e.from], &w.Boxes[e.to], w.Height)
		w.Lines = append(w.Lines, *edges[e])
	}
	w.Height += gapDown // wires that lead back run below
	return w
}

// baseOf returns the component of rollout[3].trajectories.
func baseOf(port string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(port), ".")
	name, _, _ = strings.Cut(name, "[")
	return name
}

// join adds an instance to the box of its component.
func (w *wiring) join(index map[string]int, c *control.ComponentStatus, cause string) {
	name := baseOf(c.Name)
	i, known := index[name]
	if !known {
		i = len(w.Boxes)
		index[name] = i
		w.Boxes = append(w.Boxes, box{Name: cut(name, 22), State: string(c.State), unit: c.Unit})
	}
	b := &w.Boxes[i]
	b.Instances++
	b.rate += c.Rate
	b.queued, b.depth = b.queued+c.Queued, b.depth+c.Depth
	if c.State != control.Running {
		b.State = string(c.State)
	}
	b.Cause = cause != "" && (b.Cause || names(cause, name))
	if c.Version != nil {
		b.Version = fmt.Sprintf("%s %.8s", cut(c.Version.File[strings.LastIndexByte(c.Version.File, '/')+1:], 16), c.Version.Hash)
	}
	b.Detail, b.Queue = amount(b.rate)+" "+b.unit+"/s", fmt.Sprintf("queue %d/%d", b.queued, b.depth)
}

// names reports whether a text has a word.
func names(text, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" .,:;[]→()", r) }), func(w string) bool { return w == word })
}

// arrange gives each box its place: behind the boxes that it hears from, as far as wires lead forward.
func (w *wiring) arrange(links [][]int) {
	state := make([]int, len(w.Boxes)) // 1 while its wires are followed, 2 afterwards
	var visit func(i int)
	visit = func(i int) {
		state[i] = 1
		for _, next := range links[i] {
			if state[next] == 1 {
				continue // a wire that leads back
			}
			if w.Boxes[next].layer < w.Boxes[i].layer+1 {
				w.Boxes[next].layer = w.Boxes[i].layer + 1
				visit(next)
			}
		}
		state[i] = 2
	}
	for i := range w.Boxes {
		if state[i] == 0 {
			visit(i)
		}
	}
	rows := map[int]int{}
	for i := range w.Boxes {
		b := &w.Boxes[i]
		b.place = rows[b.layer]
		rows[b.layer]++
		b.X, b.Y = 10+b.layer*(boxWidth+gapAcross), 10+b.place*(boxHeight+gapDown)
		w.Width, w.Height = max(w.Width, b.X+boxWidth+10), max(w.Height, b.Y+boxHeight+10)
	}
}

// add adds the counters of a wire to its line.
func (l *line) add(x *control.WireStatus) {
	if waits := x.Queued + x.Parked; waits > 0 {
		l.Text = strings.TrimPrefix(l.Text+" "+strconv.Itoa(waits)+"/"+strconv.Itoa(x.Depth), " ")
	}
	l.Blocked = l.Blocked || x.Parked > 0
	l.Title = cmp.Or(l.Title, "") + fmt.Sprintf("%s (%s): %d waiting of %d, %d delivered, %d dropped, %d coalesced, %d blocked\n",
		printable(x.Wire), x.Mode, x.Queued+x.Parked, x.Depth, x.Delivered, x.Dropped, x.Coalesced, x.Blocked)
}

// between leads a line from the right of a box to the left of a later one, or below all boxes back to an earlier one.
func (l *line) between(a, b *box, bottom int) {
	fromX, fromY, toX, toY := a.X+boxWidth, a.Y+boxHeight/2, b.X, b.Y+boxHeight/2
	if b.layer > a.layer {
		middle := (fromX + toX) / 2
		l.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", fromX, fromY, middle, fromY, middle, toY, toX, toY)
		l.X, l.Y = middle, (fromY+toY)/2-4
		return
	}
	fromX, fromY, toX, toY = a.X+boxWidth/2, a.Y+boxHeight, b.X+boxWidth/2, b.Y+boxHeight
	low := bottom + gapDown/2
	l.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", fromX, fromY, fromX, low, toX, low, toX, toY)
	l.X, l.Y = (fromX+toX)/2, low-10
}
