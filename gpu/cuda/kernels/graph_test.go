package kernels

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// graph computes a network with the kernels, node by node.
type graph struct {
	*rig
	net    *policy.Network
	params map[string]policy.Param
	vector []float32
	rows   int
	shapes map[string][]int
	out    map[string]Matrix // [rows][pad(width)], of nodes that heads read [width][rows]
	state  []float32         // [rows][State] before
	after  []float32
}

func pad(n int) int { return (n + 15) / 16 * 16 }

func newGraph(r *rig, n *policy.Network, vector, obs, state []float32, rows int) *graph {
	shapes, err := n.Shapes()
	if err != nil {
		r.t.Fatal(err)
	}
	g := &graph{rig: r, net: n, params: map[string]policy.Param{}, vector: vector, rows: rows, shapes: shapes,
		out: map[string]Matrix{}, state: state, after: slices.Clone(state)}
	for _, p := range n.Params() {
		g.params[p.Name] = p
	}
	width := len(obs) / rows
	g.out[n.Inputs[0].Path] = g.padded(obs, rows, width)
	for i := range n.Nodes {
		g.node(&n.Nodes[i])
	}
	return g
}

// padded puts rows with zeros after each.
func (g *graph) padded(x []float32, rows, width int) Matrix {
	all := make([]float32, rows*pad(width))
	for r := range rows {
		copy(all[r*pad(width):], x[r*width:(r+1)*width])
	}
	return Matrix{Data: put(g.rig, all...), Row: int32(pad(width)), Column: 1}
}

// param returns a tensor with each group of columns padded.
func (g *graph) param(name string, groups int) []float32 {
	p, ok := g.params[name]
	if !ok {
		g.t.Fatalf("no parameter %s", name)
	}
	n := p.Cols / groups
	all := make([]float32, p.Rows*groups*pad(n))
	for i := range p.Rows * p.Cols {
		row, column := i/p.Cols, i%p.Cols
		all[row*groups*pad(n)+column/n*pad(n)+column%n] = g.vector[p.Offset+i]
	}
	return all
}

// product multiplies rows with a padded weight and adds a bias.
func (g *graph) product(x Matrix, depth int, weight, bias []float32) Matrix {
	columns := len(bias)
	out := Matrix{Data: room[float32](g.rig, g.rows*columns), Row: int32(columns), Column: 1}
	run(g.rig, DenseKernel, Tiles(g.rows, columns), Product[Matrix, Matrix, Matrix]{A: x,
		B: Matrix{Data: put(g.rig, weight...), Row: 1, Column: int32(columns)}, C: out, Bias: put(g.rig, bias...),
		Rows: int32(g.rows), Columns: int32(columns), Depth: int32(depth), Start: Bias})
	return out
}

// isHead reports whether a head reads a node.
func (g *graph) isHead(name string) bool {
	if name == g.net.Values[0].From {
		return true
	}
	return slices.ContainsFunc(g.net.Policy, func(d policy.Dist) bool { return g.projection(&d) == name })
}

// projection is the dense node that a distribution reads, directly or with parameters appended.
func (g *graph) projection(d *policy.Dist) string {
	for i := range g.net.Nodes {
		if n := &g.net.Nodes[i]; n.Name == d.From && n.Append != nil {
			return n.In[0]
		}
	}
	return d.From
}

func (g *graph) node(n *policy.Node) {
	x, in := g.out[n.In[0]], g.shapes[n.In[0]]
	width, out := layer.Elems(in), layer.Elems(g.shapes[n.Name])
	move := Move{From: x.Data, Rows: int32(g.rows), Runs: 1, Run: int32(width), FromRow: x.Row, FromColumn: 1, ToRow: int32(pad(out))}
	switch {
	case n.Append != nil: // with the node that it is appended to
	case n.Dense != nil && g.isHead(n.Name):
		g.out[n.Name] = g.project(n, x, width, out)
	case n.Dense != nil:
		g.out[n.Name] = g.product(x, width, g.param(n.Name+".weight", 1), g.param(n.Name+".bias", 1))
	case n.Activation != nil:
		// As the processor's, which are part of a product: padding too.
		epilogues := map[layer.Func]Epilogue{layer.Tanh: Tanh, layer.ReLU: ReLU, layer.ELU: ELU, layer.GELU: GELU, layer.SiLU: SiLU}
		if move.Epilogue = epilogues[n.Activation.Func]; move.Epilogue == None {
			panic("activation " + n.Activation.Func)
		}
		move.Run = int32(pad(out))
		g.out[n.Name] = g.move(move, out)
	case n.Flatten != nil:
		g.out[n.Name] = g.move(move, out)
	case n.Add != nil:
		g.out[n.Name] = g.move(move, out)
		for _, other := range n.In[1:] {
			m := g.out[other]
			move.From, move.To, move.Add = m.Data, g.out[n.Name].Data, 1
			run(g.rig, MoveKernel, Blocks(g.rows*out), move)
		}
	case n.LayerNorm != nil:
		g.out[n.Name] = g.norm(n, x, in[len(in)-1], out)
	case n.Conv2D != nil:
		g.out[n.Name] = g.conv(n, x, in)
	case n.MaxPool != nil:
		o, s := g.padded(make([]float32, g.rows*out), g.rows, out), g.shapes[n.Name]
		g.out[n.Name] = o
		run(g.rig, PoolKernel, Blocks(g.rows*out), Pool{X: x.Data, Out: o.Data, Images: int32(g.rows), Height: int32(in[0]), Width: int32(in[1]),
			Channels: int32(in[2]), Rows: int32(s[0]), Columns: int32(s[1]), Kernel: int32(n.MaxPool.Kernel), Stride: int32(n.MaxPool.Stride),
			Margin: int32(n.MaxPool.Pad), XImage: x.Row, OutImage: o.Row})
	case n.GRU != nil:
		g.out[n.Name] = g.core(n, x, width, out, 3, 1)
	case n.LSTM != nil:
		g.out[n.Name] = g.core(n, x, width, out, 4, 2)
	default:
		g.t.Fatalf("node %s", n.Name)
	}
}

// move moves elements to rows of so many with zeros after them.
func (g *graph) move(m Move, width int) Matrix {
	to := g.padded(make([]float32, g.rows*width), g.rows, width)
	m.To = to.Data
	run(g.rig, MoveKernel, Blocks(g.rows*int(m.Run)), m)
	return to
}

// project computes a dense node that a head reads, and the parameters appended to it.
func (g *graph) project(n *policy.Node, x Matrix, width, out int) Matrix {
	weight := g.params[n.Name+".weight"]
	turned := make([]float32, out*pad(width))
	for i := range width * out {
		turned[i%out*pad(width)+i/out] = g.vector[weight.Offset+i]
	}
	args := Projection{X: x.Data, Weight: put(g.rig, turned...), Bias: put(g.rig, g.param(n.Name+".bias", 1)[:out]...),
		Rows: int32(g.rows), Row: x.Row, Depth: int32(pad(width)), Outputs: int32(out), LD: int32(g.rows)}
	for i := range g.net.Nodes {
		if a := &g.net.Nodes[i]; a.Append != nil && a.In[0] == n.Name {
			args.Tails, args.Tail = int32(a.Append.N), put(g.rig, g.param(a.Name+".value", 1)[:a.Append.N]...)
		}
	}
	outputs := out + int(args.Tails)
	args.Out = room[float32](g.rig, outputs*g.rows)
	run(g.rig, HeadsKernel, driver.Dim{X: Blocks(g.rows).X, Y: outputs}, args)
	return Matrix{Data: args.Out, Row: 1, Column: int32(g.rows)}
}

func (g *graph) norm(n *policy.Node, x Matrix, size, width int) Matrix {
	groups := width / size
	out := g.padded(make([]float32, g.rows*width), g.rows, width)
	run(g.rig, LayerNormKernel, Halves(g.rows*groups), Norm{X: x.Data, Weight: put(g.rig, g.param(n.Name+".weight", 1)[:size]...),
		Bias: put(g.rig, g.param(n.Name+".bias", 1)[:size]...), Out: out.Data, Moments: room[float32](g.rig, 2*g.rows*groups),
		Rows: int32(g.rows * groups), N: int32(size), XRow: x.Row, OutRow: out.Row, Groups: int32(groups)})
	return out
}

func (g *graph) conv(n *policy.Node, x Matrix, in []int) Matrix {
	c, shape := n.Conv2D, g.shapes[n.Name]
	out := g.padded(make([]float32, g.rows*layer.Elems(shape)), g.rows, layer.Elems(shape))
	args := Product[Windows, Matrix, Pixels]{A: windows(x, in, shape, c.Kernel, c.Stride, c.Pad),
		B: Matrix{Data: put(g.rig, g.param(n.Name+".weight", 1)...), Row: 1, Column: int32(pad(c.Out))},
		C: pixels(out, shape), Bias: put(g.rig, g.param(n.Name+".bias", 1)...),
		Rows: int32(g.rows * shape[0] * shape[1]), Columns: int32(c.Out), Depth: int32(c.Kernel * c.Kernel * in[2]), Start: Bias}
	run(g.rig, ConvKernel, Tiles(int(args.Rows), c.Out), args)
	return out
}

// windows returns the windows of images in rows; out is the shape of an image's output with a kernel of that size.
func windows(x Matrix, in, out []int, kernel, stride, margin int) Windows {
	return Windows{Data: x.Data, Image: int64(x.Row), Height: int32(in[0]), Width: int32(in[1]), Channels: int32(in[2]),
		Rows: int32(out[0]), Columns: int32(out[1]), KernelColumns: int32(kernel), Stride: int32(stride), Top: int32(-margin), Left: int32(-margin)}
}

// pixels are the places of images in rows.
func pixels(m Matrix, shape []int) Pixels {
	return Pixels{Data: m.Data, Image: int64(m.Row), Rows: int32(shape[0]), Columns: int32(shape[1]),
		Line: int32(shape[1] * shape[2]), Step: int32(shape[2])}
}

func (g *graph) core(n *policy.Node, x Matrix, width, size, gates, kept int) Matrix {
	tensors := []string{".input_weight", ".state_weight", ".input_bias", ".state_bias"}
	for i, p := range n.Core().Params([][]int{{width}}) {
		tensors[i] = n.Name + "." + p.Name
	}
	at, all := 0, g.net.State()
	for _, c := range g.net.Cores() {
		if c.Name == n.Name {
			at = c.At
		}
	}
	h := make([]float32, g.rows*kept*pad(size))
	for r := range g.rows {
		for k := range kept {
			copy(h[(r*kept+k)*pad(size):], g.state[r*all+at+k*size:][:size])
		}
	}
	before := Matrix{Data: put(g.rig, h...), Row: int32(kept * pad(size)), Column: 1}
	c := Cell{H: before.Data, Out: room[float32](g.rig, g.rows*pad(size)), Rows: int32(g.rows), N: int32(pad(size)),
		XRow: int32(gates * pad(size)), SRow: int32(gates * pad(size)), HRow: before.Row, OutRow: int32(pad(size))}
	c.X = g.product(x, width, g.param(tensors[0], gates), g.param(tensors[2], gates)).Data
	c.S = g.product(before, size, g.param(tensors[1], gates), g.param(tensors[3], gates)).Data
	k := GRUKernel
	if gates == 4 {
		k = LSTMKernel
	}
	run(g.rig, k, Blocks(g.rows*pad(size)), c)
	for r := range g.rows {
		copy(g.after[r*all+at:][:size], view[float32](g.rig, c.Out+Address(4*r*pad(size)), size))
		if kept > 1 {
			copy(g.after[r*all+at+size:][:size], view[float32](g.rig, c.S+Address(4*(r*gates+1)*pad(size)), size))
		}
	}
	return Matrix{Data: c.Out, Row: int32(pad(size)), Column: 1}
}
