package policy

import (
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// scaleEps is added to the variance, so that an element that never changes has a finite scale.
const scaleEps = 1e-8

// Normalizer keeps the mean and variance of every element with running statistics over all valid rows of all datasets, in
// float64, by the pairwise update of Chan, Golub and LeVeque (1983). Its exported fields are its whole state and
// may be copied, stored and set. It belongs to one goroutine.
type Normalizer struct {
	Count float64   `json:"count"`
	Mean  []float64 `json:"mean"`
	M2    []float64 `json:"m2"` // sum of squared deviations

	sum, dev []float64
}

// NewNormalizer returns a normaliser of so many elements that has seen nothing: mean 0, scale 1.
func NewNormalizer(elems int) *Normalizer {
	return &Normalizer{Mean: make([]float64, elems), M2: make([]float64, elems)}
}

// Update merges the observations of a checked dataset's valid rows, of the network's inputs with running statistics.
// An element that is not finite is a *RowError, and nothing is merged.
func (z *Normalizer) Update(d *Dataset, n *Network) error {
	if len(z.sum) != len(z.Mean) {
		z.sum, z.dev = make([]float64, len(z.Mean)), make([]float64, len(z.Mean))
	}
	clear(z.sum)
	clear(z.dev)
	count, at := 0.0, 0
	for i := range n.Inputs {
		in := &n.Inputs[i]
		if in.Norm != Running {
			continue
		}
		end := at + layer.Elems(in.Shape)
		rows, err := moments(d, in, z.sum[at:end], z.dev[at:end])
		if err != nil {
			return err
		}
		count, at = rows, end
	}
	if count > 0 {
		z.merge(count)
	}
	return nil
}

// moments computes the means and the sums of squared deviations of an input's elements over the valid rows, which it
// counts.
func moments(d *Dataset, in *Input, mean, dev []float64) (rows float64, err error) {
	column, _, err := in.column(d.Blocks[0].Schema)
	if err != nil {
		return 0, err
	}
	err = eachObs(d, in, column, func(row int, obs []float32, stride int) error {
		rows++
		for i := range mean {
			x := obs[i*stride]
			if x-x != 0 {
				return d.RowError(row, column, ErrNotFinite)
			}
			mean[i] += float64(x)
		}
		return nil
	})
	if err != nil || rows == 0 {
		return rows, err
	}
	for i := range mean {
		mean[i] /= rows
	}
	return rows, eachObs(d, in, column, func(row int, obs []float32, stride int) error {
		for i, mean := range mean {
			x := obs[i*stride]
			if x-x != 0 {
				return d.RowError(row, column, ErrNotFinite)
			}
			dev[i] += (float64(x) - mean) * (float64(x) - mean)
		}
		return nil
	})
}

func (z *Normalizer) merge(count float64) {
	total := z.Count + count
	for i, mean := range z.sum {
		delta := mean - z.Mean[i]
		z.Mean[i] += delta * count / total
		z.M2[i] += z.dev[i] + delta*delta*z.Count*count/total
	}
	z.Count = total
}

// Weights writes the normaliser's factors to the slices of Weights and Dataset: mean and 1/√(variance + 1e-8).
func (z *Normalizer) Weights(mean, scale []float32) {
	for i := range z.Mean {
		mean[i], scale[i] = float32(z.Mean[i]), 1
		if z.Count > 0 {
			scale[i] = float32(1 / math.Sqrt(z.M2[i]/z.Count+scaleEps))
		}
	}
}

// Set sets the statistics so that Weights returns mean and scale, as if they came from so many rows.
func (z *Normalizer) Set(mean, scale []float32, rows float64) {
	z.Count = rows
	for i := range mean {
		s := float64(scale[i])
		z.Mean[i], z.M2[i] = float64(mean[i]), max(1/(s*s)-scaleEps, 0)*rows
	}
}

// eachObs calls visit with an input's elements in every valid row in row order; element i is at obs[i*stride].
func eachObs(d *Dataset, in *Input, column trajectory.Column, visit func(row int, obs []float32, stride int) error) error {
	l, _ := d.Blocks[0].Schema.Layout(column)
	x := &entered{Input: in, dtype: l.DType}
	var numbers []float32 // of elements of another type
	if l.DType != hostabi.F32 {
		numbers = make([]float32, l.Elems)
	}
	n := d.BlockEnvs()
	row := 0
	for t := range d.Steps() {
		for i := range d.Blocks {
			b := &d.Blocks[i]
			obs, bytes, valid := b.Float32(column), b.Bytes(column), d.Valid(i)[t*n:]
			for e := range n {
				if valid[e] != 0 {
					at := t*l.StrideT + e*l.StrideEnv
					of, stride := numbers, 1
					if obs != nil {
						of, stride = obs[at/4:], l.StrideElem/4
					}
					for i := range numbers {
						numbers[i] = x.number(bytes[at+i*l.StrideElem:])
					}
					if err := visit(row, of, stride); err != nil {
						return err
					}
				}
				row++
			}
		}
	}
	return nil
}
