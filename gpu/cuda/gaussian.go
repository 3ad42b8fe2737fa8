package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// gaussian is an action of normal elements, which take a number of the random stream for each two.
func gaussian(of *head.Gaussian) action {
	within := of.LogStdRange()
	a := action{kind: kernels.Normal, draws: int32(of.N+1) / 2, low: float32(within.Min), high: float32(within.Max)}
	if of.Squash == head.Tanh {
		a.kind = kernels.TanhNormal
	}
	return a
}
