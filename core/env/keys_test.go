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

// What a description says of keys is lines; it is used where it fits the action of the agent that a person plays.
func TestOwnKeys_AreThoseOfTheDescription(t *testing.T) {
	jump := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}
	steer := hostabi.Tensor{Role: hostabi.RoleAction, Group: 1, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Low: -1, High: 1}
	spec := &hostabi.EnvSpec{Groups: []hostabi.Group{{Name: "frogs", Agents: 1}, {Name: "cars", Agents: 1}}, Tensors: []hostabi.Tensor{jump, steer}}

	if keys := OwnKeys(spec, 0); keys != nil || CheckOwnKeys(spec) != nil {
		t.Errorf("without keys there are %v, %v", keys, CheckOwnKeys(spec))
	}
	spec.Keys = "none=0\nup=1\n==1\n"
	want := Keys{"none": {0}, "up": {1}, "=": {1}}
	if keys := OwnKeys(spec, 0); !maps.EqualFunc(keys, want, slices.Equal) || CheckOwnKeys(spec) != nil {
		t.Errorf("keys %v, want %v; %v", keys, want, CheckOwnKeys(spec))
	}
	if keys := OwnKeys(spec, 1); keys != nil {
		t.Errorf("the other group has the keys %v", keys)
	}
	for _, bad := range []string{"up", "=1", "up=1\n\ndown=0", "up=1\nup=0", "up=2", "upwards=1", "up=1,0,0", "up="} {
		spec.Keys = bad
		if keys := OwnKeys(spec, 0); keys != nil || CheckOwnKeys(spec) == nil {
			t.Errorf("the keys %q are accepted: %v", bad, keys)
		}
	}
}
