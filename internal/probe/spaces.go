package probe

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// spaces are bandits with other actions than one Discrete. With an entropy bonus the best policy over a Box whose reward falls
// by k times the square of the distance from the best action is a normal distribution around that, of variance entropy/2k, and
// its value is entropy/2 less than the largest reward.
func spaces() []Probe {
	pair := hostabi.Tensor{DType: hostabi.I32, Rank: 1, Shape: shape(2), Counts: []uint32{2, 3}}
	slow := withEntropy("component.learner.learning_rate=1e-3")
	return append(boxes(), []Probe{
		{
			Name: "multi-discrete", About: "one step with the sum of two elements, of two and three values, for its reward, and an entropy bonus",
			Known:  []Known{{"V", softmax(1, 0) + ofThree, 0, value}, {"E(second)", ofThree, 0, element(1)}},
			script: bandit(total, pair), sets: slow,
		},
		{
			Name: "masked multi-discrete", About: "the same, and the largest value of the second element is legal where the cue is 1",
			Known: []Known{{"V(1)", softmax(1, 0) + ofThree, 1, value}, {"V(-1)", 2 * softmax(1, 0), -1, value}},
			script: bandit(total, pair, cued(sign), func(s *plugintest.Script) {
				s.Legal = func(at plugintest.At, value int) bool { return value < 4 || sign(at) > 0 }
			}),
			sets: slow,
		},
		{
			Name: "multi-binary", About: "one step with a reward of 1 for each of three elements that is as the cue asks for, and an entropy bonus",
			Known: []Known{{"V(1)", 3 * softmax(1, 0), 1, value}, {"V(-1)", 3 * softmax(1, 0), -1, value}},
			script: bandit(func(at plugintest.At) float32 { return total(at)*sign(at) + 3*(1-sign(at))/2 },
				hostabi.Tensor{DType: hostabi.I32, Rank: 1, Shape: shape(3), N: 2, Flags: hostabi.TensorBinary}, cued(sign)),
			sets: slow,
		},
		{
			Name: "start", About: "one step with the action, from 1 to 3, for its reward, and an entropy bonus",
			Known:  []Known{{"V", 1 + ofThree, 0, value}, {"E(a)", 1 + ofThree, 0, element(0)}},
			script: bandit(total, hostabi.Tensor{DType: hostabi.I32, N: 3, Start: 1}), sets: withEntropy(),
		},
	}...)
}

// ofThree is the value of the best policy of three actions whose rewards are 0, 1 and 2.
var ofThree = (math.Exp(1/entropy) + 2*math.Exp(2/entropy)) / (1 + math.Exp(1/entropy) + math.Exp(2/entropy))

// boxes are the spaces with a Box.
func boxes() []Probe {
	box := boxOf(6)
	target := bandit(func(at plugintest.At) float32 { return 1 - square(at.Actions[0]-3*sign(at))/10 }, box, cued(sign))
	known := []Known{{"V(1)", 1 - boxEntropy/2, 1, value}, {"V(-1)", 1 - boxEntropy/2, -1, value}, {"E(a, cue 1)", 3, 1, element(0)}}
	narrow := bandit(func(at plugintest.At) float32 { return 1 - (5-4*sign(at))/10*square(at.Actions[0]-3*sign(at)) }, box, cued(sign))
	return []Probe{
		{
			Name: "box", About: "one step with a reward of 1 less a tenth of the squared distance of the action from thrice the cue, and an entropy bonus",
			Known: known, script: target, sets: ofBox("policy.main.action.log_std_init=-0.6"),
		},
		{
			Name: "rescaled box", About: "the same, and the policy draws in units of the bounds",
			Known: known, script: target, sets: ofBox("policy.main.action.rescale=true", "policy.main.action.log_std_init=-2.4"),
		},
		{
			Name: "box with a deviation of each state", About: "the same, but of nine tenths where the cue is -1: the best deviation is a third of the other one",
			Known: known, script: narrow, sets: ofBox(`policy.main.action.log_std="network"`),
		},
		{
			Name: "squashed box", About: "one step with a reward of 2 less the squared action, a normal number of deviation 1 squashed by tanh",
			Known:  []Known{{"V", 2 - squashed, 0, value}},
			script: bandit(func(at plugintest.At) float32 { return 2 - square(at.Actions[0]) }, boxOf(1)),
			sets:   []string{"component.learner.learning_rate=2e-3", "policy.main.action.squash=tanh", "policy.main.action.log_std=fixed"},
		},
		spread("squashed box with nothing but a bonus", "parameter"),
		spread("squashed box with nothing but a bonus, and a deviation of each state", "network"),
		{
			Name: "tuple", About: "one step with a reward of 1 less the squared distance of the first action from 2, and 1 more for the second of two second actions, and an entropy bonus",
			Known: []Known{{"V", 1 - entropy/2 + softmax(1, 0), 0, value}, {"E(a)", 2, 0, element(0)}, {"π(second)", softmax(1, 0), 0, element(1)}},
			script: bandit(func(at plugintest.At) float32 { return 1 - square(at.Actions[0]-2) + at.Actions[1] }, box,
				func(s *plugintest.Script) { s.Spaces = append(s.Spaces, hostabi.Tensor{DType: hostabi.I32, N: 2}) }),
			sets: withEntropy("component.learner.minibatch=1024", "policy.main.action.log_std_init=-0.6"),
		},
	}
}

// spread is a probe with a bonus alone: its actions become the tanh of normal numbers with the largest entropy.
func spread(name string, logStd policy.LogStd) Probe {
	return Probe{
		Name: name, About: "one step without a reward, a normal number squashed by tanh, and an entropy bonus",
		Known:  []Known{{"H", mostSquashed, 0, surprise}},
		script: bandit(func(plugintest.At) float32 { return 0 }, boxOf(1)),
		sets:   withEntropy("policy.main.action.squash=tanh", fmt.Sprintf("policy.main.action.log_std=%s", logStd)),
	}
}

// mostSquashed is the largest entropy of the tanh of a normal number, which has the mean 0 and a deviation of 0.874.
var mostSquashed = func() (most float64) {
	const width = 1e-3
	g := head.Gaussian{N: 1, Squash: head.Tanh}
	for deviation := 0.8; deviation < 1; deviation += 0.002 {
		params, entropy := []float64{0, math.Log(deviation)}, 0.0
		for x := -10.0; x < 10; x += width {
			_, surprise := g.LogProb(params, nil, []float64{x})
			entropy += surprise * width * math.Exp(-x*x/2/deviation/deviation) / deviation / math.Sqrt(2*math.Pi)
		}
		most = max(most, entropy)
	}
	return most
}()

// ofBox is what a probe with a Box needs.
func ofBox(more ...string) []string {
	return withEntropy(append([]string{fmt.Sprintf("component.learner.entropy_coef=%g", boxEntropy)}, more...)...)
}

func boxOf(bound float32) hostabi.Tensor {
	return hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: shape(1), Low: -bound, High: bound}
}

// squashed is the mean of tanh² of a standard normal number.
var squashed = func() (sum float64) {
	const width = 1e-3
	for x := -10.0; x < 10; x += width {
		sum += width * math.Pow(math.Tanh(x), 2) * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	}
	return sum
}()

// bandit returns environments with an action whose episodes have one step.
func bandit(reward func(plugintest.At) float32, action hostabi.Tensor, changes ...func(*plugintest.Script)) plugintest.Script {
	s := script(1, plugintest.Terminates, changes...)
	s.Reward, s.Spaces = reward, append([]hostabi.Tensor{action}, s.Spaces...)
	return s
}

// total is the sum of all elements of the actions.
func total(at plugintest.At) (sum float32) {
	for _, v := range at.Actions {
		sum += v
	}
	return sum
}

func square(x float32) float32 { return x * x }

func shape(n uint32) [hostabi.MaxRank]uint32 { return [hostabi.MaxRank]uint32{n} }
