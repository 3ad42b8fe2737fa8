package cpu

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// A later network's word that this backend does not know is refused, not computed. policytest has a network with each
// word that is known, so that a row which is missing here is told there.
func TestS32WordsThatAreNotKnownHaveNoOperation(t *testing.T) {
	for _, f := range append(layer.Funcs(), "softsign") {
		n := policy.Node{Name: "bent", Activation: &layer.Activation{Func: f}}
		p := &plan.Plan{Steps: []*plan.Step{{Op: n.Activation, Activation: &n}}}
		_, err := plan.Make(p, activations, new(layout).operation)
		if _, known := activations[f]; known != (err == nil) || !known && !strings.Contains(err.Error(), "node bent, "+string(f)) {
			t.Errorf("activation %s: %v", f, err)
		}
	}
	if partOf(&head.Gaussian{N: 1, Squash: "softsign"}) != nil {
		t.Error("squash softsign is drawn")
	}
}
