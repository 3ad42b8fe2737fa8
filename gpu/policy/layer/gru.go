package layer

import (
	"fmt"
	"math"
)

// GRU is a gated recurrent unit (Cho et al. 2014) as PyTorch computes it. Its output is its state h:
//
//	r = σ(x·W_r + b_r + h·U_r + c_r)   z = σ(x·W_z + b_z + h·U_z + c_z)
//	n = tanh(x·W_n + b_n + r·(h·U_n + c_n))   h' = (1 - z)·n + z·h
type GRU struct {
	Size int `json:"size" toml:"size" doc:"Width of a GRU." range:"1 or more"`
}

var _ Core = (*GRU)(nil)

// Shape is [Size].
func (g *GRU) Shape(in [][]int) ([]int, error) { return coreShape(in, g.Size) }

// Params are weights and biases of r, z and n.
func (g *GRU) Params(in [][]int) []Tensor { return coreParams(in, g.Size, 3) }

// State is Size.
func (g *GRU) State() int { return g.Size }

// Forward is Op's.
func (g *GRU) Forward(p *Pass) {
	for row := range p.Rows {
		h := p.kept(row, g.Size)
		a := g.row(p, row, h)
		for j := range g.Size {
			p.Out[row*g.Size+j] = (1-a.z[j])*a.n[j] + a.z[j]*h[j]
		}
		copy(p.StateOut[row*g.Size:][:g.Size], p.Out[row*g.Size:])
	}
}

// gruRow are the gates of a row, and what r is multiplied with.
type gruRow struct{ r, z, n, inner []float64 }

func (g *GRU) row(p *Pass, row int, h []float64) gruRow {
	size := g.Size
	x, s := p.gates(row, 3*size, h)
	a := gruRow{x[:size], x[size : 2*size], x[2*size:], s[2*size:]}
	for j := range size {
		a.r[j] = sigmoid(x[j] + s[j])
		a.z[j] = sigmoid(x[size+j] + s[size+j])
		a.n[j] = math.Tanh(x[2*size+j] + a.r[j]*a.inner[j])
	}
	return a
}

// Backward is Op's.
func (g *GRU) Backward(p *Pass) {
	size := g.Size
	later := make([]float64, p.Rows*size) // gradient of StateOut by the rows that follow
	for row := p.Rows - 1; row >= 0; row-- {
		h := p.kept(row, size)
		a := g.row(p, row, h)
		dh := p.dKept(row, size, later)
		dx, ds := make([]float64, 3*size), make([]float64, 3*size)
		for j := range size {
			d := p.DOut[row*size+j] + later[row*size+j]
			dn := d * (1 - a.z[j]) * (1 - a.n[j]*a.n[j])
			dr := dn * a.inner[j] * a.r[j] * (1 - a.r[j])
			dz := d * (h[j] - a.n[j]) * a.z[j] * (1 - a.z[j])
			dx[j], dx[size+j], dx[2*size+j] = dr, dz, dn
			ds[j], ds[size+j], ds[2*size+j] = dr, dz, dn*a.r[j]
			dh[j] += d * a.z[j]
		}
		p.descend(row, dx, ds, h, dh)
	}
}

// String is such as gru(128).
func (g *GRU) String() string { return fmt.Sprintf("gru(%d)", g.Size) }
