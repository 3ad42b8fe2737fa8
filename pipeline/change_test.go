package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

func TestTransition_EnvironmentsGoOver(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.player.count=2")
	r.await(10)
	made := 0
	x := r.prepare(TransitionOptions{Probation: true, Made: func() { made++ }}, `env.game.use=game@2`)
	if x.Plugin("game") == nil || x.Plugin("other") != nil {
		t.Error("Plugin does not tell the new one")
	}
	if r.Graph().Env("game").Table.Use != "game@1" {
		t.Error("the graph has changed before Commit")
	}
	o, err := x.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Envs != 8 || len(o.PauseNS) != 2 || o.EnvStep == 0 || r.Graph().Env("game").Table.Use != "game@2" {
		t.Errorf("Outcome %+v, graph's env %q", o, r.Graph().Env("game").Table.Use)
	}
	if made != 1 {
		t.Errorf("Made was called %d times", made)
	}
	r.await(10)
	x.Settle()
	if !slices.Equal(s.loads, []string{"game@1", "game@2"}) || len(s.closed) != 0 {
		t.Errorf("loaded %v, closed %v; want both open, for a way back", s.loads, s.closed)
	}
	if s.sent("game@2") == 0 || len(s.started) != 3 {
		t.Errorf("%d blocks from the new one, started %v", s.sent("game@2"), s.started)
	}
	r.end()
}

func TestTransition_BackIsLoadedAlready(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	for _, use := range []string{"game@2", "game@1", "game@2", "game@3"} {
		x, _ := r.change(TransitionOptions{}, "env.game.use="+use)
		x.Settle()
	}
	if want := []string{"game@1", "game@2", "game@3"}; !slices.Equal(s.loads, want) {
		t.Errorf("loaded %v, want %v", s.loads, want)
	}
	if want := []string{"game@1"}; !slices.Equal(s.closed, want) {
		t.Errorf("closed %v, want %v: neither runs nor is the way back", s.closed, want)
	}
	r.end()
}

func TestPrepare_RefusesAndNothingHasChanged(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	for _, c := range []struct {
		set, want string
		code      control.Code
	}{
		{"env.game.use=chess@1", "cannot take the place of", control.CodeSpaces},
		{"run.seed=7", "run.seed cannot change while the run goes on: it is 1, the new file says 7", control.CodeRefused},
		{"run.name=other", "run.name cannot change", control.CodeRefused},
		{"train.mode=sync", "train.mode cannot change while the run goes on: it is async", control.CodeRefused},
	} {
		_, err := r.Prepare(t.Context(), r.graph(c.set), TransitionOptions{})
		var refused *ChangeError
		if !errors.As(err, &refused) || refused.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Prepare with %s: %v, want %s %q", c.set, err, c.code, c.want)
		}
	}
	if _, err := r.Prepare(t.Context(), r.graph(), TransitionOptions{}); !errors.Is(err, ErrNothing) {
		t.Errorf("Prepare of the same: %v, want ErrNothing", err)
	}
	var problems graph.Problems
	if _, err := r.Prepare(t.Context(), r.graph("env.game.use=./gone.wasm"), TransitionOptions{}); !errors.As(err, &problems) {
		t.Errorf("Prepare of a missing file: %v, want Problems", err)
	}
	r.await(4)
	r.end()
}

func TestPrepare_OneAtATime(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	x := r.prepare(TransitionOptions{}, "env.game.use=game@2")
	if _, err := r.Prepare(t.Context(), r.graph("env.game.use=game@3"), TransitionOptions{}); !errors.Is(err, ErrBusy) {
		t.Errorf("second Prepare: %v, want ErrBusy", err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(s.closed, []string{"game@2"}) {
		t.Errorf("closed %v, want what was loaded for the change", s.closed)
	}
	r.change(TransitionOptions{}, "env.game.use=game@3")
	r.end()
}

// Environments whose change was cancelled are not between two versions: there is a state to save again.
func TestCommit_WhoseContextHasEndedLeavesAStateToSave(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	x := r.prepare(TransitionOptions{}, "env.game.use=game@2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v, want %v", err, context.Canceled)
	}
	for _, m := range r.running.now().members {
		if err := m.live.unsavable(); err != nil {
			t.Errorf("%s: %v", m.host.Name, err)
		}
	}
	r.await(4)
	r.end()
}

func TestCommit_ALateBoundaryChangesNothing(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.player.count=2")
	x := r.prepare(TransitionOptions{Deadline: 1}, "env.game.use=game@2")
	s.commit = func(p *player, c *playerChange) bool { c.blocked = p.h.Index == 1; return c.blocked }
	_, err := x.Commit(t.Context())
	var late *ChangeError
	if !errors.As(err, &late) || late.Code != control.CodeLate {
		t.Errorf("Commit: %v, want %s", err, control.CodeLate)
	}
	before := s.sent("game@2")
	r.await(10)
	if s.sent("game@2") != before || !slices.Contains(s.closed, "game@2") {
		t.Errorf("%d more blocks from the new one, closed %v; want the old one everywhere", s.sent("game@2")-before, s.closed)
	}
	s.commit = nil
	r.change(TransitionOptions{}, "env.game.use=game@2")
	r.end()
}

func TestTransition_AFaultOnProbationFallsBackEverywhere(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.player.count=2")
	changes := map[*player]*playerChange{}
	s.commit = func(p *player, c *playerChange) bool { changes[p] = c; return false }
	rolledBack := make(chan string, 2)
	x, _ := r.change(TransitionOptions{Probation: true, RolledBack: func(name string, fault error) { rolledBack <- name + ": " + fault.Error() }},
		"env.game.use=game@2")
	for p, c := range changes {
		if p.h.Index == 1 {
			p.h.Receiver.Loop().Do(func() { c.fall(errors.New("trap")) })
		}
	}
	if got := <-rolledBack; got != "player[1]: trap" {
		t.Errorf("RolledBack %q", got)
	}
	s.commit = nil
	back, err := r.Prepare(t.Context(), r.graph("env.game.use=game@1"), TransitionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := back.Commit(t.Context()); err != nil || o.Envs != 0 {
		t.Errorf("Commit of the way back: %+v, %v, want nothing left to do", o, err)
	}
	x.Settle()
	r.await(4)
	if len(rolledBack) > 0 {
		t.Errorf("RolledBack was called again: %s", <-rolledBack)
	}
	r.end()
}

func TestTransition_TheEndOfTheRunEndsIt(t *testing.T) {
	for _, at := range []string{"prepared", "load", "prepare", "commit"} {
		t.Run(at, func(t *testing.T) {
			s, parts := newStage()
			r := runLive(t, s, parts, liveFile, BuildOptions{})
			g := r.graph("env.game.use=game@2")
			ended := func() { r.Stop("enough"); <-r.changes.ctx.Done() }
			switch at {
			case "load":
				s.load = func(ctx context.Context, _ string) error { ended(); <-ctx.Done(); return context.Cause(ctx) }
			case "prepare":
				s.prepare = func(component.EnvChange) error { ended(); return nil }
			case "commit":
				s.commit = func(_ *player, c *playerChange) bool { c.blocked = true; go ended(); return true }
			}
			x, err := r.Prepare(t.Context(), g, TransitionOptions{})
			if err == nil && at == "prepared" {
				ended()
			}
			if err == nil {
				_, err = x.Commit(t.Context())
			}
			if !errors.Is(err, ErrEnded) {
				t.Errorf("error %v, want ErrEnded", err)
			}
			r.end()
		})
	}
}

func TestChanges_TellEverything(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	x := r.prepare(TransitionOptions{}, "run.stop.return=7", "env.game.limits.step=2s", "env.game.use=game@2", "component.counter.scale=2",
		"component.player.count=2", "wire.player.blocks.depth=9")
	var got []string
	for _, c := range x.Changes() {
		got = append(got, c.What+" "+c.Name+": "+c.Text)
	}
	want := []string{
		"run run: stop { window = 100, env_steps = 0, wall_time = \"0s\" } → { return = 7.0, window = 100, env_steps = 0, wall_time = \"0s\" }",
		"limit game: limits = { memory = \"0B\", step = \"2s\", init = \"0s\", compile = \"0s\", compile_memory = \"0B\" }",
		"scale player[1]: added", "component counter: scale 0 → 2",
		"wire player.blocks → counter.on_blocks: queue, depth 4, block → queue, depth 9, block",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Changes:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	r.end()
}

// A fault in the instant in which a change counts as made, or its probation ends, takes back all components or none.
func TestTransition_AFaultAtTheEndGoesBackEverywhereOrNowhere(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.player.count=2")
	r.await(4)
	runs, changes := "game@1", make(chan *playerChange, 2)
	s.commit = func(_ *player, c *playerChange) bool { changes <- c; return false }
	ends := map[string]int{}
	for round := range 150 {
		before, next := r.Graph(), map[string]string{"game@1": "game@2", "game@2": "game@1"}[runs]
		rolledBack, probation := make(chan string, 1), round%2 == 0
		x := r.prepare(TransitionOptions{Probation: probation, RolledBack: func(name string, _ error) { rolledBack <- name }}, "env.game.use="+next)
		back, spins := make(chan bool), random.IntN(40)
		go func() { back <- fallAfter(<-changes, <-changes, spins) }()
		_, err := x.Commit(t.Context())
		for range random.IntN(40) {
			runtime.Gosched()
		}
		end := "made"
		switch {
		case err != nil:
			end = "refused"
		case !x.Settle():
			end = "rolledBack"
			if name := <-rolledBack; name == "" || !probation {
				t.Fatalf("%s rolledBack, probation %v", name, probation)
			}
		default:
			runs = next
		}
		if went := <-back; went != (end != "made") {
			t.Fatalf("the change was %s (%v), the component that failed went back: %v", end, err, went)
		}
		ends[end]++
		if end == "rolledBack" {
			s.commit = nil
			if way, err := r.Prepare(t.Context(), before, TransitionOptions{}); err != nil {
				t.Fatal(err)
			} else if _, err := way.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.commit = func(_ *player, c *playerChange) bool { changes <- c; return false }
		}
		for _, m := range r.running.now().members {
			if p, ok := m.component.(*player); ok {
				m.loop.Do(func() {
					if got := p.plugin.(*game).text; got != runs {
						t.Errorf("round %d: %s has %s, want %s: the change was %s", round, m.name, got, runs, end)
					}
				})
			}
		}
	}
	t.Logf("%v", ends)
	if ends["made"] == 0 || len(ends) < 2 {
		t.Errorf("all changes were %v", ends)
	}
	s.commit = nil
	r.end()
}

// fallAfter lets one of two changes fail a little after it has gone over, and reports whether it went back.
func fallAfter(c, _ *playerChange, spins int) (back bool) {
	for over := false; !over; {
		c.p.h.Receiver.Loop().Do(func() { over = c.over })
	}
	for range spins {
		runtime.Gosched()
	}
	c.p.h.Receiver.Loop().Do(func() { back = c.fall(errors.New("trap")) })
	return back
}
