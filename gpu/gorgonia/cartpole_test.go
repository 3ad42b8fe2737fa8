package gorgonia_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

func TestLearner_LearnsCartPole(t *testing.T) {
	const envs, horizon, limit, anneal, seed = 32, 64, 150_000, 500_000, 1
	net := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network()
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 2, 64
	params := policy.Init(&net, seed)
	backend := gorgonia.New()
	learner, err := ppo.NewLearner(backend, &net, params, c)
	if err != nil {
		t.Fatal(err)
	}
	defer learner.Close()
	actor, err := policy.NewActor(backend, &net, envs)
	if err != nil {
		t.Fatal(err)
	}
	defer actor.Close()

	started := time.Now()
	run := newCartPoleRun(t, actor, envs, horizon, seed)
	for dataset := uint64(0); run.envSteps < limit; dataset++ {
		if err := actor.Load(policy.Weights{Version: dataset, Params: params}); err != nil {
			t.Fatal(err)
		}
		if err := run.rollout(); err != nil {
			t.Fatal(err)
		}
		if run.meanReturn() >= 475 {
			t.Logf("mean return %.1f after %d env steps and %v", run.meanReturn(), run.envSteps, time.Since(started))
			return
		}
		d := &policy.Dataset{Blocks: []trajectory.Trajectory{run.block}, Seed: seed, Index: dataset}
		rate := 1.5e-3 * (1 - float64(run.envSteps)/anneal)
		stats, err := learner.Update(d, ppo.Rates{LearningRate: float32(rate), Clip: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		if stats.FirstRatioError != 0 {
			t.Fatalf("dataset %d: first ratio is %v away from 1", dataset, stats.FirstRatioError)
		}
		if err := learner.Params(params); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("seed %d: mean return of the last %d episodes is %.1f after %d env steps, want 475",
		seed, returnWindow, run.meanReturn(), run.envSteps)
}

const returnWindow = 100

// cartPoleRun fills one block after the other with an actor's steps.
type cartPoleRun struct {
	block    trajectory.Trajectory
	actor    policy.Actor
	poles    []cartPole
	final    []float32 // values of final_obs
	returns  []float64 // of all episodes
	envSteps uint64
	seed     uint64
}

func newCartPoleRun(t *testing.T, actor policy.Actor, envs, horizon int, seed uint64) *cartPoleRun {
	t.Helper()
	schema, err := trajectory.NewSchema(policytest.Spec(4, 2, false), trajectory.Shape{Steps: horizon, Envs: envs})
	if err != nil {
		t.Fatal(err)
	}
	r := &cartPoleRun{block: trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}, actor: actor,
		poles: make([]cartPole, envs), final: make([]float32, envs), seed: seed}
	last := r.block.Row(trajectory.Obs, horizon).Float32()
	for e := range r.poles {
		r.poles[e].random = rand.New(rand.NewPCG(env.Seed(seed, e), 0))
		r.poles[e].reset()
		r.poles[e].observe(last[4*e:])
	}
	return r
}

// rollout makes the steps of one block; obs[0] is the last observation of the block before.
func (r *cartPoleRun) rollout() error {
	horizon := r.block.Schema.Shape.Steps
	copy(r.block.Row(trajectory.Obs, 0).Data, r.block.Row(trajectory.Obs, horizon).Data)
	for t := range horizon {
		if err := r.act(t); err != nil {
			return err
		}
		if r.step(t) {
			if err := r.bootstrap(t); err != nil {
				return err
			}
		}
		r.envSteps += uint64(len(r.poles))
	}
	return r.actor.Act([]policy.Request{{Obs: r.block.Row(trajectory.Obs, horizon),
		Value: r.block.Row(trajectory.Value, horizon).Float32()}})
}

func (r *cartPoleRun) act(t int) error {
	n := len(r.poles)
	return r.actor.Act([]policy.Request{{
		Obs:     r.block.Row(trajectory.Obs, t),
		Action:  r.block.Int32(trajectory.Action)[t*n : (t+1)*n],
		LogProb: r.block.Row(trajectory.LogProb, t).Float32(),
		Value:   r.block.Row(trajectory.Value, t).Float32(),
		Seed:    r.seed, Step: r.envSteps / uint64(n),
	}})
}

// step moves every pole and starts a new episode where one has ended.
func (r *cartPoleRun) step(t int) (anyTruncated bool) {
	n := len(r.poles)
	obs := r.block.Row(trajectory.Obs, t+1).Float32()
	final := r.block.Row(trajectory.FinalObs, 0).Float32()
	actions := r.block.Int32(trajectory.Action)[t*n:]
	for e := range r.poles {
		p := &r.poles[e]
		terminated, truncated := p.step(actions[e])
		r.block.Row(trajectory.Reward, t).Float32()[e] = 1
		r.block.Bytes(trajectory.Valid)[t*n+e] = 1
		r.block.Bytes(trajectory.Terminated)[t*n+e] = flag(terminated)
		r.block.Bytes(trajectory.Truncated)[t*n+e] = flag(truncated)
		if terminated || truncated {
			anyTruncated = anyTruncated || truncated
			r.returns = append(r.returns, float64(p.steps))
			p.observe(final[4*e:])
			p.reset()
		}
		p.observe(obs[4*e:])
	}
	return anyTruncated
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// bootstrap writes the values of the last observations of truncated episodes.
func (r *cartPoleRun) bootstrap(t int) error {
	err := r.actor.Act([]policy.Request{{Obs: r.block.Row(trajectory.FinalObs, 0), Value: r.final}})
	copy(r.block.Row(trajectory.Bootstrap, t).Float32(), r.final)
	return err
}

// meanReturn is the mean over the last episodes, or 0 until there are enough of them.
func (r *cartPoleRun) meanReturn() float64 {
	if len(r.returns) < returnWindow {
		return 0
	}
	sum := 0.0
	for _, x := range r.returns[len(r.returns)-returnWindow:] {
		sum += x
	}
	return sum / returnWindow
}

// cartPole is Gymnasium's CartPole-v1 (Barto, Sutton and Anderson 1983).
type cartPole struct {
	position, velocity, angle, turn float64
	steps                           int
	random                          *rand.Rand
}

func (p *cartPole) reset() {
	draw := func() float64 { return p.random.Float64()/10 - 0.05 }
	p.position, p.velocity, p.angle, p.turn, p.steps = draw(), draw(), draw(), draw(), 0
}

func (p *cartPole) observe(obs []float32) {
	obs[0], obs[1], obs[2], obs[3] = float32(p.position), float32(p.velocity), float32(p.angle), float32(p.turn)
}

func (p *cartPole) step(action int32) (terminated, truncated bool) {
	const gravity, pole, total, halfLength, push, tau = 9.8, 0.1, 1.1, 0.5, 10, 0.02
	force := push * float64(2*action-1)
	sin, cos := math.Sincos(p.angle)
	pull := (force + pole*halfLength*p.turn*p.turn*sin) / total
	turning := (gravity*sin - cos*pull) / (halfLength * (4.0/3 - pole*cos*cos/total))
	p.position += tau * p.velocity
	p.velocity += tau * (pull - pole*halfLength*turning*cos/total)
	p.angle += tau * p.turn
	p.turn += tau * turning
	p.steps++
	terminated = math.Abs(p.position) > 2.4 || math.Abs(p.angle) > 12*math.Pi/180
	return terminated, !terminated && p.steps >= 500
}
