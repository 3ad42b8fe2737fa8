package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// conv2d is a convolution and the activation that follows it, image by image: the products read the image as it lies,
// each over the rows of all windows, and no copy of the windows is made. Where tiles take fewer multiplications, the forward pass
// is computed with tiles instead. Its weights are in panels like the weights of dense,
// with kernel row, kernel column and channel as one index.
type conv2d struct {
	node
	*layer.Conv2D
	weight, bias   plan.Tensor
	height, width  int // of the padded image
	channels       int
	rows, cols     int // of windows
	depth          int // elements of a window
	reach          int // windows that a pixel lies in, along one axis
	backH, backW   int // of the gradient with the padding that the backward pass reads it with
	gradAt, wideAt int // parts of the room
	fromAt, size   int
	tiles          *tiling // nil: its forward pass is one product an image
}

// pixels are rows of images of bytes, [height][width][channels], each of which enters as scale times its value.
type pixels struct {
	data  []byte
	row   int
	scale float32
}

func (l *layout) conv2d(n node, of *layer.Conv2D) op {
	in := n.In[0].Shape
	c := &conv2d{node: n, Conv2D: of, height: in[0] + 2*of.Pad, width: in[1] + 2*of.Pad, channels: in[2],
		rows: n.Shape[0], cols: n.Shape[1], depth: of.Kernel * of.Kernel * in[2],
		reach: (of.Kernel + of.Stride - 1) / of.Stride, bias: plan.Flat(of.Out)}
	c.backH, c.backW = (in[0]-1+of.Pad)/of.Stride+c.reach, (in[1]-1+of.Pad)/of.Stride+c.reach
	c.gradAt = pad(c.height * c.width * c.channels)
	c.wideAt = c.gradAt + pad(c.backH*c.backW*of.Out)
	c.fromAt = c.wideAt
	if of.Out%kern.Panel != 0 {
		c.fromAt += c.rows * c.cols * pad(of.Out)
	}
	if c.size = c.fromAt; c.channels%kern.Panel != 0 {
		c.size += c.backH * c.backW * pad(c.channels)
	}
	c.weight = plan.Tensor{Size: c.depth * pad(of.Out), Count: c.depth * of.Out, Index: func(i int) int {
		j := i % of.Out
		return j/kern.Panel*c.depth*kern.Panel + i/of.Out*kern.Panel + j%kern.Panel
	}}
	if c.tiles = c.tile(); c.tiles != nil {
		l.tiled = append(l.tiled, c)
	}
	return c
}

func (c *conv2d) params() []*plan.Tensor { return []*plan.Tensor{&c.weight, &c.bias} }

// room has the padded image, the padded gradient, rows of outputs and of inputs in whole panels where they are not, and the parts
// of tiles.
func (c *conv2d) room() int { return c.size }

// image returns the padded image of a row, in place if possible.
func (c *conv2d) image(p *pass, r int) []float32 {
	from := c.In[0].From
	room := p.room[c.At][:c.gradAt]
	line := (c.width - 2*c.Pad) * c.channels
	start := (c.Pad*c.width + c.Pad) * c.channels
	if from == nil && p.pixels.data != nil {
		w := &p.widen
		*w = kern.Widen{Rows: c.height - 2*c.Pad, N: line, From: p.pixels.data[r*p.pixels.row:], FromRow: line,
			To: room[start:], ToRow: c.width * c.channels, Scale: p.pixels.scale}
		p.set.Widen(w)
		return room
	}
	x := p.input(&c.In[0])
	if x.col == 1 && c.Pad == 0 {
		return x.data[r*x.row:]
	}
	for y := range c.height - 2*c.Pad {
		to := room[start+y*c.width*c.channels:][:line]
		if x.col == 1 {
			copy(to, x.data[r*x.row+y*line:])
			continue
		}
		for i := range to {
			to[i] = x.data[r*x.row+(y*line+i)*x.col]
		}
	}
	return room
}

func (c *conv2d) forward(p *pass, rows int) {
	if c.tiles != nil {
		c.forwardTiles(p, rows)
		return
	}
	out := p.output(&c.node)
	for r := range rows {
		to, row := out.data[r*out.row:], c.Out
		if c.Out%kern.Panel != 0 {
			to, row = p.room[c.At][c.wideAt:], pad(c.Out)
		}
		p.product = kern.Gemm{M: c.rows * c.cols, N: pad(c.Out), K: c.depth,
			Group: c.cols, AGroup: c.Stride * c.width * c.channels, CGroup: c.cols * row,
			Run: c.Kernel * c.channels, ARun: c.width * c.channels,
			A: c.image(p, r), ARow: c.Stride * c.channels, ACol: 1,
			B: p.params[c.weight.At:], BRow: kern.Panel, BPanel: c.depth * kern.Panel, Bias: p.params[c.bias.At:],
			C: to, CRow: row, CPanel: kern.Panel, Epilogue: c.activation.forward}
		p.set.Gemm(&p.product)
		if c.Out%kern.Panel != 0 {
			for i := range c.rows * c.cols {
				copy(out.data[r*out.row+i*c.Out:][:c.Out], to[i*row:])
			}
		}
	}
}

// kernels returns how many rows, or columns, of a kernel meet the pixels of phase a: pixels a, a+Stride and so on of the
// padded image meet rows a, a+Stride and so on.
func (c *conv2d) kernels(a int) int { return max(0, (c.Kernel-a+c.Stride-1)/c.Stride) }

// packed is the size of the weights as the gradient meets them: by phase, in panels of channels.
func (c *conv2d) packed() int {
	if c.In[0].From == nil {
		return 0
	}
	return pad(c.channels) * c.Kernel * c.Kernel * c.Out
}

func (c *conv2d) pack(_ kern.Set, params, to []float32) {
	if c.In[0].From == nil {
		return
	}
	for a := range c.Stride {
		for b := range c.Stride {
			to = to[c.packPhase(params[c.weight.At:], to, a, b):]
		}
	}
}

// packPhase packs the weights of the pixels of phase a, b, in panels of channels, and returns how many elements it takes.
func (c *conv2d) packPhase(weight, to []float32, a, b int) int {
	nRows, nCols := c.kernels(a), c.kernels(b)
	depth := nRows * nCols * c.Out
	for k := range nRows * nCols {
		y, x := a+c.Stride*(nRows-1-k/nCols), b+c.Stride*(nCols-1-k%nCols)
		at := (y*c.Kernel + x) * c.channels * kern.Panel
		for o := range c.Out {
			from := weight[o/kern.Panel*c.depth*kern.Panel+at+o%kern.Panel:]
			for i := range c.channels {
				to[(i/kern.Panel*depth+k*c.Out+o)*kern.Panel+i%kern.Panel] = from[i*kern.Panel]
			}
		}
	}
	return depth * pad(c.channels)
}

func (c *conv2d) backward(s *shard, rows int) {
	e := &c.In[0]
	inPanels := c.channels%kern.Panel == 0
	if e.From != nil && !inPanels {
		s.below(e, rows)
	}
	for r := range rows {
		g := s.gradient(&c.node)
		c.learn(s, r, g.data[r*g.row:][:c.node.Out])
		if e.From != nil {
			c.descend(s, r, g.data[r*g.row:][:c.node.Out])
		}
	}
	if e.From != nil && !inPanels {
		s.passed(e, rows)
	}
}

// learn adds to the gradient of the parameters.
func (c *conv2d) learn(s *shard, r int, g []float32) {
	row := c.Out
	if wide := pad(c.Out); wide != row {
		to := s.room[c.At][c.wideAt:c.fromAt]
		for i := range c.rows * c.cols {
			copy(to[i*wide:i*wide+row], g[i*row:])
			clear(to[i*wide+row : (i+1)*wide])
		}
		g, row = to, wide
	}
	s.sums = kern.ColumnSums{Rows: c.rows * c.cols, N: row, X: g, XRow: row, Out: s.grad[c.bias.At:]}
	s.set.ColumnSums(&s.sums)
	// dW[y][x][i][o] += Σ image[..][i] · g[..][o]
	line := c.width * c.channels
	s.product = kern.Gemm{M: c.depth, N: row, K: c.rows * c.cols,
		Group: c.Kernel * c.channels, AGroup: line, CGroup: c.Kernel * c.channels * kern.Panel,
		Run: c.cols, ARun: c.Stride * line,
		A: c.image(s.pass, r), ARow: 1, ACol: c.Stride * c.channels,
		B: g, BRow: row, BPanel: kern.Panel,
		C: s.grad[c.weight.At:], CRow: kern.Panel, CPanel: c.depth * kern.Panel, Add: true}
	s.set.Gemm(&s.product)
}

// descend passes the gradient on: for the pixels of each phase a product of the gradient's windows.
func (c *conv2d) descend(s *shard, r int, g []float32) {
	from := s.room[c.At][c.gradAt:c.wideAt]
	first := (c.reach - 1) * (c.backW + 1) * c.Out
	for y := range c.rows {
		copy(from[first+y*c.backW*c.Out:], g[y*c.cols*c.Out:(y+1)*c.cols*c.Out])
	}
	back := s.back[c.At]
	for a := range c.Stride {
		for b := range c.Stride {
			c.descendPhase(s, r, a, b, back)
			back = back[c.kernels(a)*c.kernels(b)*c.Out*pad(c.channels):]
		}
	}
}

// descendPhase passes the gradient on to the pixels of phase a, b.
func (c *conv2d) descendPhase(s *shard, r, a, b int, back []float32) {
	top, rows := c.phase(a, c.height)
	left, cols := c.phase(b, c.width)
	if rows <= 0 || cols <= 0 {
		return
	}
	e, to := &c.In[0], s.gradient(s.nodes[c.In[0].From.At])
	nRows, nCols := c.kernels(a), c.kernels(b)
	depth, line := nRows*nCols*c.Out, (c.width-2*c.Pad)*c.channels
	pixel := (c.Stride*top+a-c.Pad)*line + (c.Stride*left+b-c.Pad)*c.channels
	p := &s.product
	*p = kern.Gemm{M: rows * cols, N: pad(c.channels), K: depth,
		Group: cols, AGroup: c.backW * c.Out, Run: nCols * c.Out, ARun: c.backW * c.Out,
		A: s.room[c.At][c.gradAt+((top+c.reach-nRows)*c.backW+left+c.reach-nCols)*c.Out:], ARow: c.Out, ACol: 1,
		B: back, BRow: kern.Panel, BPanel: depth * kern.Panel,
		C: to.data[r*to.row+pixel:], CRow: c.Stride * c.channels, CGroup: c.Stride * line, CPanel: kern.Panel, Add: !e.First}
	if c.channels%kern.Panel == 0 {
		if of, at := s.slope(e); of != kern.None {
			p.Epilogue, p.H = of, at[r*to.row+pixel:]
		}
		s.set.Gemm(p)
		return
	}
	p.C, p.CRow, p.CGroup, p.Add = s.room[c.At][c.fromAt:], p.N, cols*p.N, false
	s.set.Gemm(p)
	for i := range rows * cols {
		at := r*to.row + pixel + i/cols*c.Stride*line + i%cols*c.Stride*c.channels
		for j, g := range p.C[i*p.N:][:c.channels] {
			to.data[at+j] += g
		}
	}
}

// phase returns the first pixel of phase a within the image, counted in strides of the padded one, and how many there are
// along an axis of that padded size.
func (c *conv2d) phase(a, size int) (first, count int) {
	first = (c.Pad - a + c.Stride - 1) / c.Stride
	if end := size - c.Pad - 1 - a; end >= 0 {
		count = end/c.Stride - first + 1
	}
	return first, count
}
