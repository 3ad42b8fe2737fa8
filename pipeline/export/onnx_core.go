package export

import "github.com/rlhost/rlhost/gpu/policy/layer"

// op appends an operator of the layer's own, and returns the name of its output.
func (l *onnxLayer) op(op, name string, in ...string) string { return l.node(op, l.out+"."+name, in) }

// gates appends the sums of the input and of the state h before the functions of the gates, and returns a column of each gate.
func (l *onnxLayer) gates(size, count int, h string) (input, state []string) {
	x := l.op("Gemm", "of_input", l.flat(l.in[0], l.shapes[0]), l.weight("weight_ih"), l.weight("bias_ih"))
	y := l.op("Gemm", "of_state", h, l.weight("weight_hh"), l.weight("bias_hh"))
	for k := range count {
		input = append(input, l.columns(l.unique(x), x, k*size, (k+1)*size))
		state = append(state, l.columns(l.unique(y), y, k*size, (k+1)*size))
	}
	return input, state
}

// gate appends the function of a gate, of a sum.
func (l *onnxLayer) gate(function, name, a, b string) string {
	return l.op(function, name, l.op("Add", name+".sum", a, b))
}

// gru appends a GRU: h' = n + z·(h - n).
func (l *onnxLayer) gru(g *layer.GRU) {
	h := l.columns(l.out+".h", onnxState, l.at, l.at+g.Size)
	x, y := l.gates(g.Size, 3, h)
	r, z := l.gate("Sigmoid", "r", x[0], y[0]), l.gate("Sigmoid", "z", x[1], y[1])
	n := l.gate("Tanh", "n", x[2], l.op("Mul", "inner", r, y[2]))
	l.output("Add", n, l.op("Mul", "kept", z, l.op("Sub", "away", h, n)))
	l.next = l.out
}

// lstm appends an LSTM.
func (l *onnxLayer) lstm(m *layer.LSTM) {
	h := l.columns(l.out+".h", onnxState, l.at, l.at+m.Size)
	c := l.columns(l.out+".c", onnxState, l.at+m.Size, l.at+2*m.Size)
	x, y := l.gates(m.Size, 4, h)
	i, f := l.gate("Sigmoid", "i", x[0], y[0]), l.gate("Sigmoid", "f", x[1], y[1])
	g, o := l.gate("Tanh", "g", x[2], y[2]), l.gate("Sigmoid", "o", x[3], y[3])
	c = l.op("Add", "next_c", l.op("Mul", "kept", f, c), l.op("Mul", "new", i, g))
	l.output("Mul", o, l.op("Tanh", "shown", c))
	l.next = l.node("Concat", l.out+".next", []string{l.out, c}, axis(1))
}
