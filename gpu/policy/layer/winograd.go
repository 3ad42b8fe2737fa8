package layer

// Tiling is how a convolution is computed with fewer multiplications than its windows have elements: tile by tile, by the minimal
// filtering of S. Winograd (Arithmetic Complexity of Computations, 1980) as A. Lavin and S. Gray apply it (Fast Algorithms for
// Convolutional Neural Networks, 2016). The Stride² pixels that no two taps of a kernel share are one pixel of so many more channels,
// over which the kernel has Taps × Taps taps and a stride of 1. A tile is 4 × 4 such pixels d, and has Side × Side outputs
//
//	Aᵀ·((G·g·Gᵀ) ⊙ (Bᵀ·d·B))·A
//
// with 16 multiplications for each channel in place of 36, where on a vector, for 2 and for 3 taps,
//
//	Bᵀ·d = d0-d2, d1+d2, d2-d1, d3-d1
//	G·g  = g0, (g0+g1)/2, (g0-g1)/2, g1          Aᵀ·m = m0+(m1+m2), m1-m2, (m1+m2)+m3
//	G·g  = g0, (g0+g2+g1)/2, (g0+g2-g1)/2, g2    Aᵀ·m = m0+(m1+m2), (m1-m2)+m3
//
// Each is done along the columns of a tile, then along its rows. The last tiles of an image lie within it and have outputs of
// others, which they overwrite. It decides how outputs are rounded, so acting and learning take it alike.
type Tiling struct {
	Taps, Side    int // along an axis; 5 together
	Rows, Columns int // of tiles in an image
	Line, Depth   int // elements of one of a pixel's Stride rows, and of a pixel
}

// TileParts is how many products a tile has for each channel, and whole channels of how many elements a convolution has that is
// computed so.
const (
	TileParts = 16
	tileLanes = 16
)

// Tiling returns how the convolution of an image of that shape is computed tile by tile, unless it is not.
func (c *Conv2D) Tiling(in []int) (t Tiling, ok bool) {
	rows, columns, err := c.places(in[0], in[1])
	if err != nil || c.Kernel%c.Stride != 0 {
		return t, false
	}
	t.Taps, t.Line = c.Kernel/c.Stride, c.Stride*in[2]
	t.Side, t.Depth = 5-t.Taps, c.Stride*t.Line
	if t.Taps < 2 || t.Taps > 3 || t.Line%tileLanes != 0 || c.Out%tileLanes != 0 || min(rows, columns) < t.Side {
		return t, false
	}
	t.Rows, t.Columns = (rows+t.Side-1)/t.Side, (columns+t.Side-1)/t.Side
	return t, true
}

// First returns the first output of a tile along an axis of so many.
func (t *Tiling) First(tile, outputs int) int { return min(tile*t.Side, outputs-t.Side) }
