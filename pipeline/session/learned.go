package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
)

// kindRunner is the kind of components that count episodes.
const kindRunner = "runner"

// Learner reads and makes the saved state of components of kind learner, whatever runs them.
type Learner interface {
	players.Learner
	// StartFrom turns the state of an old run into the beginning of a new one with that seed, without the parts named in reset.
	StartFrom(state component.State, seed uint64, reset []string) (component.State, error)
}

// Runner is the same for components of kind runner.
type Runner interface {
	// Longest returns the env steps of the longest episode in a state.
	Longest(component.State) (uint64, error)
	// EpisodesMark returns how many bytes of episodes.csv belong to a state, 0 where it lists none.
	EpisodesMark(component.State) (int64, error)
}

func learnerOf(parts *graph.Parts) (Learner, error) {
	return players.KindOf[Learner](parts, players.KindLearner)
}

// progressOf returns how far the learner of a saved state had come.
func progressOf(parts *graph.Parts, state component.State) (policyVersion, envSteps uint64, err error) {
	learner, err := learnerOf(parts)
	if err != nil {
		return 0, 0, err
	}
	return learner.Progress(state)
}

// longestEpisode returns the env steps of the longest episode in a checkpoint's states, 0 if there is none.
func longestEpisode(g *graph.Graph, parts *graph.Parts, states map[string]component.State) (uint64, error) {
	at := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Kind == kindRunner })
	if at < 0 {
		return 0, nil
	}
	state, ok := states[g.Components[at].Name]
	if !ok {
		return 0, nil
	}
	runner, err := players.KindOf[Runner](parts, kindRunner)
	if err != nil {
		return 0, err
	}
	return runner.Longest(state)
}

// learning is a policy and the component that learns it.
type learning struct {
	policy    *graph.Policy
	component string
}

// learnings returns the learned policies of a graph, in the order of its components.
func learnings(g *graph.Graph) (list []learning) {
	for i := range g.Components {
		if c := &g.Components[i]; c.Kind == players.KindLearner && g.Policy(c.Policy) != nil {
			list = append(list, learning{g.Policy(c.Policy), c.Name})
		}
	}
	return list
}

// leadingFirst is learnings with the leading policy first.
func leadingFirst(s *Session, g *graph.Graph) (list []learning) {
	for _, x := range learnings(g) {
		if x.component == s.learner {
			list = slices.Insert(list, 0, x)
		} else {
			list = append(list, x)
		}
	}
	return list
}

// learned returns the policy that a training is about and the component that learns it: the policy of that name, else
// run.policy's, else the only learned one, else main.
func learned(g *graph.Graph, name string) (p *graph.Policy, learner string, err error) {
	list := learnings(g)
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].policy.Name
	}
	name = cmp.Or(name, g.Run.Policy)
	switch {
	case name != "":
	case len(list) == 1:
		name = names[0]
	case slices.Contains(names, mainPolicy):
		name = mainPolicy
	case len(list) > 1:
		return nil, "", whichPolicy(g, "several policies are learned, and none of them leads",
			"name one with `policy` in [run], or with --policy: "+strings.Join(names, ", "))
	}
	if i := slices.Index(names, name); i >= 0 {
		return list[i].policy, list[i].component, nil
	}
	help := "give a component of kind learner policy = " + strconv.Quote(cmp.Or(name, mainPolicy)) + "; rlhost run runs a pipeline without a learner"
	if len(list) > 0 {
		help = "learned are: " + strings.Join(names, ", ")
	}
	switch {
	case name == "":
		return nil, "", whichPolicy(g, "the pipeline has no learner of a policy", help)
	case g.Policy(name) == nil:
		return nil, "", whichPolicy(g, fmt.Sprintf("the pipeline has no policy %q", name), help)
	}
	return nil, "", whichPolicy(g, fmt.Sprintf("no learner learns policy %q", name), help)
}

// mainPolicy leads where several policies are learned and none is named.
const mainPolicy = "main"

func whichPolicy(g *graph.Graph, reason, help string) error {
	return &Error{Kind: Config, Err: graph.Problems{{Code: graph.CodeWhich, File: g.File, Message: reason, Help: help}}}
}

// Leading returns the name of the policy that a training of a pipeline is about. An error says why there is none: then neither a
// training begins nor a running job becomes that pipeline.
func Leading(g *graph.Graph) (policy string, err error) {
	p, _, err := learned(g, "")
	if err != nil {
		return "", err
	}
	return p.Name, nil
}

// Learns reports whether a pipeline has a learner.
func Learns(g *graph.Graph) bool { return len(learnings(g)) > 0 }

// findLeading finds the leading policy and its learner; a policy without a name where nothing is learned.
func (s *Session) findLeading() (err error) {
	if s.o.Policy != "" { // from here on it is the pipeline's own, in the run's folder too
		named := *s.graph
		named.Run.Policy = s.o.Policy
		s.graph = &named
	}
	if s.o.WithoutLearner && s.graph.Run.Policy == "" && !Learns(s.graph) {
		s.policy = &graph.Policy{}
		return nil
	}
	s.policy, s.learner, err = learned(s.graph, "")
	return err
}
