package policytest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// update makes a learner, learns count times from d and returns its state.
func (s *suite) update(t *testing.T, params []float32, c ppo.Config, d *policy.Dataset, count int) (ppo.State, ppo.Stats) {
	t.Helper()
	l := s.learner(t, params, c)
	var stats ppo.Stats
	for range count {
		var err error
		if stats, err = l.Update(d, rates); err != nil {
			t.Fatal(err)
		}
	}
	return stateOf(t, l), stats
}

func stateOf(t *testing.T, l ppo.Learner) ppo.State {
	t.Helper()
	state, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func sameBits(a, b ppo.State) bool {
	equal := func(x, y []float32) bool {
		return slices.EqualFunc(x, y, func(p, q float32) bool { return math.Float32bits(p) == math.Float32bits(q) })
	}
	return a.AdamSteps == b.AdamSteps && a.Returns == b.Returns && a.LearningRate == b.LearningRate && equal(a.Params, b.Params) && equal(a.AdamM, b.AdamM) && equal(a.AdamV, b.AdamV)
}

// repeats: the same inputs give the same bits, and the blocks that a dataset is split into do not matter.
func (s *suite) repeats(t *testing.T) {
	d, params := s.stale(t)
	want, _ := s.update(t, params, s.config(), d, 2)
	if got, _ := s.update(t, params, s.config(), d, 2); !sameBits(got, want) {
		t.Error("a second learner has other bits")
	}
	half := *s
	half.shape.envs = 6
	whole := *s
	whole.shape.envs = 12
	var states []ppo.State
	for _, d := range []*policy.Dataset{half.dataset(t, 2), whole.dataset(t, 1)} {
		Act(t, &s.shape.net, s.actor(t, params, d), d, 6)
		state, _ := s.update(t, params, s.config(), d, 1)
		states = append(states, state)
	}
	if !sameBits(states[0], states[1]) {
		t.Error("two blocks of 6 environments have other bits than one of 12")
	}
}

// continues: a learner with the state of another continues with the same bits.
func (s *suite) continues(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	l := s.learner(t, params, c)
	if _, err := l.Update(d, rates); err != nil {
		t.Fatal(err)
	}
	saved := stateOf(t, l)
	other := s.learner(t, make([]float32, len(params)), c)
	if err := other.SetState(saved); err != nil {
		t.Fatal(err)
	}
	if !sameBits(stateOf(t, other), saved) {
		t.Fatal("State does not return what SetState took")
	}
	for _, l := range []ppo.Learner{l, other} {
		if _, err := l.Update(d, rates); err != nil {
			t.Fatal(err)
		}
	}
	if !sameBits(stateOf(t, other), stateOf(t, l)) {
		t.Error("the learner that continued has other bits")
	}
	for _, part := range []*[]float32{&saved.Params, &saved.AdamM, &saved.AdamV} {
		whole := *part
		if *part = whole[1:]; other.SetState(saved) == nil {
			t.Error("SetState took a state with an element missing")
		}
		*part = whole
	}
}

// ratioOne: with the weights that acted, the ratio of the first minibatch is exactly 1.
func (s *suite) ratioOne(t *testing.T) {
	params := s.params(1)
	for _, rows := range []int{1, 6, s.shape.envs} {
		d := s.dataset(t, 1)
		Act(t, &s.shape.net, s.actor(t, params, d), d, rows)
		_, stats := s.update(t, params, s.config(), d, 1)
		if stats.FirstRatioError != 0 || stats.FirstClipFraction != 0 {
			t.Errorf("%d rows a request: ratio is off by %g, %g clipped; want exactly 0",
				rows, stats.FirstRatioError, stats.FirstClipFraction)
		}
	}
}

// notANumber is NaN in any type of floats, and out of range or the largest value in other types.
var notANumber = []byte{255, 255, 255, 255, 255, 255, 255, 255}

// invalidRows enter nothing, whatever they hold.
func (s *suite) invalidRows(t *testing.T) {
	d, params := s.stale(t)
	var want []ppo.State
	var told []ppo.Stats
	for _, c := range s.variants() {
		state, stats := s.update(t, params, c, d, 1)
		want, told = append(want, state), append(told, stats)
	}
	b := d.Blocks[0]
	invalid := s.poisonInvalid(b)
	if invalid == 0 {
		t.Fatal("the dataset has no invalid rows")
	}
	for i, c := range s.variants() {
		if got, stats := s.update(t, params, c, d, 1); !sameBits(got, want[i]) || stats != told[i] {
			t.Errorf("vtrace %v, burn-in %d: poison in %d invalid rows changes the result", c.VTrace, c.BurnInRows, invalid)
		}
	}
	clear(b.Bytes(trajectory.Valid))
	none, stats := s.update(t, params, s.config(), d, 1)
	if stats.OptimizerSteps != 0 || none.AdamSteps != 0 || stats.ValidRows != 0 {
		t.Errorf("a dataset without valid rows made %v optimiser steps", stats.OptimizerSteps)
	}
}

// padding behind the end of an environment's episode enters nothing, values included, where it is whole chunks too.
func (s *suite) padding(t *testing.T) {
	d, params := s.stale(t)
	b, width := d.Blocks[0], d.BlockEnvs()
	flags, ended := b.Bytes(trajectory.Valid), b.Bytes(trajectory.Terminated)
	lasts := make([]int, width)
	for e := range width {
		last := -1
		for row := range d.Steps() {
			switch i := row*width + e; {
			case row > (3*e)%d.Steps():
				flags[i] = 0
			case flags[i] != 0:
				last = i
			}
		}
		if lasts[e] = last; last >= 0 {
			ended[last], b.Bytes(trajectory.Truncated)[last] = 1, 0
		}
	}
	c := s.config()
	want, told := s.update(t, params, c, d, 1)
	s.poisonInvalid(b)
	for i := range flags {
		if i > lasts[i%width] {
			b.Float32(trajectory.Value)[i] = float32(math.NaN())
		}
	}
	if got, stats := s.update(t, params, c, d, 1); !sameBits(got, want) || stats != told {
		t.Error("what is in the padding changes the result")
	}
}

// poisonInvalid spoils the rows of a block that are not valid, except for their values, and returns their number.
func (s *suite) poisonInvalid(b trajectory.Trajectory) (invalid int) {
	width := b.Schema.Rows()
	for i, valid := range b.Bytes(trajectory.Valid) {
		if valid != 0 {
			continue
		}
		invalid++
		nan := float32(math.NaN())
		s.poison(b, i)
		b.Float32(trajectory.Reward)[i], b.Float32(trajectory.LogProb)[i] = nan, nan
		b.Float32(trajectory.Bootstrap)[i] = nan
		b.Bytes(trajectory.Terminated)[i], b.Bytes(trajectory.Truncated)[i] = 255, 255
		for _, m := range b.Rows(nil, trajectory.Obs, i/width) {
			for j := range m.Elems {
				copy(m.Data[i%width*m.StrideRow+j*m.StrideElem:][:m.DType.Bytes()], notANumber)
			}
		}
		if l, ok := b.Schema.Layout(trajectory.Mask); ok {
			for a := range l.Elems {
				b.Bytes(trajectory.Mask)[i/l.Envs*l.StrideT+i%l.Envs*l.StrideEnv+a*l.StrideElem] = 0
			}
		}
	}
	return invalid
}

// poison spoils the actions of a row.
func (s *suite) poison(b trajectory.Trajectory, row int) {
	for k := range s.shape.net.Policy {
		l, _ := b.Schema.Layout(trajectory.Action.At(k))
		at := (row/l.Envs*l.StrideT + row%l.Envs*l.StrideEnv) / 4
		if raw := b.Float32(trajectory.RawAction.At(k)); raw != nil {
			raw[at] = float32(math.NaN())
		} else {
			b.Int32(trajectory.Action.At(k))[at] = -7
		}
	}
}

// targetKL ends the epochs after the first minibatch that exceeds it.
func (s *suite) targetKL(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	c.Epochs, c.TargetKL = 5, 1e-9
	if s.shape.net.Actions() == 1 {
		return // a single action has no divergence
	}
	state, stats := s.update(t, params, c, d, 1)
	if state.AdamSteps != 1 || stats.OptimizerSteps != 1 || stats.Epochs != 1 {
		t.Errorf("target_kl = 1e-9 made %d steps in %v epochs, want 1 in 1", state.AdamSteps, stats.Epochs)
	}
	c.TargetKL = 1e9
	if _, stats := s.update(t, params, c, d, 1); stats.Epochs != 5 {
		t.Errorf("target_kl = 1e9 stopped after %v epochs, want 5", stats.Epochs)
	}
}

// vtrace equals the reference for data of an older policy, with ratios computed once and every epoch.
func (s *suite) vtrace(t *testing.T) {
	d, params := s.stale(t)
	c := s.config()
	c.VTrace, c.RhoBar, c.CBar, c.Epochs = true, 1.05, 0.98, 3
	var results [][]float32
	for _, c.VTraceRecompute = range []string{ppo.RecomputeDataset, ppo.RecomputeEpoch} {
		state, stats := s.update(t, params, c, d, 1)
		r := NewReference(s.shape.net, params, c)
		want, err := r.Update(d, rates)
		if err != nil {
			t.Fatal(err)
		}
		s.compareStats(t, &stats, &want)
		s.compareParams(t, state.Params, r.Graph.Params)
		results = append(results, state.Params)
	}
	if s.shape.net.Actions() != 1 && slices.Equal(results[0], results[1]) {
		t.Error("recompute per dataset and per epoch give the same parameters")
	}
}

// badTargets of a guest are errors that name the row.
func (s *suite) badTargets(t *testing.T) {
	for name, spoil := range map[string]func(b trajectory.Trajectory, row int){
		"reward": func(b trajectory.Trajectory, row int) { b.Float32(trajectory.Reward)[row] = float32(math.Inf(1)) },
		"bootstrap": func(b trajectory.Trajectory, row int) {
			b.Bytes(trajectory.Terminated)[row], b.Bytes(trajectory.Truncated)[row] = 0, 1
			b.Float32(trajectory.Bootstrap)[row] = float32(math.NaN())
		},
	} {
		d, params := s.stale(t)
		first := slices.Index(d.Blocks[0].Bytes(trajectory.Valid), 1)
		spoil(d.Blocks[0], first)
		_, err := s.learner(t, params, s.config()).Update(d, rates)
		var row *policy.RowError
		if !errors.Is(err, policy.ErrNotFinite) || !errors.As(err, &row) || row.Row != first {
			t.Errorf("%s in row %d: Update = %v, want ErrNotFinite that names it", name, first, err)
		}
	}
}

// badFlags of a guest or a plugin are errors that name the row and the column, and nothing is learned.
func (s *suite) badFlags(t *testing.T) {
	for _, column := range []trajectory.Column{trajectory.Terminated, trajectory.Truncated, trajectory.Valid} {
		d, params := s.stale(t)
		first := slices.Index(d.Blocks[0].Bytes(trajectory.Valid), 1)
		d.Blocks[0].Bytes(column)[first] = 255
		l := s.learner(t, params, s.config())
		_, err := l.Update(d, rates)
		var row *policy.RowError
		if !errors.Is(err, policy.ErrFlag) || !errors.As(err, &row) || row.Row != first || !strings.Contains(err.Error(), column.String()) {
			t.Errorf("%v = 255 in row %d: Update = %v, want ErrFlag that names it", column, first, err)
		}
		if got := stateOf(t, l); !slices.Equal(got.Params, params) {
			t.Errorf("%v = 255: the parameters have changed", column)
		}
	}
}

// notFinite: an observation that is not a number is an error, and parameters stay unchanged.
func (s *suite) notFinite(t *testing.T) {
	d, params := s.stale(t)
	obs := d.Blocks[0].Float32(trajectory.Obs)
	if len(obs) == 0 {
		return // bytes and whole numbers are always finite
	}
	for i := range obs {
		obs[i] = float32(math.NaN())
	}
	l := s.learner(t, params, s.config())
	if _, err := l.Update(d, rates); !errors.Is(err, policy.ErrNotFinite) {
		t.Errorf("Update with observations that are not numbers = %v, want ErrNotFinite", err)
	}
	if got := stateOf(t, l); !slices.Equal(got.Params, params) || got.AdamSteps != 0 {
		t.Error("Update with observations that are not numbers changed the parameters")
	}
}

// wrongSizes: blocks of another environment and vectors of another network are refused.
func (s *suite) wrongSizes(t *testing.T) {
	params := s.params(1)
	l := s.learner(t, params, s.config())
	other := *s
	other.shape.net = s.shape.net.Clone()
	shape := &other.shape.net.Inputs[0].Shape
	*shape = append([]int{(*shape)[0] + 1}, (*shape)[1:]...)
	for name, d := range map[string]*policy.Dataset{"no blocks": {}, "another width": other.dataset(t, 1)} {
		if _, err := l.Update(d, rates); !errors.Is(err, policy.ErrDataset) {
			t.Errorf("Update of a dataset with %s = %v, want ErrDataset", name, err)
		}
	}
	if l.Params(params[1:]) == nil {
		t.Error("Params wrote to too few elements")
	}
	if _, err := ppo.NewLearner(s, &s.shape.net, params[1:], s.config()); err == nil {
		t.Error("NewLearner took parameters of which one is missing")
	}
}

// unknownWords: an unknown word in a network is refused by name, and never computed as something else.
func (s *suite) unknownWords(t *testing.T) {
	const word = "softsign"
	for what, spoil := range map[string]func(n *policy.Network) bool{
		"activation": func(n *policy.Network) bool {
			i := slices.IndexFunc(n.Nodes, func(of policy.Node) bool { return of.Activation != nil })
			if i >= 0 {
				n.Nodes[i].Activation = &layer.Activation{Func: word}
			}
			return i >= 0
		},
		"squash": func(n *policy.Network) bool {
			i := slices.IndexFunc(n.Policy, func(of policy.Dist) bool { return of.Gaussian != nil })
			if i >= 0 {
				n.Policy[i].Gaussian = &head.Gaussian{N: n.Policy[i].Gaussian.N, Squash: word}
			}
			return i >= 0
		},
		"norm":               func(n *policy.Network) bool { n.Inputs[0].Norm = word; return true },
		"source of an input": func(n *policy.Network) bool { n.Inputs[0].From = word; return true },
	} {
		n := s.shape.net.Clone()
		if !spoil(&n) {
			continue
		}
		if _, err := policy.NewActor(s, &n, s.shape.envs); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s %q: NewActor = %v, want an error that names it", what, word, err)
		}
		if _, err := ppo.NewLearner(s, &n, s.params(1), s.config()); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s %q: NewLearner = %v, want an error that names it", what, word, err)
		}
	}
}

// memory: acting never allocates, updating not once it has seen a dataset.
func (s *suite) memory(t *testing.T) {
	d, params := s.stale(t)
	a := s.actor(t, params, d)
	requests := Requests(&s.shape.net, d, d.Blocks[0], 0, 5)
	if got := testing.AllocsPerRun(10, func() {
		if err := a.Act(requests); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("Act allocates %v times", got)
	}
	for _, c := range s.variants() {
		if c.VTrace {
			continue
		}
		l := s.learner(t, params, c)
		update := func() {
			if _, err := l.Update(d, rates); err != nil {
				t.Fatal(err)
			}
		}
		update()
		if got := testing.AllocsPerRun(3, update); got != 0 {
			t.Errorf("burn-in %d: Update allocates %v times", c.BurnInRows, got)
		}
	}
}
