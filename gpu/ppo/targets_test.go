package ppo_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

func random(t *testing.T, steps, envs, blocks int, seed uint64) *policy.Dataset {
	t.Logf("seed %d", seed)
	n := policy.MLP{Obs: 2, Actions: 2}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: steps, Envs: envs, Blocks: blocks,
		InvalidEvery: 6, Seed: seed})
	r := rand.New(rand.NewPCG(seed, 1))
	for _, b := range d.Blocks {
		for _, c := range []trajectory.Column{trajectory.Value, trajectory.Bootstrap, trajectory.LogProb} {
			for i := range b.Float32(c) {
				b.Float32(c)[i] = float32(r.NormFloat64())
			}
		}
	}
	return d
}

// advantage restates GAE as a sum forward in time.
func advantage(b trajectory.Trajectory, c *ppo.Config, t, e int) float64 {
	n, steps := b.Schema.Shape.Envs, b.Schema.Shape.Steps
	sum, weight := 0.0, 1.0
	for ; t < steps && b.Bytes(trajectory.Valid)[t*n+e] != 0; t++ {
		i := t*n + e
		next := float64(b.Float32(trajectory.Value)[i+n])
		end := true
		switch {
		case b.Bytes(trajectory.Terminated)[i] != 0:
			next = 0
		case b.Bytes(trajectory.Truncated)[i] != 0:
			next = float64(b.Float32(trajectory.Bootstrap)[i])
		default:
			end = false
		}
		sum += weight * (float64(b.Float32(trajectory.Reward)[i]) + c.Gamma*next - float64(b.Float32(trajectory.Value)[i]))
		weight *= c.Gamma * c.GAELambda
		if end {
			break
		}
	}
	return sum
}

func TestS2GAEEqualsTheSumOverTheEpisode(t *testing.T) {
	const steps, envs, blocks = 12, 5, 3
	d := random(t, steps, envs, blocks, 5)
	c := ppo.Defaults()
	var targets ppo.Targets
	if err := targets.GAE(d, &c); err != nil {
		t.Fatal(err)
	}
	var valid []uint32
	for row := range d.Rows() {
		step, e := row/d.Envs(), row%d.Envs()
		b := d.Blocks[e/envs]
		if b.Bytes(trajectory.Valid)[step*envs+e%envs] == 0 {
			if targets.Advantage[row] != 0 || targets.Return[row] != 0 {
				t.Errorf("invalid row %d has advantage %v", row, targets.Advantage[row])
			}
			continue
		}
		valid = append(valid, uint32(row))
		want := advantage(b, &c, step, e%envs)
		if got := float64(targets.Advantage[row]); math.Abs(got-want) > 1e-5 {
			t.Errorf("advantage of row %d = %v, want %v", row, got, want)
		}
		value := float64(b.Float32(trajectory.Value)[step*envs+e%envs])
		if got := float64(targets.Return[row]); math.Abs(got-want-value) > 1e-5 {
			t.Errorf("return of row %d = %v, want %v", row, got, want+value)
		}
	}
	var samples ppo.Samples
	n := policy.MLP{Obs: 2, Actions: 2}.Network()
	if err := samples.Read(d, &n); err != nil || !slices.Equal(samples.Valid, valid) {
		t.Errorf("valid rows = %v, %v, want %v", samples.Valid, err, valid)
	}
}

func TestS7VTraceOnPolicyHasTheReturnsOfGAEAndOneLambdaLessInItsAdvantages(t *testing.T) {
	d := random(t, 16, 4, 2, 6)
	c := ppo.Defaults()
	newLogProb := make([]float32, d.Rows())
	for row := range newLogProb {
		step, e := row/d.Envs(), row%d.Envs()
		newLogProb[row] = d.Blocks[e/4].Float32(trajectory.LogProb)[step*4+e%4]
	}
	var gae, vtrace ppo.Targets
	if err := gae.GAE(d, &c); err != nil {
		t.Fatal(err)
	}
	if err := vtrace.VTrace(d, &c, newLogProb); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(vtrace.Return, gae.Return) {
		t.Errorf("returns %v, want %v", vtrace.Return, gae.Return)
	}
	for _, c.GAELambda = range []float64{0.3, 0.95, 1} {
		alone := c
		alone.GAELambda = 0
		var own ppo.Targets // the error of each step alone
		if err := errors.Join(gae.GAE(d, &c), vtrace.VTrace(d, &c, newLogProb), own.GAE(d, &alone)); err != nil {
			t.Fatal(err)
		}
		for i, delta := range own.Advantage {
			later, want := c.GAELambda*float64(vtrace.Advantage[i]-delta), float64(gae.Advantage[i]-delta)
			if math.Abs(later-want) > 1e-5 {
				t.Fatalf("λ = %v: beyond its own error advantage %d is λ × %v, want %v", c.GAELambda, i, later/c.GAELambda, want)
			}
		}
	}
}

// The expected numbers follow the definition of v in Espeholt et al., section 4.1, as a sum over the trace.
func TestVTraceEqualsItsDefinition(t *testing.T) {
	const steps = 6
	d := random(t, steps, 1, 1, 8)
	b := d.Blocks[0]
	clear(b.Bytes(trajectory.Terminated))
	clear(b.Bytes(trajectory.Truncated))
	for i := range b.Bytes(trajectory.Valid) {
		b.Bytes(trajectory.Valid)[i] = 1
	}
	c := ppo.Defaults()
	c.GAELambda, c.RhoBar, c.CBar = 0.9, 1.2, 0.8
	newLogProb := []float32{0.1, -0.5, 0.9, 0.3, -1.2, 0.4}
	value, reward := b.Float32(trajectory.Value), b.Float32(trajectory.Reward)
	ratio := func(t int) float64 { return math.Exp(float64(newLogProb[t] - b.Float32(trajectory.LogProb)[t])) }
	v := func(s int) float64 {
		sum, trace := float64(value[s]), 1.0
		for t := s; t < steps; t++ {
			delta := float64(reward[t]) + c.Gamma*float64(value[t+1]) - float64(value[t])
			sum += math.Pow(c.Gamma, float64(t-s)) * trace * min(c.RhoBar, ratio(t)) * delta
			trace *= c.GAELambda * min(c.CBar, ratio(t))
		}
		return sum
	}
	var targets ppo.Targets
	if err := targets.VTrace(d, &c, newLogProb); err != nil {
		t.Fatal(err)
	}
	for s := range steps {
		if got := float64(targets.Return[s]); math.Abs(got-v(s)) > 1e-5 {
			t.Errorf("v(%d) = %v, want %v", s, got, v(s))
		}
		want := float64(reward[s]) + c.Gamma*v(s+1) - float64(value[s])
		if s+1 == steps {
			want = float64(reward[s]) + c.Gamma*float64(value[steps]) - float64(value[s])
		}
		if got := float64(targets.Advantage[s]); math.Abs(got-want) > 1e-5 {
			t.Errorf("advantage(%d) = %v, want %v", s, got, want)
		}
	}
}

// An environment under NEXT_STEP has a phantom row after every end; without it the rows equal SAME_STEP's.
func TestS3BothAutoresetModesHaveEqualAdvantages(t *testing.T) {
	same := policytest.NewDataset(t, policytest.Options{Network: policy.MLP{Obs: 1, Actions: 2}.Network(), Steps: 4, Envs: 1, Blocks: 1})
	next := policytest.NewDataset(t, policytest.Options{Network: policy.MLP{Obs: 1, Actions: 2}.Network(), Steps: 5, Envs: 1, Blocks: 1})
	// The episode is truncated in row 1 and another one terminated in the last row; V of the last observation is 7.
	s, n := same.Blocks[0], next.Blocks[0]
	copy(s.Float32(trajectory.Reward), []float32{1, 2, 3, 4})
	copy(n.Float32(trajectory.Reward), []float32{1, 2, 99, 3, 4})
	copy(s.Float32(trajectory.Value), []float32{10, 20, 30, 40, 50})
	copy(n.Float32(trajectory.Value), []float32{10, 20, 7, 30, 40, 60})
	copy(s.Bytes(trajectory.Truncated), []byte{0, 1, 0, 0})
	copy(n.Bytes(trajectory.Truncated), []byte{0, 1, 0, 0, 0})
	copy(s.Bytes(trajectory.Terminated), []byte{0, 0, 0, 1})
	copy(n.Bytes(trajectory.Terminated), []byte{0, 0, 0, 0, 1})
	copy(n.Bytes(trajectory.Valid), []byte{1, 1, 0, 1, 1})
	s.Float32(trajectory.Bootstrap)[1], n.Float32(trajectory.Bootstrap)[1] = 7, 7
	c := ppo.Defaults()
	var want, got ppo.Targets
	if err := errors.Join(want.GAE(same, &c), got.GAE(next, &c)); err != nil {
		t.Fatal(err)
	}
	for i, row := range []int{0, 1, 3, 4} {
		if got.Advantage[row] != want.Advantage[i] || got.Return[row] != want.Return[i] {
			t.Errorf("row %d: advantage %v, return %v; want %v, %v", row,
				got.Advantage[row], got.Return[row], want.Advantage[i], want.Return[i])
		}
	}
}

func TestTerminatedWinsOverTruncated(t *testing.T) {
	d := policytest.NewDataset(t, policytest.Options{Network: policy.MLP{Obs: 1, Actions: 2}.Network(), Steps: 1, Envs: 1, Blocks: 1})
	b := d.Blocks[0]
	b.Float32(trajectory.Reward)[0], b.Float32(trajectory.Bootstrap)[0] = 3, 100
	b.Bytes(trajectory.Terminated)[0], b.Bytes(trajectory.Truncated)[0] = 200, 1
	c := ppo.Defaults()
	var targets ppo.Targets
	if err := targets.GAE(d, &c); err != nil {
		t.Fatal(err)
	}
	if targets.Advantage[0] != 3 {
		t.Errorf("advantage = %v, want 3", targets.Advantage[0])
	}
}

func TestExplainedVarianceIsOneForExactValuesAndZeroForConstantOnes(t *testing.T) {
	targets := ppo.Targets{Return: []float32{1, 2, 99, 4}}
	explained := func(value []float32) float64 {
		return targets.ExplainedVariance(&ppo.Samples{Value: value, Valid: []uint32{0, 1, 3}})
	}
	if got := explained([]float32{1, 2, 0, 4}); got != 1 {
		t.Errorf("exact values explain %v, want 1", got)
	}
	if got := explained([]float32{5, 5, 0, 5}); math.Abs(got) > 1e-12 {
		t.Errorf("constant values explain %v, want 0", got)
	}
}
