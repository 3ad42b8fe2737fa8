package policytest

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// body is a network of the given nodes over an image, with heads that read the last of them.
func body(shape []int, actions int, nodes ...policy.Node) policy.Network {
	last := nodes[len(nodes)-1].Name
	nodes = append(nodes,
		policy.Node{Name: "actor.head", In: []string{last}, Dense: &layer.Dense{Out: actions, Gain: 1}},
		policy.Node{Name: "critic.head", In: []string{last}, Dense: &layer.Dense{Out: 1, Gain: 1}})
	return policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: shape}}, Nodes: nodes,
		Policy: []policy.Dist{{Action: "action", From: "actor.head", Categorical: &head.Categorical{N: actions}}},
		Values: []policy.ValueHead{{Name: "value", From: "critic.head"}}}
}

func conv(name, in string, out, kernel, stride, pad int) policy.Node {
	return policy.Node{Name: name, In: []string{in},
		Conv2D: &layer.Conv2D{Window: layer.Window{Kernel: kernel, Stride: stride, Pad: pad}, Out: out, Gain: 1}}
}

func pool(name, in string, kernel, stride, pad int) policy.Node {
	return policy.Node{Name: name, In: []string{in}, MaxPool: &layer.MaxPool{Window: layer.Window{Kernel: kernel, Stride: stride, Pad: pad}}}
}

func activation(name, in string, f layer.Func) policy.Node {
	return policy.Node{Name: name, In: []string{in}, Activation: &layer.Activation{Func: f}}
}

// strided is what Atari's network is made of: convolutions of whole and of broken panels, whose strides leave pixels out.
func strided() policy.Network {
	return body([]int{13, 11, 3}, 4, conv("conv.0", "obs", 16, 4, 2, 0), activation("elu.0", "conv.0", layer.ELU),
		conv("conv.1", "elu.0", 9, 3, 2, 1), activation("tanh.1", "conv.1", layer.Tanh), conv("conv.2", "tanh.1", 16, 1, 2, 0),
		activation("elu.2", "conv.2", layer.ELU), policy.Node{Name: "dense", In: []string{"elu.2"}, Dense: &layer.Dense{Out: 20, Gain: 1}})
}

// tiled is convolutions that are computed in tiles of both kinds, of which the last overlap others.
func tiled() policy.Network {
	return body([]int{10, 12, 8}, 3, conv("conv.0", "obs", 16, 4, 2, 0), activation("tanh.0", "conv.0", layer.Tanh),
		conv("conv.1", "tanh.0", 16, 3, 1, 0), activation("elu.1", "conv.1", layer.ELU),
		policy.Node{Name: "dense", In: []string{"elu.1"}, Dense: &layer.Dense{Out: 20, Gain: 1}})
}

// residual is what IMPALA's network is made of.
func residual() policy.Network {
	join := func(name string, in ...string) policy.Node { return policy.Node{Name: name, In: in, Add: &layer.Add{}} }
	return body([]int{6, 5, 4}, 3, conv("conv", "obs", 16, 3, 1, 1), pool("pool", "conv", 3, 2, 1),
		activation("relu.0", "pool", layer.ReLU), conv("res.0", "relu.0", 16, 3, 1, 1), activation("relu.1", "res.0", layer.ReLU),
		conv("res.1", "relu.1", 16, 3, 1, 1), join("sum", "res.1", "pool"), activation("relu", "sum", layer.ReLU),
		policy.Node{Name: "dense", In: []string{"relu"}, Dense: &layer.Dense{Out: 20, Gain: 1}})
}

// joined has the layers that join and normalise, over broken panels, each with readers of several kinds.
func joined() policy.Network {
	return body([]int{5, 6, 2}, 3, pool("pool", "obs", 2, 1, 0), conv("a", "pool", 5, 2, 1, 1), conv("b", "pool", 6, 2, 1, 1),
		policy.Node{Name: "all", In: []string{"a", "b", "a"}, Concat: &layer.Concat{}},
		policy.Node{Name: "norm", In: []string{"all"}, LayerNorm: &layer.LayerNorm{}}, activation("tanh", "norm", layer.Tanh),
		pool("pooled", "tanh", 3, 2, 0), policy.Node{Name: "flat", In: []string{"pooled"}, Flatten: &layer.Flatten{}},
		policy.Node{Name: "twice", In: []string{"flat", "flat"}, Add: &layer.Add{}},
		policy.Node{Name: "dense", In: []string{"twice"}, Dense: &layer.Dense{Out: 24, Gain: 1}},
		policy.Node{Name: "dense.norm", In: []string{"dense"}, LayerNorm: &layer.LayerNorm{}})
}

// curved is convolutions of whole and of broken panels after activations whose derivatives are no functions of their results.
func curved() policy.Network {
	return body([]int{6, 5, 2}, 3, conv("conv.0", "obs", 16, 3, 1, 0), activation("silu.0", "conv.0", layer.SiLU),
		conv("conv.1", "silu.0", 5, 2, 1, 0), activation("gelu.1", "conv.1", layer.GELU), pool("pool", "gelu.1", 2, 1, 0),
		activation("gelu.2", "pool", layer.GELU), conv("conv.2", "gelu.2", 4, 2, 1, 1))
}
