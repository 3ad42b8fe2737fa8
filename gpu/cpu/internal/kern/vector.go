package kern

// Adam describes one optimiser step on vectors of equal length:
//
//	g = Scale·grad;  m = β₁m + (1-β₁)g;  v = β₂v + (1-β₂)g²;  p -= Rate · m / (√v·Correct2 + Eps)
//
// where Rate is the learning rate over 1-β₁ᵗ and Correct2 is 1/√(1-β₂ᵗ).
type Adam struct {
	Params, M, V, Grad []float32

	Rate, Beta1, Keep1, Beta2, Keep2, Eps, Correct2, Scale float32 // Keep is 1-β
}

func (a *Adam) check() {
	n := len(a.Params)
	if len(a.M) != n || len(a.V) != n || len(a.Grad) != n || n%Panel != 0 {
		panic("kern: lengths of Adam's vectors")
	}
}

func (a *Adam) generic() {
	m, v, grad := a.M[:len(a.Params)], a.V[:len(a.Params)], a.Grad[:len(a.Params)]
	for i := range a.Params {
		g := grad[i] * a.Scale
		m[i] = float32(m[i]*a.Beta1) + float32(a.Keep1*g)
		v[i] = float32(v[i]*a.Beta2) + float32(a.Keep2*float32(g*g))
		a.Params[i] -= float32(a.Rate * (m[i] / (float32(sqrt(v[i])*a.Correct2) + a.Eps)))
	}
}

// sumChunk bounds the elements whose squares are summed in float32.
const sumChunk = 2048

func sumSquaresGeneric(x []float32) float32 {
	var s [8]float32
	for ; len(x) >= 8; x = x[8:] {
		for j := range s {
			s[j] += x[j] * x[j]
		}
	}
	return (s[0] + s[1]) + (s[2] + s[3]) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// ColumnSums describes Out[j] += Σ X[r*XRow + j] over rows, for j < N, N a multiple of Panel.
type ColumnSums struct {
	Rows, N int
	X       []float32
	XRow    int
	Out     []float32
}

func (c *ColumnSums) check() {
	if c.Rows < 0 || c.N < 0 || c.N%Panel != 0 {
		panic("kern: size of column sums")
	}
	if c.Rows > 0 && c.N > 0 {
		_, _ = c.X[(c.Rows-1)*c.XRow+c.N-1], c.Out[c.N-1]
	}
}

func (c *ColumnSums) generic() {
	for r := range c.Rows {
		for j, x := range c.X[r*c.XRow:][:c.N] {
			c.Out[j] += x
		}
	}
}

// Transpose describes packing panels of a matrix [In][Out] as panels of its transpose:
//
//	From[p*In*16 + i*16 + j] = W(i, 16p+j)  ->  To[q*Out*16 + o*16 + j] = W(16q+j, o)
//
// for o < Out and i < In; To's columns from In on up to a multiple of Panel are 0.
type Transpose struct {
	In, Out  int
	From, To []float32
}

func (t *Transpose) check() {
	if t.In < 1 || t.Out < 1 {
		panic("kern: size of a transpose")
	}
	_ = t.From[(t.Out+Panel-1)/Panel*t.In*Panel-1]
	_ = t.To[(t.In+Panel-1)/Panel*t.Out*Panel-1]
}

func (t *Transpose) generic() { t.edge(0, 0) }

// edge packs the panels from q on, their rows from o on.
func (t *Transpose) edge(q, o int) {
	for ; q*Panel < t.In; q++ {
		for o := o; o < t.Out; o++ {
			to := t.To[(q*t.Out+o)*Panel:][:Panel]
			from := t.From[o/Panel*t.In*Panel+o%Panel:]
			for j := range to {
				to[j] = 0
				if i := q*Panel + j; i < t.In {
					to[j] = from[i*Panel]
				}
			}
		}
	}
}
