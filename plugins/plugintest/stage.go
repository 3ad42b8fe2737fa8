package plugintest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// stagePatience is how long a stage waits for an event.
const stagePatience = 20 * time.Second

// Stage runs one component on a separate loop, with a test around it on another: here everything that a Rig does step by
// step happens in real time, as it must for a component in another process. Only the test goroutine calls its methods.
type Stage struct {
	Host      *component.Host
	Component component.Component
	Arenas    *arena.Set

	t       testing.TB
	own     *loop.Loop     // the component's
	outside *loop.Loop     // the test's
	test    *loop.Receiver // sends
	inbox   *loop.Receiver // receives
	running sync.WaitGroup
	wires   []*bus.Connection
	log     testkit.Buffer

	changed chan struct{} // one token: something has changed

	mu         sync.Mutex
	got        map[string][]hostabi.Message // by signal; messages not taken yet
	kept       map[string]bool              // signals whose blocks are claimed when they are recorded
	boundaries int
	stops      []component.StopReason
	states     []string // of the process, as reported to the host
	ended      error    // of the component's loop
	over       bool
	closed     bool
}

// StageOptions are the settings of the host.
type StageOptions struct {
	Name        string                // of the component; default probe
	Table       map[string]any        // its configuration
	Envs        map[string]env.Plugin // by name
	Grants      map[string][]string   // columns that the component may write, by slot
	Seed        uint64
	Index       int
	Synchronous bool
	Boundary    func(*Stage)                    // called at dataset boundaries, on the component's loop
	Before      func(component.Component) error // called after Start, before the loop runs
	// AskOther answers what the component asks others; nil: it is told that nobody does.
	AskOther func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error))
}

// NewStage configures a component, starts it and runs its loop. It is stopped at the end of the test, which fails if
// anything leaks.
func NewStage(t testing.TB, c component.Component, o StageOptions) *Stage {
	t.Helper()
	s, err := stage(t, c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// StageError returns why a component is not configured or started, or nil if it is.
func StageError(t testing.TB, c component.Component, o StageOptions) error {
	t.Helper()
	_, err := stage(t, c, o)
	return err
}

func stage(t testing.TB, c component.Component, o StageOptions) (*Stage, error) {
	s := &Stage{
		t: t, Component: c, own: loop.New("own"), outside: loop.New("test"),
		got: map[string][]hostabi.Message{}, kept: map[string]bool{}, changed: make(chan struct{}, 1),
	}
	s.test, s.inbox = s.outside.NewReceiver("test"), s.outside.NewReceiver("inbox")
	settings := RigOptions{Name: cmp.Or(o.Name, "probe"), Envs: o.Envs, Grants: o.Grants,
		Run: component.Run{Name: t.Name(), Seed: o.Seed, Synchronous: o.Synchronous}}
	s.Host = settings.host(s.own, slog.NewTextHandler(&s.log, nil))
	s.Host.AskOther = o.AskOther
	s.Host.Index, s.Host.Count, s.Arenas = o.Index, o.Index+1, s.Host.Arenas
	s.Host.Boundary = func() {
		s.note(func() { s.boundaries++ })
		if o.Boundary != nil {
			o.Boundary(s)
		}
	}
	s.Host.Stop = func(reason component.StopReason) { s.note(func() { s.stops = append(s.stops, reason) }) }
	if remote, yes := c.(component.Remote); yes {
		s.Host.ProcessChanged = func() {
			state := remote.Process().State
			s.note(func() { s.states = append(s.states, state) })
		}
	}
	t.Cleanup(s.Close)
	if err := begin(c, s.Host, DecodeTable(o.Table)); err != nil {
		return s, err
	}
	if o.Before != nil {
		if err := o.Before(c); err != nil {
			return s, err
		}
	}
	s.running.Go(func() {
		err := s.own.Run(context.Background())
		s.note(func() { s.ended, s.over = err, true })
	})
	s.running.Go(func() { _ = s.outside.Run(context.Background()) })
	return s, nil
}

// Stops returns the reasons for which the component has asked the run to end.
func (s *Stage) Stops() []component.StopReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stops)
}

// note changes state that the test reads.
func (s *Stage) note(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Until waits until cond holds, which it checks after each event and periodically.
func (s *Stage) Until(what string, cond func() bool) {
	s.t.Helper()
	end := time.Now().Add(stagePatience)
	for !cond() {
		if time.Now().After(end) {
			s.t.Fatalf("%s: does not happen; log:\n%s", what, s.Log())
		}
		select {
		case <-s.changed:
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Pause pauses the component, and returns a channel that is closed when it has paused.
func (s *Stage) Pause() <-chan struct{} {
	rested := make(chan struct{})
	s.OnLoop(func() { s.Component.(component.Pauser).Pause(func() { close(rested) }) })
	return rested
}

// States returns the states of the component's process that were reported to the host.
func (s *Stage) States() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

// Process returns the process that the component runs in.
func (s *Stage) Process() component.Process { return s.Component.(component.Remote).Process() }

// Kill waits until the component has a process, kills it, and waits until the next one runs or no other will.
func (s *Stage) Kill() {
	s.t.Helper()
	var before component.Process
	s.Until("a process", func() bool { before = s.Process(); return before.PID != 0 })
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.Until("the next process", func() bool {
		now := s.Process()
		return now.Restarts > before.Restarts && now.PID != 0 || now.State == component.ProcessFailed
	})
}

// Settle waits until the process, if there is one, has acknowledged the messages that it has finished with: its answer
// may arrive before that, and a message counts as unfinished if the process dies or is saved in between.
func (s *Stage) Settle() {
	s.t.Helper()
	if c, ok := s.Component.(component.Remote); ok {
		s.Until("acknowledgements", func() bool { return c.Process().Unfinished == 0 })
	}
}

// To returns a signal of the test that is connected to a slot of the component. onLoan is for messages about blocks
// on loan.
func (s *Stage) To(slot string, onLoan bool, o bus.Options) *bus.Signal {
	s.t.Helper()
	bound := s.Host.BoundSlot(slot)
	if bound == nil {
		s.t.Fatalf("slot %q is not bound", slot)
	}
	var claims bus.Retainer = s.Arenas
	if onLoan {
		claims = nil
	}
	signal := bus.NewSignal(s.test, "test."+slot, bound.Payload(), claims)
	s.connect(signal, bound, o)
	return signal
}

// From records the messages of a signal of the component. keep: the block of each stays claimed until Done.
func (s *Stage) From(signal string, keep bool, o bus.Options) {
	s.t.Helper()
	s.kept[signal] = keep
	from := s.Host.Signal(signal)
	s.connect(from, bus.NewSlot(s.inbox, "test."+signal, from.Payload(), func(m *hostabi.Message) {
		if keep && m.Handle != 0 {
			if err := s.Arenas.Retain(m.Handle); err != nil {
				s.t.Errorf("block %v of signal %s: %v", m.Handle, signal, err)
			}
		}
		s.note(func() { s.got[signal] = append(s.got[signal], *m) })
	}), o)
}

// Handle calls fn with the messages of a signal, on the test's loop.
func (s *Stage) Handle(signal string, o bus.Options, fn func(*hostabi.Message)) {
	s.t.Helper()
	from := s.Host.Signal(signal)
	s.connect(from, bus.NewSlot(s.inbox, "test."+signal, from.Payload(), fn), o)
}

func (s *Stage) connect(signal *bus.Signal, slot *bus.Slot, o bus.Options) {
	s.t.Helper()
	if o.Depth == 0 {
		o.Depth = 256
	}
	c, err := bus.Connect(signal, slot, o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wires = append(s.wires, c)
}

// Next waits for the next message of a signal that From records.
func (s *Stage) Next(signal string) hostabi.Message {
	s.t.Helper()
	var m hostabi.Message
	s.Until("a message of "+signal, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.over && s.ended != nil {
			s.t.Fatalf("the component's loop has ended: %v", s.ended)
		}
		list := s.got[signal]
		if len(list) == 0 {
			return false
		}
		m, s.got[signal] = list[0], list[1:]
		return true
	})
	return m
}

// Waiting returns how many messages of a signal have been recorded and not taken.
func (s *Stage) Waiting(signal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got[signal])
}

// Done releases a block that From kept.
func (s *Stage) Done(h hostabi.Handle) {
	s.t.Helper()
	if err := s.Arenas.Release(h); err != nil {
		s.t.Errorf("release %v: %v", h, err)
	}
}

// Log returns the logged text.
func (s *Stage) Log() string { return s.log.String() }

// Failure waits until the component has failed and returns its error.
func (s *Stage) Failure() error {
	s.t.Helper()
	s.Until("the component's failure", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.over
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// OnLoop runs fn on the component's loop and waits for it.
func (s *Stage) OnLoop(fn func()) {
	s.t.Helper()
	over := make(chan struct{})
	s.Host.Receiver.Control(func(*hostabi.Message) { fn(); close(over) }, hostabi.Message{})
	select {
	case <-over:
	case <-time.After(stagePatience):
		s.t.Fatal("the component's loop is stuck")
	}
}

// Saved returns the state of the component, taken on its loop, encoded and decoded as a checkpoint would.
func (s *Stage) Saved() component.State {
	s.t.Helper()
	var state component.State
	var err error
	s.OnLoop(func() { state, err = s.Component.Snapshot() })
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := component.EncodeState(state)
	if err != nil {
		s.t.Fatal(err)
	}
	if state, err = component.DecodeState(raw); err != nil {
		s.t.Fatal(err)
	}
	return state
}

// Arena returns an arena of the test.
func (s *Stage) Arena(blocks, bytes int, schema arena.Schema) *arena.Arena {
	s.t.Helper()
	a, err := s.Arenas.Add(arena.Config{Name: "test", Blocks: blocks, BlockBytes: bytes, Schema: schema})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// Close stops everything, in the order in which a pipeline does, and reports leaks. Blocks that were recorded and not taken are released.
func (s *Stage) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return
	}
	s.own.Stop()
	s.outside.Stop()
	s.running.Wait()
	for _, c := range s.wires {
		c.DisconnectNow()
	}
	err := errors.Join(s.own.Close(), s.outside.Close(), s.Component.Stop())
	for signal, list := range s.got {
		for i := range list {
			if s.kept[signal] && list[i].Handle != 0 {
				s.Done(list[i].Handle)
			}
		}
	}
	if err := errors.Join(err, s.Arenas.Close()); err != nil {
		s.t.Errorf("at the end of the test: %v; log:\n%s", err, s.Log())
	}
}

// DecodeTable returns the decode function for a component's Configure, which fills what table.Decode fills.
func DecodeTable(values map[string]any) func(into any) error {
	return func(into any) error { return table.Decode(table.Plain(values), into) }
}
