package policy

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

func TestSameNetwork_ShowsBothSideBySide(t *testing.T) {
	a := Definition{Network: MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: Tanh}.Network()}
	b := a
	if err := a.SameNetwork(&b); err != nil {
		t.Errorf("of the same: %v", err)
	}
	b.Network = MLP{Obs: 4, Actions: 2, Hidden: []int{32, 64}, Activation: Tanh}.Network()
	err := a.SameNetwork(&b)
	for _, want := range []string{"running", "* actor.0 = dense(64) of obs                    actor.0 = dense(32) of obs",
		"  actor.0.activation = tanh of actor.0          actor.0.activation = tanh of actor.0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of others: %v, want %q", err, want)
		}
	}
	c := Definition{Network: keeping(4)}
	d := Definition{Network: keeping(8)}
	if err := c.SameNetwork(&d); err == nil || !strings.Contains(err.Error(), "* learned in chunks of 4 rows                  learned in chunks of 8 rows") {
		t.Errorf("of other chunks: %v", err)
	}
	if err := a.SameNetwork(nil); err == nil {
		t.Error("of something else: nil")
	}
}

// keeping is a network with a state.
func keeping(chunk int) Network {
	n := MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: Tanh, ShareTrunk: true}.Network()
	n.Nodes[1], n.Chunk = Node{Name: n.Nodes[1].Name, In: n.Nodes[1].In, GRU: &layer.GRU{Size: 8}}, chunk
	return n
}
