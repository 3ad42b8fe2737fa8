package policy

import (
	"strings"
	"testing"
)

func TestSameNetwork_ShowsBothSideBySide(t *testing.T) {
	a := Definition{Network: MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: Tanh}.Network()}
	b := a
	if err := a.SameNetwork(&b); err != nil {
		t.Errorf("of the same: %v", err)
	}
	b.Network = MLP{Obs: 4, Actions: 2, Hidden: []int{32, 64}, Activation: Tanh}.Network()
	err := a.SameNetwork(&b)
	for _, want := range []string{"running", "* actor.0 = dense(64) of obs               actor.0 = dense(32) of obs",
		"  actor.0.activation = tanh of actor.0     actor.0.activation = tanh of actor.0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of others: %v, want %q", err, want)
		}
	}
	if err := a.SameNetwork(nil); err == nil {
		t.Error("of something else: nil")
	}
}
