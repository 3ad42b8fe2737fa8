package session_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// meddler makes scripted environments that also tamper with their blocks.
type meddler struct {
	*plugintest.Plugin
	bound   func(b env.Block)                               // before a block is bound
	stepped func(b env.Block, firstEnv, t int, call uint64) // after a step
}

func (p *meddler) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &meddling{Env: e, meddler: p, first: o.FirstEnv}, err
}

type meddling struct {
	env.Env
	*meddler
	first int
	block env.Block
	calls uint64
}

func (e *meddling) Spec() *hostabi.EnvSpec { return e.Env.Spec() }
func (e *meddling) Close() error           { return e.Env.Close() }

func (e *meddling) Bind(b env.Block) error {
	e.block = b
	if e.bound != nil {
		e.bound(b)
	}
	return e.Env.Bind(b)
}

func (e *meddling) Step(t int) error {
	e.calls++
	err := e.Env.Step(t)
	if err == nil && e.stepped != nil {
		e.stepped(e.block, e.first, t, e.calls)
	}
	return err
}

// poison fills a block with numbers that are none: NaN as float32, and huge as anything else.
func poison(b env.Block) {
	for i := 0; i+4 <= len(b.Mem); i += 4 {
		binary.LittleEndian.PutUint32(b.Mem[i:], 0x7ffda5a5)
	}
}

// variants are ways of learning in which different columns matter.
func variants() map[string]experiment {
	nextStep := uneven()
	nextStep.Autoreset = hostabi.NextStep
	disabled := masked()
	disabled.Autoreset = hostabi.Disabled
	return map[string]experiment{
		"plain":      {script: uneven()},
		"masked":     {script: masked()},
		"normalised": {script: uneven(), sets: []string{"policy.main.normalize_obs=true"}},
		"next_step":  {script: nextStep, sets: []string{"policy.main.normalize_obs=true"}},
		"disabled":   {script: disabled, sets: []string{"policy.main.normalize_obs=true", "policy.main.share_trunk=true"}},
		"limited":    {script: uneven(), sets: []string{limitOf(4), "component.rollout.layout=soa"}},
		"gru":        {script: masked(), sets: []string{core("gru", 4)}},
		"lstm":       {script: nextStep, sets: []string{core("lstm", 16), "policy.main.normalize_obs=true", limitOf(7)}},
		"gru v-trace": {script: disabled, sets: []string{core("gru", 8), "component.learner.vtrace=true", `component.learner.vtrace_recompute="epoch"`,
			"component.rollout.layout=soa"}},
		"v-trace": {script: masked(), sets: []string{"component.learner.vtrace=true",
			`component.learner.vtrace_recompute="epoch"`, "component.learner.value_clip=0.2"}},
	}
}

// Every value that learning reads of a recycled block has been written since: its old contents change nothing.
func TestS4PoisonedBlocksChangeNothing(t *testing.T) {
	for name, x := range variants() {
		t.Run(name, func(t *testing.T) {
			want := x.must(t)
			x.plugin = &meddler{Plugin: plugintest.New(x.script), bound: poison}
			got := x.must(t)
			sameRows(t, "poisoned", got.rows(t), want.rows(t))
			if !slices.Equal(got.hashes, want.hashes) {
				t.Errorf("parameters %.8s, want %.8s as without poison", got.hashes, want.hashes)
			}
		})
	}
}

func TestS4SeamCarriesState(t *testing.T) {
	script := masked()
	o := experiment{script: script, sets: []string{"component.learner.learning_rate=0"}}.must(t)
	bySplit := map[uint32][]*block{}
	for i := range o.blocks {
		b := &o.blocks[i]
		bySplit[b.meta.FirstEnv] = append(bySplit[b.meta.FirstEnv], b)
	}
	if len(bySplit) != 2 {
		t.Fatalf("%d splits, want 2", len(bySplit))
	}
	for _, blocks := range bySplit {
		for i, b := range blocks[1:] {
			checkSeam(t, blocks[i], b)
		}
	}
	for env, rows := range o.rows(t) {
		for i := 1; i < len(rows); i++ {
			if before := &rows[i-1]; before.terminated|before.truncated == 0 &&
				(rows[i].episode() != before.episode() || rows[i].at() != before.at()+1) {
				t.Errorf("environment %d: %+v follows %+v", env, rows[i], *before)
			}
		}
	}
	checkEpisodes(t, o, script)
}

// checkSeam compares the last row of a block with the first one of the next.
func checkSeam(t *testing.T, before, after *block) {
	t.Helper()
	steps, envs := before.Schema.Shape.Steps, before.Schema.Shape.Envs
	if after.meta.Sequence != before.meta.Sequence+1 || after.meta.FirstStep != before.meta.FirstStep+uint64(steps) {
		t.Errorf("%+v follows %+v", after.meta, before.meta)
	}
	for _, c := range []trajectory.Column{trajectory.Obs, trajectory.Mask} {
		if !slices.Equal(before.Row(c, steps).Data, after.Row(c, 0).Data) {
			t.Errorf("%v of the last row is not that of the next block's first", c)
		}
	}
	last, first := before.Float32(trajectory.Value)[steps*envs:], after.Float32(trajectory.Value)[:envs]
	if !slices.Equal(last, first) {
		t.Errorf("values %v of the last row, %v of the next block's first, by the same policy", last, first)
	}
}

func TestS5RewrittenActionsAreFoundWhereTheyIndex(t *testing.T) {
	for _, c := range []struct {
		name   string
		script plugintest.Script
		value  int32
	}{
		{"too large", uneven(), 2}, {"negative", uneven(), -1}, {"far away", uneven(), 1 << 30}, {"illegal", fixed(hostabi.SameStep), -7},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &meddler{Plugin: plugintest.New(c.script)}
			p.stepped = func(b env.Block, first, row int, call uint64) {
				if first != 4 || call != 21 {
					return
				}
				action := &b.Int32(trajectory.Action)[row*b.Schema.Shape.Envs+2]
				if *action = c.value; c.value == -7 {
					*action = legalElse(b, row, 2)
				}
			}
			o := experiment{plugin: p}.run(t)
			if !errors.Is(o.err, policy.ErrActionRange) {
				t.Fatalf("Run: %v, want ErrActionRange", o.err)
			}
			if text := o.err.Error(); !strings.Contains(text, "environment 6 at t = 4") || !strings.Contains(text, "learner") {
				t.Errorf("Run: %v, want the learner to name environment 6 at t = 4", o.err)
			}
		})
	}
}

// legalElse returns an action that is not legal.
func legalElse(b env.Block, row, env int) int32 {
	m := b.Row(trajectory.Mask, row)
	for a := range m.Elems {
		if m.Data[env*m.StrideRow+a*m.StrideElem] == 0 {
			return int32(a)
		}
	}
	return 0
}

// With zero lag the learning policy equals the acting one, to the last bit, whatever batches it acted in.
func TestS6TheFirstRatioIsExactlyOne(t *testing.T) {
	for name, x := range variants() {
		for _, rows := range []int{1, 5, 1024} {
			t.Run(fmt.Sprintf("%s %d", name, rows), func(t *testing.T) {
				y := x
				y.sets = append(slices.Clone(x.sets), fmt.Sprintf("component.inference.max_rows=%d", rows))
				o := y.must(t)
				if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
					t.Errorf("first_ratio_error %v: %v", o.reported("losses/first_ratio_error"), err)
				}
				if err := only(o.reported("losses/first_clipfrac"), 0); err != nil {
					t.Errorf("first_clipfrac %v: %v", o.reported("losses/first_clipfrac"), err)
				}
			})
		}
	}
}

// The normaliser moves on once a dataset, by its valid rows, is published with the version, and saved with it.
func TestS6NormalisersBelongToTheVersion(t *testing.T) {
	var sums [plugintest.ObsElems]float64
	x := experiment{script: uneven(), sets: []string{"policy.main.normalize_obs=true"}}
	x.backend = func(b policy.Backend) policy.Backend {
		n := 0.0
		return &spy{Backend: b, updates: func(d *policy.Dataset) {
			for i, mean := range d.ObsMean {
				if want := sums[i] / max(n, 1); !near(float64(mean), want, 1e-5) {
					t.Errorf("dataset %d is learned from with mean %v of element %d, its predecessors have %v", d.Index, mean, i, want)
				}
			}
			for _, b := range d.Blocks {
				for row := range b.Schema.Shape.Steps {
					m := b.Row(trajectory.Obs, row)
					for env := range m.Rows {
						for i, v := range elements(m, env) {
							sums[i] += float64(v)
						}
						n++
					}
				}
			}
		}}
	}
	o := x.must(t)
	_, w, err := learnerOf(o)
	if err != nil {
		t.Fatal(err)
	}
	if w.Normalizer == nil || w.Normalizer.Count != o.stats["rollout/env_steps"] {
		t.Fatalf("saved normaliser %+v, want one of %v rows", w.Normalizer, o.stats["rollout/env_steps"])
	}
	for i, mean := range w.Normalizer.Mean {
		if want := sums[i] / w.Normalizer.Count; !near(mean, want, 1e-9) {
			t.Errorf("saved mean %v of element %d, want %v", mean, i, want)
		}
	}
}

// near reports whether two numbers are equal but for a share of their size.
func near(a, b, share float64) bool { return max(a-b, b-a) <= share*max(1, a, -a) }
