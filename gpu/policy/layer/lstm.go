package layer

import (
	"fmt"
	"math"
)

// LSTM is a long short-term memory (Hochreiter and Schmidhuber 1997) as PyTorch computes it. Its state is h, which is the
// output, followed by c:
//
//	i, f, o = σ(x·W + b + h·U + u) each   g = tanh(x·W_g + b_g + h·U_g + u_g)
//	c' = f·c + i·g   h' = o·tanh(c')
type LSTM struct {
	Size int `json:"size" toml:"size" doc:"Width of an LSTM." range:"1 or more"`
}

var _ Core = (*LSTM)(nil)

// Shape is [Size].
func (l *LSTM) Shape(in [][]int) ([]int, error) { return coreShape(in, l.Size) }

// Params are weights and biases of i, f, g and o.
func (l *LSTM) Params(in [][]int) []Tensor { return coreParams(in, l.Size, 4) }

// State is h and c.
func (l *LSTM) State() int { return 2 * l.Size }

// Forward is Op's.
func (l *LSTM) Forward(p *Pass) {
	size := l.Size
	for row := range p.Rows {
		state := p.kept(row, 2*size)
		a := l.row(p, row, state)
		next := p.StateOut[row*2*size:][:2*size]
		for j := range size {
			next[size+j] = a.c(j, state[size+j])
			next[j] = a.o[j] * math.Tanh(next[size+j])
		}
		copy(p.Out[row*size:][:size], next)
	}
}

// lstmRow are the gates of a row.
type lstmRow struct{ i, f, g, o []float64 }

// c returns the next c.
func (a *lstmRow) c(j int, c float64) float64 { return a.f[j]*c + a.i[j]*a.g[j] }

func (l *LSTM) row(p *Pass, row int, state []float64) lstmRow {
	size := l.Size
	x, s := p.gates(row, 4*size, state[:size])
	for j := range x {
		if x[j] += s[j]; j/size == 2 {
			x[j] = math.Tanh(x[j])
		} else {
			x[j] = sigmoid(x[j])
		}
	}
	return lstmRow{x[:size], x[size : 2*size], x[2*size : 3*size], x[3*size:]}
}

// Backward is Op's.
func (l *LSTM) Backward(p *Pass) {
	size := l.Size
	later := make([]float64, p.Rows*2*size) // gradient of StateOut by the rows that follow
	for row := p.Rows - 1; row >= 0; row-- {
		state := p.kept(row, 2*size)
		a := l.row(p, row, state)
		dh := p.dKept(row, 2*size, later)
		d := make([]float64, 4*size)
		for j := range size {
			t := math.Tanh(a.c(j, state[size+j]))
			h := p.DOut[row*size+j] + later[row*2*size+j]
			c := later[row*2*size+size+j] + h*a.o[j]*(1-t*t)
			d[j] = c * a.g[j] * a.i[j] * (1 - a.i[j])
			d[size+j] = c * state[size+j] * a.f[j] * (1 - a.f[j])
			d[2*size+j] = c * a.i[j] * (1 - a.g[j]*a.g[j])
			d[3*size+j] = h * t * a.o[j] * (1 - a.o[j])
			dh[size+j] += c * a.f[j]
		}
		p.descend(row, d, d, state[:size], dh[:size])
	}
}

// String is such as lstm(128).
func (l *LSTM) String() string { return fmt.Sprintf("lstm(%d)", l.Size) }
