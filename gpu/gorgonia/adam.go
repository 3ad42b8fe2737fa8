package gorgonia

import "github.com/rlhost/rlhost/gpu/ppo"

// adam is the optimiser's state in the element type of ppo.Adam. Between steps every number in it is a float32,
// so that a State taken out and put back changes nothing.
type adam struct {
	params, m, v, grad []float64
	steps              uint64
}

func (a *adam) set(s ppo.State) {
	a.params, a.m, a.v = widen(s.Params), widen(s.AdamM), widen(s.AdamV)
	a.grad = make([]float64, len(s.Params))
	a.steps = s.AdamSteps
}

func (a *adam) get() ppo.State {
	return ppo.State{Params: narrow(a.params), AdamM: narrow(a.m), AdamV: narrow(a.v), AdamSteps: a.steps}
}

// step descends the gradient and writes the parameters to dst as well.
func (a *adam) step(c *ppo.Config, r ppo.Rates, dst []float32) {
	a.steps++
	ppo.Adam(c, float64(r.LearningRate), a.steps, a.params, a.m, a.v, a.grad)
	for i := range dst {
		dst[i] = float32(a.params[i])
		a.params[i], a.m[i], a.v[i] = float64(dst[i]), float64(float32(a.m[i])), float64(float32(a.v[i]))
	}
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i])
	}
	return y
}
