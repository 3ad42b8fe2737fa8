package policy

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/hostabi"
)

// ActionOptions say how Box actions are drawn.
type ActionOptions struct {
	Squash  head.Squash
	Rescale bool
	LogStd  head.Range // as Gaussian.LogStd
}

// DistsOf returns a distribution for each action of an environment, without the nodes that they read: Gaussian for a Box,
// Categorical for one Discrete element, Bernoulli for elements of 0 and 1, MultiCategorical for others. Bounds that must
// be finite and are not are ErrUnbounded.
func DistsOf(env *hostabi.EnvSpec, o ActionOptions) ([]Dist, error) {
	var list []Dist
	for i, t := range env.All(hostabi.RoleAction) {
		d := distOf(&t, o)
		if d.Action = "action"; i > 0 {
			d.Action = fmt.Sprintf("action/%d", i)
		}
		of, err := d.Of()
		if err == nil {
			err = d.checkBounds(of)
		}
		if err != nil {
			return nil, fmt.Errorf("action %q%w", d.Action, err)
		}
		list = append(list, d)
	}
	return list, nil
}

func distOf(t *hostabi.Tensor, o ActionOptions) (d Dist) {
	n := t.Elems(hostabi.MaxTensorElems)
	switch {
	case !t.Discrete():
		d.Gaussian, d.Bounds = &head.Gaussian{N: n, Squash: o.Squash, LogStd: o.LogStd}, &Bounds{Rescale: o.Rescale}
		for i := range n {
			low, high := t.Bounds(i)
			d.Bounds.Low = append(d.Bounds.Low, max(low, -Unbounded))
			d.Bounds.High = append(d.Bounds.High, min(high, Unbounded))
		}
		return d
	case n == 1:
		d.Categorical = &head.Categorical{N: t.Count(0)}
	case t.Flags&hostabi.TensorBinary != 0 && t.N == 2:
		d.Bernoulli = &head.Bernoulli{N: n}
	default:
		d.MultiCategorical = &head.MultiCategorical{}
		for i := range n {
			d.MultiCategorical.Counts = append(d.MultiCategorical.Counts, t.Count(i))
		}
	}
	d.Start = t.Start
	return d
}
