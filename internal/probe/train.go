package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// EnvSteps is how long every training is, and Tolerance how far from theory it may end, as a part of that.
const (
	EnvSteps  = 196_608
	Tolerance = 0.005
)

// file is the pipeline of every probe. The learning rate falls to 0.
const file = `
rlhost = 1
[run]
name = "probe"
stop = { env_steps = 196_608 }
[env.probe]
use = "probe@1"
[train]
preset = "general"
env = "probe"
[policy.main]
net = { kind = "mlp", hidden = [16], activation = "tanh" }
normalize_obs = false
[component.learner]
gamma = 0.9
learning_rate = 3e-3
minibatch = 256
entropy_coef = 0.0
normalize_advantage = false
[component.runner]
log = []
[component.reader]
kind = "reader"
loop = "learner"
[[wire]]
signal = "rollout.trajectories"
slot = "reader.on_trajectories"
mode = "all"
depth = 64
on_full = "block"
`

// last is the share of the blocks, at the end, that is read: one of so many. The mean over them averages out the noise of actions.
const last = 3

// Train trains on the probe and returns the learned value of each of p.Known.
func (p *Probe) Train(ctx context.Context, m Mode, seed uint64) (found []float64, err error) {
	r := &reader{known: p.Known}
	if err := p.train(ctx, m, seed, r); err != nil {
		return nil, err
	}
	return r.found()
}

func (p *Probe) train(ctx context.Context, m Mode, seed uint64, r *reader) (err error) {
	parts, engines := builtin.New(builtin.Options{})
	defer func() { err = errors.Join(err, engines.Close()) }()
	parts.Kinds["reader"] = func() component.Component { return r }
	parts.Builtins = []string{"probe@1"}
	parts.Load = func(_ context.Context, _ string, t graph.EnvTable, _ string) (env.Plugin, error) {
		if p.plugin != nil {
			return p.plugin, nil
		}
		script := p.script
		script.Autoreset = m.auto
		return wrap.New(plugintest.New(script), t.Wrap, nil)
	}
	g, err := graph.Parse("probe.toml", []byte(file), graph.ParseOptions{Parts: parts, Sets: p.setsIn(m, seed)})
	if err != nil {
		return err
	}
	built, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: parts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = built.Run(ctx)
	return errors.Join(err, built.Close(), context.Cause(ctx))
}

// setsIn are the keys of a training that differ from the file.
func (p *Probe) setsIn(m Mode, seed uint64) []string {
	sets := slices.Concat([]string{fmt.Sprintf("run.seed=%d", seed)}, p.sets, m.sets)
	switch {
	case m.shared && p.shared != nil:
		return append(sets, p.shared...)
	case m.shared:
		return append(sets, "policy.main.share_trunk=true")
	}
	return sets
}

// reader adds up the known numbers in blocks. It is a component of a pipeline; found may be called once that has ended.
type reader struct {
	component.Component
	h      *component.Host
	known  []Known
	blocks [][]tally // one for each of known
	err    error
}

type tally struct {
	sum  float64
	rows int
}

func (t *tally) add(v float64) {
	t.sum += v
	t.rows++
}

// Manifest has a slot for trajectories.
func (r *reader) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{{Name: "on_trajectories", Payload: "trajectory"}}}
}

// Configure has no keys.
func (r *reader) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

// Start takes the slot.
func (r *reader) Start(h *component.Host) error {
	r.h = h
	h.Slot("on_trajectories", func(m *hostabi.Message) {
		tr, lease, err := trajectory.Lease(h.Arenas, m.Handle)
		if err == nil {
			r.read(tr)
			err = lease.Release()
		}
		r.err = cmp.Or(r.err, err)
	})
	return nil
}

func (r *reader) read(tr trajectory.Trajectory) {
	rows, of := tr.Schema.Rows(), make([]tally, len(r.known))
	for t := range tr.Schema.Shape.Steps {
		cues, actions := tr.Row(trajectory.Obs, t), tr.Rows(nil, trajectory.Action, t)
		if _, told := tr.Schema.Layout(trajectory.Info); told {
			cues = tr.Row(trajectory.Info, t)
		}
		for e := range rows {
			i := t*rows + e
			if tr.Bytes(trajectory.Valid)[i] == 0 {
				continue
			}
			s := step{value: float64(tr.Float32(trajectory.Value)[i]), logProb: float64(tr.Float32(trajectory.LogProb)[i])}
			for _, m := range actions {
				for elem := range m.Elems {
					s.action = append(s.action, m.Value(e, elem))
				}
			}
			cue := float32(cues.Value(e, 0))
			for k := range of {
				if v, ok := r.known[k].of(&s); ok && r.known[k].cue == cue {
					of[k].add(v)
				}
			}
		}
	}
	r.blocks = append(r.blocks, of)
}

// step is what a block has of one env step.
type step struct {
	value, logProb float64
	action         []float64 // all elements of all actions, as the environment reads them
}

// measure reads a number from a step, if the step has it.
type measure func(*step) (v float64, ok bool)

// value is that of the observation.
func value(s *step) (v float64, ok bool) { return s.value, true }

// surprise is minus the log-probability of the action, whose mean is the entropy.
func surprise(s *step) (v float64, ok bool) { return -s.logProb, true }

// taken is the probability of an action.
func taken(action ...float64) measure {
	return func(s *step) (v float64, ok bool) { return math.Exp(s.logProb), slices.Equal(s.action, action) }
}

// element is one of the action's, whose mean is known.
func element(i int) measure {
	return func(s *step) (v float64, ok bool) { return s.action[i], true }
}

// found returns the means over the last blocks.
func (r *reader) found() ([]float64, error) {
	list := make([]float64, len(r.known))
	for k := range list {
		all := tally{}
		for _, of := range r.blocks[len(r.blocks)-len(r.blocks)/last:] {
			all.sum += of[k].sum
			all.rows += of[k].rows
		}
		if all.rows == 0 {
			return nil, fmt.Errorf("no row of the last datasets tells %s", r.known[k].What)
		}
		list[k] = all.sum / float64(all.rows)
	}
	return list, r.err
}

// Snapshot has nothing to save.
func (r *reader) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore takes nothing.
func (r *reader) Restore(component.State) error { return nil }

// Stop has nothing to release.
func (r *reader) Stop() error { return nil }
