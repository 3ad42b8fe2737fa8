package inference

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Random serves act requests with random actions, as trajectory.Trajectory.DrawActions has them, for benchmarks and checks
// without a policy. It answers each request at once.
type Random struct {
	h       *component.Host
	actions *bus.Signal
	words   []uint64 // room for the words of a request's environments
}

var _ component.Component = (*Random)(nil)

// NewRandom returns a component of random actions.
func NewRandom() component.Component { return &Random{} }

// Manifest lists the ports: the same as Inference's, without weights.
func (c *Random) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "actions", Payload: component.PayloadActions, OnLoan: true, Doc: "the row asked about has been written"}},
		Slots:   []component.Port{{Name: "act", Payload: component.PayloadRequest, Doc: "a row of observations waits for actions"}},
	}
}

// Configure takes no keys.
func (c *Random) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

// Start binds the slot.
func (c *Random) Start(h *component.Host) error {
	c.h = h
	c.actions = h.Signal("actions")
	h.Slot("act", c.act)
	return nil
}

func (c *Random) act(m *hostabi.Message) {
	r := trajectory.ActRequestOf(m)
	tr, err := trajectory.Borrowed(c.h.Arenas, r.Block)
	if err != nil {
		c.h.Fail(fmt.Errorf("act on %v row %d: %w", r.Block, r.T, err))
		return
	}
	if !r.ValueOnly && r.T < tr.Schema.Shape.Steps {
		c.fill(tr, r)
	}
	if err := c.actions.Emit(*m); err != nil {
		c.h.Fail(err)
	}
}

// fill writes the actions of one row. Each depends on seed, environment and step alone.
func (c *Random) fill(tr trajectory.Trajectory, r trajectory.ActRequest) {
	c.words = slices.Grow(c.words[:0], tr.Schema.Rows())[:tr.Schema.Rows()]
	env.ActionWords(c.words, c.h.Run.Seed, r.Step, int(r.FirstEnv))
	tr.DrawActionsFrom(r.T, c.words)
}

// Snapshot is empty: actions depend on seed, environment and step alone.
func (c *Random) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore has nothing to restore.
func (c *Random) Restore(component.State) error { return nil }

// Stop has nothing to release.
func (c *Random) Stop() error { return nil }
