package policytest

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

var rates = ppo.Rates{LearningRate: 1e-3, Clip: 0.1, Entropy: 0.02}

func (s *suite) forward(t *testing.T) {
	d := s.dataset(t, 1)
	params := s.params(1)
	Act(t, &s.shape.net, s.actor(t, params, d), d, 7)
	b := d.Blocks[0]
	var samples ppo.Samples
	if err := samples.Read(d, &s.shape.net); err != nil {
		t.Fatal(err)
	}
	r := NewReference(s.shape.net, params, s.config())
	heads, value := r.forward(d)
	for _, row := range samples.Valid {
		i := int(row)
		if got := float64(b.Float32(trajectory.Value)[i]); math.Abs(got-value[i]) > s.tol.Output {
			t.Errorf("value of row %d = %v, want %v", i, got, value[i])
		}
		want, _ := ppo.LogProb(r.dists, samples.Actions, i, heads)
		if got := float64(samples.LogProb[i]); !(math.Abs(got-want) <= s.tol.Output*(1+math.Abs(want))) {
			t.Errorf("log_prob of row %d = %v, want %v", i, got, want)
		}
		s.drawn(t, d, &samples, i, heads)
	}
}

// drawn holds the actions of a row against the numbers that decide them.
func (s *suite) drawn(t *testing.T, d *policy.Dataset, samples *ppo.Samples, row int, heads [][]float64) {
	t.Helper()
	first, env, step := uint32(0), uint32(row%s.shape.envs), uint64(1000+row/s.shape.envs)
	for k, of := range s.shape.net.Dists() {
		u, action := make([]float32, of.Draws()), make([]float64, of.Size())
		first = policy.Draws(of, d.Seed, env, step, first, u)
		params, a := heads[k][row*of.Elems():(row+1)*of.Elems()], &samples.Actions[k]
		a.Row(row, action)
		if of.Continuous() {
			want := make([]float64, of.Size())
			of.Sample(params, nil, u, want)
			for i := range want {
				if !(math.Abs(action[i]-want[i]) <= 20*s.tol.Output*(1+math.Abs(want[i]))) {
					t.Errorf("row %d: element %d of action %d is %v, its numbers draw %v", row, i, k, action[i], want[i])
				}
			}
			continue
		}
		for i, logProbs := range elements(&s.shape.net.Policy[k], params, a.Masks(row, row+1)) {
			if !s.sampled(logProbs, int(action[i]), u[i]) {
				t.Errorf("row %d: element %d of action %d is %v of %v, which does not follow from its number", row, i, k, action[i], logProbs)
			}
		}
	}
}

// elements returns the log-probabilities of every choice of every element of a discrete action.
func elements(d *policy.Dist, params []float64, mask []byte) (all [][]float64) {
	if of, err := d.Of(); err == nil && of.Size() == 1 && of.Elems() == of.Choices() {
		return [][]float64{LogProbs(of, params, mask)}
	}
	at := 0
	for i, n := range d.Counts() {
		logits := []float64{0, params[min(i, len(params)-1)]}
		if d.Bernoulli == nil {
			logits = params[at : at+n]
		}
		var legal []byte
		if mask != nil {
			legal = mask[at : at+n]
		}
		all = append(all, LogProbs(&head.Categorical{N: n}, logits, legal))
		at += n
	}
	return all
}

// sampled reports whether the action is the one whose interval of the distribution function holds u, give or take
// the rounding of the backend's probabilities.
func (s *suite) sampled(logProbs []float64, action int, u float32) bool {
	below := 0.0
	for _, logProb := range logProbs[:action] {
		below += math.Exp(logProb)
	}
	above := below + math.Exp(logProbs[action])
	return below-s.tol.Output <= float64(u) && float64(u) <= above+s.tol.Output
}

// stale makes a dataset that an older policy acted on.
func (s *suite) stale(t testing.TB) (d *policy.Dataset, params []float32) {
	d = s.dataset(t, 1)
	params = s.params(1)
	Act(t, &s.shape.net, s.actor(t, params, d), d, s.shape.envs)
	params = append([]float32(nil), params...)
	for i := range params {
		params[i] += 0.02 * float32(math.Sin(float64(i)))
	}
	return d, params
}

// gradient reads the gradient from the first moment after one step with β₁ = 0.
func (s *suite) gradient(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	c.Epochs, c.Minibatch, c.MaxGradNorm, c.AdamBeta1, c.KLCoef, c.BoundsLossCoef = 1, d.Rows(), 0, 0, 0.4, 0.3
	state, _ := s.update(t, params, c, d, 1)
	r := NewReference(s.shape.net, params, c)
	batch := r.whole(t, d)
	r.Gradient(batch, rates)
	largest := 0.0
	for _, g := range r.Graph.Grad {
		largest = max(largest, math.Abs(g))
	}
	for i, got := range state.AdamM {
		if want := r.Graph.Grad[i]; !(math.Abs(float64(got)-want) <= s.tol.Gradient*largest) {
			t.Fatalf("gradient %d of %d = %v, reference %v", i, len(r.Graph.Grad), got, want)
		}
	}
	if s.shape.kinks {
		return // a difference step may cross a kink
	}
	const h = 1e-5
	before := r.heads(batch)
	samples := min(max(400000/len(params), 6), 40)
	for i := 0; i < len(params); i += 1 + len(params)/samples {
		at := r.Graph.Params[i]
		r.Graph.Params[i] = at + h
		above := r.Loss(batch, rates, before)
		r.Graph.Params[i] = at - h
		below := r.Loss(batch, rates, before)
		r.Graph.Params[i] = at
		want := (above - below) / (2 * h)
		if got := float64(state.AdamM[i]); !(math.Abs(got-want) <= s.tol.Gradient*largest+1e-6) {
			t.Errorf("gradient %d = %v, finite difference %v", i, got, want)
		}
	}
}

// whole gathers all valid rows.
func (r *Reference) whole(t testing.TB, d *policy.Dataset) *ppo.Minibatch {
	t.Helper()
	round := &ppo.Round{Dataset: d, Unit: ppo.Raw}
	if err := round.Samples.Read(d, &r.Graph.Network); err != nil {
		t.Fatal(err)
	}
	r.Begin(round)
	r.Target()
	rows := r.Samples.Valid
	if r.Graph.Network.Chunk > 0 {
		rows = r.Samples.Chunked
	}
	r.batch.Gather(d, &r.Graph.Network, &r.Samples, &r.Targets, rows)
	r.MomentsOf(rows).Normalize(r.batch.Advantage)
	if _, err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	return &r.batch
}

func (s *suite) updates(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	l, r := s.learner(t, params, c), NewReference(s.shape.net, params, c)
	for range 3 {
		s.both(t, l, r, d)
	}
	params = make([]float32, len(params))
	if err := l.Params(params); err != nil {
		t.Fatal(err)
	}
	s.compareParams(t, params, r.Graph.Params)
}

// both updates a learner and the reference, and compares what they tell.
func (s *suite) both(t *testing.T, l ppo.Learner, r *Reference, d *policy.Dataset) (got, want ppo.Stats) {
	t.Helper()
	got, err := l.Update(d, rates)
	if err != nil {
		t.Fatal(err)
	}
	if want, err = r.Update(d, rates); err != nil {
		t.Fatal(err)
	}
	s.compareStats(t, &got, &want)
	return got, want
}

// returns: values are learned in units of the returns' statistics, the learning rate follows the divergence, and both are
// part of the state.
func (s *suite) returns(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	c.NormalizeReturns, c.AdaptiveKL, c.KLCoef = true, 0.002, 0.4
	l, r := s.learner(t, params, c), NewReference(s.shape.net, params, c)
	first := make([]float32, len(params))
	if err := l.Params(first); err != nil {
		t.Fatal(err)
	}
	if head, err := ppo.HeadOf(s.shape.net.Values[0].From, s.shape.net.Params()); err != nil || first[head.Bias.Offset] != 0 || first[head.Weight.Offset] != 0 {
		t.Errorf("the first version has values (%v), want 0 before a return is known", err)
	}
	rewards := d.Blocks[0].Float32(trajectory.Reward)
	for i := range rewards {
		rewards[i] = 300 + 1000*rewards[i]
	}
	saved, total := ppo.State{}, 0.0
	for range 4 {
		got, want := s.both(t, l, r, d)
		if got.LearningRate != want.LearningRate {
			t.Errorf("learning rate %v, reference %v", got.LearningRate, want.LearningRate)
		}
		before := saved
		total += got.ValidRows
		saved = stateOf(t, l)
		if saved.Returns.Count != total || saved.Returns.Mean < 300 || saved.LearningRate != got.LearningRate {
			t.Errorf("state: %+v, learning rate %v after %v", saved.Returns, saved.LearningRate, got.LearningRate)
		}
		if before.Params == nil {
			continue
		}
		again := s.learner(t, make([]float32, len(params)), c)
		if err := again.SetState(before); err != nil {
			t.Fatal(err)
		}
		if _, err := again.Update(d, rates); err != nil || !sameBits(stateOf(t, again), saved) {
			t.Errorf("a learner that continued has other bits (%v)", err)
		}
	}
	s.compareParams(t, saved.Params, r.Graph.Params)
}

func (s *suite) compareParams(t *testing.T, got []float32, want []float64) {
	t.Helper()
	worst, at := 0.0, 0
	for i := range got {
		if diff := math.Abs(float64(got[i]) - want[i]); !(diff <= worst) {
			worst, at = diff, i
		}
	}
	if limit := s.tol.Params * float64(rates.LearningRate); !(worst <= limit) {
		t.Errorf("parameter %d = %v, reference %v: %.3g apart, want at most %.3g", at, got[at], want[at], worst, limit)
	}
}

func (s *suite) compareStats(t *testing.T, got, want *ppo.Stats) {
	t.Helper()
	g, w := got.Values(nil), want.Values(nil)
	for i, name := range ppo.StatNames() {
		if !(math.Abs(g[i]-w[i]) <= 1e-4*(1+math.Abs(w[i]))) {
			t.Errorf("%s = %v, reference %v", name, g[i], w[i])
		}
	}
}
