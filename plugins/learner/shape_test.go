package learner

import (
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
)

// A weight with one input is a matrix like the others; states that have it as a vector can still be read.
func TestSnapshot_WeightsHaveTwoDimensionsAndBiasesOne(t *testing.T) {
	m := plainMLP()
	m.Hidden = []int{1, 3}
	n := m.Network()
	r := newRig(t, rigOptions{network: n})
	r.teach(t, 0, 0, nil)
	s := r.saved(t)
	want := map[string][]int{"actor.0.weight": {5, 1}, "actor.0.bias": {1}, "actor.1.weight": {1, 3}, "actor.1.bias": {3},
		"actor.head.weight": {3, 2}, "critic.1.weight": {1, 3}, "critic.head.weight": {3, 1}, "critic.head.bias": {1}}
	flat := maps.Clone(s.Tensors)
	for name, shape := range want {
		for _, prefix := range []string{"", adamM, adamV} {
			tensor := s.Tensors[prefix+name]
			if !slices.Equal(tensor.Shape, shape) {
				t.Errorf("%s is saved as %v, want %v", prefix+name, tensor.Shape, shape)
			}
			if tensor.Shape[0] == 1 {
				flat[prefix+name] = component.Tensor{Shape: []int{len(tensor.Data)}, Data: tensor.Data}
			}
		}
	}
	next := newRig(t, rigOptions{network: n, restore: component.State{RawMeta: s.RawMeta, Tensors: flat}})
	again, err := next.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, tensor := range s.Tensors {
		if got := again.Tensors[name]; !slices.Equal(got.Data, tensor.Data) || !slices.Equal(got.Shape, tensor.Shape) {
			t.Errorf("%s from a state with vectors is %v, want %v", name, got, tensor)
		}
	}
}
