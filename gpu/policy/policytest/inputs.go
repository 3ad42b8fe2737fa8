package policytest

import "github.com/rlhost/rlhost/gpu/policy"

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
