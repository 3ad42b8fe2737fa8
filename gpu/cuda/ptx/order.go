package ptx

import "slices"

// order renumbers blocks so that groups of lanes of a warp meet again as early as they can if the group in the lowest block
// always runs first: a block comes after the blocks that lead to it, and the whole of a loop before the blocks after the loop.
// Blocks that cannot be reached are dropped.
func order(blocks []block) []block {
	o := orderer{blocks: blocks, within: make([]int, len(blocks))}
	all := make([]int, len(blocks))
	for i := range all {
		all[i] = i
	}
	o.place(all, func(visit func(int)) { visit(0) })
	numbers := make([]int, len(blocks))
	for i := range numbers {
		numbers[i] = -1
	}
	for number, old := range o.placed {
		numbers[old] = number
	}
	ordered := make([]block, len(o.placed))
	for number, old := range o.placed {
		b := blocks[old]
		b.end.next, b.end.target = renumbered(numbers, b.end.next), renumbered(numbers, b.end.target)
		b.end.targets = slices.Clone(b.end.targets)
		for i, t := range b.end.targets {
			b.end.targets[i] = numbers[t]
		}
		ordered[number] = b
	}
	return ordered
}

// renumbered returns the new number of a block, or -1 if it cannot be reached or is none.
func renumbered(numbers []int, old int) int {
	if old < 0 || old >= len(numbers) {
		return -1
	}
	return numbers[old]
}

// orderer finds the strongly connected parts of a graph by Tarjan's algorithm, and those within them without their headers.
type orderer struct {
	blocks []block
	within []int // the call of place that a block belongs to
	calls  int
	placed []int
}

// place appends those blocks that can be reached from the roots without leaving blocks.
func (o *orderer) place(blocks []int, roots func(visit func(int))) {
	o.calls++
	for _, b := range blocks {
		o.within[b] = o.calls
	}
	t := tarjan{orderer: o, call: o.calls, index: map[int]int{}, low: map[int]int{}, open: map[int]bool{}}
	roots(t.visitNew)
	slices.Reverse(t.parts)
	for _, part := range t.parts {
		header := part[0]
		o.placed = append(o.placed, header)
		if len(part) > 1 {
			o.place(part[1:], o.blocks[header].successors)
		}
	}
}

// tarjan is one search. Parts come in the reverse of the order in which they follow each other; each begins with its block
// that was found first.
type tarjan struct {
	*orderer
	call       int
	index, low map[int]int // from 1
	stack      []int
	open       map[int]bool // on stack
	parts      [][]int
}

func (t *tarjan) visitNew(b int) {
	if t.within[b] == t.call && t.index[b] == 0 {
		t.visit(b)
	}
}

func (t *tarjan) visit(b int) {
	t.index[b] = len(t.index) + 1
	t.low[b] = t.index[b]
	t.stack, t.open[b] = append(t.stack, b), true
	at := len(t.stack) - 1
	t.blocks[b].successors(func(s int) {
		t.visitNew(s)
		if t.open[s] {
			t.low[b] = min(t.low[b], t.low[s])
		}
	})
	if t.low[b] != t.index[b] {
		return
	}
	part := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, p := range part {
		t.open[p] = false
	}
	t.parts = append(t.parts, part)
}

// leads reports whether a lane in block from can come to block to, which is another one.
func (p *program) leads(from, to int) bool {
	seen := make([]bool, len(p.blocks))
	queue := []int{from}
	for len(queue) > 0 {
		b := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		p.blocks[b].successors(func(s int) {
			if !seen[s] {
				seen[s] = true
				queue = append(queue, s)
			}
		})
	}
	return seen[to]
}
