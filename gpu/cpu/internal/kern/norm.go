package kern

// Norm describes a layer norm of rows that follow one another, with the mean and the variance of each row's N elements:
//
//	Out[j] = (X[j] - mean) / √(variance + NormEps) · Weight[j] + Bias[j]
//
// With D, the gradient of Out, DWeight, DBias and, unless it is nil, DX are added to instead.
type Norm struct {
	Rows, N         int
	X, Weight, Bias []float32
	Out             []float32
	D, DX           []float32
	DWeight, DBias  []float32
	mean, inverse   float32
}

// NormEps is added to variances.
const NormEps = 1e-5

func (n *Norm) check() {
	if n.Rows < 1 || n.N < 1 {
		panic("kern: size of a norm")
	}
	last := n.Rows*n.N - 1
	_, _ = n.X[last], n.Weight[n.N-1]
	if n.D == nil {
		_, _ = n.Out[last], n.Bias[n.N-1]
		return
	}
	_, _, _ = n.D[last], n.DWeight[n.N-1], n.DBias[n.N-1]
	if n.DX != nil {
		_ = n.DX[last]
	}
}

func (n *Norm) forward() {
	for r := range n.Rows {
		x, out := n.X[r*n.N:][:n.N], n.Out[r*n.N:][:n.N]
		n.moments(x)
		for j, v := range x {
			out[j] = float32(float32((v-n.mean)*n.inverse)*n.Weight[j]) + n.Bias[j]
		}
	}
}

func (n *Norm) backward() {
	for r := range n.Rows {
		x, d := n.X[r*n.N:][:n.N], n.D[r*n.N:][:n.N]
		n.moments(x)
		var grad, normed lanes
		for j, v := range x {
			z := (v - n.mean) * n.inverse
			n.DWeight[j] += float32(d[j] * z)
			n.DBias[j] += d[j]
			g := d[j] * n.Weight[j]
			grad[j%Lanes] += g
			normed[j%Lanes] += float32(g * z)
		}
		if n.DX == nil {
			continue
		}
		a, b := grad.sum()/float32(n.N), normed.sum()/float32(n.N)
		for j, v := range x {
			z := (v - n.mean) * n.inverse
			n.DX[r*n.N+j] += n.inverse * (float32(d[j]*n.Weight[j]) - (a + float32(b*z)))
		}
	}
}

// moments sets the mean and the inverse deviation of a row.
func (n *Norm) moments(x []float32) {
	var sum, squares lanes
	for j, v := range x {
		sum[j%Lanes] += v
	}
	n.mean = sum.sum() / float32(n.N)
	for j, v := range x {
		v -= n.mean
		squares[j%Lanes] += float32(v * v)
	}
	n.inverse = 1 / sqrt(squares.sum()/float32(n.N)+NormEps)
}

// lanes are partial sums, of every eighth element each.
type lanes [Lanes]float32

func (s *lanes) sum() float32 { return (s[0] + s[1]) + (s[2] + s[3]) + ((s[4] + s[5]) + (s[6] + s[7])) }
