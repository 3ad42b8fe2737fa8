package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// gradient is a pass with the way back: the gradient of a minibatch in parts, which the rows alone decide.
type gradient struct {
	*pass
	delta []kernels.Address // per operation, as out: gradient of the loss before the activation; of heads in place of the output
	sum   kernels.Address   // [size] of a step's earlier minibatches, right before the parts
	parts kernels.Address   // [parts][size]
	most  int               // rows that an operation has for each of the minibatch, at most
	count int               // parts of the minibatch under way

	backwards []func(rows int)
}

// Parts of a gradient: part p has the runs p, p + count and so on.
const (
	maxParts = 108
	longRun  = 64 // rows of a run
	shortRun = 16 // of minibatches that would otherwise have work for few multiprocessors
	shortest = maxParts * longRun
)

// runOf returns the rows of a run and how many parts there are, for an operation with n rows.
func runOf(n int) (run, parts int) {
	run = longRun
	if n < shortest {
		run = shortRun
	}
	return run, min(maxParts, (n+run-1)/run)
}

// spread is an operation that has more rows than a minibatch.
type spread interface{ rowsOfEach() int }

func newGradient(p *pass) *gradient {
	g := &gradient{pass: p, most: 1}
	for _, o := range p.ops {
		if s, ok := o.(spread); ok {
			g.most = max(g.most, s.rowsOfEach())
		}
	}
	for _, o := range p.ops {
		if n := o.common(); n.row > 0 {
			g.delta = append(g.delta, p.floats(p.capacity*n.row))
		} else {
			g.delta = append(g.delta, p.out[n.At])
		}
	}
	_, parts := runOf(p.capacity * g.most)
	g.sum = p.floats((1 + parts) * p.size)
	g.parts = at(g.sum, p.size)
	for _, s := range p.plan.Backward {
		g.backwards = append(g.backwards, p.ops[s.At].backward(g))
	}
	return g
}

// backward submits the way back of some rows.
func (g *gradient) backward(rows int) {
	_, g.count = runOf(rows * g.most)
	for _, back := range g.backwards {
		back(rows)
	}
}

// part returns where a tensor's gradient is, in part 0.
func (g *gradient) part(t *plan.Tensor) kernels.Address { return at(g.parts, t.At) }

// gradientOf returns the gradient over the rows of an operation before its activation.
func (g *gradient) gradientOf(n *node) kernels.Matrix {
	return kernels.Matrix{Data: g.delta[n.At], Row: int32(n.row), Column: 1}
}

// outer prepares the gradient of a weight: the products of columns of two matrices that each have a row for each of the operation's.
func outer(g *gradient, to kernels.Matrix, height, width int) func(a, b kernels.Matrix, rows int) {
	c := prepare(&g.owner, kernels.OuterKernel)
	c.args.C, c.args.Control, c.args.Part, c.args.Height, c.args.Width = to, g.control, int64(g.size), int32(height), int32(width)
	return func(a, b kernels.Matrix, rows int) {
		run, _ := runOf(rows)
		c.args.A, c.args.B, c.args.Rows, c.args.Parts, c.args.Run = a, b, int32(rows), int32(g.count), int32(run)
		grid := kernels.Tiles(height, width)
		grid.Z = g.count
		g.work.launch(c.Launch, grid)
	}
}

// sums prepares the gradient of a bias: the sums of columns.
func sums(g *gradient, to kernels.Address, columns int) func(x kernels.Matrix, rows int) {
	c := prepare(&g.owner, kernels.SumsKernel)
	c.args.C, c.args.Control, c.args.Part, c.args.Columns = to, g.control, int64(g.size), int32(columns)
	return func(x kernels.Matrix, rows int) {
		run, _ := runOf(rows)
		c.args.X, c.args.Rows, c.args.Parts, c.args.Run = x, int32(rows), int32(g.count), int32(run)
		grid := kernels.Blocks(columns)
		grid.Y = g.count
		g.work.launch(c.Launch, grid)
	}
}

// descend prepares the product a·b that passes a gradient on to an operation's input, to which other readers have added before or
// will add. The last of them multiplies with the derivative of the activation there. depth is the number of a's columns.
func (g *gradient) descend(e *plan.Edge, b kernels.Matrix, depth int) func(a kernels.Matrix, rows int) {
	if e.From == nil {
		return func(kernels.Matrix, int) {}
	}
	c, below := prepare(&g.owner, kernels.DenseKernel), g.nodes[e.From.At]
	c.args.B, c.args.C, c.args.Control = b, g.gradientOf(below), g.control
	c.args.Columns, c.args.Depth = int32(below.Out), int32(depth)
	if !e.First {
		c.args.Start = kernels.Add
	}
	c.args.Epilogue, c.args.H = g.slope(e)
	return func(a kernels.Matrix, rows int) {
		c.args.A, c.args.Rows = a, int32(rows)
		g.work.launch(c.Launch, kernels.Tiles(rows, below.Out))
	}
}

// below begins the gradient over an input, for an operation that is no product: it adds to that, and then calls passed.
func (g *gradient) below(e *plan.Edge, rows int) {
	if e.First {
		n := g.nodes[e.From.At]
		g.work.zero(g.delta[n.At], 4*rows*n.row)
	}
}

// slope returns the derivative that the reader of an edge multiplies with, if it is the last one, and the values at which it is taken.
func (g *gradient) slope(e *plan.Edge) (of kernels.Epilogue, at kernels.Address) {
	step := e.Slope()
	if step == nil {
		return kernels.None, 0
	}
	return g.nodes[e.From.At].activation.backward, g.out[step.At]
}

// passed prepares the end of the gradient that below began, once the last reader has added to it.
func (g *gradient) passed(e *plan.Edge) func(rows int) {
	if e.Slope() == nil {
		return func(int) {}
	}
	n := g.nodes[e.From.At]
	c := g.move(n.Out)
	to := g.gradientOf(n)
	c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = to.Data, to.Row, to.Data, to.Row
	c.args.Epilogue, c.args.H = g.slope(e)
	return func(rows int) { g.moveRows(c, rows) }
}

// move prepares moves of rows of so many elements, side by side.
func (p *pass) move(elems int) call[kernels.Move] {
	c := prepare(&p.owner, kernels.MoveKernel)
	c.args.Control, c.args.Runs, c.args.Run, c.args.FromColumn = p.control, 1, int32(elems), 1
	return c
}

// moveRows submits a move of so many rows.
func (p *pass) moveRows(c call[kernels.Move], rows int) {
	c.args.Rows = int32(rows)
	p.work.launch(c.Launch, kernels.Blocks(rows*int(c.args.Runs*c.args.Run)))
}
