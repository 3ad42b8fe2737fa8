package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// pass computes a network on up to so many rows at a time, layer by layer.
type pass struct {
	*layout
	owner
	capacity int
	params   kernels.Address // the backend's vector
	control  kernels.Address // 0 while acting

	x       kernels.Address   // [rows][row] what enters
	out     []kernels.Address // per operation [rows][row]; of operations that heads read [out][ld]
	ld      int
	state   kernels.Address // of a network that keeps one, while acting: [rows][kept] before the rows
	steps   *steps          // while learning
	cores   map[*core]cells
	moments map[*normed]kernels.Address

	forwards []func(rows int) // by operation
}

// newPass prepares all operations. Errors are the work's.
func newPass(w *work, l *layout, params, control kernels.Address, capacity int, s *steps) *pass {
	p := &pass{layout: l, owner: owner{work: w}, capacity: capacity, params: params, control: control, ld: capacity, steps: s, cores: map[*core]cells{}, moments: map[*normed]kernels.Address{}}
	p.x = p.floats(capacity * l.row)
	p.out = p.rowsOfAll()
	for _, o := range l.ops {
		p.forwards = append(p.forwards, o.forward(p))
	}
	return p
}

// rowsOfAll makes room for rows of every operation's output, with zeros after each.
func (p *pass) rowsOfAll() (all []kernels.Address) {
	for _, o := range p.ops {
		n := o.common()
		all = append(all, p.floats(p.capacity*max(n.row, n.Out)))
	}
	return all
}

// forward submits the computation of the values of some rows and, if act is set, of the parameters of the distributions.
func (p *pass) forward(rows int, act bool) {
	for i, o := range p.ops {
		if act || o.common().Values {
			p.forwards[i](rows)
		}
	}
}

// input returns the rows that an operation reads.
func (p *pass) input(e *plan.Edge) kernels.Matrix {
	if e.From == nil {
		return kernels.Matrix{Data: at(p.x, p.starts[e.Input]), Row: int32(p.row), Column: 1}
	}
	return p.output(p.nodes[e.From.At])
}

// output returns the rows that an operation writes.
func (p *pass) output(n *node) kernels.Matrix {
	return kernels.Matrix{Data: p.out[n.At], Row: int32(n.row), Column: 1}
}

// param returns where a tensor is.
func (p *pass) param(t *plan.Tensor) kernels.Address { return at(p.params, t.At) }

// from returns rows of a matrix from one on.
func from(m kernels.Matrix, row int) kernels.Matrix {
	m.Data = at(m.Data, row*int(m.Row))
	return m
}
