package session_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/pipeline"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// swapsAtEveryBoundary is an experiment with the cartpole in C whose environments are swapped at every trajectory
// boundary, or at none.
type swapsAtEveryBoundary struct {
	sets     []string
	next     func(n int) []string // overrides that make the n-th change; nil makes none
	made     atomic.Int64         // changes
	datasets int
}

// run trains 64 datasets and returns the hash of the parameters after the last.
func (x *swapsAtEveryBoundary) run(t *testing.T, module string) string {
	t.Helper()
	r, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e := experiment{sets: []string{"env.lab.use=" + module, "env.lab.wrap=[{ reward_clip = 0.5 }]", "component.learner.adaptive_kl=0.01",
		"component.learner.lr_anneal_env_steps=0", "run.stop.env_steps=65536", "component.rollout.splits=1",
		fmt.Sprintf("component.rollout.horizon=%d", exactSteps), fmt.Sprintf("component.batcher.dataset_rows=%d", 8*exactSteps)}, changes: true}
	e.sets = append(e.sets, x.sets...)
	e.load = func(ctx context.Context, name string, table graph.EnvTable, dir string) (env.Plugin, error) {
		path, _ := table.Locate(dir, nil)
		return r.Load(ctx, path, nil, env.Source{Name: name})
	}
	parts := e.parts(&tap{})
	g := &turnstile{more: make(chan struct{})}
	if x.next == nil {
		g.open(math.MaxUint64)
	}
	e.backend = func(b policy.Backend) policy.Backend { return guarded{b, g} }
	e.runner = func() component.Component { return seenRollout{rolloutplugin.New().(*rolloutplugin.Rollout), g} }
	ended := make(chan error, 1)
	e.boundary = func(p *pipeline.Pipeline, n int, _ func() (map[string]component.State, error)) error {
		if x.datasets = n; n == 1 && x.next != nil {
			go func() { ended <- x.change(p, parts, g) }()
		}
		return nil
	}
	o := e.must(t)
	if x.next != nil {
		if err := <-ended; !errors.Is(err, pipeline.ErrEnded) {
			t.Errorf("change %d: %v", x.made.Load(), err)
		}
	}
	return o.hashes[len(o.hashes)-1]
}

// exactSteps is how long a trajectory is: long enough for a change to be asked for meanwhile.
const exactSteps = 128

// change makes one change after the other until the run ends. The run makes the steps of a trajectory only once the
// change at its end has been prepared, so that each boundary has one, however fast it comes.
func (x *swapsAtEveryBoundary) change(p *pipeline.Pipeline, parts *graph.Parts, g *turnstile) error {
	defer g.open(math.MaxUint64)
	for n := 1; ; n++ {
		next, problems := p.Graph().With(x.next(n), parts)
		if next == nil {
			return problems
		}
		// On probation, which the next change ends: only Commit waits for the loops.
		t, err := p.Prepare(context.Background(), next, pipeline.TransitionOptions{At: component.AtTrajectory, KeepState: true, Probation: true})
		if err != nil {
			return err
		}
		g.awaited.Store(true)
		stop := g.openEvery(time.Second) // a change that came too late for its boundary needs another
		o, err := t.Commit(context.Background())
		stop()
		if err != nil {
			return err
		}
		if o.Envs != 8 || o.Kept != 8 || o.Dropped != 0 || o.Truncated != 0 {
			return fmt.Errorf("%+v", o)
		}
		x.made.Add(1)
	}
}

// turnstile lets inference serve so many trajectories.
type turnstile struct {
	mu   sync.Mutex
	last uint64        // trajectory that may be made, counted from 0
	more chan struct{} // closed and replaced when last grows

	awaited atomic.Bool // a change is on its way to the rollout
}

// tread slows down the trajectory at whose end a change will be made, until the rollout has heard of it.
func (g *turnstile) tread() {
	if g.awaited.Load() {
		time.Sleep(time.Millisecond)
	}
}

// seenRollout is a rollout that notifies the turnstile when it hears of a change.
type seenRollout struct {
	*rolloutplugin.Rollout
	turnstile *turnstile
}

// PrepareEnvs prepares a change that will be seen.
func (c seenRollout) PrepareEnvs(ctx context.Context, o component.EnvChange) (component.PreparedEnvs, error) {
	p, err := c.Rollout.PrepareEnvs(ctx, o)
	return seenChange{p, c.turnstile}, err
}

type seenChange struct {
	component.PreparedEnvs
	turnstile *turnstile
}

// Commit notifies the turnstile of the change.
func (x seenChange) Commit() error {
	x.turnstile.awaited.Store(false)
	return x.PreparedEnvs.Commit()
}

// open allows so many more trajectories.
func (g *turnstile) open(more uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last += min(more, math.MaxUint64-g.last)
	close(g.more)
	g.more = make(chan struct{})
}

// openEvery opens for one trajectory, and for another each time that so much time has passed.
func (g *turnstile) openEvery(d time.Duration) (stop func()) {
	g.open(1)
	tick, end := time.NewTicker(d), make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				g.open(1)
			case <-end:
				return
			}
		}
	}()
	return func() { close(end) }
}

// pass waits until a trajectory may be made.
func (g *turnstile) pass(trajectory uint64) {
	for {
		g.mu.Lock()
		last, more := g.last, g.more
		g.mu.Unlock()
		if trajectory <= last {
			return
		}
		<-more
	}
}

// guarded is a backend whose actors go through a turnstile.
type guarded struct {
	policy.Backend
	turnstile *turnstile
}

// Compile returns a program whose actors wait at the turnstile before they act.
func (b guarded) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	if err != nil {
		return nil, err
	}
	return guardedProgram{p.(ppo.Program), b.turnstile}, nil
}

type guardedProgram struct {
	ppo.Program
	turnstile *turnstile
}

func (p guardedProgram) NewActor(rows int) (policy.Actor, error) {
	actor, err := p.Program.NewActor(rows)
	return guardedActor{actor, p.turnstile}, err
}

type guardedActor struct {
	policy.Actor
	turnstile *turnstile
}

// Act waits and acts.
func (a guardedActor) Act(requests []policy.Request) error {
	for i := range requests {
		// The first row is asked about as soon as the trajectory before has ended.
		if r := &requests[i]; r.Action != nil && r.Step%exactSteps > 0 {
			a.turnstile.pass(r.Step / exactSteps)
		}
	}
	a.turnstile.tread()
	return a.Actor.Act(requests)
}

// A module that is swapped for itself at every trajectory boundary does not change the learning by a bit: whether the
// memory of whole instances is taken over, if the module is the same, or each environment's state, if a byte of it differs.
func TestSwapExact_TheSameModuleAtEveryBoundary(t *testing.T) {
	for _, name := range []string{"cartpole", "pendulum"} {
		t.Run(name, func(t *testing.T) { swappedForItself(t, name) })
	}
}

// Nor does it where the policy keeps a state.
func TestS19SwapsThatKeepEpisodesKeepTheState(t *testing.T) {
	for _, kind := range []string{"gru", "lstm"} {
		t.Run(kind, func(t *testing.T) { swappedForItself(t, "cartpole", core(kind, 16)) })
	}
}

func swappedForItself(t *testing.T, name string, sets ...string) {
	original, err := os.ReadFile("../../examples/plugins/" + name + "-c/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	paths := [2]string{filepath.Join(dir, "a.wasm"), filepath.Join(dir, "b.wasm")}
	for _, path := range paths {
		if err := os.WriteFile(path, original, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "other.wasm") // with a section that means nothing
	if err := os.WriteFile(other, append(original, 0, 2, 1, 'x'), 0o644); err != nil {
		t.Fatal(err)
	}
	unswapped := &swapsAtEveryBoundary{sets: sets}
	want := unswapped.run(t, paths[0])
	versions := map[string]func(n int) []string{
		"the same bytes at another path": func(n int) []string {
			return []string{"env.lab.use=" + paths[n%2], fmt.Sprintf("env.lab.limits={step=%q}", []string{"1s", "2s"}[n%2])}
		},
		"a copy with a byte more": func(n int) []string { return []string{"env.lab.use=" + []string{paths[0], other}[n%2]} },
	}
	if rust, err := filepath.Abs("../../examples/plugins/" + name + "-rust/" + name + ".wasm"); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(rust); err == nil {
		versions["the one in Rust"] = func(n int) []string { return []string{"env.lab.use=" + []string{paths[0], rust}[n%2]} }
	}
	for what, next := range versions {
		x := &swapsAtEveryBoundary{sets: sets, next: next}
		got := x.run(t, paths[0])
		t.Logf("%s: %d swaps at %d boundaries, parameters %.12s; without swaps %.12s", what, x.made.Load(),
			x.datasets, got, want)
		if got != want {
			t.Errorf("%s: parameters %.12s, want %.12s as without swaps", what, got, want)
		}
		// The first change is asked for at the first boundary. Where a process is not let run for as long as a
		// trajectory is slowed down, its change comes a boundary later.
		if made := int(x.made.Load()); made < x.datasets*3/4 {
			t.Errorf("%s: %d swaps at %d boundaries, want one at each but the first", what, made, x.datasets)
		}
	}
}

// A wrapper that is swapped at every trajectory boundary does not disturb the wrappers within and around it: episodes, the stream of
// sticky actions and the statistics of returns continue.
func TestSwapExact_AWrapperBetweenOthersAtEveryBoundary(t *testing.T) {
	module := testkit.Committed(t, "cartpole")
	list := func(name string) []string {
		return []string{"env.lab.wrap=[{ sticky_action = 0.2 }, { time_limit = 90 }, { record_stats = \"" + name + "\" }, { reward_normalize = { gamma = 0.9 } }]"}
	}
	want := (&swapsAtEveryBoundary{sets: list("a")}).run(t, module)
	x := &swapsAtEveryBoundary{sets: list("a"), next: func(n int) []string { return list([]string{"a", "b"}[n%2]) }}
	if got := x.run(t, module); got != want {
		t.Errorf("parameters %.12s, want %.12s as without swaps", got, want)
	}
	if made := int(x.made.Load()); made < x.datasets*3/4 {
		t.Errorf("%d swaps at %d boundaries", made, x.datasets)
	}
}
