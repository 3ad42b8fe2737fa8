package pipeline

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
)

// start builds a pipeline of ticks and reports its leaks.
func start(t *testing.T, text string, o BuildOptions, sets ...string) (*world, *Pipeline) {
	t.Helper()
	w, parts := newWorld()
	o.Parts = parts
	p, err := Build(t.Context(), mustParse(t, text, parts, sets...), o)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w, p
}

func TestRun_EndsAtTheBoundaryAfterAStop(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) {
			var p *Pipeline
			var calls, last int
			w, built := start(t, tickFile(plain), BuildOptions{
				AtBoundary: func(func() (map[string]component.State, error)) error {
					calls++
					if p.Stopping() != "" {
						last++
					}
					return nil
				},
			}, "component.sink.stop_at=25", "train.mode="+mode)
			p = built
			reason, err := p.Run(t.Context())
			if err != nil || reason != component.StopEnvSteps {
				t.Fatalf("Run = %q, %v, want %q", reason, err, component.StopEnvSteps)
			}
			if w.total.Load() != 30 || calls != 3 || last != 1 {
				t.Errorf("ended after %d ticks, %d boundaries, %d of them last; want 30, 3, 1", w.total.Load(), calls, last)
			}
			if want := []string{"sink", "source"}; !slices.Equal(w.stopped, want) {
				t.Errorf("stopped %v, want %v", w.stopped, want)
			}
		})
	}
}

// mender is a sink that continues from its own earlier state after a fault.
type mender struct {
	sink
	saves *atomic.Int64
}

func (m *mender) SaveState() { m.saves.Add(1) }

func TestRun_ComponentsSaveTheirStateAtBoundaries(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		w, parts := newWorld()
		var saves atomic.Int64
		parts.Kinds["mender"] = func() component.Component { return &mender{sink{w: w}, &saves} }
		boundaries := 0
		p, err := Build(t.Context(), mustParse(t, tickFile(plain), parts, "component.sink.kind=mender", "component.sink.stop_at=25", "train.mode="+mode),
			BuildOptions{Parts: parts, AtBoundary: func(func() (map[string]component.State, error)) error { boundaries++; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Run(t.Context())
		if err := errors.Join(err, p.Close()); err != nil || boundaries == 0 || saves.Load() != int64(boundaries) {
			t.Errorf("%s: %d saves at %d boundaries, %v", mode, saves.Load(), boundaries, err)
		}
	}
}

// A component may end the run for a reason of its own: the log names it.
func TestRun_EndsForAReasonOfAComponentsOwn(t *testing.T) {
	var log bytes.Buffer
	_, p := start(t, tickFile(plain), BuildOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, "component.sink.stop_at=5", "component.sink.own=true")
	if reason, err := p.Run(t.Context()); err != nil || reason != component.StopOwn {
		t.Errorf("Run = %q, %v, want %q", reason, err, component.StopOwn)
	}
	if want := `msg="a component asks the run to end" component=sink`; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %s, want %s", log.String(), want)
	}
}

func TestRun_ASynchronousBoundaryComesAfterQueuedMessages(t *testing.T) {
	text := tickFile(plain+"[component.other]\nkind = \"sink\"\nevery = 0\nstop_at = 10\n") + `
[[wire]]
signal = "source.ticks"
slot = "other.on_ticks"
mode = "all"
depth = 8
on_full = "block"
`
	text = strings.ReplaceAll(text, `mode = "queue"`, `mode = "all"`)
	var counted []any
	_, p := start(t, text, BuildOptions{
		AtBoundary: func(snapshot func() (map[string]component.State, error)) error {
			states, _ := snapshot()
			counted = append(counted, states["other"].Meta)
			return nil
		},
	}, "train.mode=sync")
	if reason, err := p.Run(t.Context()); err != nil || reason != component.StopEnvSteps {
		t.Fatalf("Run = %q, %v, want %q", reason, err, component.StopEnvSteps)
	}
	if want := []any{sinkState{10}}; !slices.Equal(counted, want) {
		t.Errorf("at boundaries the other sink had counted %v, want %v: the tenth tick, which ends the run", counted, want)
	}
}

func TestRun_AskedToStopInsideABoundaryEndsAtTheNext(t *testing.T) {
	var p *Pipeline
	calls := 0
	_, p = start(t, tickFile(plain), BuildOptions{AtBoundary: func(func() (map[string]component.State, error)) error {
		calls++
		p.Stop("enough")
		return nil
	}})
	if reason, err := p.Run(t.Context()); reason != "enough" || err != nil {
		t.Errorf("Run = %q, %v, want enough", reason, err)
	}
	if calls != 2 {
		t.Errorf("%d boundaries, want 2", calls)
	}
}

func TestRun_InterruptEndsAtABoundary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p *Pipeline
	var final component.StopReason
	_, p = start(t, tickFile(plain), BuildOptions{
		Grace: time.Hour,
		AtBoundary: func(func() (map[string]component.State, error)) error {
			cancel()
			final = p.Stopping()
			return nil
		},
	})
	if reason, err := p.Run(ctx); reason != component.StopInterrupted || err != nil {
		t.Errorf("Run = %q, %v, want %q", reason, err, component.StopInterrupted)
	}
	if final != component.StopInterrupted {
		t.Errorf("Stopping at the last boundary = %q, want %q", final, component.StopInterrupted)
	}
}

func TestRun_InterruptWithoutBoundariesEndsAfterTheGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, p := start(t, tickFile(plain), BuildOptions{Grace: time.Millisecond}, "component.sink.every=0")
	if reason, err := p.Run(ctx); reason != component.StopInterrupted || err != nil {
		t.Errorf("Run = %q, %v, want %q", reason, err, component.StopInterrupted)
	}
}

func TestRun_InterruptCutsShortAnotherStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var p *Pipeline
	// The first boundary lets the other stop wait for a second one, which never comes.
	_, p = start(t, tickFile(plain), BuildOptions{
		Grace: time.Millisecond,
		AtBoundary: func(func() (map[string]component.State, error)) error {
			p.Stop(component.StopReturn)
			cancel()
			return nil
		},
	}, "component.source.limit=11")
	if reason, err := p.Run(ctx); reason != component.StopReturn || err != nil {
		t.Errorf("Run = %q, %v, want %q", reason, err, component.StopReturn)
	}
}

func TestCounters_KeepTheirValuesAfterRun(t *testing.T) {
	_, p := start(t, tickFile(plain), BuildOptions{}, "component.sink.stop_at=5")
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := p.Wires()[0]
	if c.Delivered < 10 || c.Dropped != 0 || c.Queued > c.Depth {
		t.Errorf("Counters = %+v, want nothing dropped: what waited when the run ended is queued", c)
	}
}

func TestRun_WallTimeStops(t *testing.T) {
	_, p := start(t, tickFile(plain), BuildOptions{}, "run.stop.wall_time=1ms")
	if reason, err := p.Run(t.Context()); reason != component.StopWallTime || err != nil {
		t.Errorf("Run = %q, %v, want %q", reason, err, component.StopWallTime)
	}
}

func TestRun_ASecondRunIsRefused(t *testing.T) {
	_, p := start(t, tickFile(plain), BuildOptions{}, "component.sink.stop_at=5")
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("second Run: %v, want ErrEnded", err)
	}
}

func TestRun_AFailureEndsAllLoops(t *testing.T) {
	w, p := start(t, tickFile(plain), BuildOptions{}, "component.source.fail_at=20")
	_, err := p.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "source: out of ticks") {
		t.Errorf("Run: %v, want source: out of ticks", err)
	}
	if len(w.stopped) != 2 {
		t.Errorf("stopped %v, want both components", w.stopped)
	}
}

func TestRun_APanicNamesTheComponent(t *testing.T) {
	w, p := start(t, tickFile(plain), BuildOptions{}, "component.source.panic_at=20")
	_, err := p.Run(t.Context())
	var panicked *loop.PanicError
	if !errors.As(err, &panicked) || panicked.Component != "source" || panicked.Value != "tick of doom" {
		t.Errorf("Run: %v, want a panic of source", err)
	}
	if len(w.stopped) != 2 {
		t.Errorf("stopped %v, want both components", w.stopped)
	}
}

func TestRun_AnErrorAtABoundaryEndsTheRun(t *testing.T) {
	full := errors.New("disk is full")
	_, p := start(t, tickFile(plain), BuildOptions{
		AtBoundary: func(func() (map[string]component.State, error)) error { return full },
	})
	if _, err := p.Run(t.Context()); !errors.Is(err, full) {
		t.Errorf("Run: %v, want %v", err, full)
	}
}

func TestRun_ReportsLeaksAndFailedStops(t *testing.T) {
	w, parts := newWorld()
	g := mustParse(t, tickFile(plain), parts, "component.source.leak=true", "component.source.fail_stop=true",
		"component.sink.stop_at=5")
	p, err := Build(t.Context(), g, BuildOptions{Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	reason, err := p.Run(t.Context())
	if reason != component.StopEnvSteps {
		t.Errorf("reason %q, want %q", reason, component.StopEnvSteps)
	}
	if !errors.Is(err, arena.ErrOpen) || !strings.Contains(err.Error(), "source: stop: stuck") {
		t.Errorf("Run: %v, want the leak and the failed stop", err)
	}
	if len(w.stopped) != 2 {
		t.Errorf("stopped %v, want both components", w.stopped)
	}
}

func TestRun_SpreadsAQueueOverInstances(t *testing.T) {
	w, p := start(t, tickFile(plain), BuildOptions{}, "component.sink.count=3", "component.sink.loop=sink[i]",
		"component.sink.stop_at=50", "component.source.count=2")
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"sink[0]", "sink[1]", "sink[2]"} {
		if w.loops[name] != name {
			t.Errorf("%s runs on loop %q, want its own", name, w.loops[name])
		}
		if i == 0 && len(w.started) != 5 {
			t.Errorf("started %v, want 5 instances", w.started)
		}
	}
	c := p.Wires()
	if len(c) != 1 || c[0].Delivered < 50 || c[0].Depth != 6*8 || c[0].Wire != "source.ticks → sink.on_ticks" {
		t.Errorf("Counters = %+v, want one wire with a depth of 48", c)
	}
}

func TestRun_RepliesReachWhoAsked(t *testing.T) {
	text := `rlhost = 1
[run]
name = "asks"
[component.asker]
kind = "asker"
count = 3
[component.answerer]
kind = "answerer"
count = 2
[[wire]]
signal = "asker.asks"
slot = "answerer.on_asks"
mode = "queue"
depth = 4
on_full = "block"
[[wire]]
signal = "answerer.answers"
slot = "asker.on_answers"
mode = "reply"
depth = 4
on_full = "block"
`
	w, p := start(t, text, BuildOptions{})
	if g := p.Graph(); g.Component("answerer").Loop != "asker" {
		t.Errorf("answerer is on loop %q, want that of who asks", g.Component("answerer").Loop)
	}
	if reason, err := p.Run(t.Context()); reason != component.StopReturn || err != nil {
		t.Fatalf("Run = %q, %v, want %q", reason, err, component.StopReturn)
	}
	if len(w.replies) != 3 || w.wrong.Load() != 0 {
		t.Errorf("replies %v, %d of them wrong; want 100 for each of 3", w.replies, w.wrong.Load())
	}
}

func TestSnapshot_CoversIdleInstances(t *testing.T) {
	for mode, want := range map[string]string{"async": "<nil>", "sync": "source: state cannot be saved: ticks are fleeting"} {
		t.Run(mode, func(t *testing.T) {
			var states map[string]component.State
			var failed error
			var keep func() (map[string]component.State, error)
			text := tickFile(plain + "[component.other]\nkind = \"sink\"\n")
			_, p := start(t, text, BuildOptions{
				AtBoundary: func(snapshot func() (map[string]component.State, error)) error {
					states, failed = snapshot()
					keep = snapshot
					return nil
				},
			}, "component.sink.stop_at=10", "train.mode="+mode)
			if _, err := p.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(states) != 2 || states["sink"].Meta != (sinkState{10}) || states["other"].Meta != (sinkState{0}) {
				t.Errorf("states %v, want those of sink and other", states)
			}
			if got := errText(failed); got != want {
				t.Errorf("snapshot error %q, want %q", got, want)
			}
			if _, err := keep(); !errors.Is(err, ErrEnded) {
				t.Errorf("snapshot after the boundary: %v, want ErrEnded", err)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return "<nil>"
	}
	return err.Error()
}
