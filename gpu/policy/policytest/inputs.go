package policytest

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// several is a network of inputs of all kinds: a stack of normalised vectors, a stack of pictures of bytes, choices that
// are embedded and such that are not, the last action and the last reward.
func several() policy.Network {
	return policy.MLP{
		Inputs: []policy.Input{
			{Path: "vector", Shape: []int{5}, Norm: policy.Running, Stack: 2},
			{Path: "eye/picture", Shape: []int{3, 2, 2}, DType: "u8", Norm: policy.Scaled, Scale: 1.0 / 255, Stack: 3},
			{Path: "eye/bytes", Shape: []int{4}, DType: "u8", Stack: 2, Norm: policy.Scaled, Scale: 0.01},
			{Path: "eye/choice", Shape: []int{2}, DType: "i32", Norm: policy.OneHot, Choices: []int{3, 4}, Start: -1},
			{Path: "place", Shape: []int{}, DType: "i32", Norm: policy.OneHot, Choices: []int{70}},
			{Path: "last_action", Shape: []int{}, DType: "i32", Norm: policy.OneHot, Choices: []int{4}, From: policy.LastAction},
			{Path: "last_reward", Shape: []int{}, From: policy.LastReward, Norm: policy.Scaled, Scale: 0.001}, // rewards of a thousand occur
		},
		Encoders: []policy.Encoder{{}, {Kind: policy.EncodeMLP, Hidden: []int{20}, Activation: policy.ELU}, {}, {},
			{Kind: policy.EncodeEmbed, Dim: 6}, {}, {}},
		Actions: 4, Hidden: []int{24}, Activation: policy.Tanh,
	}.Network()
}

// pictures is a network whose convolutions alone read a picture of bytes.
func pictures(in policy.Input) policy.Network {
	in.Path, in.DType, in.Norm, in.Scale = "screen", "u8", policy.Scaled, 1.0/255
	conv := func(of string, kernel, stride, pad int) policy.Node {
		return policy.Node{Name: "trunk." + of, In: []string{"screen"},
			Conv2D: &layer.Conv2D{Window: layer.Window{Kernel: kernel, Stride: stride, Pad: pad}, Out: 8, Gain: 1}}
	}
	return policy.Body{Inputs: []policy.Input{in}, Nodes: []policy.Node{
		conv("coarse", 4, 3, 0), conv("fine", 3, 2, 1),
		{Name: "trunk.join.coarse", In: []string{"trunk.coarse"}, Flatten: &layer.Flatten{}},
		{Name: "trunk.join.fine", In: []string{"trunk.fine"}, Flatten: &layer.Flatten{}},
		{Name: "trunk.join", In: []string{"trunk.join.coarse", "trunk.join.fine"}, Concat: &layer.Concat{}},
		{Name: "trunk.activation", In: []string{"trunk.join"}, Activation: &layer.Activation{Func: policy.Tanh}},
	}, Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 5}}}}}.Network()
}
