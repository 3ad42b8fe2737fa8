package kernels

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// filtering is a convolution in tiles.
type filtering struct {
	*rig
	layer.Tiling
	filters  TileFilters
	products Product[TileInputs, Parts, Parts]
	outputs  TileOutputs
}

func newFiltering(r *rig, c *layer.Conv2D, images int, in, out []int, x, y Matrix, weight, bias Address) *filtering {
	t, ok := c.Tiling(in)
	if !ok {
		r.t.Fatalf("%v is not computed in tiles", c)
	}
	tiles := images * t.Rows * t.Columns
	f := &filtering{rig: r, Tiling: t}
	f.filters = TileFilters{Weight: weight, To: room[float32](r, layer.TileParts*t.Depth*c.Out),
		Kernel: int32(c.Kernel), Channels: int32(in[2]), Outputs: int32(c.Out), Stride: int32(c.Stride), Taps: int32(t.Taps)}
	f.products = Product[TileInputs, Parts, Parts]{
		A: TileInputs{Data: x.Data, Image: int64(x.Row), Height: int32(in[0]), Width: int32(in[1]), Channels: int32(in[2]), Rows: int32(t.Rows), Columns: int32(t.Columns),
			OutRows: int32(out[0]), OutColumns: int32(out[1]), Side: int32(t.Side), Stride: int32(c.Stride), Margin: int32(c.Pad)},
		B:    Parts{Data: f.filters.To, Part: int64(t.Depth * c.Out), Row: 1, Column: int32(c.Out)},
		C:    Parts{Data: room[float32](r, layer.TileParts*tiles*c.Out), Part: int64(tiles * c.Out), Row: int32(c.Out), Column: 1},
		Rows: int32(tiles), Columns: int32(c.Out), Depth: int32(t.Depth)}
	f.outputs = TileOutputs{Parts: f.products.C.Data, Bias: bias, Out: y.Data, Part: f.products.C.Part, Image: int64(y.Row), Images: int32(images),
		Rows: int32(t.Rows), Columns: int32(t.Columns), OutRows: int32(out[0]), OutColumns: int32(out[1]), Channels: int32(c.Out), Taps: int32(t.Taps)}
	return f
}

// grids are those of the three kernels.
func (f *filtering) grids() (filters, products, outputs driver.Dim) {
	p := &f.products
	products = Tiles(int(p.Rows), int(p.Columns))
	products.Z = layer.TileParts
	return Blocks(int(p.Depth * p.Columns)), products, Blocks(int(p.Rows * p.Columns))
}

func (f *filtering) run() {
	filters, products, outputs := f.grids()
	run(f.rig, TileFiltersKernel, filters, f.filters)
	run(f.rig, TileProductsKernel, products, f.products)
	run(f.rig, TileOutputsKernel, outputs, f.outputs)
}

func TestTiles_GiveTheirFormulas(t *testing.T) {
	for _, c := range []*convolution{newConvolution(t, 2, 3, 1, 1, 16, 5, 6, 16), newConvolution(t, 2, 4, 2, 0, 32, 12, 10, 8), newConvolution(t, 1, 2, 1, 1, 16, 3, 2, 16)} {
		bias, out := c.floats(c.outputs), make([]float32, len(c.gradient))
		y := Matrix{Data: put(c.rig, out...), Row: int32(c.gradientRow), Column: 1}
		of := &layer.Conv2D{Window: layer.Window{Kernel: c.kernel, Stride: c.stride, Pad: c.margin}, Out: c.outputs}
		f := newFiltering(c.rig, of, c.images, c.in, c.out, c.x, y, put(c.rig, c.weight...), put(c.rig, bias...))
		f.outputs.Epilogue = ReLU
		f.run()
		u := make([]float32, layer.TileParts*f.Depth*c.outputs)
		for i := range f.Depth * c.outputs {
			for p, x := range c.filter(f, i/c.outputs, i%c.outputs) {
				u[p*f.Depth*c.outputs+i] = x
			}
		}
		same(t, "filters", get[float32](c.rig, f.filters.To, len(u)), u)
		tiles := int(f.products.Rows)
		m := make([]float32, layer.TileParts*tiles*c.outputs)
		for tile := range tiles {
			for k := range f.Depth {
				for p, x := range c.tile(f, tile, k) {
					for o := range c.outputs {
						to := &m[(p*tiles+tile)*c.outputs+o]
						*to = fma(x, u[(p*f.Depth+k)*c.outputs+o], *to)
					}
				}
			}
		}
		same(t, "products", get[float32](c.rig, f.products.C.Data, len(m)), m)
		for i := range tiles * c.outputs {
			image, place := i/c.outputs/f.Rows/f.Columns, i/c.outputs%(f.Rows*f.Columns)
			top, left := f.First(place/f.Columns, c.out[0]), f.First(place%f.Columns, c.out[1])
			for j, x := range f.gathered(m[i:], tiles*c.outputs) {
				at := image*c.gradientRow + ((top+j/f.Side)*c.out[1]+left+j%f.Side)*c.outputs + i%c.outputs
				out[at] = activate(ReLU, x+bias[i%c.outputs], 0)
			}
		}
		same(t, "outputs", get[float32](c.rig, y.Data, len(out)), out)
		filters, products, outputs := f.grids()
		runShort(c.rig, TileFiltersKernel, filters, f.filters)
		runShort(c.rig, TileProductsKernel, products, f.products)
		runShort(c.rig, TileOutputsKernel, outputs, f.outputs)
	}
}

// filter is the parts of the filter of element k of a pixel and an output.
func (c *convolution) filter(f *filtering, k, o int) (parts [layer.TileParts]float32) {
	expand := func(g []float32) []float32 {
		if f.Taps == 2 {
			return []float32{g[0], (g[0] + g[1]) / 2, (g[0] - g[1]) / 2, g[1]}
		}
		return []float32{g[0], (g[0] + g[2] + g[1]) / 2, (g[0] + g[2] - g[1]) / 2, g[2]}
	}
	var rows [4][]float32
	for x := range f.Taps {
		var column []float32
		for y := range f.Taps {
			at := ((y*c.stride+k/f.Line)*c.kernel+x*c.stride)*c.in[2] + k%f.Line
			column = append(column, c.weight[at*c.outputs+o])
		}
		for i, w := range expand(column) {
			rows[i] = append(rows[i], w)
		}
	}
	for i, row := range rows {
		copy(parts[4*i:], expand(row))
	}
	return parts
}

// tile is the parts of element k of a tile.
func (c *convolution) tile(f *filtering, tile, k int) (parts [layer.TileParts]float32) {
	spread := func(d []float32) []float32 { return []float32{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[3] - d[1]} }
	image, place := tile/(f.Rows*f.Columns), tile%(f.Rows*f.Columns)
	top, left := f.First(place/f.Columns, c.out[0])*c.stride-c.margin, f.First(place%f.Columns, c.out[1])*c.stride-c.margin
	var rows [4][]float32
	for x := range 4 {
		var column []float32
		for y := range 4 {
			column = append(column, c.at(image, top+y*c.stride+k/f.Line, left+x*c.stride+k%f.Line/c.in[2], k%c.in[2]))
		}
		for i, w := range spread(column) {
			rows[i] = append(rows[i], w)
		}
	}
	for i, row := range rows {
		copy(parts[4*i:], spread(row))
	}
	return parts
}

// at returns a pixel of an image, 0 outside of it.
func (c *convolution) at(image, y, x, channel int) float32 {
	if y < 0 || y >= c.in[0] || x < 0 || x >= c.in[1] {
		return 0
	}
	return c.image[image*c.row+(y*c.in[1]+x)*c.in[2]+channel]
}

// gathered is the outputs of a tile, of whose products one part begins every step elements.
func (f *filtering) gathered(m []float32, step int) (out []float32) {
	gather := func(m0, m1, m2, m3 float32) []float32 {
		if f.Taps == 2 {
			return []float32{m0 + (m1 + m2), m1 - m2, m1 + m2 + m3}
		}
		return []float32{m0 + (m1 + m2), m1 - m2 + m3}
	}
	var rows [3][4]float32
	for j := range 4 {
		for i, z := range gather(m[j*step], m[(4+j)*step], m[(8+j)*step], m[(12+j)*step]) {
			rows[i][j] = z
		}
	}
	for i := range f.Side {
		out = append(out, gather(rows[i][0], rows[i][1], rows[i][2], rows[i][3])...)
	}
	return out
}
