package gorgonia

import (
	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
)

// memory has the inputs and outputs, in a graph, of nodes that keep a state.
type memory struct {
	cores []policy.CoreNode
	state *Node // [rows, state] that rows begin from; zero in rows that follow another row
	prev  *Node // [rows, rows] 1 where a row follows a row, else 0; nil where none does
	steps int   // rows that follow one another at most
	after []part
}

// part is some columns of the state after the rows, from one on.
type part struct {
	at   int
	node *Node
}

// cell returns the parts of the state after the rows, given the input's and the state h's parts of the gates and all
// parts of the previous state.
type cell func(input, state *Node, before []*Node) (after []*Node)

// recur returns the output of a core whose state has so many parts of a size. All rows are computed as often as rows follow
// one another, from the states of the time before: a row is right from the first time on that the one before it is.
func (p Params) recur(name string, x *Node, size, parts int, of cell) (*Node, error) {
	var params [4]*Node
	for i, tensor := range []string{"weight_ih", "weight_hh", "bias_ih", "bias_hh"} {
		var err error
		if params[i], err = p.Node(name + "." + tensor); err != nil {
			return nil, err
		}
	}
	return caught(func() *Node {
		m, rows := p.memory, x.Shape()[0]
		at := 0
		for _, c := range m.cores {
			if c.Name == name {
				at = c.At
			}
		}
		input := add(matMul(x, params[0]), repeat(params[2], rows))
		var after []*Node
		for range m.steps {
			var before []*Node
			for i := range parts {
				from := columns(m.state, at+i*size, size)
				if after != nil {
					from = add(from, matMul(m.prev, after[i]))
				}
				before = append(before, from)
			}
			after = of(input, add(matMul(before[0], params[1]), repeat(params[3], rows)), before)
		}
		for i, node := range after {
			m.after = append(m.after, part{at + i*size, node})
		}
		return after[0]
	})
}

// sigmoid is by the hyperbolic tangent, which has no overflow.
func sigmoid(x *Node) *Node { return add(scale(tanh(scale(x, 0.5)), 0.5), fill(x, 0.5)) }

func tanh(x *Node) *Node { return gorgonia.Must(gorgonia.Tanh(x)) }

// gru is layer.GRU's cell.
func gru(size int) cell {
	return func(input, state *Node, before []*Node) []*Node {
		gate := func(x *Node, k int) *Node { return columns(x, k*size, size) }
		r := sigmoid(add(gate(input, 0), gate(state, 0)))
		z := sigmoid(add(gate(input, 1), gate(state, 1)))
		n := tanh(add(gate(input, 2), mul(r, gate(state, 2))))
		return []*Node{add(n, mul(z, sub(before[0], n)))}
	}
}

// lstm is layer.LSTM's cell.
func lstm(size int) cell {
	return func(input, state *Node, before []*Node) []*Node {
		both := add(input, state)
		gate := func(k int) *Node { return columns(both, k*size, size) }
		i, f, g, o := sigmoid(gate(0)), sigmoid(gate(1)), tanh(gate(2)), sigmoid(gate(3))
		c := add(mul(f, before[1]), mul(i, g))
		return []*Node{mul(o, tanh(c)), c}
	}
}

// remember adds the inputs of a network that keeps a state.
func (b *assembly[F]) remember(weights *Params) {
	elems := b.network.State()
	if elems == 0 {
		return
	}
	m := &memory{cores: b.network.Cores(), steps: 1}
	m.state = b.input("state", elems, &b.program.state)
	if b.chained {
		m.steps = b.network.Chunk
	}
	if m.steps > 1 {
		m.prev = b.input("previous rows", b.program.rows, &b.program.prev)
	}
	weights.memory = m
}

// leave reads the state after the rows.
func (b *assembly[F]) leave(m *memory) {
	if m == nil || b.chained {
		return
	}
	for _, part := range m.after {
		after := kept[F]{at: part.at, cols: part.node.Shape()[1]}
		after.data = make([]F, b.program.rows*after.cols)
		b.read(part.node, after.data)
		b.program.after = append(b.program.after, after)
	}
}

// kept is some columns of the state after the rows, from one on.
type kept[F float] struct {
	at, cols int
	data     []F
}

// follow enters which rows follow which and the states that others begin from.
func (p *program[F]) follow(prev []int32, state []float32) {
	clear(p.prev)
	convert(p.state, state)
	for i, at := range prev {
		if at >= 0 {
			p.prev[i*p.rows+int(at)] = 1
		}
	}
}
