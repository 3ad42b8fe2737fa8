package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// Rig hosts one component, on one loop that the test runs. Everything that a test connects to the
// component is on that loop too, so the order of events is the same each time. Use NewRig.
type Rig struct {
	Host       *component.Host
	Component  component.Component
	Log        strings.Builder // of level info and above
	Boundaries int             // calls of Host.Boundary
	Stops      []component.StopReason

	t           testing.TB
	loop        *loop.Loop
	outside     *loop.Receiver
	connections []*bus.Connection
	failed      error
}

// RigOptions are the settings of the host.
type RigOptions struct {
	Name     string // of the component
	Index    int    // which of Count instances it is
	Count    int    // 0: one
	Run      component.Run
	Envs     map[string]env.Plugin // by name
	Policies map[string]component.Policy
	Stored   func(policy string) (component.State, error)
	Grants   map[string][]string // columns that the component may write, by slot
	Written  []string            // columns that others may write in its blocks, ascending
	Tables   component.Tables
	// AskOther answers what the component asks others; nil: it is told that nobody does.
	AskOther func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error))
}

const (
	rigID      = 7  // Message.Sender of the component in a rig
	rigReaders = 16 // Host.Readers of each of its signals
)

// NewRig configures and starts a component. It is stopped at the end of the test, which fails if anything leaks.
func NewRig(t testing.TB, c component.Component, o RigOptions, configure func(into any) error) *Rig {
	t.Helper()
	r, err := TryRig(t, c, o, configure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// StartError returns why a component does not start, or nil if it does.
func StartError(t testing.TB, c component.Component, o RigOptions, configure func(into any) error) error {
	t.Helper()
	_, err := TryRig(t, c, o, configure)
	return err
}

// TryRig is NewRig of a component that may refuse to start: then it returns why.
func TryRig(t testing.TB, c component.Component, o RigOptions, configure func(into any) error) (*Rig, error) {
	r := &Rig{Component: c, t: t, loop: loop.New("rig")}
	r.outside = r.loop.NewReceiver("test")
	r.Host = o.host(r.loop, slog.NewTextHandler(&r.Log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	r.Host.Boundary = func() { r.Boundaries++ }
	r.Host.Stop = func(reason component.StopReason) { r.Stops = append(r.Stops, reason) }
	t.Cleanup(r.close)
	return r, begin(c, r.Host, configure)
}

// host returns a host for one component on that loop.
func (o *RigOptions) host(on *loop.Loop, log slog.Handler) *component.Host {
	return &component.Host{
		Name: o.Name, ID: rigID, Index: o.Index, Count: max(o.Count, 1), Run: &o.Run,
		Receiver: on.NewReceiver(o.Name), Arenas: arena.NewSet(), Stats: stat.NewRegistry(),
		Log:     slog.New(log).With("component", o.Name),
		Env:     func(name string) (env.Plugin, error) { return lookUp(o.Envs, name) },
		Policy:  func(name string) (component.Policy, error) { return lookUp(o.Policies, name) },
		Stored:  o.Stored,
		Peers:   func(string) int { return 1 },
		Readers: func(string) int { return rigReaders },
		Grants:  o.Grants,
		Written: o.Written,
		Tables:  func() component.Tables { return o.Tables },

		AskOther: o.AskOther,
	}
}

// begin configures and starts a component.
func begin(c component.Component, h *component.Host, configure func(into any) error) error {
	if err := c.Configure(configure); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	h.Bind(c.Manifest())
	if err := c.Start(h); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

func lookUp[T any](table map[string]T, name string) (T, error) {
	v, ok := table[name]
	if !ok {
		return v, fmt.Errorf("%q is not declared", name)
	}
	return v, nil
}

// To returns a signal of the test that is connected to a slot of the component.
func (r *Rig) To(slot string) *bus.Signal { return r.to(slot, r.Host.Arenas) }

// ToOnLoan is To for messages that name a block that is on loan, and so carry no claim on it.
func (r *Rig) ToOnLoan(slot string) *bus.Signal { return r.to(slot, nil) }

func (r *Rig) to(slot string, claims bus.Retainer) *bus.Signal {
	r.t.Helper()
	s := r.Host.BoundSlot(slot)
	if s == nil {
		r.t.Fatalf("slot %q is not bound", slot)
	}
	signal := bus.NewSignal(r.outside, "test."+slot, s.Payload(), claims)
	r.connect(signal, s)
	return signal
}

// From calls fn on the loop with each message of a signal of the component. The message and the claim on its block
// are valid during the call.
func (r *Rig) From(signal string, fn func(*hostabi.Message)) {
	r.t.Helper()
	s := r.Host.Signal(signal)
	r.connect(s, bus.NewSlot(r.outside, "test."+signal, s.Payload(), fn))
}

func (r *Rig) connect(signal *bus.Signal, slot *bus.Slot) {
	r.t.Helper()
	c, err := bus.Connect(signal, slot, bus.Options{Mode: bus.All, Depth: 256, Overflow: bus.Block})
	if err != nil {
		r.t.Fatal(err)
	}
	r.connections = append(r.connections, c)
}

// RunUntil runs the loop until cond holds between two messages, or the component fails; it returns that error. The
// test fails if neither happens within a time.
func (r *Rig) RunUntil(cond func() bool) error {
	r.t.Helper()
	const least = 1 << 20 // on a slow machine too
	rounds, late, until := 0, false, time.Now().Add(20*time.Second)
	err := r.run(func() bool {
		if rounds++; rounds%1024 == 0 {
			runtime.Gosched() // to goroutines that step environments
			late = rounds >= least && time.Now().After(until)
		}
		return late || cond()
	})
	if err == nil && late {
		r.t.Fatal("what the test waits for does not happen")
	}
	return err
}

// Settle runs the loop until all pending work is done.
func (r *Rig) Settle() error {
	rounds := 0
	return r.run(func() bool { rounds++; return rounds > 100 })
}

// MustRun is RunUntil of a component that does not fail.
func (r *Rig) MustRun(cond func() bool) {
	r.t.Helper()
	if err := r.RunUntil(cond); err != nil {
		r.t.Fatal(err)
	}
}

// MustSettle is Settle of a component that does not fail.
func (r *Rig) MustSettle() {
	r.t.Helper()
	if err := r.Settle(); err != nil {
		r.t.Fatal(err)
	}
}

// run lets a message go round the data lane until end holds; everything that was posted before has been handled when it
// comes by.
func (r *Rig) run(end func() bool) error {
	if r.failed != nil {
		return r.failed
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var round func(*hostabi.Message)
	round = func(*hostabi.Message) {
		if end() {
			stop()
			r.outside.Control(func(*hostabi.Message) {}, hostabi.Message{}) // makes the loop check ctx first
			return
		}
		r.outside.Post(round, hostabi.Message{})
	}
	r.outside.Post(round, hostabi.Message{})
	if err := r.loop.Run(ctx); !errors.Is(err, context.Canceled) {
		r.failed = err
	}
	return r.failed
}

// close stops the component and reports leaks.
func (r *Rig) close() {
	for _, c := range r.connections {
		c.DisconnectNow()
	}
	if err := errors.Join(r.loop.Close(), r.Component.Stop(), r.Host.Arenas.Close()); err != nil {
		r.t.Errorf("at the end of the test: %v", err)
	}
}
