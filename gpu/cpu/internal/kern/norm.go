package kern

// Norm describes a layer norm of rows, with the mean and the variance of each row's N elements:
//
//	Out[r*OutRow + j] = (X[r*XRow + j] - mean) / √(variance + NormEps) · Weight[j] + Bias[j]
//
// With D, the gradient of Out, DWeight, DBias and, unless it is nil, DX are added to instead.
type Norm struct {
	Rows, N        int
	X              []float32
	XRow           int
	Weight, Bias   []float32
	Out            []float32
	OutRow         int
	Moments        []float32 // [Rows][2]: mean and 1/√(variance + NormEps), which backward takes as forward left them
	D              []float32
	DRow           int
	DX             []float32
	DXRow          int
	DWeight, DBias []float32
}

// NormEps is added to variances.
const NormEps = 1e-5

func (n *Norm) check() {
	if n.Rows < 1 || n.N < 1 {
		panic("kern: size of a norm")
	}
	last := func(row int) int { return (n.Rows-1)*row + n.N - 1 }
	_, _, _ = n.X[last(n.XRow)], n.Weight[n.N-1], n.Moments[2*n.Rows-1]
	if n.D == nil {
		_, _ = n.Out[last(n.OutRow)], n.Bias[n.N-1]
		return
	}
	_, _, _ = n.D[last(n.DRow)], n.DWeight[n.N-1], n.DBias[n.N-1]
	if n.DX != nil {
		_ = n.DX[last(n.DXRow)]
	}
}

func (n *Norm) generic() {
	for r := range n.Rows {
		if n.D == nil {
			n.forward(r)
		} else {
			n.backward(r)
		}
	}
}

func (n *Norm) forward(r int) {
	x, out := n.X[r*n.XRow:][:n.N], n.Out[r*n.OutRow:][:n.N]
	var sum, squares lanes
	for j, v := range x {
		sum[j%Lanes] += v
	}
	mean := sum.sum() / float32(n.N)
	for j, v := range x {
		v -= mean
		squares[j%Lanes] += float32(v * v)
	}
	inverse := 1 / sqrt(squares.sum()/float32(n.N)+NormEps)
	n.Moments[2*r], n.Moments[2*r+1] = mean, inverse
	for j, v := range x {
		out[j] = float32(float32((v-mean)*inverse)*n.Weight[j]) + n.Bias[j]
	}
}

func (n *Norm) backward(r int) {
	x, d, mean, inverse := n.X[r*n.XRow:][:n.N], n.D[r*n.DRow:][:n.N], n.Moments[2*r], n.Moments[2*r+1]
	var grad, normed lanes
	for j, v := range x {
		z := (v - mean) * inverse
		n.DWeight[j] += float32(d[j] * z)
		n.DBias[j] += d[j]
		g := d[j] * n.Weight[j]
		grad[j%Lanes] += g
		normed[j%Lanes] += float32(g * z)
	}
	if n.DX == nil {
		return
	}
	a, b, dx := grad.sum()/float32(n.N), normed.sum()/float32(n.N), n.DX[r*n.DXRow:][:n.N]
	for j, v := range x {
		z := (v - mean) * inverse
		dx[j] += inverse * (float32(d[j]*n.Weight[j]) - (a + float32(b*z)))
	}
}

// lanes are partial sums, of every eighth element each.
type lanes [Lanes]float32

func (s *lanes) sum() float32 { return (s[0] + s[1]) + (s[2] + s[3]) + ((s[4] + s[5]) + (s[6] + s[7])) }
