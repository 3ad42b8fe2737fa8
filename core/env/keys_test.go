package env

import (
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// The actions of a key follow each other as the tensors do, and fit the space of the group whose agent a person plays.
func TestParseKeys_ActionsAreThoseOfAGroup(t *testing.T) {
	steer := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Low: -1, High: 1}
	gear := hostabi.Tensor{Role: hostabi.RoleAction, Index: 1, DType: hostabi.I32, N: 3, Start: 5}
	jump := hostabi.Tensor{Role: hostabi.RoleAction, Group: 1, DType: hostabi.I32, N: 2}
	spec := &hostabi.EnvSpec{Groups: []hostabi.Group{{Name: "cars", Agents: 1}, {Name: "frogs", Agents: 1}}, Tensors: []hostabi.Tensor{steer, gear, jump}}

	keys, err := ParseKeys(map[string]string{"left": "[-1,0.5,7]", "none": "0, 0, 5"}, spec, 0)
	want := Keys{"left": {-1, 0.5, 7}, "none": {0, 0, 5}}
	if err != nil || !maps.EqualFunc(keys, want, slices.Equal) {
		t.Errorf("ParseKeys = %v, %v; want %v", keys, err, want)
	}
	for _, bad := range []string{"", "0", "[0,0,8]", "[0,0,4]", "[0,0,5.5]", "[0,1.5,5]", "[NaN,0,5]", "[0,0,5,0]"} {
		_, err := ParseKeys(map[string]string{"x": bad}, spec, 0)
		if e := table.All(err); len(e) != 1 || e[0].Code != CodeKeys || e[0].Key != "keys.x" {
			t.Errorf("the action %q: %v, want one error of keys.x", bad, err)
		}
	}
	for _, fits := range []string{"1", "[0,0,6]"} {
		if err := CheckKeys(map[string]string{" ": fits}, spec); err != nil {
			t.Errorf("%s fits a group, and is refused: %v", fits, err)
		}
	}
	if err := CheckKeys(map[string]string{" ": "7"}, spec); err == nil {
		t.Error("7 fits no group, and is accepted")
	}
}
