package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// The canonical vector of an MLP is the same as in checkpoints since format 0.
func TestS24DescriptionsGiveTheSameParameters(t *testing.T) {
	for want, m := range map[string]MLP{
		"actor.0.weight[4 8] actor.0.bias[8] actor.head.weight[8 2] actor.head.bias[2] " +
			"critic.0.weight[4 8] critic.0.bias[8] critic.head.weight[8 1] critic.head.bias[1]": {Obs: 4, Actions: 2, Hidden: []int{8}, Activation: Tanh},
		"trunk.0.weight[4 8] trunk.0.bias[8] actor.head.weight[8 2] actor.head.bias[2] critic.head.weight[8 1] critic.head.bias[1]": {
			Obs: 4, Actions: 2, Hidden: []int{8}, Activation: Tanh, ShareTrunk: true},
		"actor.head.weight[4 2] actor.head.bias[2] critic.head.weight[4 1] critic.head.bias[1]": {Obs: 4, Actions: 2, Activation: Tanh},
	} {
		n := m.Network()
		var got []string
		end := 0
		for _, p := range n.Params() {
			got = append(got, p.Name+fmt.Sprint(p.Shape))
			if p.Offset != end {
				t.Errorf("%s begins at %d, want %d", p.Name, p.Offset, end)
			}
			end += p.Rows * p.Cols
		}
		if strings.Join(got, " ") != want {
			t.Errorf("parameters %v, want %s", got, want)
		}
		old, _ := json.Marshal(m)
		data, _ := json.Marshal(n)
		var converted, again Network
		if err := errors.Join(json.Unmarshal(old, &converted), json.Unmarshal(data, &again)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(converted, n) || !reflect.DeepEqual(again, n) {
			t.Errorf("%s comes back as %+v, %s as %+v", old, converted, data, again)
		}
	}
}

func TestHashIsThatOfTheFunction(t *testing.T) {
	base := MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: Tanh}
	hash := func(edit func(*MLP)) [32]byte {
		m := base
		edit(&m)
		n := m.Network()
		return n.Hash()
	}
	want := hash(func(*MLP) {})
	if hash(func(m *MLP) { m.HiddenGain = 3 }) != want {
		t.Error("initial values change the hash")
	}
	for i, edit := range []func(*MLP){func(m *MLP) { m.Obs++ }, func(m *MLP) { m.Actions++ }, func(m *MLP) { m.Hidden = []int{9} },
		func(m *MLP) { m.Activation = ELU }, func(m *MLP) { m.NormalizeObs = true }, func(m *MLP) { m.ShareTrunk = true }} {
		if hash(edit) == want {
			t.Errorf("change %d leaves the hash", i)
		}
	}
}

func TestValidateNamesTheErrors(t *testing.T) {
	for want, edit := range map[string]func(*Network){
		"format 7":                                       func(n *Network) { n.Format = 7 },
		`two inputs are called "obs"`:                    func(n *Network) { n.Inputs = append(n.Inputs, n.Inputs[0]) },
		`input "obs" of shape []`:                        func(n *Network) { n.Inputs[0].Shape = []int{0} },
		`with norm "log"`:                                func(n *Network) { n.Inputs[0].Norm = "log" },
		`node "actor.0" has 0 operations`:                func(n *Network) { n.Nodes[0].Dense = nil },
		`node "actor.0" has 2 operations`:                func(n *Network) { n.Nodes[0].Activation = &layer.Activation{Func: Tanh} },
		`node "actor.0" reads "critic.0", which is none`: func(n *Network) { n.Nodes[0].In = []string{"critic.0"} },
		`node "actor.0": 2 inputs, want one`:             func(n *Network) { n.Nodes[0].In = []string{"obs", "obs"} },
		`node "actor.0": 0 outputs`:                      func(n *Network) { n.Nodes[0].Dense = &layer.Dense{} },
		`activation "softsign"`:                          func(n *Network) { n.Nodes[1].Activation = &layer.Activation{Func: "softsign"} },
		`two nodes are called "obs"`:                     func(n *Network) { n.Nodes[0].Name = "obs" },
		`action "action": categorical(2) of node "x"`:    func(n *Network) { n.Policy[0].From = "x" },
		`action "action" has 0 operations`:               func(n *Network) { n.Policy[0].Categorical = nil },
		`value "value" of node "actor.head"`:             func(n *Network) { n.Values[0].From = "actor.head" },
		`value "value" of node ""`:                       func(n *Network) { n.Values[0].From = "" },
	} {
		n := MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: Tanh}.Network()
		edit(&n)
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(want, "]")) {
			t.Errorf("Validate = %v, want %q", err, want)
		}
	}
}

// Places that are too few are refused, not read past their end.
func TestSizes_ChecksPlaces(t *testing.T) {
	sizes := Sizes{Obs: []ObsSize{{1, hostabi.F32}}}
	r := Request{Obs: []trajectory.Matrix{{Data: make([]byte, 8), Rows: 2, Elems: 1, StrideRow: 4, StrideElem: 4}},
		Value: make([]float32, 2), Places: []uint32{7}}
	if err := sizes.Check(&r); err == nil || err.Error() != "the places of 1 rows of 2" {
		t.Errorf("Check = %v", err)
	}
	r.Places = append(r.Places, 9)
	if err := sizes.Check(&r); err != nil {
		t.Error(err)
	}
}
