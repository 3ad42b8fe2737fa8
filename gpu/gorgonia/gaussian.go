package gorgonia

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy/head"
)

func gaussianRow(g *head.Gaussian, params, raw *Node) (logProb, entropy, drift *Node) {
	logSqrt2Pi := math.Log(2*math.Pi) / 2
	mean, logStd := columns(params, 0, g.N), columns(params, g.N, g.N)
	bounds := g.LogStdRange()
	logStd = clamp(logStd, fill(logStd, bounds.Min), fill(logStd, bounds.Max))
	z := mul(sub(raw, mean), exp(scale(logStd, -1)))
	row := add(scale(square(z), 0.5), add(logStd, fill(logStd, logSqrt2Pi)))
	if g.Squash == head.Tanh {
		size := most(raw, scale(raw, -1))
		soft := add(most(scale(raw, -2), fill(raw, 0)), log(add(exp(scale(size, -2)), fill(raw, 1))))
		row = add(row, scale(sub(sub(fill(raw, math.Ln2), raw), soft), 2))
	}
	logProb = scale(sumRow(row), -1)
	if g.Squash == head.Tanh {
		return logProb, still(sumRow(row)), driftRow(mean, logStd, raw)
	}
	return logProb, sumRow(add(logStd, fill(logStd, logSqrt2Pi+0.5))), nil
}

// driftRow returns 0 with the gradient of a squashed Gaussian's entropy, as head.Gaussian has it.
func driftRow(mean, logStd, raw *Node) *Node {
	bend := scale(gorgonia.Must(gorgonia.Tanh(raw)), -2)
	moves := sumRow(add(mul(bend, mean), mul(logStd, add(fill(raw, 1), mul(bend, sub(raw, still(mean)))))))
	return sub(moves, still(moves))
}
