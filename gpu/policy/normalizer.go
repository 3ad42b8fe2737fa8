package policy

import (
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
)

// scaleEps is added to the variance, so that an element that never changes has a finite scale.
const scaleEps = 1e-8

// Normalizer keeps the mean and variance of every observed element over all valid rows of all datasets, in
// float64, by the pairwise update of Chan, Golub and LeVeque (1983). Its exported fields are its whole state and
// may be copied, stored and set. It belongs to one goroutine.
type Normalizer struct {
	Count float64   `json:"count"`
	Mean  []float64 `json:"mean"`
	M2    []float64 `json:"m2"` // sum of squared deviations

	sum, dev []float64
}

// NewNormalizer returns a normaliser that has seen nothing: mean 0, scale 1.
func NewNormalizer(obs int) *Normalizer {
	return &Normalizer{Mean: make([]float64, obs), M2: make([]float64, obs)}
}

// Update merges the observations that the valid rows of a checked dataset acted on. An element that is not finite
// is a *RowError, and nothing is merged.
func (z *Normalizer) Update(d *Dataset) error {
	if len(z.sum) != len(z.Mean) {
		z.sum, z.dev = make([]float64, len(z.Mean)), make([]float64, len(z.Mean))
	}
	clear(z.sum)
	clear(z.dev)
	count := 0.0
	err := eachObs(d, func(row int, obs []float32, stride int) error {
		count++
		for i := range z.sum {
			x := obs[i*stride]
			if x-x != 0 {
				return d.RowError(row, trajectory.Obs, ErrNotFinite)
			}
			z.sum[i] += float64(x)
		}
		return nil
	})
	if err != nil || count == 0 {
		return err
	}
	for i := range z.sum {
		z.sum[i] /= count
	}
	err = eachObs(d, func(row int, obs []float32, stride int) error {
		for i, mean := range z.sum {
			x := obs[i*stride]
			if x-x != 0 {
				return d.RowError(row, trajectory.Obs, ErrNotFinite)
			}
			z.dev[i] += (float64(x) - mean) * (float64(x) - mean)
		}
		return nil
	})
	if err != nil {
		return err
	}
	z.merge(count)
	return nil
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

// Weights writes what observations are normalised with to the slices of Weights and Dataset: mean and
// 1/√(variance + 1e-8).
func (z *Normalizer) Weights(mean, scale []float32) {
	for i := range z.Mean {
		mean[i], scale[i] = float32(z.Mean[i]), 1
		if z.Count > 0 {
			scale[i] = float32(1 / math.Sqrt(z.M2[i]/z.Count+scaleEps))
		}
	}
}

// Set makes the statistics those whose Weights are mean and scale, as if they came from so many rows.
func (z *Normalizer) Set(mean, scale []float32, rows float64) {
	z.Count = rows
	for i := range mean {
		s := float64(scale[i])
		z.Mean[i], z.M2[i] = float64(mean[i]), max(1/(s*s)-scaleEps, 0)*rows
	}
}

// eachObs calls visit with the observation of every valid row in row order; element i is at obs[i*stride].
func eachObs(d *Dataset, visit func(row int, obs []float32, stride int) error) error {
	l, _ := d.Blocks[0].Schema.Layout(trajectory.Obs)
	n := d.BlockEnvs()
	row := 0
	for t := range d.Steps() {
		for _, b := range d.Blocks {
			obs, valid := b.Float32(trajectory.Obs), b.Bytes(trajectory.Valid)[t*n:]
			for e := range n {
				if valid[e] != 0 {
					if err := visit(row, obs[(t*l.StrideT+e*l.StrideEnv)/4:], l.StrideElem/4); err != nil {
						return err
					}
				}
				row++
			}
		}
	}
	return nil
}
