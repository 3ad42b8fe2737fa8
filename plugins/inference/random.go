package inference

import (
	"fmt"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// Random serves act requests with uniformly random actions, for benchmarks and checks without a policy. It
// answers each request at once.
type Random struct {
	h       *component.Host
	actions *bus.Signal
}

var _ component.Component = (*Random)(nil)

// NewRandom returns a component of random actions.
func NewRandom() component.Component { return &Random{} }

// Manifest lists the ports; they are those of Inference without weights.
func (c *Random) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "actions", Payload: "actions", OnLoan: true, Doc: "the row asked about has been written"}},
		Slots:   []component.Port{{Name: "act", Payload: "act_request", Doc: "a row of observations waits for actions"}},
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
	r := rollout.ActRequestOf(m)
	tr, err := trajectory(c.h.Arenas, r.Block)
	if err != nil {
		c.h.Fail(fmt.Errorf("act on %v row %d: %w", r.Block, r.T, err))
		return
	}
	if !r.ValueOnly && r.T < tr.Schema.Shape.Steps {
		n := tr.Schema.Shape.Envs
		for i := range n {
			u := policy.Uniform(c.h.Run.Seed, r.FirstEnv+uint32(i), r.Step, 0)
			tr.Int32(rollout.ColAction)[r.T*n+i] = pick(tr, r.T, i, u)
		}
	}
	if err := c.actions.Emit(*m); err != nil {
		c.h.Fail(err)
	}
}

// pick returns the legal action that a number in (0, 1) stands for.
func pick(tr rollout.Trajectory, t, env int, u float32) int32 {
	actions := tr.Schema.Spec.Actions()
	if _, masked := tr.Schema.Layout(rollout.ColMask); !masked {
		return min(int32(u*float32(actions)), int32(actions-1))
	}
	mask := tr.Row(rollout.ColMask, t)
	legal := func(a int) bool { return mask.Data[env*mask.StrideRow+a*mask.StrideElem] != 0 }
	n := 0
	for a := range actions {
		if legal(a) {
			n++
		}
	}
	left := min(int(u*float32(n)), n-1)
	for a := range actions {
		if !legal(a) {
			continue
		}
		if left == 0 {
			return int32(a)
		}
		left--
	}
	return 0
}

// Snapshot is empty: actions depend on seed, environment and step alone.
func (c *Random) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore has nothing to restore.
func (c *Random) Restore(component.State) error { return nil }

// Stop has nothing to release.
func (c *Random) Stop() error { return nil }
