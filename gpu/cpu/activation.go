package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// activation is applied by products to their results: its function in the forward pass, its derivative in the backward pass.
type activation struct{ forward, backward kern.Epilogue }

// activated copies its input and applies the activation. Its readers apply the derivative, as they do for a product.
type activated struct{ node }

func (a *activated) forward(p *pass, rows int) {
	in, out := p.input(&a.In[0]), p.output(&a.node)
	for r := range rows {
		p.accumulate(out.data[r*out.row:], in, r, a.Out, true)
	}
	p.apply(a.activation.forward, out, nil, rows, a.padded)
}

func (a *activated) backward(s *shard, rows int) {
	e := &a.In[0]
	if e.From == nil {
		return
	}
	g, to := s.gradient(&a.node), s.gradient(s.nodes[e.From.At])
	for r := range rows {
		s.accumulate(to.data[r*to.row:], g, r, a.Out, e.First)
	}
	s.passed(e, rows)
}
