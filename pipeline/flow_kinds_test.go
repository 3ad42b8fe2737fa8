package pipeline

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Small components that really run: a source that ticks, a sink that counts and calls boundaries, an asker and an
// answerer. A world holds a test's view of them.

type world struct {
	mu      sync.Mutex
	started []string
	stopped []string
	loops   map[string]string // of instances, by name
	replies map[string]int    // by asker
	wrong   atomic.Int64      // replies that reached somebody else
	total   atomic.Uint64     // ticks counted, over all sinks
}

func (w *world) note(list *[]string, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, name)
}

// ticker emits ticks as fast as its loop runs.
type ticker struct {
	component.Component
	w *world
	h *component.Host
	c struct {
		FailAt    int  `toml:"fail_at"`  // tick that fails; 0 = none
		PanicAt   int  `toml:"panic_at"` // tick that panics
		FailStart bool `toml:"fail_start"`
		FailStop  bool `toml:"fail_stop"`
		Leak      bool `toml:"leak"` // a block
		Limit     int  `toml:"limit"`
	}
	n    int
	loan arena.Loan
}

func (t *ticker) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("ticks", "tick")}
}

func (t *ticker) Configure(decode func(any) error) error { return decode(&t.c) }

func (t *ticker) Start(h *component.Host) error {
	t.h = h
	t.w.note(&t.w.started, h.Name)
	if t.c.FailStart {
		return errors.New("no luck")
	}
	if t.c.Leak {
		a, err := h.Arenas.Add(arena.Config{Name: h.Name, Blocks: 1, BlockBytes: 4096})
		if err != nil {
			return err
		}
		if t.loan, err = a.Loan(); err != nil {
			return err
		}
	}
	h.Receiver.Post(t.tick, hostabi.Message{})
	return nil
}

func (t *ticker) tick(*hostabi.Message) {
	t.n++
	switch t.n {
	case t.c.FailAt:
		t.h.Fail(errors.New("out of ticks"))
		return
	case t.c.PanicAt:
		panic("tick of doom")
	case t.c.Limit:
		return
	}
	if err := t.h.Signal("ticks").Emit(hostabi.Message{Inline: [2]uint64{uint64(t.n)}}); err != nil {
		t.h.Fail(err)
	}
	t.h.Receiver.Post(t.tick, hostabi.Message{})
}

func (t *ticker) Snapshot() (component.State, error) {
	return component.State{}, fmt.Errorf("%w: ticks are fleeting", component.ErrNoSnapshot)
}

func (t *ticker) Stop() error {
	if t.h != nil {
		t.w.note(&t.w.stopped, t.h.Name)
	}
	if t.c.FailStop {
		return errors.New("stuck")
	}
	return nil
}

// sink counts ticks and, after every n of them, is at a boundary.
type sink struct {
	component.Component
	w *world
	h *component.Host
	c struct {
		Every  uint64 `toml:"every"`   // ticks between boundaries; 0 = no boundaries
		StopAt uint64 `toml:"stop_at"` // tick at which it asks for the end
		Own    bool   `toml:"own"`     // for a reason of its own
		Silent bool   `toml:"silent"`  // binds no slot
	}
	n uint64
}

func (s *sink) Manifest() component.Manifest {
	return component.Manifest{Slots: graphtest.Ports("on_ticks", "tick")}
}

func (s *sink) Configure(decode func(any) error) error {
	if err := decode(&s.c); err != nil {
		return err
	}
	if s.c.Every > 1000 {
		return &component.ConfigError{Key: "every", Reason: fmt.Sprintf("is %d, want 1000 or less", s.c.Every)}
	}
	return nil
}

func (s *sink) Start(h *component.Host) error {
	s.h = h
	s.w.note(&s.w.started, h.Name)
	s.w.mu.Lock()
	s.w.loops[h.Name] = h.Receiver.Loop().Name()
	s.w.mu.Unlock()
	if !s.c.Silent {
		h.Slot("on_ticks", s.onTick)
	}
	return nil
}

func (s *sink) onTick(*hostabi.Message) {
	s.n++
	s.w.total.Add(1)
	if s.n == s.c.StopAt {
		reason := component.StopEnvSteps
		if s.c.Own {
			reason = component.StopOwn
		}
		s.h.Stop(reason)
	}
	if s.c.Every > 0 && s.n%s.c.Every == 0 {
		s.h.Boundary()
	}
}

type sinkState struct{ N uint64 }

func (s *sink) Snapshot() (component.State, error) {
	return component.State{Meta: sinkState{s.n}}, nil
}

func (s *sink) Restore(state component.State) error {
	m, ok := state.Meta.(sinkState)
	if !ok {
		return fmt.Errorf("state is a %T", state.Meta)
	}
	s.n = m.N
	return nil
}

func (s *sink) Stop() error {
	if s.h != nil {
		s.w.note(&s.w.stopped, s.h.Name)
	}
	return nil
}

// asker sends requests that carry its id and counts the answers; answerer answers.
type asker struct {
	component.Component
	w *world
	h *component.Host
	n int
}

func (a *asker) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("asks", "ask"), Slots: graphtest.Ports("on_answers", "answer")}
}

func (a *asker) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (a *asker) Start(h *component.Host) error {
	a.h = h
	h.Slot("on_answers", a.onAnswer)
	h.Receiver.Post(func(*hostabi.Message) { a.ask() }, hostabi.Message{})
	return nil
}

func (a *asker) ask() {
	if err := a.h.Signal("asks").Emit(hostabi.Message{Sender: a.h.ID}); err != nil {
		a.h.Fail(err)
	}
}

func (a *asker) onAnswer(m *hostabi.Message) {
	if m.Sender != a.h.ID {
		a.w.wrong.Add(1)
	}
	a.n++
	if a.n == 100 {
		a.w.mu.Lock()
		a.w.replies[a.h.Name] = a.n
		all := len(a.w.replies) == a.h.Peers("asker")
		a.w.mu.Unlock()
		if all {
			a.h.Stop(component.StopReturn)
		}
	}
	a.ask()
}

func (a *asker) Stop() error { return nil }

type answerer struct {
	component.Component
	h *component.Host
}

func (a *answerer) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("answers", "answer"), Slots: graphtest.Ports("on_asks", "ask")}
}

func (a *answerer) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (a *answerer) Start(h *component.Host) error {
	a.h = h
	h.Slot("on_asks", func(m *hostabi.Message) {
		if err := h.Signal("answers").Emit(*m); err != nil {
			h.Fail(err)
		}
		h.Boundary()
	})
	return nil
}

func (a *answerer) Stop() error { return nil }

func newWorld() (*world, *graph.Parts) {
	w := &world{loops: map[string]string{}, replies: map[string]int{}}
	return w, &graph.Parts{Kinds: map[string]func() component.Component{
		"ticker":   func() component.Component { return &ticker{w: w} },
		"sink":     func() component.Component { return &sink{w: w} },
		"asker":    func() component.Component { return &asker{w: w} },
		"answerer": func() component.Component { return &answerer{} },
	}}
}

// tickFile is a pipeline of a ticker and sinks. Further tables follow.
func tickFile(tables string) string {
	return "rlhost = 1\n[run]\nname = \"ticks\"\n" + tables + `
[[wire]]
signal = "source.ticks"
slot = "sink.on_ticks"
mode = "queue"
depth = 8
on_full = "block"
`
}

const plain = "[component.source]\nkind = \"ticker\"\n[component.sink]\nkind = \"sink\"\nevery = 10\n"

func mustParse(t testing.TB, text string, parts *graph.Parts, sets ...string) *graph.Graph {
	t.Helper()
	g, problems := graphtest.Parse("ticks.toml", []byte(text), graph.ParseOptions{Parts: parts, Sets: sets})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}
