package kern

import "math"

// Gemm computes g.
func (s Set) Gemm(g *Gemm) {
	g.check()
	if s == Generic {
		g.generic()
		return
	}
	s.gemm(g)
}

// Head computes h.
func (s Set) Head(h *Head) {
	h.check()
	if s == Generic {
		h.generic()
		return
	}
	s.head(h)
}

// Sample chooses the actions of a.
func (s Set) Sample(a *Sample) {
	a.check()
	if s == Generic {
		a.generic()
		return
	}
	s.sample(a)
}

// Loss computes l.
func (s Set) Loss(l *Loss) {
	l.check()
	if s == Generic {
		l.generic()
		return
	}
	s.loss(l)
}

// Surrogate computes the surrogate of rows whose joint log-probabilities and entropies are known.
func (l *Loss) Surrogate(s Set) {
	l.checkSurrogate()
	if s == Generic {
		l.surrogates()
		return
	}
	l.surrogatesAsm()
}

// Weigh adds the log-probabilities and entropies of c.
func (c *Choice) Weigh(s Set) {
	c.check()
	if s == Generic {
		c.weigh()
		return
	}
	c.weighAsm()
}

// Descend computes the gradient of c.
func (c *Choice) Descend(s Set) {
	c.check()
	if s == Generic {
		c.descend()
		return
	}
	c.descendAsm()
}

// Draw draws the actions of n.
func (n *Normal) Draw(s Set) {
	n.check()
	n.draw()
}

// Weigh adds the log-probabilities and entropies of n.
func (n *Normal) Weigh(s Set) {
	n.check()
	if s == Generic {
		n.weigh()
		return
	}
	n.weighAsm()
}

// Descend computes the gradient of n.
func (n *Normal) Descend(s Set) {
	n.check()
	if s == Generic {
		n.descend()
		return
	}
	n.descendAsm()
}

// Adam makes the step a.
func (s Set) Adam(a *Adam) {
	a.check()
	if s == Generic {
		a.generic()
		return
	}
	s.adam(a)
}

// ColumnSums computes c.
func (s Set) ColumnSums(c *ColumnSums) {
	c.check()
	if s == Generic {
		c.generic()
		return
	}
	s.columnSums(c)
}

// Transpose computes t.
func (s Set) Transpose(t *Transpose) {
	t.check()
	if s == Generic {
		t.generic()
		return
	}
	s.transpose(t)
}

// Widen computes w.
func (s Set) Widen(w *Widen) {
	w.check()
	if s == Generic {
		w.generic()
		return
	}
	s.widen(w)
}

// Pool computes p, or its backward pass if p has gradients.
func (s Set) Pool(p *Pool) {
	p.check()
	if s == Generic || p.Channels%Lanes != 0 {
		p.generic()
		return
	}
	s.pool(p)
}

// Spread computes the parts of t.
func (t *TilesIn) Spread(s Set) {
	t.check()
	if s == Generic {
		t.generic()
		return
	}
	t.asm(s)
}

// Gather computes the outputs of t.
func (t *TilesOut) Gather(s Set) {
	t.check()
	if s == Generic {
		t.generic()
		return
	}
	t.asm(s)
}

// Norm computes n, or its backward pass if n has gradients.
func (s Set) Norm(n *Norm) {
	n.check()
	if s == Generic {
		n.generic()
		return
	}
	n.asm(s)
}

// SumSquares returns Σ x², where len(x) is a multiple of Panel.
func (s Set) SumSquares(x []float32) float64 {
	var sum float64
	for len(x) > 0 {
		n := min(len(x), sumChunk)
		if s == Generic {
			sum += float64(sumSquaresGeneric(x[:n]))
		} else {
			sum += float64(s.sumSquares(x[:n]))
		}
		x = x[n:]
	}
	return sum
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// GRU computes a gated recurrent unit, or with c.D its gradient.
func (c *Cell) GRU(s Set) {
	c.check(3, 1)
	switch {
	case s != Generic:
		c.asm(s, 3)
	case c.D != nil:
		c.gruBack()
	default:
		c.gru()
	}
}

// LSTM computes a long short-term memory, or with c.D its gradient.
func (c *Cell) LSTM(s Set) {
	c.check(4, 2)
	switch {
	case s != Generic:
		c.asm(s, 4)
	case c.D != nil:
		c.lstmBack()
	default:
		c.lstm()
	}
}
