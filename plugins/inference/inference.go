package inference

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// config is the component's table.
type config struct {
	Policy   string `toml:"policy"`   // name of a [policy] table
	MaxRows  int    `toml:"max_rows"` // of one run of the policy
	Versions int    `toml:"versions"` // most versions held, for a policy with a pool
}

func defaults() config { return config{MaxRows: 1024, Versions: 8} }

// Inference serves act requests with one policy.
type Inference struct {
	config    config
	h         *component.Host
	format    policy.WeightsFormat
	network   *policy.Network
	bound     map[*trajectory.Schema]*bound
	ages      []byte // of requests
	backend   policy.Backend
	drawn     bool       // an episode is played to its end with the version that it has begun with
	versions  []*version // held, the newest last; without drawn only that one
	now       *version   // the newest one; nil before the first
	actions   *bus.Signal
	flushSlot loop.Func

	flushing  bool   // a flush is posted
	yielded   bool   // it has let pass what was queued before it
	rested    func() // called after that flush; nil if not pausing
	pending   []hostabi.Message
	views     policy.Views // of requests
	picked    policy.Picked
	own, some []uint32 // rows of a request that are picked
	batchRows *stat.Histogram
	gone      *stat.Counter // episodes whose version is held no more
}

var (
	_ component.Component = (*Inference)(nil)
	_ component.Pauser    = (*Inference)(nil)
)

// New returns an unconfigured inference component.
func New() component.Component { return &Inference{} }

// Manifest lists the ports.
func (c *Inference) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{
			{Name: "actions", Payload: component.PayloadActions, OnLoan: true, Doc: "the row asked about has been written"},
		},
		Slots: []component.Port{
			{Name: "act", Payload: component.PayloadRequest, Doc: "a row of observations waits for actions"},
			{Name: "on_weights", Payload: component.PayloadWeights, Doc: "a new policy version"},
		},
	}
}

// Configure reads the component's table.
func (c *Inference) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	if c.config.Policy == "" {
		return &component.ConfigError{Key: "policy", Reason: "is missing", Help: "name one of the [policy] tables"}
	}
	if c.config.MaxRows < 1 || c.config.MaxRows > 1<<20 {
		return &component.ConfigError{Key: "max_rows",
			Reason: fmt.Sprintf("is %d, want 1 to %d", c.config.MaxRows, 1<<20)}
	}
	if c.config.Versions < 1 || c.config.Versions > maxVersions {
		return &component.ConfigError{Key: "versions",
			Reason: fmt.Sprintf("is %d, want 1 to %d", c.config.Versions, maxVersions)}
	}
	return nil
}

// Flow tells how many versions are held; see component.Flowing.
func (c *Inference) Flow() component.Flow { return component.Flow{Versions: c.config.Versions} }

// Start prepares the policy. Requests wait until the first weights arrive.
func (c *Inference) Start(h *component.Host) error {
	c.h = h
	c.actions = h.Signal("actions")
	h.Slot("act", c.act)
	h.Slot("on_weights", c.onWeights)
	c.flushSlot = c.flush
	c.batchRows, c.gone = h.Stats.Histogram("inference/batch_rows"), h.Stats.Counter("inference/versions_gone")
	definition, err := policy.Of(h, c.config.Policy)
	if err != nil {
		return err
	}
	if h.Tables != nil {
		table := h.Tables().Policies[c.config.Policy]
		c.drawn = table.Drawn()
	}
	c.backend = definition.Backend
	c.format, c.network, c.bound = definition.Network.Weights(), &definition.Network, map[*trajectory.Schema]*bound{}
	return c.addVersion()
}

// onWeights loads a policy version. Its block is claimed while the slot runs.
func (c *Inference) onWeights(m *hostabi.Message) {
	if err := c.load(m.Handle); err != nil {
		c.h.Fail(fmt.Errorf("weights %v: %w", m.Handle, err))
		return
	}
	c.schedule()
}

func (c *Inference) load(h hostabi.Handle) error {
	lease, err := c.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	defer lease.Release()
	w, err := c.format.Read(lease.Bytes())
	if err != nil {
		return err
	}
	return c.hold(w, lease.Bytes())
}

// act queues a request.
func (c *Inference) act(m *hostabi.Message) {
	c.pending = append(c.pending, *m)
	c.schedule()
}

// schedule posts a flush after the messages that the loop has already received.
func (c *Inference) schedule() {
	if c.flushing || c.now == nil || len(c.pending) == 0 {
		return
	}
	c.flushing = true
	c.h.Receiver.Post(c.flushSlot, hostabi.Message{})
}

// flush serves everything that is pending, in batches of max_rows, and replies.
//
// In synchronous mode what is queued goes first once more. A dataset may be among it that is learned from when some rollouts have begun
// their next blocks already, because their previous ones were let go of early: their first rows then see the newest policy, as those of
// all others and of a run that goes on from there.
func (c *Inference) flush(*hostabi.Message) {
	if c.h.Run.Synchronous && !c.yielded {
		c.yielded = true
		c.h.Receiver.Post(c.flushSlot, hostabi.Message{})
		return
	}
	c.yielded, c.flushing = false, false
	if err := c.serve(); err != nil {
		c.h.Fail(err)
		return
	}
	for i := range c.pending {
		if err := c.actions.Emit(c.pending[i]); err != nil {
			c.h.Fail(err)
			return
		}
	}
	c.pending = c.pending[:0]
	if rested := c.rested; rested != nil {
		c.rested = nil
		rested()
	}
}

// serve acts on all rows that are pending and makes their requests the replies: the same messages with the policy and the
// version that acted.
func (c *Inference) serve() error {
	for i := range c.pending {
		if err := c.gather(&c.pending[i]); err != nil {
			return err
		}
	}
	for _, v := range c.versions {
		if err := c.run(v); err != nil {
			return err
		}
	}
	c.picked.Return()
	c.views, c.ages = c.views[:0], c.ages[:0]
	return nil
}

// Pause waits for the batch that is being gathered, if there is one.
func (c *Inference) Pause(rested func()) {
	if !c.flushing {
		rested()
		return
	}
	c.rested = rested
}

// Resume has nothing to do.
func (c *Inference) Resume() { c.rested = nil }

// Waiting hands over the requests that arrived before the first weights.
func (c *Inference) Waiting() []component.Waiting {
	var list []component.Waiting
	for i := range c.pending {
		list = append(list, component.Waiting{Slot: "act", Message: c.pending[i]})
	}
	c.pending = nil
	return list
}

// Stop releases the policy.
func (c *Inference) Stop() error {
	var errs []error
	for _, v := range c.versions {
		errs = append(errs, v.actor.Close())
	}
	c.versions, c.now = nil, nil
	return errors.Join(errs...)
}
