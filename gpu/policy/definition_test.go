package policy

import (
	"strings"
	"testing"
)

func TestSameNetwork_ShowsBothSideBySide(t *testing.T) {
	a := Definition{Network: Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: Tanh}}
	b := a
	if err := a.SameNetwork(&b); err != nil {
		t.Errorf("of the same: %v", err)
	}
	b.Network.Hidden = []int{32}
	err := a.SameNetwork(&b)
	for _, want := range []string{"running", "* hidden         [64 64]                  [32]", "  activation     tanh                     tanh"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of others: %v, want %q", err, want)
		}
	}
	if err := a.SameNetwork(nil); err == nil {
		t.Error("of something else: nil")
	}
}
