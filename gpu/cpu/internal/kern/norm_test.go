package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// norm makes a random layer norm, forward and backward; guard elements lie between the rows.
func norm(r *rand.Rand) *Norm {
	n := &Norm{Rows: 1 + r.IntN(20), N: 1 + r.IntN(70)}
	for _, row := range []*int{&n.XRow, &n.OutRow, &n.DRow, &n.DXRow} {
		*row = n.N + r.IntN(9)
	}
	n.X, n.Out, n.Moments = random(r, n.Rows*n.XRow), random(r, n.Rows*n.OutRow), make([]float32, 2*n.Rows)
	n.D, n.DX = random(r, n.Rows*n.DRow), random(r, n.Rows*n.DXRow)
	n.Weight, n.Bias, n.DWeight, n.DBias = random(r, n.N), random(r, n.N), random(r, n.N+1), random(r, n.N+1)
	if r.IntN(4) == 0 {
		n.DX = nil
	}
	return n
}

// both computes the forward and the backward pass of a copy.
func (n *Norm) both(s Set) *Norm {
	c := *n
	for _, x := range []*[]float32{&c.Out, &c.Moments, &c.DX, &c.DWeight, &c.DBias} {
		*x = slices.Clone(*x)
	}
	d := c.D
	c.D = nil
	s.Norm(&c)
	c.D = d
	s.Norm(&c)
	return &c
}

// want is both's result, in float64. scale is 1/√(variance + eps) of each element's row, laid out as DX: rounding in a row of almost
// equal numbers grows with it.
func (n *Norm) want() (out, dx, scale, dWeight, dBias []float64) {
	wide := func(x []float32) (out []float64) {
		for _, v := range x {
			out = append(out, float64(v))
		}
		return out
	}
	out, dx, dWeight, dBias = wide(n.Out), wide(n.DX), wide(n.DWeight), wide(n.DBias)
	scale = make([]float64, len(dx))
	for r := range n.Rows {
		x, d := wide(n.X[r*n.XRow:][:n.N]), wide(n.D[r*n.DRow:][:n.N])
		p := layer.Pass{In: [][]float64{x}, Out: out[r*n.OutRow:][:n.N], DOut: d, DIn: [][]float64{make([]float64, n.N)},
			Params: [][]float64{wide(n.Weight), wide(n.Bias)}, Grads: [][]float64{dWeight[:n.N], dBias[:n.N]}}
		new(layer.LayerNorm).Forward(&p)
		new(layer.LayerNorm).Backward(&p)
		if n.DX == nil {
			continue
		}
		mean := 0.0
		for _, v := range x {
			mean += v / float64(n.N)
		}
		variance := 0.0
		for _, v := range x {
			variance += (v - mean) * (v - mean) / float64(n.N)
		}
		for j, v := range p.DIn[0] {
			dx[r*n.DXRow+j] += v
			scale[r*n.DXRow+j] = 1 / math.Sqrt(variance+layer.LayerNormEps)
		}
	}
	return out, dx, scale, dWeight, dBias
}

func TestNormEqualsItsFormulaInFloat64(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 200 {
			n := norm(r)
			got := n.both(s)
			out, dx, scale, dWeight, dBias := n.want()
			for _, c := range []struct {
				name  string
				got   []float32
				want  []float64
				scale []float64
			}{{"result", got.Out, out, nil}, {"gradient", got.DX, dx, scale}, {"gradient of weight", got.DWeight, dWeight, nil}, {"gradient of bias", got.DBias, dBias, nil}} {
				for i, want := range c.want {
					size := 1 + math.Abs(want)
					if c.scale != nil {
						size += c.scale[i]
					}
					if math.Abs(float64(c.got[i])-want) > 2e-4*size {
						t.Fatalf("%d rows of %d: element %d of the %s = %v, want %v", n.Rows, n.N, i, c.name, c.got[i], want)
					}
				}
			}
		}
	})
}

func TestNormRowsAreIndependentOfTheOthersInEveryBit(t *testing.T) {
	eachSet(t, func(t *testing.T, s Set) {
		r := rng(t)
		for range 100 {
			n := norm(r)
			if n.DX == nil {
				continue
			}
			all, row := n.both(s), r.IntN(n.Rows)
			one := *n
			one.Rows, one.X, one.Out, one.D, one.DX = 1, n.X[row*n.XRow:], n.Out[row*n.OutRow:], n.D[row*n.DRow:], n.DX[row*n.DXRow:]
			alone := one.both(s)
			if !slices.Equal(alone.Out[:n.N], all.Out[row*n.OutRow:][:n.N]) || !slices.Equal(alone.DX[:n.N], all.DX[row*n.DXRow:][:n.N]) {
				t.Fatalf("row %d of %d differs where it is alone", row, n.Rows)
			}
		}
	})
}
