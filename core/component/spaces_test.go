package component_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/component"

	"github.com/rlhost/rlhost/hostabi"
)

func TestSpacesError_ShowsBothSideBySide(t *testing.T) {
	spec := func(name string, elems uint32, modes hostabi.Autoreset) hostabi.EnvSpec {
		return hostabi.EnvSpec{Name: name, Autoreset: modes, Tensors: []hostabi.Tensor{
			{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2},
			{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{elems}},
		}}
	}
	e := &component.SpacesError{Component: "rollout", Reason: "it observes f32[8], not f32[4]",
		Running: spec("cart@1", 4, hostabi.SameStep|hostabi.Disabled), Next: spec("lander@2", 8, hostabi.NextStep)}
	if got, want := fmt.Errorf("swap: %w", e).Error(), "swap: rollout: lander@2 cannot take the place of cart@1: it observes f32[8], not f32[4]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want := `               cart@1 (running)                 lander@2 (new)
* observation  Box[4]                           Box[8]
  action       Discrete(2)                      Discrete(2)
  action mask  none                             none
* autoreset    same_step, disabled              next_step
`
	if got := e.Table(); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	var spaces *component.SpacesError
	if !errors.As(fmt.Errorf("x: %w", e), &spaces) {
		t.Error("cannot be found in an error")
	}
}
