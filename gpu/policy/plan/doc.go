// Package plan compiles a network for backends that compute it node by node: which nodes are one step, in which order gradients go
// back, which inputs of a step begin and end a gradient, and where parameters lie in a backend's own vector.
//
// A backend makes an operation of each step and decides how it computes it. The plan alone decides what is fused: an activation
// becomes part of the dense, convolution or layer norm that it follows if nothing else reads that and if its derivative is a
// function of its result (layer.Func.OfResult), because the backward pass then does not need the input of the function.
package plan
