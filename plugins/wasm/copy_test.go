package wasm

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// A copy is what Snapshot and Restore make, between environments of one plugin and of two made of the same file, and
// onto one that has played before. The copy's bindings do not change.
func TestCopyFrom_IsSnapshotAndRestoreInOne(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			p := load(t, r, name, source, env.Source{})
			o := env.Options{Envs: 32, Seed: 5}
			shape := trajectory.Shape{Steps: 32, Envs: 32}
			e := newEnv(t, p, o)
			all := blocks(t, p.Spec(), shape, 3)
			begin(t, e, all)
			play(t, e, all, 3)
			snap, err := e.Snapshot()
			must(t, err)
			fuel := e.FuelUsed()
			fresh, played := newEnv(t, load(t, r, name, source, env.Source{}), o), newEnv(t, p, o)
			own := blocks(t, p.Spec(), shape, 3)
			begin(t, played, own)
			play(t, played, own, 2)
			kept := bytes.Clone(own[0].Mem)
			turned, last := newEnv(t, p, o), blocks(t, p.Spec(), shape, 3) // its windows lie elsewhere
			slices.Reverse(last)
			begin(t, turned, last)
			play(t, turned, last, 2)
			for what, to := range map[string]*Env{"fresh": fresh, "played": played, "turned": turned} {
				if err := to.CopyFrom(e); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if to.FuelUsed() != fuel {
					t.Errorf("%s: fuel %d, want %d", what, to.FuelUsed(), fuel)
				}
				if got, err := to.Snapshot(); err != nil || !bytes.Equal(got, snap) {
					t.Errorf("%s: its snapshot differs (%v)", what, err)
				}
			}
			if !bytes.Equal(own[0].Mem, kept) {
				t.Error("the copy has written to a block that was bound")
			}
			want := play(t, e, all, 3)
			for what, to := range map[string]*Env{"fresh": fresh, "played": played, "turned": turned} {
				if !bytes.Equal(play(t, to, all, 3), want) {
					t.Errorf("%s: the future differs", what)
				}
			}
		})
	}
}

func TestCopyFrom_RefusesOthers(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	e, wider := newEnv(t, p, env.Options{Envs: 8}), newEnv(t, p, env.Options{Envs: 9})
	for what, from := range map[string]env.Env{"itself": e, "as many": wider, "another kind": nil} {
		if err := e.CopyFrom(from); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "copy of other environments") {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
	must(t, wider.Close())
	if _, err := e.Snapshot(); err != nil {
		t.Errorf("it is not as it was: %v", err)
	}
}

// A batch that takes over continues with the other's instance, bit for bit, and with its windows; the other one begins from scratch.
func TestTakeOver_ContinuesWithTheInstance(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t)
			one, two := load(t, r, name, source, env.Source{}), load(t, r, name, source, env.Source{})
			o := env.Options{Envs: 32, Seed: 5}
			shape := trajectory.Shape{Steps: 32, Envs: 32}
			e, next, alone := newEnv(t, one, o), newEnv(t, two, o), newEnv(t, one, o)
			all, own := blocks(t, one.Spec(), shape, 3), blocks(t, one.Spec(), shape, 3)
			begin(t, e, all)
			begin(t, alone, own)
			play(t, e, all, 3)
			play(t, alone, own, 3)
			snap, err := e.Snapshot()
			must(t, err)
			inst := e.inst
			must(t, next.TakeOver(e))
			if next.inst != inst || e.inst == inst || next.plugin != one || e.plugin != two {
				t.Error("the instances have not changed places")
			}
			if got, err := next.Snapshot(); err != nil || !bytes.Equal(got, snap) {
				t.Errorf("its snapshot differs (%v)", err)
			}
			if !bytes.Equal(play(t, next, all, 3), play(t, alone, own, 3)) {
				t.Error("the future differs")
			}
			must(t, one.Close()) // the new owner continues without its plugin
			begin(t, e, own)
			play(t, e, own, 2)
			must(t, e.Close())
			play(t, next, all, 2)
		})
	}
}

// An instance with other limits is not taken over.
func TestTakeOver_RefusesOthers(t *testing.T) {
	r := newRuntime(t)
	p := load(t, r, cartPole, nil, env.Source{})
	e := newEnv(t, p, env.Options{Envs: 8})
	others := map[string]env.Env{"itself": e, "another kind": nil, "as many": newEnv(t, p, env.Options{Envs: 9})}
	for what, source := range map[string]env.Source{
		"limits": {Limits: env.Limits{Memory: 32 << 20}}, "grants": {Grants: []string{module.GrantLog}}, "arguments": {Args: map[string]string{"max_steps": "30"}}, "data": {Data: t.TempDir()},
	} {
		others[what] = newEnv(t, load(t, r, cartPole, nil, source), env.Options{Envs: 8})
	}
	for what, from := range others {
		if err := e.TakeOver(from); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "takes over other environments") {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
	if _, err := e.Snapshot(); err != nil {
		t.Errorf("it is not as it was: %v", err)
	}
}

// Whatever windows a copy has had, it has the other one's afterwards; no block is bound, and none that was is written.
func TestCopyFrom_TakesTheOthersWindows(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	for _, long := range []int{1, 4, 4000} { // windows of other lengths; with the longest the copy has had more memory than the other one
		for had := range 3 {
			for has := range 3 {
				from, to := newEnv(t, p, env.Options{Envs: 8, Seed: 3}), newEnv(t, p, env.Options{Envs: 8, Seed: 3})
				others, own := blocks(t, p.Spec(), trajectory.Shape{Steps: 16, Envs: 8}, 3), blocks(t, p.Spec(), trajectory.Shape{Steps: 16 * long, Envs: 8}, 3)
				begin(t, from, others)
				play(t, from, others[:1+has], 1)
				begin(t, to, own)
				play(t, to, own[:1+had], 1)
				var kept [][]byte
				for _, b := range own {
					kept = append(kept, bytes.Clone(b.Mem))
				}
				must(t, to.CopyFrom(from))
				if err := to.Step(0); !errors.Is(err, env.ErrUnsupported) {
					t.Errorf("a step without a bound block = %v", err)
				}
				want, err := from.Snapshot()
				must(t, err)
				if got, err := to.Snapshot(); err != nil || !bytes.Equal(got, want) {
					t.Errorf("of %d windows after %d the snapshot differs (%v)", 1+has, 1+had, err)
				}
				if !bytes.Equal(play(t, to, others, 1), play(t, from, others, 1)) {
					t.Errorf("of %d windows after %d the future differs", 1+has, 1+had)
				}
				for k, b := range own {
					if !bytes.Equal(b.Mem, kept[k]) {
						t.Errorf("of %d windows after %d block %d is written", 1+has, 1+had, k)
					}
				}
			}
		}
	}
}

// After a succession the metrics of each instance reach the Env that has it.
func TestTakeOver_MetricsReachTheNewOwner(t *testing.T) {
	p := load(t, newRuntime(t), "guest.wasm", metricGuest("height", 1).Bytes(), env.Source{Grants: []string{module.GrantMetric}})
	told := map[string]int{}
	made := func(name string) (*Env, env.Block) {
		return opened(t, p, env.Options{Envs: 2, Metric: func(env.Metric) { told[name]++ }})
	}
	one, ones := made("one")
	two, twos := made("two")
	must(t, one.TakeOver(two))
	for step, e := range map[int]*Env{0: one, 1: two} {
		must(t, e.Bind([]env.Block{ones, twos}[step]))
		must(t, e.Step(0))
	}
	if told["one"] != 1 || told["two"] != 1 {
		t.Errorf("each has made one step: %v", told)
	}
}
