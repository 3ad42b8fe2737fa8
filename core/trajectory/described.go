package trajectory

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// As returns the schema of the same blocks for environments that are described otherwise and lie in them in the same way:
// their tensors have the same roles, element types and numbers of elements, but may have other shapes and bounds. The error
// wraps ErrShape.
func (s *Schema) As(spec hostabi.EnvSpec) (*Schema, error) {
	if !slices.EqualFunc(s.Spec.Tensors, spec.Tensors, s.liesAlike) || !slices.Equal(s.Spec.Groups, spec.Groups) {
		return nil, fmt.Errorf("%w: the blocks of %s are laid out for other tensors", ErrShape, spec.Name)
	}
	as := *s
	as.Spec, as.columns = spec, slices.Clone(s.columns)
	for i := range kinds {
		switch k := &kinds[i]; k.first {
		case Obs, FinalObs, PastObs:
			for index, d := range s.Shape.columnsOf(k, &spec) {
				if l := as.find(k.first.At(index)); l != nil {
					l.Shape = dimensions(&d)
				}
			}
		}
	}
	as.actions = as.choices()
	as.divide()
	return &as, nil
}

// liesAlike reports whether two tensors take the same place in a block.
func (s *Schema) liesAlike(a, b hostabi.Tensor) bool {
	const meant = hostabi.TensorPerAgent | hostabi.TensorGather | hostabi.TensorEpisode
	return a.Role == b.Role && a.Index == b.Index && a.Group == b.Group && a.Pair == b.Pair && a.DType == b.DType && (a.Flags^b.Flags)&meant == 0 &&
		a.Elems(hostabi.MaxTensorElems) == b.Elems(hostabi.MaxTensorElems) && (!s.Shape.SoA || a.Image() == b.Image())
}

// dimensions returns the shape of a tensor.
func dimensions(d *hostabi.Tensor) []int {
	shape := make([]int, d.Rank)
	for i, n := range d.Shape[:d.Rank] {
		shape[i] = int(n)
	}
	return shape
}
