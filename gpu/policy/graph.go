package policy

import "github.com/rlhost/rlhost/gpu/policy/layer"

// Graph is the reference of a network: the operations' own in float64 over the canonical vector. Tests hold backends to
// it.
type Graph struct {
	Network Network
	Params  []float64 // canonical vector
	Grad    []float64 // of the same length, added to by Backward

	// Of a network that keeps a state, by row of the next Forward: the row that it follows, or -1, and the state that it
	// begins from, [rows][Network.State]. nil is as -1 and as zero. Forward leaves the state after each row.
	Prev            []int32
	State, StateOut []float32

	rows    int
	shapes  map[string][]int
	tensors [][]Param            // by node
	values  map[string][]float64 // by input and node, of the last Forward
	grads   map[string][]float64 // of the last Backward
	cores   map[string]CoreNode
	states  map[string][2][]float64 // by core, before and after each row
}

// NewGraph returns the reference of a valid network with the given parameters.
func NewGraph(n *Network, params []float32) *Graph {
	g := &Graph{Network: *n, Params: widen(params), Grad: make([]float64, len(params)), tensors: n.paramsByNode(), cores: map[string]CoreNode{}}
	for _, c := range n.Cores() {
		g.cores[c.Name] = c
	}
	g.shapes, _ = n.Shapes()
	return g
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

// zeros returns a tensor of rows for every input and node.
func (g *Graph) zeros() map[string][]float64 {
	all := map[string][]float64{}
	for name, shape := range g.shapes {
		all[name] = make([]float64, g.rows*layer.Elems(shape))
	}
	return all
}

// part returns node i's operation and its part in the pass.
func (g *Graph) part(i int) (layer.Op, *layer.Pass) {
	node := &g.Network.Nodes[i]
	op, _ := node.Op()
	p := &layer.Pass{Rows: g.rows, Out: g.values[node.Name], DOut: g.grads[node.Name]}
	for _, name := range node.In {
		p.In, p.DIn, p.Shapes = append(p.In, g.values[name]), append(p.DIn, g.grads[name]), append(p.Shapes, g.shapes[name])
	}
	p.State, p.StateOut = g.states[node.Name][0], g.states[node.Name][1]
	for _, prev := range g.Prev {
		p.Prev = append(p.Prev, int(prev))
	}
	for _, t := range g.tensors[i] {
		end := t.Offset + t.Rows*t.Cols
		p.Params, p.Grads = append(p.Params, g.Params[t.Offset:end]), append(p.Grads, g.Grad[t.Offset:end])
	}
	return op, p
}

// Forward computes the parameters of each action's distribution, [rows][elements], and values [rows] of observations x
// [rows][Obs], normalised already.
func (g *Graph) Forward(x []float32, rows int) (params [][]float64, value []float64) {
	n := &g.Network
	g.rows = rows
	g.values = g.zeros()
	g.enter(x)
	g.begin()
	for i := range n.Nodes {
		op, p := g.part(i)
		op.Forward(p)
	}
	for _, d := range n.Policy {
		params = append(params, g.values[d.From])
	}
	g.end()
	return params, g.values[n.Values[0].From]
}

// begin takes the states that rows begin from.
func (g *Graph) begin() {
	elems := g.Network.State()
	g.states = map[string][2][]float64{}
	for name, c := range g.cores {
		own := c.State()
		state := [2][]float64{make([]float64, g.rows*own), make([]float64, g.rows*own)}
		for i := range state[0] {
			if g.State != nil {
				state[0][i] = float64(g.State[i/own*elems+c.At+i%own])
			}
		}
		g.states[name] = state
	}
}

// end leaves the states after the rows.
func (g *Graph) end() {
	elems := g.Network.State()
	g.StateOut = make([]float32, g.rows*elems)
	for name, c := range g.cores {
		for i, x := range g.states[name][1] {
			g.StateOut[i/c.State()*elems+c.At+i%c.State()] = float32(x)
		}
	}
}

// enter cuts rows into the inputs.
func (g *Graph) enter(x []float32) {
	width, at := g.Network.Obs(), 0
	for i := range g.Network.Inputs {
		in := &g.Network.Inputs[i]
		n := layer.Elems(in.Entered())
		for r := range g.rows {
			for k, v := range x[r*width+at : r*width+at+n] {
				g.values[in.Path][r*n+k] = float64(v)
			}
		}
		at += n
	}
}

// Backward adds to Grad the gradient of a loss whose gradients over the outputs of the last Forward are dParams
// and dValue.
func (g *Graph) Backward(dParams [][]float64, dValue []float64) {
	n := &g.Network
	g.grads = g.zeros()
	for k, d := range n.Policy {
		for i, x := range dParams[k] {
			g.grads[d.From][i] += x
		}
	}
	for i, d := range dValue {
		g.grads[n.Values[0].From][i] += d
	}
	for i := len(n.Nodes) - 1; i >= 0; i-- {
		op, p := g.part(i)
		op.Backward(p)
	}
}
