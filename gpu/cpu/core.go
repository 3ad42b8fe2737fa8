package cpu

import (
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// core is a node that keeps a state: a GRU or, with four gates, an LSTM. Each gate of its weights is padded to whole panels.
type core struct {
	node
	layout         *layout
	gates          int
	kept           int // panels of the state's parts: h and, of an LSTM, c
	at             int // where its state begins in a row's
	input, state   plan.Tensor
	inBias, stBias plan.Tensor
}

// coreOf returns the operation of a core with so many gates and parts of the state.
func (l *layout) coreOf(n node, gates, parts int) op {
	c := &core{node: n, layout: l, gates: gates, kept: parts}
	for _, o := range l.net.Cores() {
		if o.Name == n.Name {
			c.at = o.At
		}
	}
	wide := gates * n.padded
	column := func(i int) int { return i/n.Out*n.padded + i%n.Out }
	weight := func(rows int) plan.Tensor {
		return plan.Tensor{Size: rows * wide, Count: rows * gates * n.Out, Index: func(i int) int {
			row, j := i/(gates*n.Out), column(i%(gates*n.Out))
			return j/kern.Panel*rows*kern.Panel + row*kern.Panel + j%kern.Panel
		}}
	}
	bias := plan.Tensor{Size: wide, Count: gates * n.Out, Index: column}
	c.input, c.state, c.inBias, c.stBias = weight(n.Width), weight(n.Out), bias, bias
	return c
}

func (c *core) params() []*plan.Tensor {
	return []*plan.Tensor{&c.input, &c.state, &c.inBias, &c.stBias}
}

// wide is the number of columns of all gates.
func (c *core) wide() int { return c.gates * c.padded }

func (c *core) packed() int { return (pad(c.Width) + pad(c.Out)) * c.wide() }

func (c *core) pack(set kern.Set, params, to []float32) {
	for _, t := range []kern.Transpose{{In: c.Width, From: params[c.input.At:], To: to},
		{In: c.Out, From: params[c.state.At:], To: to[pad(c.Width)*c.wide():]}} {
		t.Out = c.wide()
		set.Transpose(&t)
	}
}

func (c *core) room() int {
	return c.layout.block() * (2*apart(c.wide()) + apart(c.kept*c.padded) + c.row)
}

// buffers are the room of a core, rows apart.
type buffers struct{ x, s, h, dh matrix }

func (c *core) buffers(p *pass) (b buffers) {
	room := p.room[c.node.At]
	take := func(row int) matrix {
		m := matrix{room, row, 1}
		room = room[p.block*row:]
		return m
	}
	b.x, b.s, b.h, b.dh = take(apart(c.wide())), take(apart(c.wide())), take(apart(c.kept*c.padded)), take(c.row)
	return b
}

// from returns the rows of a matrix from a row on.
func (m matrix) from(row int) matrix { return matrix{m.data[row*m.row:], m.row, m.col} }

func (c *core) forward(p *pass, rows int) {
	in, out, b := p.input(&c.In[0]), p.output(&c.node), c.buffers(p)
	p.product = kern.Gemm{M: rows, N: c.wide(), K: c.Width, A: in.data, ARow: in.row, ACol: in.col,
		B: p.params[c.input.At:], BRow: kern.Panel, BPanel: c.Width * kern.Panel, Bias: p.params[c.inBias.At:],
		C: b.x.data, CRow: b.x.row, CPanel: kern.Panel}
	p.set.Gemm(&p.product)
	p.steps.each(func(lo, hi int) {
		for r := lo; r < hi; r++ {
			c.begin(p, r, &b, out)
		}
		x, s, h, o := b.x.from(lo), b.s.from(lo), b.h.from(lo), out.from(lo)
		p.product = kern.Gemm{M: hi - lo, N: c.wide(), K: c.Out, A: h.data, ARow: h.row, ACol: 1,
			B: p.params[c.state.At:], BRow: kern.Panel, BPanel: c.Out * kern.Panel, Bias: p.params[c.stBias.At:],
			C: s.data, CRow: s.row, CPanel: kern.Panel}
		p.set.Gemm(&p.product)
		p.cell = kern.Cell{Rows: hi - lo, N: c.padded, X: x.data, XRow: x.row, S: s.data, SRow: s.row,
			H: h.data, HRow: h.row, Out: o.data, ORow: o.row}
		c.run(p)
	})
}

// run runs the kernel of the cell.
func (c *core) run(p *pass) {
	if c.gates == 3 {
		p.cell.GRU(p.set)
	} else {
		p.cell.LSTM(p.set)
	}
}

// begin takes the state that a row begins from.
func (c *core) begin(p *pass, r int, b *buffers, out matrix) {
	h := b.h.data[r*b.h.row:]
	prev := p.steps.prev[r]
	for part := range c.kept {
		switch to := h[part*c.padded:][:c.padded]; {
		case prev < 0:
			copy(to[:c.Out], p.steps.state[r*p.kept+c.at+part*c.Out:])
		case part == 0:
			copy(to, out.data[int(prev)*out.row:])
		default:
			copy(to, b.s.data[int(prev)*b.s.row+c.padded:])
		}
	}
}

// end writes the state after row r.
func (c *core) end(p *pass, r int, to []float32) {
	out := p.output(&c.node)
	copy(to[c.at:][:c.Out], out.data[r*out.row:])
	if c.kept > 1 {
		s := c.buffers(p).s
		copy(to[c.at+c.Out:][:c.Out], s.data[r*s.row+c.padded:])
	}
}

func (c *core) backward(s *shard, rows int) {
	in, g, out, b := s.input(&c.In[0]), s.gradient(&c.node), s.output(&c.node), c.buffers(s.pass)
	ds := b.s
	if c.gates == 4 {
		ds = b.x
	}
	s.steps.back(func(lo, hi int) {
		x, st, h, o, d, dh, to := b.x.from(lo), b.s.from(lo), b.h.from(lo), out.from(lo), g.from(lo), b.dh.from(lo), ds.from(lo)
		s.cell = kern.Cell{Rows: hi - lo, N: c.padded, X: x.data, XRow: x.row, S: st.data, SRow: st.row, H: h.data, HRow: h.row,
			Out: o.data, ORow: o.row, D: d.data, DH: dh.data, DHRow: dh.row}
		c.run(s.pass)
		if lo == 0 {
			return
		}
		if c.gates == 4 {
			c.hand(s, lo, hi, b.dh, matrix{b.s.data[2*c.padded:], b.s.row, 1})
		}
		s.product = kern.Gemm{M: hi - lo, N: c.padded, K: c.wide(), A: to.data, ARow: to.row, ACol: 1,
			B: s.back[c.node.At][pad(c.Width)*c.wide():], BRow: kern.Panel, BPanel: c.wide() * kern.Panel,
			C: dh.data, CRow: dh.row, CPanel: kern.Panel, Add: c.gates == 3}
		s.set.Gemm(&s.product)
		c.hand(s, lo, hi, b.dh, g)
	})
	c.learnBiases(s, rows, b.x, ds)
	c.learn(s, rows, in, b.x, &c.input)
	c.learn(s, rows, b.h, ds, &c.state)
	if c.In[0].From == nil {
		return
	}
	s.product = kern.Gemm{M: rows, K: c.wide(), A: b.x.data, ARow: b.x.row, ACol: 1,
		B: s.back[c.node.At], BRow: kern.Panel, BPanel: c.wide() * kern.Panel}
	s.descend(&c.In[0])
}

// hand adds rows lo to hi of a gradient to the gradients of the rows before them.
func (c *core) hand(s *shard, lo, hi int, from, to matrix) {
	for r := lo; r < hi; r++ {
		if prev := int(s.steps.prev[r]); prev >= 0 {
			s.accumulate(to.data[prev*to.row:], from, r, c.padded, false)
		}
	}
}

// learnBiases adds the gradients of the biases, given the gradients of the input's and the state's parts of the gates. They differ in a GRU's
// last gate alone.
func (c *core) learnBiases(s *shard, rows int, x, state matrix) {
	s.sums = kern.ColumnSums{Rows: rows, N: c.wide(), X: x.data, XRow: x.row, Out: s.grad[c.inBias.At:]}
	s.set.ColumnSums(&s.sums)
	same := c.wide()
	if c.gates == 3 {
		same = 2 * c.padded
		s.sums = kern.ColumnSums{Rows: rows, N: c.padded, X: state.data[same:], XRow: state.row, Out: s.grad[c.stBias.At+same:]}
		s.set.ColumnSums(&s.sums)
	}
	copy(s.grad[c.stBias.At:][:same], s.grad[c.inBias.At:])
}

// learn adds the gradient of a weight, given that of its product with x.
func (c *core) learn(s *shard, rows int, x, g matrix, weight *plan.Tensor) {
	width := weight.Size / c.wide()
	s.product = kern.Gemm{M: width, N: c.wide(), K: rows, A: x.data, ARow: x.col, ACol: x.row,
		B: g.data, BRow: g.row, BPanel: kern.Panel, Strip: s.strip,
		C: s.grad[weight.At:], CRow: kern.Panel, CPanel: width * kern.Panel, Add: true}
	s.set.Gemm(&s.product)
}

// begin takes the state of rows lo to hi of a request.
func (a *actor) begin(r *policy.Request, lo, hi int) {
	x := r.State.Float32()
	for row := lo; row < hi; row++ {
		to := a.steps.state[(row-lo)*a.kept:][:a.kept]
		if r.Age[row] == 0 {
			clear(to)
		} else {
			copy(to, x[row*r.State.StrideRow/4:])
		}
	}
	a.steps.ends = append(a.steps.ends[:0], int32(hi-lo))
}

// keep writes the state after rows lo to hi.
func (a *actor) keep(m *trajectory.Matrix, lo, hi int) {
	x := m.Float32()
	for _, o := range a.ops {
		c, ok := o.(*core)
		for row := lo; ok && row < hi; row++ {
			c.end(a.pass, row-lo, x[row*m.StrideRow/4:])
		}
	}
}
