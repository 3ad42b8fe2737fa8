package kern

import "github.com/rlhost/rlhost/gpu/policy/layer"

// TilesIn describes the first step of a convolution in tiles, with the formulas of layer.Tiling: Bᵀ·d·B of tiles that follow
// one another along a row of an image. A pixel is so many runs of N elements. Strides count elements.
//
//	d(i, j)                             = X[t*Step + i*Row + j*Pixel + r*Run + c]     t < Tiles, r < Runs, c < N
//	V[p*Part + (t*Runs + r)*N + c]      = part p = 4i + j of Bᵀ·d·B
type TilesIn struct {
	Tiles, Runs, N int // N is a multiple of Panel
	X              []float32
	Step, Run      int
	Pixel, Row     int
	V              []float32
	Part           int
}

func (t *TilesIn) check() {
	if t.Tiles < 1 || t.Runs < 1 || t.N < 1 || t.N%Panel != 0 {
		panic("kern: size of tiles")
	}
	_ = t.X[(t.Tiles-1)*t.Step+(t.Runs-1)*t.Run+3*(t.Row+t.Pixel)+t.N-1]
	_ = t.V[(layer.TileParts-1)*t.Part+t.Tiles*t.Runs*t.N-1]
}

func (t *TilesIn) generic() {
	var w [4][4]float32
	for i := range t.Tiles * t.Runs * t.N {
		x := t.X[i/t.N/t.Runs*t.Step+i/t.N%t.Runs*t.Run+i%t.N:]
		for j := range 4 {
			c := x[j*t.Pixel:]
			w[0][j], w[1][j], w[2][j], w[3][j] = spread(c[0], c[t.Row], c[2*t.Row], c[3*t.Row])
		}
		for j := range w {
			v := t.V[4*j*t.Part+i:]
			v[0], v[t.Part], v[2*t.Part], v[3*t.Part] = spread(w[j][0], w[j][1], w[j][2], w[j][3])
		}
	}
}

// spread is Bᵀ·d.
func spread(d0, d1, d2, d3 float32) (_, _, _, _ float32) { return d0 - d2, d1 + d2, d2 - d1, d3 - d1 }

// TilesOut describes the last step, Aᵀ·m·A plus a bias, of tiles that follow one another along a row of an image, where m is the
// products of their parts. Strides count elements.
//
//	m(i, j)                                    = M[(4i + j)*Part + t*N + c]              t < Tiles, c < N
//	Out[t*Step + i*Row + j*Pixel + c]          = output i, j < 5-Taps
type TilesOut struct {
	Tiles, N   int // N is a multiple of Panel
	Taps       int // 2 or 3
	M          []float32
	Part       int
	Bias       []float32
	Out        []float32
	Step       int
	Pixel, Row int
	ReLU       bool
}

func (t *TilesOut) check() {
	if t.Tiles < 1 || t.N < 1 || t.N%Panel != 0 || t.Taps < 2 || t.Taps > 3 {
		panic("kern: size of tiles")
	}
	_, _ = t.M[(layer.TileParts-1)*t.Part+t.Tiles*t.N-1], t.Bias[t.N-1]
	_ = t.Out[(t.Tiles-1)*t.Step+(4-t.Taps)*(t.Row+t.Pixel)+t.N-1]
}

func (t *TilesOut) generic() {
	var z [3][4]float32
	side := 5 - t.Taps
	for i := range t.Tiles * t.N {
		for j := range 4 {
			m := t.M[j*t.Part+i:]
			z[0][j], z[1][j], z[2][j] = gather(t.Taps, m[0], m[4*t.Part], m[8*t.Part], m[12*t.Part])
		}
		out := t.Out[i/t.N*t.Step+i%t.N:]
		for j := range side {
			var y [3]float32
			y[0], y[1], y[2] = gather(t.Taps, z[j][0], z[j][1], z[j][2], z[j][3])
			for k := range side {
				if y[k] += t.Bias[i%t.N]; t.ReLU {
					y[k] = max(y[k], 0)
				}
				out[j*t.Row+k*t.Pixel] = y[k]
			}
		}
	}
}

// gather is Aᵀ·m, of which with three taps the last is not one.
func gather(taps int, m0, m1, m2, m3 float32) (_, _, _ float32) {
	if taps == 2 {
		return m0 + (m1 + m2), m1 - m2, m1 + m2 + m3
	}
	return m0 + (m1 + m2), m1 - m2 + m3, 0
}

// TileFilter writes G·g·Gᵀ for a panel of filters, part p of it at to[p*part:]. Coefficient i, j begins at from[i*row + j*column].
// Every set has it so: it runs once for new weights.
func TileFilter(to []float32, part int, from []float32, row, column, taps int) {
	for c := range Panel {
		var w [4][3]float32
		for j := range taps {
			g := from[j*column+c:]
			w[0][j], w[1][j], w[2][j], w[3][j] = expand(g[0], g[(taps-2)*row], g[(taps-1)*row], taps)
		}
		for i := range w {
			u := to[4*i*part+c:]
			u[0], u[part], u[2*part], u[3*part] = expand(w[i][0], w[i][taps-2], w[i][taps-1], taps)
		}
	}
}

// expand is G·g, where of two taps the middle is not read.
func expand(g0, g1, g2 float32, taps int) (_, _, _, _ float32) {
	if taps == 2 {
		return g0, (g0 + g2) / 2, (g0 - g2) / 2, g2
	}
	return g0, (g0 + g2 + g1) / 2, (g0 + g2 - g1) / 2, g2
}
