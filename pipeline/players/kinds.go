package players

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// KindLearner is the kind of components that learn policies.
const KindLearner = "learner"

// Learner reads and makes the saved state of components of kind learner, whatever runs them. An unconfigured component of
// the kind, as graph.Parts makes it, is one.
type Learner interface {
	// Weights returns the policy of a state, and the network that it is for.
	Weights(component.State) (policy.Network, policy.Weights, error)
	// Progress returns how far the learner had come.
	Progress(component.State) (policyVersion, envSteps uint64, err error)
	// FromTensors returns the state that a new run of a network begins with to have weights named as in an export.
	FromTensors(n policy.Network, tensors map[string]component.Tensor) (component.State, error)
}

// Frozen reads and makes the saved state of components of kind frozen. An unconfigured component of the kind is one.
type Frozen interface {
	// Freeze returns the state of a policy that acts with these weights. source says where they are from.
	Freeze(source string, n policy.Network, w policy.Weights) (component.State, error)
	// Weights returns the weights in a state.
	Weights(component.State) (source string, n policy.Network, w policy.Weights, err error)
}

// Pool reads the saved state of components of kind opponents.
type Pool interface {
	// Versions lists the versions that a state keeps, ascending.
	Versions(component.State) ([]uint64, error)
	// Drawn returns the version that acted, if any is kept.
	Drawn(component.State) (version uint64, ok bool, err error)
	// Weights returns a version of a state, for the network that its policy has.
	Weights(state component.State, n *policy.Network, version uint64) (policy.Weights, error)
}

// KindOf returns an unconfigured component of a kind as the reader of its state.
func KindOf[T any](parts *graph.Parts, kind string) (reader T, err error) {
	if makes := parts.Kinds[kind]; makes != nil {
		if reader, ok := makes().(T); ok {
			return reader, nil
		}
	}
	return reader, fmt.Errorf("this program has no kind %q whose saved state it can read", kind)
}

// WeightsOf returns the policy of a learner's saved state, and the network that it is for.
func WeightsOf(parts *graph.Parts, state component.State) (policy.Network, policy.Weights, error) {
	learner, err := KindOf[Learner](parts, KindLearner)
	if err != nil {
		return policy.Network{}, policy.Weights{}, err
	}
	return learner.Weights(state)
}

// OfPolicy returns the component of a kind for a policy, or nil.
func OfPolicy(g *graph.Graph, kind, policy string) *graph.Component {
	i := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Kind == kind && c.Policy == policy })
	if i < 0 {
		return nil
	}
	return &g.Components[i]
}
