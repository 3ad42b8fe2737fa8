// Package head has the distributions that policies draw actions from: sampling, log-probability, entropy, the divergence
// of two and the gradient, in float64, which backends are held to.
//
// A distribution is a struct in a file of its own, whose exported fields are its attributes. It becomes part of networks
// as a field of policy.Dist.
package head

// Dist is a distribution over the values of one action. The parameters of a row are the outputs of the node that the
// network names; mask has one byte for each value, 0 where it is illegal, or is nil. A mask has a legal value.
type Dist interface {
	// Elems is the number of parameters of a row, Values the number of the action's values.
	Elems() int
	Values() int
	// LogProb returns the log-probability of an action, -Inf for an illegal one, and the entropy.
	LogProb(params []float64, mask []byte, action int32) (logProb, entropy float64)
	// Sample returns the action that a uniform number u in (0, 1) selects, Mode the first of the most probable ones.
	Sample(params []float64, mask []byte, u float32) int32
	Mode(params []float64, mask []byte) int32
	// KL returns the divergence of q from p.
	KL(p, q []float64, mask []byte) float64
	// Gradient writes to d the gradient over the parameters of dLogProb·log π(action) + dEntropy·H.
	Gradient(d, params []float64, mask []byte, action int32, dLogProb, dEntropy float64)
	// String names the distribution with its attributes.
	String() string
}
