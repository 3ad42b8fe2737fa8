package probe

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// inputs are probes whose states differ in inputs other than plain numbers.
func inputs() []Probe {
	const bonus = "and an entropy bonus"
	return append(observations(bonus), []Probe{
		{
			Name: "frame stack", About: "three steps, the first of which shows the cue: the last has a reward of 2 and the cue, 1 more for the action that it asks for, " + bonus,
			Known: []Known{
				{"V(first, cue 1)", gamma * gamma * (3 + likely), 1, value}, {"V(third, cue 1)", 3 + likely, 3, value},
				{"V(third, cue -1)", 1 + likely, -3, value}, {"π(1, third, cue 1)", likely, 3, taken(1)},
			},
			script: script(3, plugintest.Terminates, cued(func(at plugintest.At) float32 { return sign(at) * float32(1-min(at.Step, 1)) }),
				telling(func(at plugintest.At) float32 { return sign(at) * float32(at.Step+1) }),
				func(s *plugintest.Script) {
					s.Reward = func(at plugintest.At) float32 { return float32(at.Step/2) * (2 + signed(at)) }
				}),
			sets: withEntropy("policy.main.encoder.obs.stack=3"),
		},
		{
			Name: "last action", About: "two steps: the first action gets γ at once if it is 0, 1 in the second step if it is 1, which has 1 more for the same one again, " + bonus,
			Known: []Known{
				{"V(first)", gamma * (1 + likely), 0, value}, {"V(second, 0 before)", likely, 1, value},
				{"V(second, 1 before)", 1 + likely, 2, value}, {"π(1, second, 1 before)", likely, 2, taken(1)},
			},
			script: script(2, plugintest.Terminates, cued(count), telling(func(at plugintest.At) float32 { return count(at) * (1 + at.Sum) }),
				func(s *plugintest.Script) {
					s.Reward = func(at plugintest.At) float32 {
						return (1-count(at))*gamma*(1-chosen(at)) + count(at)*(at.Sum+equal(chosen(at), at.Sum))
					}
				}),
			sets: withEntropy(`policy.main.inputs=["last_action"]`),
		},
		{
			Name: "last reward", About: "two steps with a reward of 3 or 1 each, and in the second 1 more for the action that this asks for, " + bonus,
			Known: []Known{
				{"V(first)", 2 + gamma*(2+likely), 0, value}, {"V(second, 3 before)", 3 + likely, 1, value}, {"V(second, 1 before)", 1 + likely, -1, value},
			},
			script: script(2, plugintest.Terminates, cued(count), telling(func(at plugintest.At) float32 { return count(at) * sign(at) }),
				func(s *plugintest.Script) {
					s.Reward = func(at plugintest.At) float32 { return 2 + sign(at) + count(at)*(signed(at)-sign(at)) }
				}),
			sets: withEntropy(`policy.main.inputs=["last_reward"]`),
		},
	}...)
}

// observations are riddles that are observed in different ways.
func observations(bonus string) []Probe {
	one := "one step with a reward of 2, 1, 1 or 3, one for each cue from 0 to 3, and 1 more for the action that it asks for, " + bonus
	known := []Known{
		{"V(0)", 2 + likely, 0, value}, {"V(1)", 1 + likely, 1, value}, {"V(3)", 3 + likely, 3, value}, {"π(1, cue 1)", likely, 1, taken(1)},
	}
	state := func(n uint32, start int32) hostabi.Tensor {
		return hostabi.Tensor{Path: "state", DType: hostabi.I32, N: n, Start: start}
	}
	return []Probe{
		{
			Name: "one-hot", About: one + "; it is a Discrete observation of four values from -1 on", Known: known, sets: withEntropy(),
			script: riddle(func(cue int, _ plugintest.At, elems []float64) { elems[0] = float64(cue - 1) }, state(4, -1)),
		},
		{
			Name: "embedding", About: one + "; four of 500 values of a Discrete observation show it", Known: known, sets: withEntropy(),
			script: riddle(func(cue int, _ plugintest.At, elems []float64) { elems[0] = float64(7 + 131*cue) }, state(500, 0)),
		},
		{
			Name: "picture", About: one + "; it is the direction and brightness of a bar somewhere in a picture of 4 × 4 bytes, before convolutions", Known: known,
			sets: withEntropy(convolutions("actor", "critic"), "component.learner.learning_rate=1e-3"), shared: []string{convolutions("trunk")},
			script: riddle(bar, hostabi.Tensor{Path: "picture", DType: hostabi.U8, Rank: 3, Shape: [hostabi.MaxRank]uint32{side, side, 1}, High: 255, Flags: hostabi.TensorImageHWC}),
		},
		{
			Name: "two inputs", About: one + "; a Discrete observation shows half of it, and the sign of a number after layers of its own the rest", Known: known,
			sets: withEntropy(`policy.main.encoder.numbers={ kind = "mlp", hidden = [8] }`),
			script: riddle(func(cue int, _ plugintest.At, elems []float64) {
				elems[0], elems[2] = float64(cue%2), float64(cue/2*2-1)
			}, state(2, 0), numbers("numbers", 3)),
		},
		{
			Name: "normalised inputs", About: one + "; half of it is a number of 950 or 1050 before running statistics, the rest a byte of 100 or 200 that is scaled", Known: known,
			sets: withEntropy(`policy.main.encoder.far.norm="running"`, `policy.main.encoder.level.norm="scale"`),
			script: riddle(func(cue int, _ plugintest.At, elems []float64) {
				elems[0], elems[1] = float64(950+cue%2*100), float64(100+cue/2*100)
			},
				numbers("far", 1), hostabi.Tensor{Path: "level", DType: hostabi.U8, Rank: 1, Shape: shape(1), High: 200}),
		},
	}
}

// likely is the best probability of the action that a cue asks for.
var likely = softmax(1, 0)

// riddle returns environments of one step whose cue is a number from 0 to 3, in rotation. show writes the observation of it.
func riddle(show func(cue int, at plugintest.At, elems []float64), observations ...hostabi.Tensor) plugintest.Script {
	cue := func(at plugintest.At) int { return (at.Env + at.Episode) % 4 }
	return script(1, plugintest.Terminates, telling(func(at plugintest.At) float32 { return float32(cue(at)) }), func(s *plugintest.Script) {
		s.Observations = observations
		s.Show = func(at plugintest.At, elems []float64) { show(cue(at), at, elems) }
		s.Reward = func(at plugintest.At) float32 {
			asks := []float32{0, 1, 1, 0}[cue(at)] // no sum of two functions of the cue's halves
			return []float32{2, 1, 1, 3}[cue(at)] + equal(chosen(at), asks)
		}
	})
}

// telling makes the environment report a state's cue, in addition to its observation.
func telling(cue func(plugintest.At) float32) func(*plugintest.Script) {
	return func(s *plugintest.Script) {
		s.Infos = []hostabi.Tensor{{Path: "cue"}}
		s.Tell = func(at plugintest.At, figures []float32) { figures[0] = cue(at) }
	}
}

// side is that of pictures, bar draws three pixels in a row or a column of one, each time elsewhere.
const side = 4

func bar(cue int, at plugintest.At, elems []float64) {
	const places, length = side - 2, 3
	place := (5*at.Env + at.Episode/4) % (places * places)
	for i := range length {
		row, column := place/places, place%places
		if cue%2 == 0 {
			column += i
		} else {
			row += i
		}
		elems[row*side+column] = float64(255 - cue/2*128)
	}
}

// convolutions are the nodes of a small network for pictures, once for each name.
func convolutions(names ...string) string {
	var nodes []string
	for _, name := range names {
		last := "obs"
		for _, layer := range []string{"conv2d = { out = 8, kernel = 3, stride = 1 }", `activation = { func = "relu" }`, "dense = { out = 16 }", `activation = { func = "tanh" }`} {
			next := fmt.Sprintf("%s.%d", name, len(nodes))
			nodes = append(nodes, fmt.Sprintf("{ name = %q, in = [%q], %s }", next, last, layer))
			last = next
		}
	}
	return "policy.main.net={ nodes = [" + strings.Join(nodes, ", ") + "] }"
}

func numbers(path string, n uint32) hostabi.Tensor {
	return hostabi.Tensor{Path: path, DType: hostabi.F32, Rank: 1, Shape: shape(n), Flags: hostabi.TensorNoLow | hostabi.TensorNoHigh}
}

// signed is the cue, and 1 more for the action that it asks for.
func signed(at plugintest.At) float32 { return sign(at) + equal(chosen(at), (1+sign(at))/2) }

func equal(a, b float32) float32 {
	if a == b {
		return 1
	}
	return 0
}
