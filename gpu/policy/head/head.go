// Package head has the distributions that policies draw actions from: sampling, log-probability, entropy, the divergence
// of two and the gradient, in float64, as the reference for backends.
//
// A distribution is a struct in its own file, whose exported fields are its attributes. It becomes part of networks as a field of policy.Dist.
package head

// Dist is a distribution over one action. The parameters of a row are the outputs of the node that the network names. An
// action has one or more elements: indices of choices from 0, or a Box's raw samples. mask has one byte for each choice
// of each element, 0 where it is illegal, or is nil; it has a legal choice for each element.
type Dist interface {
	// Elems is the number of parameters of a row, Size the number of elements of an action.
	Elems() int
	Size() int
	// Choices is how many values the elements have together, 0 for a Box. Continuous reports whether the action is a Box.
	Choices() int
	Continuous() bool
	// LogProb returns the log-probability of an action, -Inf for an illegal one, and the entropy.
	LogProb(params []float64, mask []byte, action []float64) (logProb, entropy float64)
	// Sample writes the action that Draws uniform numbers in (0, 1) select, Mode the first of the most probable ones.
	Draws() int
	Sample(params []float64, mask []byte, u []float32, action []float64)
	Mode(params []float64, mask []byte, action []float64)
	// KL returns the divergence of q from p.
	KL(p, q []float64, mask []byte) float64
	// Gradient writes to d the gradient over the parameters of dLogProb·log π(action) + dEntropy·H. Where the action estimates H
	// (EstimatesEntropy), it moves with the parameters, as if the same numbers drew it again.
	Gradient(d, params []float64, mask []byte, action []float64, dLogProb, dEntropy float64)
	// String names the distribution with its attributes.
	String() string
}
