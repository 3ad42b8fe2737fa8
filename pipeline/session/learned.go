package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Kinds of components whose saved state a training reads.
const (
	kindLearner = "learner"
	kindRunner  = "runner"
)

// Learner reads and makes the saved state of components of kind learner, whatever runs them. An unconfigured component of
// the kind, as graph.Parts makes it, is one.
type Learner interface {
	// Weights returns the policy of a state, and the network that it is for.
	Weights(component.State) (policy.Network, policy.Weights, error)
	// Progress returns how far the learner had come.
	Progress(component.State) (policyVersion, envSteps uint64, err error)
	// StartFrom turns the state of an old run into the beginning of a new one with that seed, in which what is named in
	// reset begins anew.
	StartFrom(state component.State, seed uint64, reset []string) (component.State, error)
	// FromTensors returns the state that a new run of a network begins with to have weights named as in an export.
	FromTensors(n policy.Network, tensors map[string]component.Tensor) (component.State, error)
}

// Runner is the same for components of kind runner.
type Runner interface {
	// Longest returns the env steps of the longest episode that a state tells of.
	Longest(component.State) (uint64, error)
}

func learnerOf(parts *graph.Parts) (Learner, error) { return kindOf[Learner](parts, kindLearner) }

// kindOf returns an unconfigured component of a kind as what reads its state.
func kindOf[T any](parts *graph.Parts, kind string) (reader T, err error) {
	if makes := parts.Kinds[kind]; makes != nil {
		if reader, ok := makes().(T); ok {
			return reader, nil
		}
	}
	return reader, fmt.Errorf("this program has no kind %q whose saved state it can read", kind)
}

// weightsOf returns the policy of a learner's saved state, and the network that it is for.
func weightsOf(parts *graph.Parts, state component.State) (policy.Network, policy.Weights, error) {
	learner, err := learnerOf(parts)
	if err != nil {
		return policy.Network{}, policy.Weights{}, err
	}
	return learner.Weights(state)
}

// longestEpisode returns the env steps of the longest episode that a checkpoint's states tell of, 0 if of none.
func longestEpisode(g *graph.Graph, parts *graph.Parts, states map[string]component.State) (uint64, error) {
	at := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Kind == kindRunner })
	if at < 0 {
		return 0, nil
	}
	state, ok := states[g.Components[at].Name]
	if !ok {
		return 0, nil
	}
	runner, err := kindOf[Runner](parts, kindRunner)
	if err != nil {
		return 0, err
	}
	return runner.Longest(state)
}

// learned returns the policy of that name and the component that learns it. The empty name means the only policy; where
// there are several, one must be named.
func learned(g *graph.Graph, name string) (p *graph.Policy, learner string, err error) {
	if name == "" && len(g.Policies) == 1 {
		name = g.Policies[0].Name
	}
	names := make([]string, len(g.Policies))
	for i := range g.Policies {
		names[i] = g.Policies[i].Name
	}
	if p = g.Policy(name); p == nil {
		what := "has several policies, and none is named"
		if name != "" {
			what = fmt.Sprintf("has no policy %q", name)
		}
		return nil, "", &Error{Kind: Config, Err: fmt.Errorf("%s: error[E043]: the pipeline %s\n  help: name one with --policy: %s", g.File, what, strings.Join(names, ", "))}
	}
	for i := range g.Components {
		if c := &g.Components[i]; c.Kind == kindLearner && c.Policy == name {
			return p, c.Name, nil
		}
	}
	return nil, "", &Error{Kind: Config, Err: fmt.Errorf("%s: error[E043]: no learner learns policy %q\n  help: give a component of kind learner policy = %q, or name another policy with --policy", g.File, name, name)}
}

// episodeLimit is the time limit that the rollouts of a graph apply themselves, 0 if they apply none.
func episodeLimit(g *graph.Graph) int {
	limit := 0
	for i := range g.Components {
		if n := g.Components[i].Flow.EpisodeLimit; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
