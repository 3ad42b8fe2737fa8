package wrap

import (
	"errors"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// flatten makes vectors of all observations. Their elements lie as before, so nothing is copied.
type flatten struct {
	On bool `toml:"flatten" doc:"Flattens all observations into one." range:"true" default:""`
}

func (c *flatten) validate(bad func(key, reason, help string)) { onlyOn("flatten", c.On, bad) }

func (c *flatten) describe(s *hostabi.EnvSpec) error {
	s.Tensors = slices.Clone(s.Tensors)
	found := false
	for i := range s.Tensors {
		t := &s.Tensors[i]
		if t.Rank < 2 || t.Role != hostabi.RoleObservation && t.Role != hostabi.RoleFinalObservation {
			continue
		}
		if t.Image() { // dense within a row, as the environment writes it; vectors need not be
			s.Caps &^= hostabi.CapStrides | hostabi.CapPreferSoA
		}
		n := uint32(t.Elems(hostabi.MaxTensorElems))
		t.Rank, t.Shape, found = 1, [hostabi.MaxRank]uint32{n}, true
		t.Flags &^= hostabi.TensorImageHWC | hostabi.TensorImageCHW
	}
	if !found {
		return errors.New("its observations are vectors already")
	}
	return nil
}

func (c *flatten) around(*wrapped) layer { return plain{} }
