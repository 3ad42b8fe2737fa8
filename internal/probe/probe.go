package probe

import (
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Probe is an environment with its known numbers.
type Probe struct {
	Name  string
	About string // in a sentence for people
	Known []Known

	script plugintest.Script
	plugin env.Plugin // in place of the script
	sets   []string
	shared []string // in place of share_trunk, in the mode where policy and value share a trunk
}

// Known is a number that a training on the probe converges to, such as the value of a state or the probability of an action in it. A state
// has a cue: the environment's figure, which no policy reads, or else the first element of its observation, whose other elements are 0.
type Known struct {
	What   string
	Theory float64

	cue float32
	of  measure
}

// gamma is the discount of every probe, and entropy the coefficient of the bonus where the policy counts: then the best
// policy is the softmax of the rewards divided by it. With a Box it is boxEntropy.
const (
	gamma      = 0.9
	entropy    = 0.5
	boxEntropy = 0.05
)

// Mode is a way to train.
type Mode struct {
	Name   string
	sets   []string
	auto   hostabi.Autoreset
	shared bool
}

// Modes returns all ways to train that lead to the same.
func Modes() []Mode {
	asynchronous := []string{`train.mode="async"`}
	return []Mode{
		{Name: "synchronous", auto: hostabi.SameStep},
		{Name: "next-step autoreset", auto: hostabi.NextStep},
		{Name: "without autoreset", auto: hostabi.Disabled},
		{Name: "normalised observations", auto: hostabi.SameStep, sets: []string{"policy.main.normalize_obs=true"}},
		{Name: "shared trunk", auto: hostabi.SameStep, shared: true},
		{Name: "two learners", auto: hostabi.SameStep, sets: []string{"component.learner.learners=2"}},
		{Name: "asynchronous", auto: hostabi.SameStep, sets: asynchronous},
		{Name: "V-trace", auto: hostabi.SameStep, sets: append([]string{"component.learner.vtrace=true"}, asynchronous...)},
	}
}

// All returns the probes.
func All() []Probe { return slices.Concat(values(), bandits(), spaces(), inputs()) }

// values are the probes whose policy does not matter.
func values() []Probe {
	return []Probe{
		{
			Name: "reward", About: "episodes of one step with a reward of 1",
			Known: []Known{{"V", 1, 0, value}}, script: script(1, plugintest.Terminates),
		},
		{
			Name: "cue", About: "one step, whose reward is the cue: 1 or -1",
			Known:  []Known{{"V(1)", 1, 1, value}, {"V(-1)", -1, -1, value}},
			script: script(1, plugintest.Terminates, cued(sign), func(s *plugintest.Script) { s.Reward = sign }),
		},
		{
			Name: "chance", About: "one step, with a reward of 4 in one of four episodes",
			Known: []Known{{"V", 1, 0, value}},
			script: script(1, plugintest.Terminates, func(s *plugintest.Script) {
				s.Reward = func(at plugintest.At) float32 { return 4 * float32(1-min((at.Env+at.Episode)%4, 1)) }
			}),
		},
		{
			Name: "delay", About: "two steps, with a reward of 1 for the second",
			Known:  []Known{{"V(first)", gamma, 0, value}, {"V(second)", 1, 1, value}},
			script: script(2, plugintest.Terminates, cued(count), func(s *plugintest.Script) { s.Reward = count }),
		},
		{
			Name: "end", About: "three steps with a reward of 1 each, then the episode is terminated",
			Known: []Known{
				{"V(first)", 1 + gamma + gamma*gamma, 0, value}, {"V(second)", 1 + gamma, 1, value}, {"V(third)", 1, 2, value},
			},
			script: script(3, plugintest.Terminates, cued(count)), sets: []string{"component.learner.minibatch=128"}, // its values are no line
		},
		{
			Name: "limit", About: "a reward of 1 a step, truncated by the environment after ten",
			Known: []Known{{"V", 1 / (1 - gamma), 0, value}}, script: script(10, plugintest.Truncates),
		},
		{
			Name: "limit of the host", About: "a reward of 1 a step, truncated by the host after seven",
			Known:  []Known{{"V", 1 / (1 - gamma), 0, value}},
			script: script(math.MaxInt32, plugintest.Terminates), sets: []string{"env.probe.wrap=[{ time_limit = 7 }]"},
		},
	}
}

// bandits are the probes whose best policy is known.
func bandits() []Probe {
	return []Probe{
		{
			Name: "bandit", About: "one step with a reward of 1 for the second of two actions, and an entropy bonus",
			Known:  []Known{{"π(1)", softmax(1, 0), 0, taken(1)}, {"V", softmax(1, 0), 0, value}},
			script: script(1, plugintest.Terminates, func(s *plugintest.Script) { s.Reward = chosen }), sets: withEntropy(),
		},
		{
			Name: "contextual bandit", About: "one step with a reward of 1 for the action that the cue asks for, and an entropy bonus",
			Known: []Known{{"π(1, cue 1)", softmax(1, 0), 1, taken(1)}, {"π(0, cue -1)", softmax(1, 0), -1, taken(0)}},
			script: script(1, plugintest.Terminates, cued(sign), func(s *plugintest.Script) {
				s.Reward = func(at plugintest.At) float32 { return chosen(at)*sign(at) + (1-sign(at))/2 }
			}),
			sets: withEntropy(),
		},
		{
			Name: "masked bandit", About: "one step with the number of the action for its reward; the cue says which two of three are legal",
			Known: []Known{{"π(2, cue 1)", softmax(2, 1), 1, taken(2)}, {"π(1, cue -1)", softmax(1, 0), -1, taken(1)}},
			script: script(1, plugintest.Terminates, cued(sign), func(s *plugintest.Script) {
				s.Actions, s.Reward = 3, chosen
				s.Legal = func(at plugintest.At, action int) bool { return action == 1 || (action == 2) == (sign(at) > 0) }
			}),
			sets: withEntropy(),
		},
	}
}

// script returns environments whose episodes end after so many steps and show nothing.
func script(steps int, end plugintest.End, changes ...func(*plugintest.Script)) plugintest.Script {
	s := plugintest.Script{
		Length: func(int, int) int { return steps },
		Ends:   func(int, int) plugintest.End { return end },
	}
	cued(func(plugintest.At) float32 { return 0 })(&s)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// cued makes observations show a cue alone.
func cued(cue func(plugintest.At) float32) func(*plugintest.Script) {
	return func(s *plugintest.Script) {
		s.Observe = func(at plugintest.At, obs *[plugintest.ObsElems]float32) {
			*obs = [plugintest.ObsElems]float32{cue(at)}
		}
	}
}

// sign is 1 and -1 in alternate episodes.
func sign(at plugintest.At) float32 { return float32(1 - 2*((at.Env+at.Episode)%2)) }

func count(at plugintest.At) float32 { return float32(at.Step) }

func chosen(at plugintest.At) float32 { return float32(at.Action) }

// withEntropy is what a probe needs whose policy counts: a smaller learning rate averages over more actions.
func withEntropy(more ...string) []string {
	return append([]string{fmt.Sprintf("component.learner.entropy_coef=%g", entropy), "component.learner.learning_rate=2e-3"}, more...)
}

// softmax is the best probability of an action with that reward when the only alternative has the other.
func softmax(reward, other float64) float64 { return 1 / (1 + math.Exp((other-reward)/entropy)) }
