package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// unit is an element of a recurrent cell in float64: its result and what it keeps, of the sums of its gates and its state.
type unit struct {
	gates, state int
	run          func(c *Cell, s Set)
	forward      func(x, s, state []float64) (out, kept float64)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

var units = map[string]unit{
	"gru": {3, 1, (*Cell).GRU, func(x, s, state []float64) (out, kept float64) {
		r, z := logistic(x[0]+s[0]), logistic(x[1]+s[1])
		out = (1-z)*math.Tanh(x[2]+r*s[2]) + z*state[0]
		return out, 0
	}},
	"lstm": {4, 2, (*Cell).LSTM, func(x, s, state []float64) (out, kept float64) {
		kept = logistic(x[1]+s[1])*state[1] + logistic(x[0]+s[0])*math.Tanh(x[2]+s[2])
		return logistic(x[3]+s[3]) * math.Tanh(kept), kept
	}},
}

// pair is the forward and the backward pass of one random cell.
type pair struct {
	Cell                   // before both
	later        []float32 // of an LSTM, the next rows' part of the gradient of its state
	after, there Cell      // after the forward pass, and after both
}

// cells makes a random cell, whose rows have guard elements between them, and computes both passes.
func (u *unit) cells(r *rand.Rand, s Set) *pair {
	c := Cell{Rows: 1 + r.IntN(9), N: Panel * (1 + r.IntN(4))}
	c.XRow, c.SRow, c.HRow = u.gates*c.N+r.IntN(9), u.gates*c.N+r.IntN(9), u.state*c.N+r.IntN(9)
	c.ORow, c.DHRow = c.N+r.IntN(9), c.N+r.IntN(9)
	c.X, c.S, c.H = random(r, c.Rows*c.XRow), random(r, c.Rows*c.SRow), random(r, c.Rows*c.HRow)
	c.Out, c.D, c.DH = random(r, c.Rows*c.ORow), random(r, c.Rows*c.ORow), random(r, c.Rows*c.DHRow)
	p := &pair{Cell: c, later: random(r, c.Rows*c.N)}
	u.both(p, s)
	return p
}

func (u *unit) both(p *pair, s Set) {
	p.after = p.Cell
	p.after.D = nil
	for _, x := range []*[]float32{&p.after.X, &p.after.S, &p.after.Out} {
		*x = slices.Clone(*x)
	}
	u.run(&p.after, s)
	p.there = p.after
	for _, x := range []*[]float32{&p.there.X, &p.there.S, &p.there.DH} {
		*x = slices.Clone(*x)
	}
	p.there.D = p.D
	for i := range p.Rows * p.N {
		if u.state == 2 {
			p.there.S[i/p.N*p.SRow+2*p.N+i%p.N] += p.later[i]
		}
	}
	u.run(&p.there, s)
}

// element returns gates or parts of the state of element i.
func element(x []float32, row, n, i, count int) (all []float64) {
	for k := range count {
		all = append(all, float64(x[i/n*row+k*n+i%n]))
	}
	return all
}

// Results equal the formulas in float64, gradients equal differences in float64.
func TestCellsEqualTheirFormulasInFloat64(t *testing.T) {
	for name, u := range units {
		eachSet(t, func(t *testing.T, s Set) {
			r := rng(t)
			for range rounds(40) {
				p := u.cells(r, s)
				for i := range p.Rows * p.N {
					if err := u.compare(p, i); err != nil {
						t.Fatalf("%s, %d rows of %d, element %d: %v", name, p.Rows, p.N, i, err)
					}
				}
			}
		})
	}
}

func (u *unit) compare(p *pair, i int) error {
	x, s := element(p.X, p.XRow, p.N, i, u.gates), element(p.S, p.SRow, p.N, i, u.gates)
	state := element(p.H, p.HRow, p.N, i, u.state)
	out, kept := u.forward(x, s, state)
	d, later := float64(p.D[i/p.N*p.ORow+i%p.N]), float64(p.later[i])
	slope := func(at *float64) float64 {
		const step = 1e-6
		loss := func(by float64) float64 {
			before := *at
			*at += by
			out, kept := u.forward(x, s, state)
			*at = before
			return d*out + later*kept
		}
		return (loss(step) - loss(-step)) / (2 * step)
	}
	var err error
	check := func(what string, got, want float64) {
		if err == nil && !(math.Abs(got-want) <= 4e-6*(1+math.Abs(want))) {
			err = fmt.Errorf("%s %v, want %v", what, got, want)
		}
	}
	check("result", element(p.after.Out, p.ORow, p.N, i, 1)[0], out)
	for k, got := range element(p.there.X, p.XRow, p.N, i, u.gates) {
		check(fmt.Sprintf("gradient of gate %d", k), got, slope(&x[k]))
	}
	dh := element(p.there.DH, p.DHRow, p.N, i, 1)[0]
	if u.state == 2 {
		check("state", element(p.after.S, p.SRow, p.N, i, 2)[1], kept)
		check("gradient of the state", dh, slope(&state[1]))
		return err
	}
	check("gradient of the state", dh, slope(&state[0]))
	for k, got := range element(p.there.S, p.SRow, p.N, i, u.gates) {
		check(fmt.Sprintf("gradient of the state's part of gate %d", k), got, slope(&s[k]))
	}
	return err
}

// written is a matrix that a pass writes to: before the passes, and after.
type written struct {
	before, got []float32
	row, wide   int // between rows, and of one
}

func (u *unit) written(p *pair) []written {
	x, s, h := u.gates*p.N, u.gates*p.N, p.N
	return []written{{p.X, p.after.X, p.XRow, x}, {p.S, p.after.S, p.SRow, s}, {p.Out, p.after.Out, p.ORow, h},
		{p.X, p.there.X, p.XRow, x}, {p.S, p.there.S, p.SRow, s}, {p.DH, p.there.DH, p.DHRow, h}}
}

func TestCellsWriteNothingBetweenTheirRows(t *testing.T) {
	for name, u := range units {
		eachSet(t, func(t *testing.T, s Set) {
			p := u.cells(rng(t), s)
			for k, m := range u.written(p) {
				for i, want := range m.before {
					if i%m.row >= m.wide && m.got[i] != want {
						t.Fatalf("%s: matrix %d, element %d behind row %d became %v", name, k, i%m.row-m.wide, i/m.row, m.got[i])
					}
				}
			}
		})
	}
}

func TestCellRowsAreIndependentOfTheOthersInEveryBit(t *testing.T) {
	for name, u := range units {
		eachSet(t, func(t *testing.T, s Set) {
			r := rng(t)
			for range rounds(40) {
				p := u.cells(r, s)
				row := r.IntN(p.Rows)
				one := &pair{Cell: p.Cell, later: p.later[row*p.N:]}
				one.Rows, one.X, one.S, one.H = 1, p.X[row*p.XRow:], p.S[row*p.SRow:], p.H[row*p.HRow:]
				one.Out, one.D, one.DH = p.Out[row*p.ORow:], p.D[row*p.ORow:], p.DH[row*p.DHRow:]
				u.both(one, s)
				all := u.written(p)
				for k, m := range u.written(one) {
					if !slices.Equal(m.got[:m.wide], all[k].got[row*m.row:][:m.wide]) {
						t.Fatalf("%s: matrix %d of row %d of %d differs where it is alone", name, k, row, p.Rows)
					}
				}
			}
		})
	}
}

// NaN must stay visible.
func TestCellsKeepNaN(t *testing.T) {
	for name, u := range units {
		eachSet(t, func(t *testing.T, s Set) {
			p := u.cells(rng(t), s)
			for k := range u.gates {
				one := &pair{Cell: p.Cell, later: p.later}
				one.X = slices.Clone(p.X)
				one.X[k*p.N+3] = float32(math.NaN())
				u.both(one, s)
				if !math.IsNaN(float64(one.after.Out[3])) {
					t.Errorf("%s: gate %d turns NaN into %v", name, k, one.after.Out[3])
				}
			}
		})
	}
}
