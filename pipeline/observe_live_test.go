package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// trail notes the numbers that blocks carry, by the instance that sent them.
type trail struct {
	mu    sync.Mutex
	last  map[string]uint64
	wrong int // blocks shown twice, or out of order
}

func (tr *trail) hear(_, from string, m *hostabi.Message, _ *arena.Set) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if m.Inline[0] <= tr.last[from] {
		tr.wrong++
	}
	tr.last[from] = m.Inline[0]
}

func (tr *trail) at(from string) uint64 {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.last[from]
}

func TestTap_ContinuesThroughChanges(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	tr := &trail{last: map[string]uint64{}}
	cancel, err := r.Tap("player.blocks", false, tr.hear)
	if err != nil {
		t.Fatal(err)
	}
	goesOn := func(from string) {
		t.Helper()
		at := tr.at(from)
		testkit.Until(t, "blocks of "+from, func() bool { return tr.at(from) > at+100 })
	}
	goesOn("player")
	for i := range 20 {
		rate := map[bool]string{true: "component.player.rate=2", false: "component.player.rate=1"}[i%2 == 0]
		r.change(TransitionOptions{}, rate)
		goesOn("player")
	}
	r.change(TransitionOptions{}, "env.game.use=game@2")
	goesOn("player")
	r.change(TransitionOptions{}, "component.player.count=2")
	goesOn("player[0]")
	goesOn("player[1]")
	r.change(TransitionOptions{}, "component.player.count=1")
	goesOn("player")
	sig := r.running.now().members[0].host.Signal("blocks")
	if n := len(sig.Connections()); n != 2 {
		t.Errorf("the signal has %d connections with the tap, want 2", n)
	}
	cancel()
	if n := len(sig.Connections()); n != 1 {
		t.Errorf("the signal has %d connections without the tap, want 1", n)
	}
	if tr.wrong > 0 {
		t.Errorf("%d blocks were shown twice or out of order", tr.wrong)
	}
	r.end()
}

func TestTap_EndsWhileItsInstanceIsReplaced(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	for i := range 20 {
		cancels := make([]func(), 50)
		for j := range cancels {
			cancel, err := r.Tap("player.blocks", false, func(string, string, *hostabi.Message, *arena.Set) {})
			if err != nil {
				t.Fatal(err)
			}
			cancels[j] = cancel
		}
		var all sync.WaitGroup
		s.restore = func(*component.Host) error { // the signals are moved next
			for _, cancel := range slices.Backward(cancels) {
				all.Go(cancel)
			}
			return nil
		}
		r.change(TransitionOptions{}, fmt.Sprintf("component.player.rate=%d", 1+i))
		all.Wait()
	}
	if n := len(r.running.now().members[0].host.Signal("blocks").Connections()); n != 1 {
		t.Errorf("the signal has %d connections without a tap, want 1", n)
	}
	r.end()
}

func TestTap_BegunInARevertedChangeContinues(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	r.await(10)
	tr := &trail{last: map[string]uint64{}}
	cancel := func() {}
	s.restore = func(h *component.Host) (err error) {
		if h.Name != "counter" {
			return nil
		}
		if cancel, err = r.Tap("player.blocks", false, tr.hear); err != nil {
			t.Error(err)
		}
		return errors.New("no room")
	}
	x := r.prepare(TransitionOptions{}, "component.player.rate=2", "component.counter.scale=2")
	if o, err := x.Commit(t.Context()); err == nil {
		t.Fatalf("Commit: %+v", o)
	}
	testkit.Until(t, "blocks of the player", func() bool { return tr.at("player") > 100 })
	cancel()
	if tr.wrong > 0 {
		t.Errorf("%d blocks were shown twice or out of order", tr.wrong)
	}
	r.end()
}

func TestPause_StaysThroughChanges(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	r.await(10)
	pause(t, r.Pipeline)
	r.change(TransitionOptions{}, "component.counter.scale=2", "component.player.rate=2")
	x, _ := r.change(TransitionOptions{Probation: true}, "env.game.use=game@2")
	const paused = "player paused, counter paused"
	tell := func() string {
		var list []string
		for _, c := range r.Status().Components {
			list = append(list, c.Name+" "+string(c.State))
		}
		return strings.Join(list, ", ")
	}
	if got := tell(); got != paused {
		t.Errorf("after a change: %s", got)
	}
	x.Settle()
	counted := s.counted.Load()
	for _, l := range r.running.loops.All() {
		l.Do(func() {})
	}
	if got := s.counted.Load(); got != counted {
		t.Errorf("%d blocks were counted while it was paused", got-counted)
	}
	r.change(TransitionOptions{}, "component.player.count=2", "component.counter.strict=false", "component.counter.loose=true")
	if got, want := tell(), "player[0] paused, player[1] paused, counter paused"; got != want {
		t.Errorf("with one more: %s, want %s", got, want)
	}
	resume(t, r.Pipeline)
	r.await(10)
	r.end()
}

func TestStatus_NamesVersionAndChange(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	r.await(2)
	first := statusOf(t, r.Pipeline, "player")
	if first.Version == nil || first.Version.File != "game@1" || len(first.Version.Hash) != 64 || first.Runtime != "wasm" {
		t.Errorf("before: %+v, version %+v", first, first.Version)
	}
	if c := statusOf(t, r.Pipeline, "counter"); c.Version != nil || c.Runtime != "builtin" || c.State != control.Running {
		t.Errorf("%+v, version %+v", c, c.Version)
	}
	var held *playerChange
	came := make(chan struct{})
	s.commit = func(_ *player, c *playerChange) bool {
		c.blocked, held = true, c
		close(came)
		return true
	}
	x := r.prepare(TransitionOptions{}, "env.game.use=game@2")
	if got := statusOf(t, r.Pipeline, "player"); got.State != control.Running {
		t.Errorf("while the change is prepared it is %s", got.State)
	}
	done := make(chan error, 1)
	go func() {
		_, err := x.Commit(t.Context())
		done <- err
	}()
	<-came
	if got := statusOf(t, r.Pipeline, "player"); got.State != control.Replacing || got.Version.File != "game@1" || r.Status().State != control.Replacing {
		t.Errorf("while it is committed: %+v, run %s", got, r.Status().State)
	}
	loop := r.running.now().members[0].loop
	loop.Do(func() { held.blocked = false })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := statusOf(t, r.Pipeline, "player"); got.Version.File != "game@2" || got.Version.Hash == first.Version.Hash || got.State != control.Running {
		t.Errorf("after it: %+v, version %+v", got, got.Version)
	}
	r.end()
}

func TestStatus_AHandledFailureIsReported(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	r.await(2)
	rolledBack := make(chan string, 1)
	x, _ := r.change(TransitionOptions{Probation: true, RolledBack: func(name string, _ error) { rolledBack <- name }}, "component.counter.fails=true")
	s.fail.Store(true)
	<-rolledBack
	got := statusOf(t, r.Pipeline, "counter")
	if got.State != control.Failed || !strings.Contains(got.Note, "lost count") || r.Status().State != control.Stalled {
		t.Errorf("%+v, run %s", got, r.Status().State)
	}
	testkit.Until(t, "a full wire", func() bool { return full(r.Pipeline, 0) })
	if c := r.watch.snapshot(later()).Cause(); !strings.HasPrefix(c, "counter has failed: lost count: player.blocks → counter.on_blocks is full (") {
		t.Errorf("cause %q", c)
	}
	s.fail.Store(false)
	r.change(TransitionOptions{}, "component.counter.fails=false")
	r.await(10)
	x.Settle()
	r.end()
}

// All requests to a run, from several clients, while instances and environments are replaced: no block is lost, counted
// twice or leaked, and every request is answered.
func TestObserve_FromAllSidesWhileARunIsChanged(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.strict=true")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	often := func(ask func()) {
		all.Go(func() {
			for ctx.Err() == nil {
				ask()
			}
		})
	}
	often(func() { _, _, _ = r.Status(), r.Wires(), r.steps.readOnce() })
	often(func() {
		tr := &trail{last: map[string]uint64{}}
		end, err := r.Tap("player.*", true, tr.hear)
		if err != nil {
			t.Error(err)
			return
		}
		for at := time.Now(); tr.at("player") == 0 && time.Since(at) < 20*time.Millisecond; {
			runtime.Gosched()
		}
		end()
		if tr.wrong > 0 {
			t.Errorf("%d blocks were shown twice or out of order", tr.wrong)
		}
	})
	often(func() {
		soon, done := context.WithTimeout(ctx, 20*time.Millisecond)
		defer done()
		for _, do := range []func(context.Context, []string) ([]control.Answer, error){r.Pause, r.Resume} {
			if _, err := do(soon, nil); err != nil {
				t.Error(err)
			}
		}
	})
	often(func() { _ = r.AtNextBoundary(ctx, func(Snapshot) error { return nil }) })
	for i := range 60 {
		sets := [][]string{{"component.player.rate=%d"}, {"component.counter.scale=%d"}, {"env.game.use=game@%d"},
			{"component.player.rate=%d", "component.counter.scale=%d"}}[i%4]
		var given []string
		for _, set := range sets {
			given = append(given, fmt.Sprintf(set, 1+(i/4)%3))
		}
		x, err := r.Prepare(t.Context(), r.graph(given...), TransitionOptions{Probation: i%2 == 0})
		if errors.Is(err, ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(i, r.because(err))
		}
		if _, err := x.Commit(t.Context()); err != nil {
			t.Fatal(i, r.because(err))
		}
		x.Settle()
	}
	cancel()
	all.Wait()
	resume(t, r.Pipeline)
	r.await(20)
	r.end()
}

var _ component.EnvRunner = (*player)(nil)
