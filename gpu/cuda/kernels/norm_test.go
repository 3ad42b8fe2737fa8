package kernels

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// halves adds up sixteen sums in halves.
func halves(s [16]float32) float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

// The forward pass is held to gpu/cpu by TestActing_HasTheProcessorsBits; this is the backward pass, of rows that are one group and of several.
func TestLayerNorm_PassesGradientsOn(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {40, 37, 1}, {70, 16, 3}} {
		rows, n, groups := s[0], s[1], s[2]
		all, row := rows*groups, n*groups+2
		size := (rows-1)*row + n*groups
		r := newRig(t)
		x, d, dx, weight := r.floats(size), r.floats(size), r.floats(size), r.floats(n)
		args := Norm{X: put(r, x...), Weight: put(r, weight...), Bias: put(r, r.floats(n)...), Out: room[float32](r, size),
			Moments: room[float32](r, 2*all), Rows: int32(all), N: int32(n), XRow: int32(row), OutRow: int32(row), DRow: int32(row), DXRow: int32(row),
			Groups: int32(groups), Epilogue: ReLU}
		run(r, LayerNormKernel, Halves(all), args)
		runShort(r, LayerNormKernel, Halves(all), args)
		moments := get[float32](r, args.Moments, 2*all)
		parts, runs := 3, 64
		want, dWeight, dBias := append([]float32(nil), dx...), make([]float32, parts*n), make([]float32, parts*n)
		at := func(i int) int { return i/groups*row + i%groups*n }
		for i := range all {
			mean, inverse := moments[2*i], moments[2*i+1]
			var sum, along [16]float32
			for j := range n {
				g := d[at(i)+j] * weight[j]
				sum[j%16] += g
				along[j%16] = fma(g, (x[at(i)+j]-mean)*inverse, along[j%16])
			}
			grad, slope := halves(sum)/float32(n), halves(along)/float32(n)
			for j := range n {
				z, g := (x[at(i)+j]-mean)*inverse, d[at(i)+j]*weight[j]
				want[at(i)+j] = fma(inverse, g-fma(slope, z, grad), want[at(i)+j])
			}
		}
		inParts(all, parts, runs, func(p, lo, hi int) {
			for j := range n {
				var w, b float32
				for i := lo; i < hi; i++ {
					w = fma(d[at(i)+j], (x[at(i)+j]-moments[2*i])*moments[2*i+1], w)
					b += d[at(i)+j]
				}
				dWeight[p*n+j] += w
				dBias[p*n+j] += b
			}
		})
		args.D, args.DX = put(r, d...), put(r, dx...)
		args.Out, args.Bias = 0, 0
		run(r, LayerNormBackKernel, Halves(all), args)
		same(t, "gradient of the input", get[float32](r, args.DX, size), want)
		runShort(r, LayerNormBackKernel, Halves(all), args)
		args.DX = 0
		outer := NormOuter{Norm: args, DWeight: room[float32](r, parts*n), DBias: room[float32](r, parts*n), Part: int64(n), Parts: int32(parts), Run: int32(runs)}
		outer.Norm.Weight = 0
		grid := driver.Dim{X: Blocks(n).X, Y: parts}
		run(r, LayerNormOuterKernel, grid, outer)
		same(t, "gradient of the weight", get[float32](r, outer.DWeight, parts*n), dWeight)
		same(t, "gradient of the bias", get[float32](r, outer.DBias, parts*n), dBias)
		runShort(r, LayerNormOuterKernel, grid, outer)
	}
}

// cellRig is the buffers of a cell with rows apart.
type cellRig struct {
	*rig
	x, s, h, d []float32
	args       Cell
	rows, n    int
	gates      int
}

func newCellRig(t *testing.T, rows, n, gates int) *cellRig {
	r := newRig(t)
	row := func(elems int) int { return elems + 5 }
	size := func(elems int) int { return (rows-1)*row(elems) + elems }
	kept := gates - 2 // parts of the state: 1 of a GRU, 2 of an LSTM
	c := &cellRig{rig: r, x: r.floats(size(gates * n)), s: r.floats(size(gates * n)), h: r.floats(size(kept * n)), d: r.floats(size(n)), rows: rows, n: n, gates: gates}
	c.args = Cell{X: put(r, c.x...), S: put(r, c.s...), H: put(r, c.h...), Out: room[float32](r, size(n)), D: put(r, c.d...), DH: room[float32](r, size(n)),
		Rows: int32(rows), N: int32(n), XRow: int32(row(gates * n)), SRow: int32(row(gates * n)), HRow: int32(row(kept * n)),
		OutRow: int32(row(n)), DRow: int32(row(n)), DHRow: int32(row(n))}
	return c
}

// gate returns gate k of element j of a row in one of the buffers.
func (c *cellRig) gate(x []float32, row, k, j int) *float32 {
	elems := c.gates
	switch len(x) {
	case len(c.h):
		elems = c.gates - 2
	}
	return &x[row*(elems*c.n+5)+k*c.n+j]
}

// backward runs a cell forward and back and compares all that it writes.
func (c *cellRig) backward(t *testing.T, forward, back Kernel[Cell], want func(row, j int) (dh float32)) {
	grid := Blocks(c.rows * c.n)
	a := c.args
	a.D, a.DH = 0, 0
	run(c.rig, forward, grid, a)
	c.x, c.s = get[float32](c.rig, c.args.X, len(c.x)), get[float32](c.rig, c.args.S, len(c.s))
	if c.gates == 4 { // what later rows add
		for row := range c.rows {
			for j := range c.n {
				later := c.gate(c.s, row, 2, j)
				if *later != 0 {
					t.Fatalf("the sum of what later rows add begins with %v", *later)
				}
				*later = float32(c.random.NormFloat64())
			}
		}
		copy(view[float32](c.rig, c.args.S, len(c.s)), c.s)
	}
	runShort(c.rig, forward, grid, a)
	copy(view[float32](c.rig, c.args.X, len(c.x)), c.x) // the runs that fault have written
	copy(view[float32](c.rig, c.args.S, len(c.s)), c.s)
	dh := filled(len(c.d), poison)
	for row := range c.rows {
		for j := range c.n {
			dh[row*(c.n+5)+j] = want(row, j)
		}
	}
	a = c.args
	a.Out = 0
	if c.gates == 4 {
		c.forget(a.S) // nothing is in its last gate
	}
	run(c.rig, back, grid, a)
	same(t, "gradient of the gates", get[float32](c.rig, a.X, len(c.x)), c.x)
	same(t, "gradient of the state's part", get[float32](c.rig, a.S, len(c.s)), c.s)
	same(t, "gradient of the state before", get[float32](c.rig, a.DH, len(dh)), dh)
	runShort(c.rig, back, grid, a)
}

func TestGRU_PassesGradientsOn(t *testing.T) {
	for _, rows := range []int{1, 20} {
		c := newCellRig(t, rows, 16, 3)
		c.backward(t, GRUKernel, GRUBackKernel, func(row, j int) float32 {
			x := func(k int) *float32 { return c.gate(c.x, row, k, j) }
			s := func(k int) *float32 { return c.gate(c.s, row, k, j) }
			r, z, a, inner, h, d := *x(0), *x(1), *x(2), *s(2), *c.gate(c.h, row, 0, j), c.d[row*(c.n+5)+j]
			da := (1 - z) * d * fma(-a, a, 1)
			*x(0) = inner * da * fma(-r, r, r)
			*x(1) = (h - a) * d * fma(-z, z, z)
			*x(2), *s(0), *s(1), *s(2) = da, *x(0), *x(1), da*r
			return d * z
		})
	}
}

func TestLSTM_PassesGradientsOn(t *testing.T) {
	for _, rows := range []int{1, 20} {
		c := newCellRig(t, rows, 16, 4)
		c.backward(t, LSTMKernel, LSTMBackKernel, func(row, j int) float32 {
			x := func(k int) *float32 { return c.gate(c.x, row, k, j) }
			i, f, g, o := *x(0), *x(1), *x(2), *x(3)
			th, later, cell, d := *c.gate(c.s, row, 0, j), *c.gate(c.s, row, 2, j), *c.gate(c.h, row, 1, j), c.d[row*(c.n+5)+j]
			own := fma(fma(-th, th, 1), d*o, later)
			*x(0) = own * g * fma(-i, i, i)
			*x(1) = own * cell * fma(-f, f, f)
			*x(2) = own * i * fma(-g, g, 1)
			*x(3) = d * th * fma(-o, o, o)
			return own * f
		})
	}
}

func TestSigmoid_IsTheLogisticFunction(t *testing.T) {
	for _, x := range []float32{-9, -1, 0, 0.5, 3} {
		if got, want := float64(sigmoid(x)), 1/(1+math.Exp(-float64(x))); math.Abs(got-want) > 1e-6 {
			t.Errorf("sigmoid(%v) = %v, want %v", x, got, want)
		}
	}
}
