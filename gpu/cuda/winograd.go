package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// tileElems is layout's: of which a large device keeps the memory in its cache.
const tileElems = 1 << 23

// tiled is a convolution that is computed in tiles.
type tiled struct {
	layer.Tiling
	images int // that are computed together
	elems  int // of the products of an image's tiles
}

// tiled returns how a pass computes the convolution in tiles, or nil.
func (c *conv2d) tiled(p *pass) *tiled {
	of, ok := c.Tiling(c.In[0].Shape)
	if !ok {
		return nil
	}
	elems := layer.TileParts * of.Rows * of.Columns * c.Out
	return &tiled{of, min(p.capacity, max(1, p.tileElems/elems)), elems}
}

// takeTiles makes room for the products of tiles.
func (p *pass) takeTiles() {
	elems := 0
	for _, o := range p.ops {
		if c, ok := o.(*conv2d); ok {
			if t := c.tiled(p); t != nil {
				elems = max(elems, t.images*t.elems)
			}
		}
	}
	if elems > 0 {
		p.tiles = p.floats(elems)
	}
}

// forwardTiles is forward of a convolution in tiles: products of their parts, some images at a time. The filters are made
// by derive.
func (c *conv2d) forwardTiles(p *pass, t *tiled) func(rows int) {
	tiles, images := t.Rows*t.Columns, t.images
	filters := kernels.Parts{Data: p.floats(layer.TileParts * t.Depth * c.Out), Part: int64(t.Depth * c.Out), Row: 1, Column: int32(c.Out)}
	parts := kernels.Parts{Data: p.tiles, Part: int64(images * tiles * c.Out), Row: int32(c.Out), Column: 1}
	derive, product, output := prepare(&p.owner, kernels.TileFiltersKernel), prepare(&p.owner, kernels.TileProductsKernel), prepare(&p.owner, kernels.TileOutputsKernel)
	in, out := c.In[0].Shape, p.output(&c.node)
	*derive.args = kernels.TileFilters{Weight: p.param(&c.weight), To: filters.Data, Control: p.control,
		Kernel: int32(c.Kernel), Channels: int32(in[2]), Outputs: int32(c.Out), Stride: int32(c.Stride), Taps: int32(t.Taps)}
	p.derives = append(p.derives, func() { p.work.launch(derive.Launch, kernels.Blocks(t.Depth*c.Out)) })
	a, o := product.args, output.args
	a.B, a.C, a.Control, a.Columns, a.Depth = filters, parts, p.control, int32(c.Out), int32(t.Depth)
	*o = kernels.TileOutputs{Parts: parts.Data, Bias: p.param(&c.bias), Control: p.control, Part: parts.Part, Image: int64(out.Row),
		Rows: int32(t.Rows), Columns: int32(t.Columns), OutRows: int32(c.node.Shape[0]), OutColumns: int32(c.node.Shape[1]), Channels: int32(c.Out),
		Taps: int32(t.Taps), Epilogue: c.activation.forward}
	return func(rows int) {
		x := p.input(&c.In[0])
		for lo := 0; lo < rows; lo += images {
			n := min(images, rows-lo)
			a.A = kernels.TileInputs{Data: from(x, lo).Data, Image: int64(x.Row), Height: int32(in[0]), Width: int32(in[1]), Channels: int32(in[2]),
				Rows: o.Rows, Columns: o.Columns, OutRows: o.OutRows, OutColumns: o.OutColumns, Side: int32(t.Side), Stride: int32(c.Stride), Margin: int32(c.Pad)}
			a.Rows = int32(n * tiles)
			grid := kernels.Tiles(n*tiles, c.Out)
			grid.Z = layer.TileParts
			p.work.launch(product.Launch, grid)
			o.Out, o.Images = from(out, lo).Data, int32(n)
			p.work.launch(output.Launch, kernels.Blocks(n*tiles*c.Out))
		}
	}
}
