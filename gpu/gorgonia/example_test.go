package gorgonia_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// residual is an encoder of one dense layer and one block with a layer norm and a connection around it, shared by
// both heads. It shows the parts of a new layer: its parameters and its formula.
type residual struct{}

// width of the encoder.
const width = 16

func (residual) Params(n *policy.Network) []policy.Param {
	var params []policy.Param
	end := 0
	add := func(name string, rows, cols int) {
		params = append(params, policy.Param{Name: name, Rows: rows, Cols: cols, Offset: end})
		end += rows * cols
	}
	add("in.weight", n.Obs(), width)
	add("in.bias", 1, width)
	add("norm.gain", 1, width)
	add("block.weight", width, width)
	add("block.bias", 1, width)
	add("actor.head.weight", width, n.Actions())
	add("actor.head.bias", 1, n.Actions())
	add("critic.head.weight", width, 1)
	add("critic.head.bias", 1, 1)
	return params
}

func (residual) Heads(n *policy.Network, obs *gorgonia.Node, p gorgonia.Params) (logits, value *gorgonia.Node, err error) {
	x := G.Must(p.Linear("in", obs))
	gain := G.Must(p.Node("norm.gain"))
	inner := G.Must(p.Linear("block", layerNorm(x, gain)))
	x = G.Must(G.Add(x, G.Must(gorgonia.Activate(inner, policy.ELU))))
	return G.Must(p.Linear("actor.head", x)), G.Must(p.Linear("critic.head", x)), nil
}

// layerNorm is gain·(x-mean)/√(variance+ε) within each row (Ba, Kiros and Hinton 2016).
func layerNorm(x, gain *gorgonia.Node) *gorgonia.Node {
	width := x.Shape()[1]
	mean := func(x *gorgonia.Node) *gorgonia.Node {
		sum := G.Must(gorgonia.SumRow(x))
		return G.Must(G.HadamardDiv(sum, gorgonia.Constant(sum, float64(width))))
	}
	centred := G.Must(G.Sub(x, G.Must(gorgonia.Spread(mean(x), width))))
	variance := mean(G.Must(G.HadamardProd(centred, centred)))
	deviation := G.Must(G.Sqrt(G.Must(G.Add(variance, gorgonia.Constant(variance, 1e-5)))))
	scaled := G.Must(G.HadamardDiv(centred, G.Must(gorgonia.Spread(deviation, width))))
	return G.Must(G.HadamardProd(scaled, G.Must(gorgonia.Repeat(gain, x.Shape()[0]))))
}

// calmLogits is PPO's loss plus a penalty on large logits.
func calmLogits(in *gorgonia.LossInputs) (*gorgonia.Node, error) {
	squares := G.Must(gorgonia.SumRow(G.Must(G.HadamardProd(in.Logits, in.Logits))))
	penalty := G.Must(G.HadamardProd(squares, gorgonia.Constant(squares, 0.001)))
	return G.Add(G.Must(gorgonia.PPOLoss(in)), G.Must(gorgonia.SumAll(in.Weight, penalty)))
}

// A new layer and a new loss learn which of two actions fits the observation.
func Example() {
	backend := &gorgonia.Backend{Builder: residual{}, Loss: calmLogits}
	net := policy.MLP{Obs: 2, Actions: 2, Hidden: []int{width}, Activation: policy.ELU}.Network()
	params := initial(backend.Params(net))
	cfg := ppo.Defaults()
	cfg.Minibatch = 64
	learner, err := ppo.NewLearner(backend, &net, params, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	actor, err := policy.NewActor(backend, &net, 64)
	if err != nil {
		fmt.Println(err)
		return
	}
	for dataset := range uint64(20) {
		if err := actor.Load(policy.Weights{Params: params}); err != nil {
			fmt.Println(err)
		}
		block := guess(actor, dataset)
		_, err := learner.Update(&policy.Dataset{Blocks: []trajectory.Trajectory{block}, Index: dataset},
			ppo.Rates{LearningRate: 0.01, Clip: 0.2})
		if err != nil {
			fmt.Println(err)
		}
		if err := learner.Params(params); err != nil {
			fmt.Println(err)
		}
		if dataset == 19 {
			fmt.Println("nearly always right:", right(block) > 60)
		}
	}
	// Output: nearly always right: true
}

// guess is one step of 64 environments that reward the action 1 where the first number seen is the larger one,
// and the action 0 elsewhere.
func guess(actor policy.Actor, seed uint64) trajectory.Trajectory {
	schema, err := trajectory.NewSchema(policytest.Spec(2, 2, false), trajectory.Shape{Steps: 1, Envs: 64})
	if err != nil {
		panic(err)
	}
	b := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
	obs, r := b.Float32(trajectory.Obs), rand.New(rand.NewPCG(seed, 0))
	for i := range obs {
		obs[i] = float32(r.NormFloat64())
	}
	err = actor.Act([]policy.Request{{Obs: b.Rows(nil, trajectory.Obs, 0), Action: b.Rows(nil, trajectory.Action, 0),
		LogProb: b.Float32(trajectory.LogProb), Value: b.Row(trajectory.Value, 0).Float32(), Step: seed}})
	if err != nil {
		panic(err)
	}
	for e, action := range b.Int32(trajectory.Action) {
		if (obs[2*e] > obs[2*e+1]) == (action == 1) {
			b.Float32(trajectory.Reward)[e] = 1
		}
		b.Bytes(trajectory.Terminated)[e], b.Bytes(trajectory.Valid)[e] = 1, 1
	}
	return b
}

func right(b trajectory.Trajectory) (n int) {
	for _, reward := range b.Float32(trajectory.Reward) {
		n += int(reward)
	}
	return n
}

// initial draws weights with the variance 1/inputs and sets gains to 1 and biases to 0.
func initial(layout []policy.Param) []float32 {
	var params []float32
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range layout {
		for range p.Rows * p.Cols {
			switch {
			case p.Name == "norm.gain":
				params = append(params, 1)
			case p.Rows == 1:
				params = append(params, 0)
			default:
				params = append(params, float32(r.NormFloat64()/math.Sqrt(float64(p.Rows))))
			}
		}
	}
	return params
}
