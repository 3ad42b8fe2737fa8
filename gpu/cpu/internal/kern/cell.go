package kern

// Cell describes the computation between the products of a recurrent node in a block of rows. Rows of X and S are gates of N elements
// each, N a multiple of Panel: a GRU's r, z and n, an LSTM's i, f, g and o.
type Cell struct {
	Rows, N int
	X       []float32 // the input's part of each gate; then the gates; with D their gradient
	XRow    int
	// S is the state's part of each gate. Of a GRU it becomes the gradient of that part, with D. Of an LSTM it becomes the
	// hyperbolic tangent of c, c, and the gradient of c, which begins at zero and to which the next rows add.
	S    []float32
	SRow int
	H    []float32 // the state before: h and, of an LSTM, c
	HRow int
	Out  []float32 // h
	ORow int

	D []float32 // gradient of Out, with its rows; nil in the forward pass
	// DH receives the gradient of the previous state outside the gates: of a GRU h, of an LSTM c.
	DH    []float32
	DHRow int
}

func (c *Cell) check(gates, state int) {
	if c.Rows < 0 || c.N < 1 || c.N%Panel != 0 {
		panic("kern: size of a cell")
	}
	if c.Rows == 0 {
		return
	}
	last := c.Rows - 1
	_, _, _, _ = c.X[last*c.XRow+gates*c.N-1], c.S[last*c.SRow+gates*c.N-1], c.H[last*c.HRow+state*c.N-1], c.Out[last*c.ORow+c.N-1]
	if c.D != nil {
		_, _ = c.D[last*c.ORow+c.N-1], c.DH[last*c.DHRow+c.N-1]
	}
}

func sigmoid(x float32) float32 { return float32(0.5*tanh(float32(0.5*x))) + 0.5 }

// gate returns gate k of row r.
func gate(x []float32, row, r, n, k int) []float32 { return x[r*row+k*n:][:n:n] }

func (c *Cell) gru() {
	n := c.N
	for row := range c.Rows {
		r, z, a := gate(c.X, c.XRow, row, n, 0), gate(c.X, c.XRow, row, n, 1), gate(c.X, c.XRow, row, n, 2)
		sr, sz, inner := gate(c.S, c.SRow, row, n, 0), gate(c.S, c.SRow, row, n, 1), gate(c.S, c.SRow, row, n, 2)
		h, out := gate(c.H, c.HRow, row, n, 0), gate(c.Out, c.ORow, row, n, 0)
		for j := range r {
			r[j] = sigmoid(r[j] + sr[j])
			z[j] = sigmoid(z[j] + sz[j])
			a[j] = tanh(a[j] + float32(r[j]*inner[j]))
			out[j] = a[j] + float32(z[j]*(h[j]-a[j]))
		}
	}
}

func (c *Cell) gruBack() {
	n := c.N
	for row := range c.Rows {
		r, z, a := gate(c.X, c.XRow, row, n, 0), gate(c.X, c.XRow, row, n, 1), gate(c.X, c.XRow, row, n, 2)
		sr, sz, inner := gate(c.S, c.SRow, row, n, 0), gate(c.S, c.SRow, row, n, 1), gate(c.S, c.SRow, row, n, 2)
		h, g, dh := gate(c.H, c.HRow, row, n, 0), gate(c.D, c.ORow, row, n, 0), gate(c.DH, c.DHRow, row, n, 0)
		for j, d := range g {
			da := float32(float32(d*(1-z[j])) * (1 - float32(a[j]*a[j])))
			dr := float32(float32(da*inner[j]) * float32(r[j]*(1-r[j])))
			dz := float32(float32(d*(h[j]-a[j])) * float32(z[j]*(1-z[j])))
			dh[j] = d * z[j]
			inner[j] = da * r[j]
			sr[j], sz[j] = dr, dz
			r[j], z[j], a[j] = dr, dz, da
		}
	}
}

func (c *Cell) lstm() {
	n := c.N
	for row := range c.Rows {
		i, f, g, o := gate(c.X, c.XRow, row, n, 0), gate(c.X, c.XRow, row, n, 1), gate(c.X, c.XRow, row, n, 2), gate(c.X, c.XRow, row, n, 3)
		si, sf, sg, so := gate(c.S, c.SRow, row, n, 0), gate(c.S, c.SRow, row, n, 1), gate(c.S, c.SRow, row, n, 2), gate(c.S, c.SRow, row, n, 3)
		cell, out := gate(c.H, c.HRow, row, n, 1), gate(c.Out, c.ORow, row, n, 0)
		for j := range i {
			i[j], f[j] = sigmoid(i[j]+si[j]), sigmoid(f[j]+sf[j])
			g[j], o[j] = tanh(g[j]+sg[j]), sigmoid(o[j]+so[j])
			next := float32(f[j]*cell[j]) + float32(i[j]*g[j])
			t := tanh(next)
			out[j] = o[j] * t
			si[j], sf[j], sg[j] = t, next, 0
		}
	}
}

func (c *Cell) lstmBack() {
	n := c.N
	for row := range c.Rows {
		i, f, g, o := gate(c.X, c.XRow, row, n, 0), gate(c.X, c.XRow, row, n, 1), gate(c.X, c.XRow, row, n, 2), gate(c.X, c.XRow, row, n, 3)
		t, later := gate(c.S, c.SRow, row, n, 0), gate(c.S, c.SRow, row, n, 2)
		cell, grad, dc := gate(c.H, c.HRow, row, n, 1), gate(c.D, c.ORow, row, n, 0), gate(c.DH, c.DHRow, row, n, 0)
		for j, d := range grad {
			own := later[j] + float32(float32(d*o[j])*(1-float32(t[j]*t[j])))
			dc[j] = own * f[j]
			di := float32(own*g[j]) * float32(i[j]*(1-i[j]))
			df := float32(own*cell[j]) * float32(f[j]*(1-f[j]))
			dg := float32(own*i[j]) * (1 - float32(g[j]*g[j]))
			do := float32(d*t[j]) * float32(o[j]*(1-o[j]))
			i[j], f[j], g[j], o[j] = di, df, dg, do
		}
	}
}
