package cuda

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// core is a node that keeps a state: a GRU or, with four gates, an LSTM.
type core struct {
	node
	gates          int
	parts          int // of the state: h and, of an LSTM, c
	begins         int // where its state begins in a row's
	input, state   plan.Tensor
	inBias, stBias plan.Tensor
}

// cells are the buffers of a core in a pass.
type cells struct{ x, s, h kernels.Matrix }

// coreOf returns the operation of a core with so many gates and parts of the state.
func (l *layout) coreOf(n node, gates, parts int) op {
	wide := gates * n.Out
	c := &core{node: n, gates: gates, parts: parts, input: plan.Flat(n.Width * wide), state: plan.Flat(n.Out * wide), inBias: plan.Flat(wide), stBias: plan.Flat(wide)}
	for _, o := range l.net.Cores() {
		if o.Name == n.Name {
			c.begins = o.At
		}
	}
	return c
}

func (c *core) params() []*plan.Tensor {
	return []*plan.Tensor{&c.input, &c.state, &c.inBias, &c.stBias}
}

// wide is the number of columns of all gates.
func (c *core) wide() int { return c.gates * c.Out }

// rowsOf makes room for rows without padding.
func (p *pass) rowsOf(elems int) kernels.Matrix {
	return kernels.Matrix{Data: p.floats(p.capacity * elems), Row: int32(elems), Column: 1}
}

// cell prepares the kernel of the core over rows of its buffers, forward or back.
func (c *core) cell(p *pass, gru, lstm kernels.Kernel[kernels.Cell]) func(b cells, out kernels.Matrix, lo, hi int, d, dh kernels.Matrix) {
	k := gru
	if c.gates == 4 {
		k = lstm
	}
	l := prepare(&p.owner, k)
	l.args.Control, l.args.N = p.control, int32(c.Out)
	return func(b cells, out kernels.Matrix, lo, hi int, d, dh kernels.Matrix) {
		a := l.args
		a.Rows = int32(hi - lo)
		a.X, a.XRow, a.S, a.SRow = from(b.x, lo).Data, b.x.Row, from(b.s, lo).Data, b.s.Row
		a.H, a.HRow, a.Out, a.OutRow = from(b.h, lo).Data, b.h.Row, from(out, lo).Data, out.Row
		a.D, a.DRow, a.DH, a.DHRow = from(d, lo).Data, d.Row, from(dh, lo).Data, dh.Row
		p.work.launch(l.Launch, kernels.Blocks((hi-lo)*c.Out))
	}
}

func (c *core) forward(p *pass) func(rows int) {
	b := cells{x: p.rowsOf(c.wide()), s: p.rowsOf(c.wide())}
	input := p.product(p.param(&c.input), p.param(&c.inBias), c.Width, c.wide(), kernels.None)
	state := p.product(p.param(&c.state), p.param(&c.stBias), c.Out, c.wide(), kernels.None)
	cell := c.cell(p, kernels.GRUKernel, kernels.LSTMKernel)
	step := func(b cells, lo, hi int) {
		state(from(b.h, lo), from(b.s, lo), hi-lo)
		cell(b, p.output(&c.node), lo, hi, kernels.Matrix{}, kernels.Matrix{})
	}
	if p.steps == nil {
		p.cores[c] = b
		return func(rows int) {
			input(p.input(&c.In[0]), b.x, rows)
			b.h = kernels.Matrix{Data: at(p.state, c.begins), Row: int32(p.kept), Column: 1}
			step(b, 0, rows)
		}
	}
	b.h = p.rowsOf(c.parts * c.Out)
	p.cores[c] = b
	stored, follow := p.move(c.parts*c.Out), c.follow(p, b)
	stored.args.To, stored.args.ToRow, stored.args.FromRow = b.h.Data, b.h.Row, int32(p.kept)
	return func(rows int) {
		input(p.input(&c.In[0]), b.x, rows)
		p.work.zero(b.h.Data, 4*rows*int(b.h.Row))
		stored.args.From, stored.args.Order = at(p.steps.stored, c.begins), p.steps.from
		p.moveRows(stored, rows)
		p.steps.each(func(lo, hi int) {
			if lo > 0 {
				follow(lo, hi)
			}
			step(b, lo, hi)
		})
	}
}

// follow prepares that rows take the state of the rows that they follow.
func (c *core) follow(p *pass, b cells) func(lo, hi int) {
	var moves []call[kernels.Move]
	for part := range c.parts {
		m := p.move(c.Out)
		m.args.From, m.args.FromRow, m.args.ToRow = p.out[c.At], int32(c.row), b.h.Row
		if part > 0 {
			m.args.From, m.args.FromRow = at(b.s.Data, c.Out), b.s.Row
		}
		moves = append(moves, m)
	}
	return func(lo, hi int) {
		for part, m := range moves {
			m.args.Order, m.args.To = at(p.steps.prev, lo), at(from(b.h, lo).Data, part*c.Out)
			p.moveRows(m, hi-lo)
		}
	}
}

// keep prepares writing the state after the rows to rows of states.
func (c *core) keep(p *pass) func(to kernels.Address, rows int) {
	var moves []call[kernels.Move]
	b := p.cores[c]
	for part := range c.parts {
		m := p.move(c.Out)
		m.args.From, m.args.FromRow, m.args.ToRow = p.out[c.At], int32(c.row), int32(p.kept)
		if part > 0 {
			m.args.From, m.args.FromRow = at(b.s.Data, c.Out), b.s.Row
		}
		moves = append(moves, m)
	}
	return func(to kernels.Address, rows int) {
		for part, m := range moves {
			m.args.To = at(to, c.begins+part*c.Out)
			p.moveRows(m, rows)
		}
	}
}

func (c *core) backward(g *gradient) func(rows int) {
	b, own, out := g.cores[c], g.gradientOf(&c.node), g.output(&c.node)
	dh, ds := g.rowsOf(c.Out), b.s
	if c.gates == 4 {
		ds = b.x
	}
	cell := c.cell(g.pass, kernels.GRUBackKernel, kernels.LSTMBackKernel)
	back := prepare(&g.owner, kernels.DenseKernel)
	back.args.B = kernels.Matrix{Data: g.param(&c.state), Row: int32(c.wide()), Column: 1}
	back.args.Control, back.args.Columns, back.args.Depth = g.control, int32(c.Out), int32(c.wide())
	if c.gates == 3 {
		back.args.Start = kernels.Add
	}
	toH := c.hand(g, dh, own)
	toC := c.hand(g, dh, kernels.Matrix{Data: at(b.s.Data, 2*c.Out), Row: b.s.Row, Column: 1})
	learn := c.learn(g, b, ds)
	return func(rows int) {
		g.steps.back(func(lo, hi int) {
			cell(b, out, lo, hi, own, dh)
			if lo == 0 {
				return
			}
			if c.gates == 4 {
				toC(lo, hi)
			}
			back.args.A, back.args.C, back.args.Rows = from(ds, lo), from(dh, lo), int32(hi-lo)
			g.work.launch(back.Launch, kernels.Tiles(hi-lo, c.Out))
			toH(lo, hi)
		})
		learn(rows)
	}
}

// hand prepares that a gradient of rows is added to that of the rows that they follow.
func (c *core) hand(g *gradient, dh, to kernels.Matrix) func(lo, hi int) {
	m := g.move(c.Out)
	m.args.FromRow, m.args.To, m.args.ToRow, m.args.Add = dh.Row, to.Data, to.Row, 1
	return func(lo, hi int) {
		m.args.From, m.args.Target = from(dh, lo).Data, at(g.steps.prev, lo)
		g.moveRows(m, hi-lo)
	}
}

// learn prepares the gradients of the parameters, given the gradients of the input's and the state's parts of the gates, and
// passes the input's on.
func (c *core) learn(g *gradient, b cells, ds kernels.Matrix) func(rows int) {
	wide := c.wide()
	weight := func(t *plan.Tensor, height int) func(a, b kernels.Matrix, rows int) {
		return outer(g, kernels.Matrix{Data: g.part(t), Row: int32(wide), Column: 1}, height, wide)
	}
	input, state := weight(&c.input, c.Width), weight(&c.state, c.Out)
	inBias, stBias := sums(g, g.part(&c.inBias), wide), sums(g, g.part(&c.stBias), wide)
	on := g.descend(&c.In[0], kernels.Matrix{Data: g.param(&c.input), Row: int32(wide), Column: 1}, wide)
	return func(rows int) {
		inBias(b.x, rows)
		stBias(ds, rows)
		input(g.input(&c.In[0]), b.x, rows)
		state(b.h, ds, rows)
		on(b.x, rows)
	}
}

// steps is the order of a minibatch's rows: the rows of a step lie together, after the rows of the previous step.
type steps struct {
	ends         []int           // of the steps
	prev, from   kernels.Address // by row: the row before it, or -1; else the row of stored that it begins from, or -1 for zero
	stored       kernels.Address // [..][kept]
	rows         []uint32        // in the order of the steps
	prevs, froms []int32

	follow []int32 // of the rows as they came
	place  []int32 // where those are now
	starts []int   // of chunks in those; one more at the end
}

func (s *steps) each(do func(lo, hi int)) {
	lo := 0
	for _, hi := range s.ends {
		do(lo, hi)
		lo = hi
	}
}

func (s *steps) back(do func(lo, hi int)) {
	for i, hi := range slices.Backward(s.ends) {
		lo := 0
		if i > 0 {
			lo = s.ends[i-1]
		}
		do(lo, hi)
	}
}

// arrange puts rows, which are in the order of policy.Dataset.Chunked, into that of their steps.
func (s *steps) arrange(d *policy.Dataset, n *policy.Network, rows []uint32) {
	s.follow, s.place = grown(s.follow, len(rows)), grown(s.place, len(rows))
	d.Follow(n, rows, s.follow, nil)
	s.starts = d.ChunkStarts(n, rows, s.starts[:0])
	s.rows, s.prevs, s.froms, s.ends = s.rows[:0], s.prevs[:0], s.froms[:0], s.ends[:0]
	for step, more := 0, true; more; step++ {
		more = false
		for c := range len(s.starts) - 1 {
			i := s.starts[c] + step
			if i >= s.starts[c+1] {
				continue
			}
			more = true
			s.place[i] = int32(len(s.rows))
			s.add(d, n, rows[i], s.follow[i])
		}
		if more {
			s.ends = append(s.ends, len(s.rows))
		}
	}
}

// add adds the next row, which follows an earlier row.
func (s *steps) add(d *policy.Dataset, n *policy.Network, row uint32, follows int32) {
	prev, from := int32(-1), int32(-1)
	switch t, e, width := int(row)/d.Envs(), int(row)%d.Envs(), d.BlockEnvs(); {
	case follows >= 0:
		prev = s.place[follows]
	case d.Blocks[e/width].Ages(t)[e%width] > 0:
		from = int32(d.ChunkOf(n, row))
		if d.Warmed(n, row) {
			from += int32(d.Chunks(n))
		}
	}
	s.rows, s.prevs, s.froms = append(s.rows, row), append(s.prevs, prev), append(s.froms, from)
}

// grown returns a slice of n elements with undefined contents, in the memory of s where that is large enough.
func grown[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
