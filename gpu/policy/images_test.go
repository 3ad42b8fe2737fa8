package policy

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/policy/head"
)

// discrete is the heads of one action of n values.
func discrete(n int) Heads {
	return Heads{Policy: []Dist{{Action: "action", Categorical: &head.Categorical{N: n}}}}
}

// The figures are from the papers' networks on 84×84×4 with 18 actions.
func TestKindsOfImagesHaveThePapersParameters(t *testing.T) {
	for _, c := range []struct {
		kind         Kind
		hidden       int
		params, conv int
		last         []int
	}{
		{NatureCNN, 512, 32*(8*8*4+1) + 64*(4*4*32+1) + 64*(3*3*64+1) + 512*(7*7*64+1) + 19*513, 3, []int{7, 7, 64}},
		{Impala, 256, 16*(36+1) + 4*16*(144+1) + 32*(144+1) + 4*32*(288+1) + 5*32*(288+1) + 256*(11*11*32+1) + 19*257, 15, []int{11, 11, 32}},
	} {
		n := Body{Inputs: []Input{{Path: "obs", Shape: []int{84, 84, 4}}}, Heads: discrete(18),
			Nodes: c.kind.Nodes("trunk", "obs", []int{c.hidden}, ReLU)}.Network()
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		shapes, _ := n.Shapes()
		convs, dense := 0, ""
		for i := range n.Nodes {
			if n.Nodes[i].Conv2D != nil {
				convs++
			}
			if n.Nodes[i].Name == "trunk.0" {
				dense = n.Nodes[i].In[0]
			}
		}
		if n.ParamCount() != c.params || convs != c.conv || len(shapes[dense]) != 3 || [3]int(shapes[dense]) != [3]int(c.last) {
			t.Errorf("%s: %d parameters, %d convolutions, %v before the dense layer; want %d, %d, %v",
				c.kind, n.ParamCount(), convs, shapes[dense], c.params, c.conv, c.last)
		}
	}
}

func TestHeadsReadTheLastNodeOfTheirPart(t *testing.T) {
	b := Body{Inputs: []Input{{Path: "obs", Shape: []int{4}}}, Heads: discrete(2)}
	b.Nodes = append(append(Kind("").Nodes("trunk", "obs", []int{8}, ReLU), Kind("").Nodes("actor", "trunk.0.activation", []int{8}, ReLU)...),
		Kind("").Nodes("other", "trunk.0", []int{8}, ReLU)...)
	n := b.Network()
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := n.Nodes[len(n.Nodes)-2].In[0]; got != "actor.0.activation" {
		t.Errorf("the policy reads %s, want the actor's last node", got)
	}
	if got := n.Nodes[len(n.Nodes)-1].In[0]; got != "other.0.activation" {
		t.Errorf("the value reads %s, want the last node", got)
	}
}
