package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// maxPool is a pool, window row by window row. The backward pass finds the largest elements again.
type maxPool struct {
	node
	*layer.MaxPool
	height, width, channels int
}

func newMaxPool(n node, of *layer.MaxPool) op {
	in := n.In[0].Shape
	return &maxPool{node: n, MaxPool: of, height: in[0], width: in[1], channels: in[2]}
}

// room has an image that does not lie in one piece.
func (m *maxPool) room() int {
	if m.In[0].From == nil {
		return m.height * m.width * m.channels
	}
	return 0
}

func (m *maxPool) forward(p *pass, rows int) {
	in, out := p.input(&m.In[0]), p.output(&m.node)
	for r := range rows {
		x := in.data[r*in.row:]
		if in.col != 1 {
			for i := range m.height * m.width * m.channels {
				p.room[m.At][i] = x[i*in.col]
			}
			x = p.room[m.At]
		}
		p.pool = kern.Pool{X: x, Out: out.data[r*out.row:]}
		m.each(p)
	}
}

func (m *maxPool) backward(s *shard, rows int) {
	e := &m.In[0]
	if e.From == nil {
		return
	}
	in, out, g, below := s.input(e), s.output(&m.node), s.gradient(&m.node), s.below(e, rows)
	for r := range rows {
		s.pool = kern.Pool{X: in.data[r*in.row:], Out: out.data[r*out.row:], D: g.data[r*g.row:], DX: below.data[r*below.row:]}
		m.each(s.pass)
	}
	s.passed(e, rows)
}

// each computes the windows of an image: in each row the windows at the left border one by one, the inner windows
// together, the windows at the right border one by one.
func (m *maxPool) each(p *pass) {
	image, cols := p.pool, m.node.Shape[1]
	for place := 0; place < m.node.Shape[0]*cols; {
		row, col := place/cols, place%cols
		top, high := m.clip(row, m.height)
		left, wide := m.clip(col, m.width)
		count := 1
		for wide == m.Kernel && col+count < cols && (col+count)*m.Stride-m.Pad+m.Kernel <= m.width {
			count++
		}
		x, out := (top*m.width+left)*m.channels, place*m.channels
		w := &p.pool
		*w = kern.Pool{Places: count, High: high, Wide: wide, Channels: m.channels,
			X: image.X[x:], Step: m.Stride * m.channels, XRow: m.width * m.channels, Out: image.Out[out:]}
		if image.D != nil {
			w.D, w.DX = image.D[out:], image.DX[x:]
		}
		p.set.Pool(w)
		place += count
	}
}

// clip returns the part of window i that lies within an axis of so many pixels.
func (m *maxPool) clip(i, size int) (first, count int) {
	first = i*m.Stride - m.Pad
	end := min(first+m.Kernel, size)
	first = max(first, 0)
	return first, end - first
}
