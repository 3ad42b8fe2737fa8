package pipeline

import (
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// hoarder keeps every block that it gets, and reports them.
type hoarder struct {
	component.Component
	h *component.Host

	mu     sync.Mutex
	leases []arena.Lease
	enough bool // it keeps no more
}

var _ component.Holder = (*hoarder)(nil)

func (x *hoarder) Manifest() component.Manifest {
	return component.Manifest{Slots: graphtest.Ports("on_trajectories", component.PayloadTrajectory)}
}

func (x *hoarder) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (x *hoarder) Start(h *component.Host) error {
	x.h = h
	h.Slot("on_trajectories", func(m *hostabi.Message) {
		lease, err := h.Arenas.Lease(m.Handle)
		if err != nil {
			h.Fail(err)
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.leases = append(x.leases, lease); x.enough {
			x.giveBack()
		}
		h.Boundary()
	})
	return nil
}

func (x *hoarder) giveBack() {
	for _, l := range x.leases {
		if err := l.Release(); err != nil {
			x.h.Fail(err)
		}
	}
	x.leases = nil
}

func (x *hoarder) Holds(fn func(a *arena.Arena, h hostabi.Handle)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.leases {
		if a, err := x.h.Arenas.Of(l.Handle()); err == nil {
			fn(a, l.Handle())
		}
	}
}

func (x *hoarder) Snapshot() (component.State, error) { return component.State{}, nil }

func (x *hoarder) Stop() error {
	x.giveBack()
	return nil
}

// A component of this process that keeps all blocks, so that none is left to fill, is named, with their number and the time.
func TestCause_NamesTheComponentThatKeepsItsLeases(t *testing.T) {
	_, _, p := observe(t, hoarded, BuildOptions{})
	startRun(t, p)
	testkit.Until(t, "all blocks are kept", func() bool {
		return p.running.now().members[1].host.BoundSlot("on_trajectories").Connections()[0].Stats().Delivered == 6
	})
	p.watch.snapshot(time.Now())
	for _, l := range p.running.loops.All() { // they answer for themselves
		l.Do(func() {})
	}
	s := p.watch.snapshot(later())
	if got, want := s.Cause(), regexp.MustCompile(`^keeper holds 6 blocks of cutter, the oldest for (29|3[0-9]) s`); !want.MatchString(got) {
		t.Errorf("cause %q, want %s", got, want)
	}
	keeper := p.running.now().members[1]
	keeper.loop.Do(func() {
		x := keeper.component.(*hoarder)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.enough = true
		x.giveBack()
	})
	if d := s.describe(1); d.Name != "keeper" || d.State != control.Stalled || !regexp.MustCompile(`^holds 6 blocks of cutter`).MatchString(d.Note) {
		t.Errorf("%+v", d)
	}
}

const hoarded = `
rlhost = 1
[run]
name = "hoarded"
[component.cutter]
kind = "cutter"
[component.keeper]
kind = "hoarder"
[[wire]]
signal = "cutter.trajectories"
slot = "keeper.on_trajectories"
mode = "queue"
depth = 8
on_full = "block"
`
