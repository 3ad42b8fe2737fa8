package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

func TestTransition_ReplacesInstances(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		for name, sets := range map[string][]string{
			"receiver": {"component.counter.scale=3"}, "sender": {"component.player.rate=2"},
			"both": {"component.counter.scale=3", "component.player.rate=2"},
			"loop": {"component.counter.loop=elsewhere"}, "own loops": {"component.player.loop=counter"},
		} {
			if mode == "sync" && strings.Contains(name, "loop") {
				continue
			}
			t.Run(mode+" "+name, func(t *testing.T) {
				s, parts := newStage()
				r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true", "train.mode="+mode)
				r.await(10)
				x, o := r.change(TransitionOptions{Probation: true}, sets...)
				if want := uint64(len(x.swaps)); s.restores.Load() != want || len(o.Replaced) != int(want) || want == 0 {
					t.Errorf("%d states were taken over, %v replaced", s.restores.Load(), o.Replaced)
				}
				r.await(10)
				x.Settle()
				r.change(TransitionOptions{}, "component.counter.scale=4", "component.player.rate=1")
				r.await(10)
				c := r.Wires()[0]
				if c.Delivered < 30 || c.Dropped != 0 {
					t.Errorf("Counters %+v, want those of all versions and nothing dropped", c)
				}
				r.end()
			})
		}
	}
}

func TestTransition_ReplacedInOrderAndTakenBackTogether(t *testing.T) {
	s, parts := newStage()
	stuck := errors.New("wrong size")
	s.restore = func(h *component.Host) error {
		if h.Name == "counter" {
			return stuck
		}
		return nil
	}
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	r.await(10)
	x := r.prepare(TransitionOptions{}, "component.counter.scale=3", "component.player.rate=2")
	_, err := x.Commit(t.Context())
	var failed *ChangeError
	if !errors.As(err, &failed) || !errors.Is(err, stuck) || failed.Code != control.CodeFailed {
		t.Errorf("Commit: %v, want %v", err, stuck)
	}
	if p := r.running.now().member("player", 0).component.(*player); p.c.Rate != 0 {
		t.Errorf("the player runs with rate %d, want the previous one", p.c.Rate)
	}
	if text := r.Graph().Expanded(); strings.Contains(text, "rate = 2") || !strings.Contains(text, "rate = 0") {
		t.Errorf("the graph is\n%s", text)
	}
	r.await(10)
	r.end()
}

// An instance that does not pause is removed as it is where the change is forced, and the run continues with its successor.
func TestTransition_ForcedRemovesAnInstanceThatDoesNotPause(t *testing.T) {
	s, parts := newStage()
	s.pause = func(h *component.Host, _ func()) bool { return h.Name == "counter" }
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	r.await(10)
	x := r.prepare(TransitionOptions{Deadline: time.Hour, Force: time.Second}, "component.counter.scale=3")
	o, err := x.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(o.Notes, "\n"), "counter was taken away as it was") {
		t.Errorf("the notes are %q", o.Notes)
	}
	r.await(10)
	r.end()
}

// expiring is a context whose deadline passes when its owner closes passed.
type expiring struct {
	context.Context
	passed chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.passed }

func (e expiring) Err() error {
	select {
	case <-e.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// An instance that was halted by force runs on if the change fails after all.
func TestTransition_ForcedInVainLetsItRunOn(t *testing.T) {
	s, parts := newStage()
	ctx := expiring{context.Background(), make(chan struct{})}
	s.pause = func(h *component.Host, _ func()) bool {
		if h.Name != "counter" {
			return false
		}
		close(ctx.passed) // it has been asked to pause, and will not
		return true
	}
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	r.await(10)
	m := r.running.now().member("counter", 0)
	if forced, err := m.halt(ctx, true); err != nil || !forced || m.live.failed() == nil {
		t.Fatalf("forced %v, %v", forced, err)
	}
	m.resumeForced()
	r.await(10)
	r.end()
}

func TestTransition_GivesUpWhatFailsToStart(t *testing.T) {
	for _, c := range []string{"start", "snapshot takes no", "silent"} {
		t.Run(c, func(t *testing.T) {
			s, parts := newStage()
			switch c {
			case "start":
				s.start = func(*component.Host) error { return errors.New("no memory") }
			case "silent":
				s.start = func(h *component.Host) error { h.Fail(errors.New("no memory")); return nil }
			default:
				s.restore = func(*component.Host) error { return errors.New("no memory") }
			}
			r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
			x, err := r.Prepare(t.Context(), r.graph("component.counter.scale=3"), TransitionOptions{})
			if err == nil {
				_, err = x.Commit(t.Context())
			}
			var failed *ChangeError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), "no memory") {
				t.Errorf("error %v", err)
			}
			r.await(10)
			r.end()
		})
	}
}

func TestTransition_AnInstanceThatDoesNotPauseContinues(t *testing.T) {
	s, parts := newStage()
	s.pause = func(*component.Host, func()) bool { return true }
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	x := r.prepare(TransitionOptions{Deadline: time.Millisecond}, "component.counter.scale=3")
	_, err := x.Commit(t.Context())
	var late *ChangeError
	if !errors.As(err, &late) || late.Code != control.CodeLate {
		t.Errorf("Commit: %v, want %s", err, control.CodeLate)
	}
	r.await(10)
	r.end()
}

func TestTransition_ItsContextEndsIt(t *testing.T) {
	s, parts := newStage()
	ctx, cancel := context.WithCancel(t.Context())
	s.pause = func(*component.Host, func()) bool { cancel(); return true }
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	x := r.prepare(TransitionOptions{}, "component.counter.scale=3")
	if _, err := x.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v, want %v", err, context.Canceled)
	}
	r.await(10)
	r.end()
}

func TestTransition_TheEndOfTheRunWhileInstancesAreReplaced(t *testing.T) {
	for _, at := range []string{"prepared", "start", "pause", "restore"} {
		t.Run(at, func(t *testing.T) {
			s, parts := newStage()
			var r *liveRun
			ended := func() { r.Stop("enough") }
			switch at {
			case "start":
				s.start = func(*component.Host) error { ended(); return nil }
			case "pause":
				s.pause = func(*component.Host, func()) bool { go ended(); return true }
			case "restore":
				s.restore = func(*component.Host) error { ended(); return nil }
			}
			r = runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
			x, err := r.Prepare(t.Context(), r.graph("component.counter.scale=3", "component.player.rate=2"), TransitionOptions{})
			if at == "prepared" {
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

func TestTransition_AFailureOnProbationDoesNotEndTheRun(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	r.await(10)
	rolledBack := make(chan string, 1)
	r.change(TransitionOptions{Probation: true, RolledBack: func(name string, fault error) { rolledBack <- fmt.Sprint(name, ": ", fault) }},
		"component.counter.fails=true")
	s.fail.Store(true)
	if got := <-rolledBack; got != "counter: lost count" {
		t.Errorf("RolledBack %q", got)
	}
	_, o := r.change(TransitionOptions{}, "component.counter.fails=false")
	if !slices.Equal(o.Replaced, []string{"counter"}) {
		t.Errorf("Outcome %+v", o)
	}
	s.missed.Store(0) // the failed one's counts are not in the earlier state
	r.await(10)
	s.missed.Store(0)
	r.end()
}

// Instances that a later change makes of a watched version are watched too: an added instance, a replaced one.
func TestTransition_AProbationOutlivesOtherChanges(t *testing.T) {
	for name, set := range map[string]string{"added": "component.counter.count=2", "made anew": "component.counter.scale=3"} {
		t.Run(name, func(t *testing.T) {
			s, parts := newStage()
			r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
			rolledBack := make(chan string, 1)
			x, _ := r.change(TransitionOptions{Probation: true, RolledBack: func(name string, fault error) { rolledBack <- fmt.Sprint(name, ": ", fault) }},
				"component.counter.fails=true")
			r.change(TransitionOptions{}, set)
			want := "counter: lost count"
			if name == "added" {
				s.spared, want = "counter[0]", "counter[1]: lost count"
				if r.running.now().member("counter", 0).host.Name == "counter" { // as it was called when it was alone
					s.spared = "counter"
				}
			}
			s.fail.Store(true)
			if got := <-rolledBack; got != want {
				t.Errorf("RolledBack %q, want %q", got, want)
			}
			if x.Settle() {
				t.Error("a change that has failed was settled")
			}
			r.change(TransitionOptions{}, "component.counter.fails=false", "component.counter.count=1")
			r.await(10)
			r.end()
		})
	}
}

func TestTransition_AFailureAfterProbationEndsTheRun(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	x, _ := r.change(TransitionOptions{Probation: true}, "component.counter.fails=true")
	x.Settle()
	s.fail.Store(true)
	if err := <-r.over; err == nil || !strings.Contains(err.Error(), "lost count") {
		t.Errorf("Run: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestTransition_Scales(t *testing.T) {
	for _, mode := range []string{"queue", "all"} {
		t.Run(mode, func(t *testing.T) {
			s, parts := newStage()
			r := runLive(t, s, parts, liveFile, BuildOptions{}, "wire.player.blocks.mode="+mode, "component.counter.loose=true")
			for _, n := range []int{3, 1, 2, 4, 1} {
				for _, what := range []string{"player", "counter"} {
					r.await(6)
					r.change(TransitionOptions{}, fmt.Sprintf("component.%s.count=%d", what, n))
				}
				if got := r.Stats().Gauge("rollout/envs").Value(); got != float64(4*n) {
					t.Errorf("%d players have %v environments", n, got)
				}
			}
			r.await(6)
			r.end()
			c := r.Wires()[0]
			if got := c.Delivered + uint64(c.Queued+c.Parked); c.Dropped != 0 || mode == "queue" && got != uint64(s.sent("game@1")) {
				t.Errorf("Counters %+v, of %d blocks", c, s.sent("game@1"))
			}
		})
	}
}

func TestTransition_Wires(t *testing.T) {
	const other = `
[component.other]
kind = "counter"
`
	const wire = `
[[wire]]
signal = "player.blocks"
slot = "other.on_blocks"
mode = "all"
depth = 4
on_full = "block"
`
	s, parts := newStage()
	r := runLive(t, s, parts, strings.Replace(liveFile, `mode = "queue"`, `mode = "all"`, 1), BuildOptions{}, "component.counter.strict=true")
	parse := func(text string, sets ...string) *graph.Graph {
		return mustParse(t, strings.Replace(text, `mode = "queue"`, `mode = "all"`, 1), parts, append(sets, "component.counter.strict=true")...)
	}
	for i, g := range []*graph.Graph{
		parse(liveFile+other+wire, "wire.player.blocks.depth=2"), parse(liveFile + other + wire), parse(liveFile + other),
		parse(liveFile, "wire.player.blocks.depth=7"), parse(liveFile),
	} {
		x, err := r.Prepare(t.Context(), g, TransitionOptions{})
		if err != nil {
			t.Fatal(i, err)
		}
		if _, err := x.Commit(t.Context()); err != nil {
			t.Fatal(i, err)
		}
		r.await(10)
	}
	if c := r.Wires(); len(c) != 1 || c[0].Depth != 4 || c[0].Dropped != 0 || c[0].Delivered < 50 {
		t.Errorf("Counters %+v", c)
	}
	r.end()
}

func TestTransition_WhatCannotBeTakenBackRunsOn(t *testing.T) {
	s, parts := newStage()
	starts := 0
	s.start = func(h *component.Host) error {
		if starts++; starts > 2 && h.Name == "player" {
			return errors.New("no memory")
		}
		return nil
	}
	s.restore = func(h *component.Host) error {
		if h.Name == "counter" {
			return errors.New("wrong size")
		}
		return nil
	}
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	x := r.prepare(TransitionOptions{}, "component.counter.scale=3", "component.player.rate=2")
	_, err := x.Commit(t.Context())
	if err == nil || !strings.Contains(err.Error(), "wrong size") || !strings.Contains(err.Error(), "the new version of player runs on") {
		t.Errorf("Commit: %v", err)
	}
	g := r.Graph()
	if !strings.Contains(g.Expanded(), "rate = 2") || strings.Contains(g.Expanded(), "scale = 3") {
		t.Errorf("graph:\n%s", g.Expanded())
	}
	r.await(10)
	s.start = nil
	r.change(TransitionOptions{}, "component.player.rate=0")
	r.await(10)
	r.end()
}

func TestTransition_ABoundaryAndACommitExcludeEachOther(t *testing.T) {
	s, parts := newStage()
	in, out := make(chan struct{}), make(chan struct{})
	first := true
	r := runLive(t, s, parts, liveFile, BuildOptions{AtBoundary: func(snapshot func() (map[string]component.State, error)) error {
		if first {
			first = false
			close(in)
			<-out
		}
		_, err := snapshot()
		return err
	}}, "component.counter.strict=true")
	<-in
	x := r.prepare(TransitionOptions{}, "component.counter.scale=3") // continues during the boundary
	over := make(chan error)
	go func() {
		_, err := x.Commit(t.Context())
		over <- err
	}()
	select {
	case err := <-over:
		t.Fatalf("Commit during a boundary returned %v", err)
	default:
	}
	if s.restores.Load() > 0 {
		t.Error("something was replaced during a boundary")
	}
	close(out)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	r.await(4)
	r.end()
}

func TestTransition_ItsContextEndsItInEveryStage(t *testing.T) {
	for _, at := range []string{"load", "prepare", "start", "commit", "pause", "restore"} {
		t.Run(at, func(t *testing.T) {
			s, parts := newStage()
			ctx, cancel := context.WithCancel(t.Context())
			built := false
			s.load = func(ctx context.Context, _ string) error {
				if at == "load" && built {
					cancel()
					<-ctx.Done()
				}
				return nil
			}
			s.prepare = func(component.EnvChange) error { cancelAt(at, "prepare", cancel); return nil }
			s.start = func(*component.Host) error { cancelAt(at, "start", cancel); return nil }
			s.commit = func(_ *player, c *playerChange) bool {
				c.blocked = at == "commit"
				cancelAt(at, "commit", cancel)
				return c.blocked
			}
			s.pause = func(*component.Host, func()) bool { cancelAt(at, "pause", cancel); return at == "pause" }
			s.restore = func(*component.Host) error { cancelAt(at, "restore", cancel); return nil }
			r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
			r.await(4)
			built = true
			x, err := r.Prepare(ctx, r.graph("env.game.use=game@2", "component.counter.scale=3"), TransitionOptions{})
			if err == nil {
				_, err = x.Commit(ctx)
			}
			if at == "restore" && err == nil { // pairs that were handed over may already be complete
				x.Settle()
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
			if _, err := r.Prepare(t.Context(), r.graph(), TransitionOptions{}); !errors.Is(err, ErrNothing) {
				t.Errorf("Prepare of what runs: %v, want ErrNothing", err)
			}
			r.await(10)
			r.end()
		})
	}
}

func cancelAt(at, here string, cancel context.CancelFunc) {
	if at == here {
		cancel()
	}
}

func TestTransition_WhilePaused(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	r.await(4)
	if _, err := r.Pause(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r.change(TransitionOptions{}, "env.game.use=game@2", "component.counter.scale=3")
	if answers, err := r.Resume(t.Context(), nil); err != nil || len(answers) != 2 || answers[0].Error != nil {
		t.Errorf("Resume: %+v, %v", answers, err)
	}
	r.await(10)
	r.end()
}

func TestTransition_AReplacedInstanceCannotEndTheRun(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true", "component.counter.rattles=true")
	r.change(TransitionOptions{}, "component.counter.scale=2")
	r.await(4)
	r.change(TransitionOptions{}, "component.counter.count=3")
	r.change(TransitionOptions{}, "component.counter.count=1")
	r.await(4)
	r.change(TransitionOptions{}, "component.counter.rattles=false")
	r.end()
}

func TestTransition_WhatOthersChangeLeavesARemoteOneAlone(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true", "component.player.remote=true")
	_, o := r.change(TransitionOptions{}, "component.counter.scale=2")
	if !slices.Equal(o.Replaced, []string{"counter"}) || o.Envs != 0 {
		t.Errorf("Outcome %+v", o)
	}
	if _, o := r.change(TransitionOptions{}, "env.game.use=game@2"); o.Envs != 4 {
		t.Errorf("Outcome of other environments %+v", o)
	}
	r.end()
}
