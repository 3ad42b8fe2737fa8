package pipeline

import (
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/hostabi"
)

// valve passes ticks on, pauses when a test lets it, and hangs at a tick that a test chooses.
type valve struct {
	component.Component
	v *valves
	h *component.Host
	c struct {
		HangAt int  `toml:"hang_at"` // tick at which it hangs until the test releases it
		Sticky bool `toml:"sticky"`  // pauses only when the test lets it
	}
	n      int
	rested func()
}

func newValve(v *valves) func() component.Component {
	return func() component.Component { return &valve{v: v} }
}

// valves is shared by a test and the valves of its pipeline.
type valves struct {
	hang chan struct{} // closed to release hanging ones
	hung chan struct{} // takes one for each that hangs

	mu    sync.Mutex
	calls []string // "pause NAME", "resume NAME"
	stuck []*valve
}

func (v *valve) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("out", "tick"), Slots: graphtest.Ports("on_ticks", "tick")}
}

func (v *valve) Configure(decode func(any) error) error { return decode(&v.c) }

func (v *valve) Start(h *component.Host) error {
	v.h = h
	h.Slot("on_ticks", v.onTick)
	return nil
}

func (v *valve) onTick(m *hostabi.Message) {
	if v.n++; v.n == v.c.HangAt {
		v.v.hung <- struct{}{}
		<-v.v.hang
	}
	if err := v.h.Signal("out").Emit(*m); err != nil {
		v.h.Fail(err)
	}
}

func (v *valve) Pause(rested func()) {
	v.v.note("pause " + v.h.Name)
	if v.c.Sticky {
		v.v.mu.Lock()
		defer v.v.mu.Unlock()
		v.rested = rested
		v.v.stuck = append(v.v.stuck, v)
		return
	}
	rested()
}

func (v *valve) Resume() { v.v.note("resume " + v.h.Name) }

func (v *valve) Waiting() []component.Waiting { return nil }

func (v *valve) Snapshot() (component.State, error) { return component.State{}, nil }

func (v *valve) Restore(component.State) error { return nil }

func (v *valve) Stop() error { return nil }

func (v *valves) note(call string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, call)
}

func (v *valves) called() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.calls, ", ")
}

// cutter makes trajectories of which some rows count, as often as their blocks come back; bin learns from each third
// one, drops each third one and keeps each third one until the next.
type cutter struct {
	component.Component
	h      *component.Host
	a      *arena.Arena
	schema *trajectory.Schema
	c      struct {
		Limit int `toml:"limit"` // trajectories; 0 = no end
	}
	n int
}

func (c *cutter) Manifest() component.Manifest {
	return component.Manifest{Signals: []component.Port{{Name: "trajectories", Payload: component.PayloadTrajectory}}}
}

func (c *cutter) Configure(decode func(any) error) error { return decode(&c.c) }

func (c *cutter) Flow() component.Flow {
	return component.Flow{Splits: 1, Blocks: 6, BlockRows: 8, Envs: 2}
}

func (c *cutter) Start(h *component.Host) error {
	c.h = h
	schema, err := trajectory.NewSchema(graphtest.Described{Obs: 4}.Spec(), trajectory.Shape{Steps: 4, Envs: 2})
	if err != nil {
		return err
	}
	c.schema = schema
	if c.a, err = h.Arena(arena.Config{Name: h.Name, Blocks: 6, BlockBytes: schema.Bytes, Schema: schema}); err != nil {
		return err
	}
	for block := range uint32(6) {
		h.OnFree(c.a, block, func(uint32) {
			h.Receiver.Control(func(*hostabi.Message) { h.Receiver.Post(c.cut, hostabi.Message{}) }, hostabi.Message{})
		})
		h.Receiver.Post(c.cut, hostabi.Message{})
	}
	return nil
}

// cut runs once for each block that is free.
func (c *cutter) cut(*hostabi.Message) {
	if c.n == c.c.Limit && c.n > 0 {
		return
	}
	loan, err := c.a.Loan()
	if err != nil {
		c.h.Fail(err)
		return
	}
	c.n++
	rows := 1 + c.n%8
	tr := trajectory.Trajectory{Schema: c.schema, Mem: loan.Bytes()}
	tr.Meta().ValidRows = uint32(rows)
	clear(tr.Bytes(trajectory.Valid))
	for row := range rows {
		tr.Bytes(trajectory.Valid)[row] = 1
	}
	c.h.Stats.Counter(component.CounterMade).Add(uint64(rows))
	handle, err := loan.Commit()
	if err == nil {
		err = c.h.Signal("trajectories").Emit(hostabi.Message{Handle: handle, T: uint32(rows)})
	}
	if err == nil {
		err = c.a.Release(handle)
	}
	if err != nil {
		c.h.Fail(err)
	}
}

func (c *cutter) Snapshot() (component.State, error) { return component.State{}, nil }

func (c *cutter) Stop() error { return nil }

type bin struct {
	component.Component
	h    *component.Host
	kept arena.Lease
	n    int
	c    struct {
		StopAt int `toml:"stop_at"` // trajectory
	}
}

func (b *bin) Manifest() component.Manifest {
	return component.Manifest{Slots: graphtest.Ports("on_trajectories", component.PayloadTrajectory)}
}

func (b *bin) Configure(decode func(any) error) error { return decode(&b.c) }

func (b *bin) Start(h *component.Host) error {
	b.h = h
	h.Slot("on_trajectories", b.take)
	return nil
}

func (b *bin) take(m *hostabi.Message) {
	switch b.n++; b.n % 3 {
	case 0:
		b.settle(m.Handle, trajectory.Trained)
	case 1:
		b.settle(m.Handle, trajectory.TooOld)
	case 2:
		b.learn() // learned from
		var err error
		if b.kept, err = b.h.Arenas.Lease(m.Handle); err != nil {
			b.h.Fail(err)
		}
	}
	if b.n == b.c.StopAt {
		b.h.Stop(component.StopEnvSteps)
	}
	b.h.Boundary()
}

func (b *bin) settle(h hostabi.Handle, f trajectory.Fate) {
	a, err := b.h.Arenas.Of(h)
	if err == nil {
		err = trajectory.Settle(a, h, 0, f)
	}
	if err != nil {
		b.h.Fail(err)
	}
}

// learn learns from the kept blocks.
func (b *bin) learn() {
	if b.kept == (arena.Lease{}) {
		return
	}
	handle := b.kept.Handle()
	b.settle(handle, trajectory.Trained)
	if b.kept.Release() != nil {
		panic("claims of the test's own do not end")
	}
	b.kept = arena.Lease{}
}

func (b *bin) Snapshot() (component.State, error) { return component.State{}, nil }

func (b *bin) Stop() error {
	if b.kept != (arena.Lease{}) {
		return b.kept.Release()
	}
	return nil
}

// observe starts a pipeline of ticker, valves and sink in a chain, of one loop each, and of other tables.
func observe(t *testing.T, text string, o BuildOptions, sets ...string) (*valves, *world, *Pipeline) {
	t.Helper()
	v := &valves{hang: make(chan struct{}), hung: make(chan struct{}, 8)}
	w, parts := newWorld()
	parts.Kinds["valve"] = newValve(v)
	parts.Kinds["cutter"] = func() component.Component { return &cutter{} }
	parts.Kinds["bin"] = func() component.Component { return &bin{} }
	parts.Kinds["oracle"] = func() component.Component { return &oracle{} }
	parts.Kinds["courier"] = func() component.Component { return &courier{} }
	parts.Kinds["hoarder"] = func() component.Component { return &hoarder{} }
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
	return v, w, p
}

// chain is a ticker, two valves and a sink. Further tables follow.
func chain(tables string) string {
	text := "rlhost = 1\n[run]\nname = \"chain\"\n[component.source]\nkind = \"ticker\"\n[component.first]\nkind = \"valve\"\n" +
		"[component.second]\nkind = \"valve\"\n[component.sink]\nkind = \"sink\"\nevery = 10\n" + tables
	for _, ends := range [][2]string{{"source.ticks", "first.on_ticks"}, {"first.out", "second.on_ticks"}, {"second.out", "sink.on_ticks"}} {
		text += "[[wire]]\nsignal = \"" + ends[0] + "\"\nslot = \"" + ends[1] + "\"\nmode = \"queue\"\ndepth = 4\non_full = \"block\"\n"
	}
	return text
}

const bins = `rlhost = 1
[run]
name = "bins"
[component.rollout]
kind = "cutter"
[component.learner]
kind = "bin"
[[wire]]
signal = "rollout.trajectories"
slot = "learner.on_trajectories"
mode = "queue"
depth = 8
on_full = "block"
`

// startRun runs a pipeline until the returned function is called, which returns Run's results.
func startRun(t *testing.T, p *Pipeline) (end func() (component.StopReason, error)) {
	t.Helper()
	type result struct {
		reason component.StopReason
		err    error
	}
	done := make(chan result, 1)
	go func() {
		reason, err := p.Run(t.Context())
		done <- result{reason, err}
	}()
	var once sync.Once
	var r result
	end = func() (component.StopReason, error) {
		once.Do(func() {
			p.Stop("enough")
			r = <-done
		})
		return r.reason, r.err
	}
	t.Cleanup(func() { _, _ = end() })
	return end
}
