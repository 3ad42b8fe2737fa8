package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// tiling computes a convolution tile by tile: in parts, each one product for the tiles of several images.
type tiling struct {
	layer.Tiling
	images          int         // that are computed together
	filters         plan.Tensor // part by part in panels
	inAt, outAt     int         // of the parts in the room
	inPart, outPart int
}

// tileElems bounds the elements of the parts that are computed together: they stay in the second-level cache.
const tileElems = 1 << 17

// tile returns how the convolution is computed tile by tile, or nil.
func (c *conv2d) tile() *tiling {
	of, ok := c.Conv2D.Tiling(c.In[0].Shape)
	if !ok {
		return nil
	}
	t := &tiling{Tiling: of, inAt: c.size}
	tiles := t.Rows * t.Columns
	t.images = max(1, tileElems/(layer.TileParts*tiles*(t.Depth+c.Out)))
	t.filters.Size = layer.TileParts * t.Depth * c.Out
	t.inPart, t.outPart = apart(t.images*tiles*t.Depth), apart(t.images*tiles*c.Out)
	t.outAt = t.inAt + layer.TileParts*t.inPart
	c.size = t.outAt + layer.TileParts*t.outPart
	return t
}

// derive makes the filters from the weights in the vector.
func (c *conv2d) derive(vector []float32) {
	t := c.tiles
	row := c.Kernel * c.channels * kern.Panel
	for panel := range c.Out / kern.Panel {
		from := vector[c.weight.At+panel*c.depth*kern.Panel:]
		for k := range t.Depth {
			kern.TileFilter(vector[t.filters.At+(panel*t.Depth+k)*kern.Panel:], t.Depth*c.Out,
				from[k/t.Line*row+k%t.Line*kern.Panel:], c.Stride*row, t.Line*kern.Panel, t.Taps)
		}
	}
}

// forwardTiles is forward, some images at a time.
func (c *conv2d) forwardTiles(p *pass, rows int) {
	t, out := c.tiles, p.output(&c.node)
	tiles, room := t.Rows*t.Columns, p.room[c.At]
	for lo := 0; lo < rows; lo += t.images {
		n := min(t.images, rows-lo)
		for i := range n {
			c.tilesIn(p, c.image(p, lo+i), room[t.inAt+i*tiles*t.Depth:])
		}
		for part := range layer.TileParts {
			p.product = kern.Gemm{M: n * tiles, N: c.Out, K: t.Depth, A: room[t.inAt+part*t.inPart:], ARow: t.Depth, ACol: 1,
				B: p.params[t.filters.At+part*t.Depth*c.Out:], BRow: kern.Panel, BPanel: t.Depth * kern.Panel,
				C: room[t.outAt+part*t.outPart:], CRow: c.Out, CPanel: kern.Panel}
			p.set.Gemm(&p.product)
		}
		for i := range n {
			c.tilesOut(p, room[t.outAt+i*tiles*c.Out:], out.data[(lo+i)*out.row:])
		}
	}
	if e := c.activation.forward; e != kern.None && e != kern.ReLU {
		p.apply(e, out, nil, rows, c.node.Out)
	}
}

// tilesIn makes the parts of the tiles of an image.
func (c *conv2d) tilesIn(p *pass, image, to []float32) {
	t, line := c.tiles, c.width*c.channels
	w := &p.tilesIn
	for row := range t.Rows {
		for col, count := 0, c.cols/t.Side; col < t.Columns; col, count = col+count, 1 {
			*w = kern.TilesIn{Tiles: count, Runs: c.Stride, N: t.Line, X: image[t.First(row, c.rows)*c.Stride*line+t.First(col, c.cols)*t.Line:],
				Step: t.Side * t.Line, Run: line, Pixel: t.Line, Row: c.Stride * line, V: to[(row*t.Columns+col)*t.Depth:], Part: t.inPart}
			w.Spread(p.set)
		}
	}
}

// tilesOut makes the outputs of an image of the parts of its tiles.
func (c *conv2d) tilesOut(p *pass, from, out []float32) {
	t := c.tiles
	w := &p.tilesOut
	for row := range t.Rows {
		for col, count := 0, c.cols/t.Side; col < t.Columns; col, count = col+count, 1 {
			*w = kern.TilesOut{Tiles: count, N: c.Out, Taps: t.Taps, M: from[(row*t.Columns+col)*c.Out:], Part: t.outPart,
				Bias: p.params[c.bias.At:], Out: out[(t.First(row, c.rows)*c.cols+t.First(col, c.cols))*c.Out:],
				Step: t.Side * c.Out, Pixel: c.Out, Row: c.cols * c.Out, ReLU: c.activation.forward == kern.ReLU}
			w.Gather(p.set)
		}
	}
}
