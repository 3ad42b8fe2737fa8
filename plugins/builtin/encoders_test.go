package builtin

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// dict observes a vector, a large picture, a small choice and a large one.
func dict() *hostabi.EnvSpec {
	box := func(path string, dtype hostabi.DType, flags hostabi.TensorFlags, shape ...uint32) hostabi.Tensor {
		t := hostabi.Tensor{Role: hostabi.RoleObservation, DType: dtype, Rank: uint8(len(shape)), Flags: flags, Path: path}
		copy(t.Shape[:], shape)
		return t
	}
	choice := func(path string, n uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.I32, N: n, Start: 1, Path: path}
	}
	return &hostabi.EnvSpec{Name: "dict@1", Tensors: []hostabi.Tensor{{Role: hostabi.RoleAction, DType: hostabi.I32, N: 3},
		{Role: hostabi.RoleReward, DType: hostabi.F32},
		box("speed", hostabi.F32, 0, 4), box("eye", hostabi.U8, hostabi.TensorImageCHW, 3, 40, 48), choice("near/door", 6), choice("near/place", 500)}}
}

func decodeOf(t PolicyTable) func(into any) error {
	return func(into any) error {
		to := into.(*PolicyTable)
		to.Inputs, to.Encoder, to.NormalizeObs, to.LastReward = t.Inputs, t.Encoder, t.NormalizeObs, t.LastReward
		return nil
	}
}

func TestS24InputsEnterAsSuitsTheirTensors(t *testing.T) {
	made, err := DecodePolicy(decodeOf(PolicyTable{NormalizeObs: true, Inputs: []string{"last_action", "last_reward"},
		Encoder: map[string]EncoderTable{"sp*d": {Kind: "mlp", Hidden: []int{8}, Stack: 3}}}), dict())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(made.(*policy.Definition).Network.Lines(), "\n")
	for _, want := range []string{"input speed [4] running stack 3", "input eye [3 40 48] scale 0.003921569 u8 chw",
		"input near/door [1] onehot of [6] from 1 i32", "input near/place [1] onehot of [500] from 1 i32",
		"input last_action [1] onehot of [3] from 0 i32 from last_action", "input last_reward [1] running from last_reward learned",
		"trunk.speed.0 = dense(8) of speed", "trunk.near/place.embed = dense(32) of near/place", "trunk.eye.conv.0 = conv2d",
		"trunk.join = concat of trunk.speed.0.activation, trunk.eye.0.activation, near/door, trunk.near/place.embed, last_action, last_reward"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the network lacks %q:\n%s", want, lines)
		}
	}
	if made.Memory().Past != 2 {
		t.Errorf("it reads %d rows before the current one, want 2", made.Memory().Past)
	}
}

// The last reward enters as the shaped reward, by running statistics where observations do; raw is the reward of earlier versions.
func TestS28TheLastRewardEntersAsWhatIsLearnedFrom(t *testing.T) {
	for want, table := range map[string]PolicyTable{
		"input last_reward [1] running from last_reward learned": {NormalizeObs: true},
		"input last_reward [1]  from last_reward learned":        {},
		"input last_reward [1]  from last_reward":                {NormalizeObs: true, LastReward: new("raw")},
		"input last_reward [1] scale 1 from last_reward learned": {NormalizeObs: true, Encoder: map[string]EncoderTable{"last_*": {Norm: "scale"}}},
	} {
		table.Inputs = []string{"last_reward"}
		made, err := DecodePolicy(decodeOf(table), dict())
		if err != nil {
			t.Fatal(err)
		}
		if lines := made.(*policy.Definition).Network.Lines(); !slices.Contains(lines, want) || made.Memory().Learned != strings.HasSuffix(want, "learned") {
			t.Errorf("%+v, %+v: want %q:\n%s", table, made.Memory(), want, strings.Join(lines, "\n"))
		}
	}
	made, err := DecodePolicy(decodeOf(PolicyTable{NormalizeObs: true, Inputs: []string{"executed_action"}}), dict())
	if err != nil {
		t.Fatal(err)
	}
	if lines := made.(*policy.Definition).Network.Lines(); !slices.Contains(lines, "input executed_action [1] onehot of [3] from 0 i32 from executed_action") || !made.Memory().Executed {
		t.Errorf("%+v:\n%s", made.Memory(), strings.Join(lines, "\n"))
	}
	for _, bad := range []PolicyTable{{LastReward: new("raw")}, {Inputs: []string{"last_reward"}, LastReward: new("shaped")}} {
		if _, err := DecodePolicy(decodeOf(bad), dict()); err == nil || !strings.Contains(err.Error(), "last_reward") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// The policy's frames apply to every observation whose encoder says nothing else, and to nothing else.
func TestS22FramesAreThoseOfAllObservations(t *testing.T) {
	made, err := DecodePolicy(func(into any) error {
		to := into.(*PolicyTable)
		to.FrameStack, to.Inputs, to.Encoder = new(3), []string{"last_action"}, map[string]EncoderTable{"speed": {Stack: 1}}
		return nil
	}, dict())
	if err != nil {
		t.Fatal(err)
	}
	frames := map[string]int{}
	for _, in := range made.(*policy.Definition).Network.Inputs {
		frames[in.Path] = in.Frames()
	}
	want := map[string]int{"speed": 1, "eye": 3, "near/door": 3, "near/place": 3, "last_action": 1}
	if !maps.Equal(frames, want) {
		t.Errorf("frames %v, want %v", frames, want)
	}
	for n, want := range map[int]string{0: "is 0", 65: "is 65"} {
		_, err := DecodePolicy(func(into any) error { into.(*PolicyTable).FrameStack = &n; return nil }, dict())
		if bad := (*table.Error)(nil); !errors.As(err, &bad) || bad.Key != "frame_stack" || bad.Reason != want {
			t.Errorf("%d frames: %v", n, err)
		}
	}
}

// Every action of an environment enters as the last one, a Box as its numbers.
func TestS24EveryLastActionEnters(t *testing.T) {
	env := dict()
	box := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Index: 1, Path: "steer", Low: -1, High: 1}
	box.Shape[0] = 2
	env.Tensors = append(env.Tensors, box)
	made, err := DecodePolicy(decodeOf(PolicyTable{Inputs: []string{"last_action"}}), env)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(made.(*policy.Definition).Network.Lines(), "\n")
	for _, want := range []string{"input last_action [1] onehot of [3] from 0 i32 from last_action", "input last_action/1 [2]  from last_action"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the network lacks %q:\n%s", want, lines)
		}
	}
}

func TestEncoders_WhatDoesNotFitIsNamed(t *testing.T) {
	for want, encoders := range map[string]map[string]EncoderTable{
		`matches nothing that enters the policy`:                   {"nowhere/*": {}},
		`is a second encoder for near/door, which "*door" matches`: {"*door": {}, "near/*": {}},
		`a tensor of numbers has no values to choose from`:         {"speed": {Kind: "embed"}},
		`a tensor that is no picture`:                              {"speed": {Kind: "impala"}},
		`is "lstm"`:                                                {"speed": {Kind: "lstm"}},
		`is 65`:                                                    {"speed": {Stack: 65}},
		`is for other kinds`:                                       {"speed": {Hidden: []int{3}}},
	} {
		_, err := DecodePolicy(decodeOf(PolicyTable{Encoder: encoders}), dict())
		all := table.All(err)
		if len(all) != 1 || !strings.Contains(all[0].Reason, want) || all[0].Help == "" || !strings.HasPrefix(all[0].Key, "encoder.") {
			t.Errorf("%v: %v, want %q with its key and a remedy", encoders, err, want)
		}
	}
}

func TestS24ScalesFollowTheDescription(t *testing.T) {
	for _, c := range []struct {
		tensor hostabi.Tensor
		want   float32
	}{
		{hostabi.Tensor{DType: hostabi.U8, High: 255, Scale: 0.5}, 0.5},
		{hostabi.Tensor{DType: hostabi.U8, High: 255}, 1.0 / 255},
		{hostabi.Tensor{DType: hostabi.U8}, 1.0 / 255},
		{hostabi.Tensor{DType: hostabi.U8, Flags: hostabi.TensorNoHigh}, 1.0 / 255},
		{hostabi.Tensor{DType: hostabi.U8, High: 1}, 1},
		{hostabi.Tensor{DType: hostabi.F32, High: 15}, 1.0 / 15},
		{hostabi.Tensor{DType: hostabi.F32}, 1},
	} {
		if got := scaleOf(&c.tensor); got != c.want {
			t.Errorf("%+v: %v, want %v", c.tensor, got, c.want)
		}
	}
}
