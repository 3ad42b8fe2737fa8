package builtin

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
)

func TestSameNetwork_ShowsBothSideBySide(t *testing.T) {
	a := policy.Definition{Network: policy.Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}}
	b := a
	if err := sameNetwork(&a, &b); err != nil {
		t.Errorf("of the same: %v", err)
	}
	b.Network.Hidden = []int{32}
	err := sameNetwork(&a, &b)
	for _, want := range []string{"running", "* hidden         [64 64]                  [32]", "  activation     tanh                     tanh"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of others: %v, want %q", err, want)
		}
	}
	if sameNetwork(&a, "policy") == nil {
		t.Error("of something else: nil")
	}
}
