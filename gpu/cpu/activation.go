package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// activation is applied by products to their results: its function in the forward pass, its derivative in the backward pass.
type activation struct{ forward, backward kern.Epilogue }

// activation makes an activation part of the product that it follows, where nothing else reads that, and otherwise a
// copy that has the activation. One that it does not know is nil.
func (l *layout) activation(n node, a *layer.Activation) op {
	f, ok := map[layer.Func]activation{layer.ReLU: {kern.ReLU, kern.DReLU}, layer.ELU: {kern.ELU, kern.DELU},
		layer.Tanh: {kern.Tanh, kern.DTanh}}[a.Func]
	if !ok {
		return nil
	}
	if from := n.in[0].from; from != nil {
		if d := from.common(); d.absorbs && d.activation.forward == kern.None && l.readers(d.name) == 1 {
			d.activation = f
			return from
		}
	}
	n.activation = f
	return &activated{n}
}

// readers returns how many nodes read a node.
func (l *layout) readers(name string) int {
	count := 0
	for i := range l.net.Nodes {
		for _, in := range l.net.Nodes[i].In {
			if in == name {
				count++
			}
		}
	}
	return count
}

// activated copies its input and applies the activation. Its readers apply the derivative, as they do for a product.
type activated struct{ node }

func (a *activated) forward(p *pass, rows int) {
	in, out := p.input(&a.in[0]), p.output(&a.node)
	for r := range rows {
		p.accumulate(out.data[r*out.row:], in, r, a.out, true)
	}
	p.apply(a.activation.forward, out, nil, rows, a.padded)
}

func (a *activated) backward(s *shard, rows int) {
	e := &a.in[0]
	if e.from == nil {
		return
	}
	g, to := s.gradient(&a.node), s.gradient(e.below)
	for r := range rows {
		s.accumulate(to.data[r*to.row:], g, r, a.out, e.first)
	}
	s.passed(e, rows)
}
