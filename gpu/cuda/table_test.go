package cuda

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// A word that networks may use one day and this backend does not know is nothing that it computes.
func TestS32WordsThatAreNotKnownHaveNoOperation(t *testing.T) {
	if o := new(layout).compile(node{}, &layer.Activation{Func: "softsign"}); o != nil {
		t.Errorf("activation softsign is computed by %T", o)
	}
	_, known := actionOf(&head.Gaussian{N: 1, Squash: "softsign"})
	if known {
		t.Error("squash softsign is drawn")
	}
}
