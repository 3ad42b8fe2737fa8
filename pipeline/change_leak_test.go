package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// holdings are the resources of a running pipeline.
type holdings struct{ goroutines, descriptors, arenas, loops, instances, envs, retired, leftover int }

func (r *liveRun) holdings() holdings {
	h := holdings{goroutines: runtime.NumGoroutine()}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		r.t.Fatal(err)
	}
	h.descriptors = len(files)
	r.running.arenas.Each(func(*arena.Arena) { h.arenas++ })
	r.running.tidy()
	r.running.mu.Lock()
	h.loops, h.instances, h.retired, h.leftover = len(r.running.loops.All()), len(r.running.alive), len(r.running.retired), len(r.running.leftover)
	r.running.mu.Unlock()
	r.s.mu.Lock()
	h.envs = len(r.s.loads) - len(r.s.closed)
	r.s.mu.Unlock()
	return h
}

// within reports whether h is nowhere more than o.
func (h holdings) within(o holdings) bool {
	return h.goroutines <= o.goroutines && h.descriptors <= o.descriptors && h.arenas <= o.arenas && h.loops == o.loops &&
		h.instances == o.instances && h.envs <= o.envs && h.retired <= o.retired && h.leftover <= o.leftover
}

// settled waits until the pipeline takes no more than it did, or for a while.
func (r *liveRun) settled(before holdings) {
	r.t.Helper()
	var now holdings
	for range 100 {
		r.await(2)
		if now = r.holdings(); now.within(before) {
			return
		}
		runtime.GC() // an arena's memory goes with its last view
	}
	r.t.Errorf("the pipeline takes %+v, before it was %+v", now, before)
}

func TestTransition_NothingLeaks(t *testing.T) {
	const rounds = 30
	for name, sets := range map[string][]string{
		"environments": {"env.game.use=game@2"}, "receiver": {"component.counter.scale=3"},
		"sender": {"component.player.rate=2"}, "loop": {"component.counter.loop=elsewhere"},
		"instances": {"component.counter.count=3", "component.player.count=2"}, "own loops": {"component.counter.count=3", "component.counter.loop=c[i]"},
		"wire": {"wire.player.blocks.depth=2"}, "all": {"env.game.use=game@2", "component.counter.count=2", "component.counter.scale=2",
			"component.player.count=3", "component.player.rate=7", "wire.player.blocks.mode=all"},
	} {
		t.Run(name, func(t *testing.T) {
			s, parts := newStage()
			r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
			home := r.graph()
			there := r.graph(sets...)
			change := func(g *graph.Graph) {
				x, err := r.Prepare(t.Context(), g, TransitionOptions{Probation: true})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := x.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				x.Settle()
			}
			change(there)
			change(home)
			r.await(20)
			before := r.holdings()
			for range rounds {
				change(there)
				change(home)
			}
			r.settled(before)
			r.end()
		})
	}
}

func TestTransition_AnAbandonedChangeLeaksNothing(t *testing.T) {
	s, parts := newStage()
	s.restore = func(h *component.Host) error {
		if h.Name == "counter" {
			return errors.New("not this one")
		}
		return nil
	}
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	there := r.graph("env.game.use=game@2", "component.player.rate=3", "component.counter.scale=3", "component.player.count=2")
	try := func(commit bool) {
		x, err := r.Prepare(t.Context(), there, TransitionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !commit {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := x.Commit(t.Context()); err == nil {
			t.Fatal("Commit of what cannot be restored")
		}
	}
	try(true)
	r.await(4) // everything of the run has begun
	before := r.holdings()
	for i := range 100 {
		try(i%2 == 0)
	}
	r.settled(before)
	r.end()
}

// Changes of every kind, each of which may fail anywhere, during a run; then the state is checked.
func TestTransition_ManyAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s, parts := newStage()
	luck := func(odds int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if rng.IntN(odds) == 0 {
			return errors.New("bad luck")
		}
		return nil
	}
	s.start = func(*component.Host) error { return luck(8) }
	s.restore = func(*component.Host) error { return luck(8) }
	s.prepare = func(component.EnvChange) error { return luck(8) }
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	pick := func(format string, n int) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Sprintf(format, 1+rng.IntN(n))
	}
	failures, committed := 0, 0
	for range 150 {
		sets := []string{
			pick("component.counter.count=%d", 3), pick("component.player.count=%d", 2), pick("env.game.use=game@%d", 3),
			pick("component.counter.scale=%d", 2), pick("component.player.rate=%d", 2), pick("wire.player.blocks.depth=%d", 3),
			pick("component.counter.loop=c%d", 2),
		}[:1+len(pick("%d", 7))*3]
		x, err := r.Prepare(t.Context(), r.graph(sets...), TransitionOptions{Probation: true})
		if errors.Is(err, ErrNothing) {
			continue
		}
		if err == nil {
			_, err = x.Commit(t.Context())
		}
		if err != nil {
			failures++
		} else {
			x.Settle()
			committed++
		}
		g := r.Graph()
		if got := len(r.running.now().members); got != g.Component("player").Count+g.Component("counter").Count {
			t.Fatalf("%d members of %v", got, g.Expanded())
		}
	}
	t.Logf("%d committed, %d failed", committed, failures)
	s.mu.Lock()
	s.start, s.restore, s.prepare = nil, nil, nil
	s.mu.Unlock()
	r.await(10)
	r.end()
	c := r.Wires()[0]
	if got := c.Delivered + uint64(c.Queued+c.Parked); c.Dropped != 0 || got != uint64(s.sent("game@1")+s.sent("game@2")+s.sent("game@3")) {
		t.Errorf("Counters %+v, of %v blocks", c, s.plays)
	}
}

func TestTransition_AChangedFileIsAChange(t *testing.T) {
	s, parts := newStage()
	dir := t.TempDir()
	file := filepath.Join(dir, "game.wasm")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "env.game.use="+file)
	r.await(4)
	if _, err := r.Prepare(t.Context(), r.graph(), TransitionOptions{}); !errors.Is(err, ErrNothing) {
		t.Errorf("Prepare of the same file: %v", err)
	}
	write("two")
	if _, o := r.change(TransitionOptions{}); o.Envs != 4 {
		t.Errorf("Outcome %+v", o)
	}
	for s.sent("two") == 0 { // blocks of the first file may still be on their way
		r.await(1)
	}
	other := filepath.Join(dir, "copy.wasm")
	if err := os.Link(file, other); err != nil {
		t.Fatal(err)
	}
	if _, o := r.change(TransitionOptions{}, "env.game.use="+other); o.Envs != 0 || r.Graph().Env("game").Table.Use != other {
		t.Errorf("Outcome of another name for the same file %+v", o)
	}
	r.end()
}

// Several who change the run at once, settle late, and look at it meanwhile.
func TestTransition_ManyAtOnce(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{}, "component.counter.loose=true")
	base := r.graph()
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			var late []*Transition
			for i := range 40 {
				sets := []string{
					fmt.Sprintf("env.game.use=game@%d", 1+(i+k)%3), fmt.Sprintf("component.counter.count=%d", 1+(i+k)%2),
					fmt.Sprintf("component.player.rate=%d", i%2),
				}[k%3:]
				g, problems := graphtest.With(base, sets, parts)
				if g == nil {
					t.Error(problems)
					return
				}
				x, err := r.Prepare(t.Context(), g, TransitionOptions{Probation: i%2 == 0})
				if errors.Is(err, ErrBusy) || errors.Is(err, ErrNothing) {
					r.Wires()
					r.Status()
					continue
				}
				if err == nil && i%5 == 0 {
					err = x.Close()
				} else if err == nil {
					_, err = x.Commit(t.Context())
					late = append(late, x)
				}
				if err != nil {
					t.Errorf("goroutine %d, change %d: %v", k, i, err)
					return
				}
				if len(late) > 2 {
					late[0].Settle()
					late = late[1:]
				}
			}
			for _, x := range late {
				x.Settle()
			}
		})
	}
	all.Wait()
	r.await(10)
	r.end()
}
