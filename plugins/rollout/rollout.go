package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// Rollout runs the environments of one instance of the component.
type Rollout struct {
	shared
	plugin  env.Plugin // of the environments that it began with
	splits  []*split
	owed    []*owed // of the splits; it does not change after Start
	changes changes
}

var (
	_ component.Component = (*Rollout)(nil)
	_ component.EnvRunner = (*Rollout)(nil)
	_ component.Pauser    = (*Rollout)(nil)
	_ component.Cuttable  = (*Rollout)(nil)
	_ component.Episodic  = (*Rollout)(nil)
)

// New returns an unconfigured rollout component.
func New() component.Component { return &Rollout{} }

// Manifest lists the ports.
func (c *Rollout) Manifest() component.Manifest {
	m := component.Manifest{
		Signals: []component.Port{
			{Name: "obs_ready", Payload: component.PayloadRequest, OnLoan: true, Doc: "a row of observations waits for actions"},
			{Name: "trajectories", Payload: component.PayloadTrajectory, Doc: "a full block"},
			{Name: "episodes", Payload: component.PayloadEpisode, Doc: "an episode has ended"},
		},
		Slots: []component.Port{
			{Name: "on_actions", Payload: component.PayloadActions, Doc: "the row asked about has been written"},
		},
	}
	if c.config.ResetParams {
		m.Signals = append(m.Signals, component.Port{Name: signalResets, Payload: component.PayloadResets, OnLoan: true, Doc: "episodes to come want reset parameters"})
		m.Slots = append(m.Slots, component.Port{Name: "on_params", Payload: component.PayloadParams, Doc: "they have been written"})
	}
	if c.config.ShapedRewards {
		m.Signals = append(m.Signals, component.Port{Name: signalRewards, Payload: component.PayloadRewards, OnLoan: true, Doc: "the rewards of a block can be shaped"})
		m.Slots = append(m.Slots, component.Port{Name: "on_shaped", Payload: component.PayloadShaped, Doc: "they have been"})
	}
	return m
}

// Offers names the keys that bring ports; see component.Offering.
func (c *Rollout) Offers() map[string]string {
	return map[string]string{signalResets: "reset_params", "on_params": "reset_params", signalRewards: "shaped_rewards", "on_shaped": "shaped_rewards"}
}

// Configure reads the component's table.
func (c *Rollout) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	return c.config.validate()
}

// Flow tells the pipeline how many blocks circulate.
func (c *Rollout) Flow() component.Flow {
	return component.Flow{
		Splits: c.config.Splits, Blocks: c.config.Splits * c.config.Blocks,
		BlockRows: c.config.Horizon * c.config.Envs / c.config.Splits, Envs: c.config.Envs,
		Policies: c.config.Policies, Opponents: c.config.Opponents,
	}
}

// WholeEpisodes is component.Episodic's.
func (c *Rollout) WholeEpisodes() bool { return c.config.WholeEpisodes }

// Start makes the arena and the environments and posts the first turn of every split.
func (c *Rollout) Start(h *component.Host) error {
	c.shared.start(h)
	c.changes.c = &c.shared
	h.Slot("on_actions", c.onActions)
	plugin, err := h.Env(c.config.Env)
	if err != nil {
		return err
	}
	c.plugin = plugin
	if err := c.layOut(); err != nil {
		return err
	}
	if err := errors.Join(c.bindParams(), c.bindShaping()); err != nil {
		return err
	}
	return c.makeSplits()
}

// layOut makes the schema and the arena.
func (c *Rollout) layOut() error {
	spec := c.plugin.Spec()
	flow := c.Flow()
	var declared map[string]component.PolicyTable
	if c.h.Tables != nil {
		declared = c.h.Tables().Policies
	}
	policies, err := newPolicies(&flow, &spec, declared, c.h.Run.Seed)
	if err != nil {
		return err
	}
	c.policies, c.mode = policies, spec.PickAutoreset()
	if c.config.WholeEpisodes && spec.Autoreset&hostabi.Disabled != 0 {
		c.mode = hostabi.Disabled // environments then wait for the end of the block
	}
	soa := c.config.Layout == "soa" || c.config.Layout == "auto" && c.wantsSoA(&spec)
	shape := trajectory.Shape{Steps: c.config.Horizon, Envs: c.envs(), SoA: soa, Memory: c.memory(), Shaped: env.Shapes(c.plugin),
		Granted: strings.Join(c.h.Written, " ")}
	if policies != nil {
		shape.Policies, shape.Groups, shape.Versions = flow.ShapePolicies(), policies.groups, policies.drawn != 0
	}
	schema, err := trajectory.NewSchema(spec, shape)
	if err != nil {
		return err
	}
	c.schema = schema
	c.arena, err = c.h.Arena(arena.Config{
		Name: c.h.Name + ".trajectories", Blocks: c.config.Splits * c.blocksPerSplit(), BlockBytes: schema.Bytes,
		Schema: schema,
	})
	return err
}

// wantsSoA reports whether blocks are laid out as environments with CapPreferSoA like it: running instances set the layout, even if they
// are of other environments.
func (c *Rollout) wantsSoA(spec *hostabi.EnvSpec) bool {
	if c.h.SoA != nil {
		if soa, known := c.h.SoA(); known {
			return soa && spec.Caps&hostabi.CapStrides != 0
		}
	}
	return spec.Caps&hostabi.CapPreferSoA != 0
}

// memory returns the policies' need of earlier rows.
func (c *Rollout) memory() (m trajectory.Memory) {
	if c.h.Tables == nil {
		return m
	}
	flow := c.Flow()
	for name, p := range c.h.Tables().Policies {
		if flow.Keeps(c.config.Env, name, p.Env) {
			m = m.And(p.Memory)
		}
	}
	return m
}

// makeSplits makes one guest instance for each split and gives it its blocks.
func (c *Rollout) makeSplits() error {
	for i := range c.config.Splits {
		b, err := newBatch(&c.shared, c.plugin, c.schema, i, 0)
		if err != nil {
			return err
		}
		b.maker = maker{version: c.known.of(c.plugin.Hash()), task: c.h.Task, tape: b.tape}
		s, err := newSplit(&c.shared, i, b)
		if err != nil {
			return errors.Join(err, b.close())
		}
		onReady := s.onReady
		s.ready = func() { c.h.Receiver.Post(onReady, hostabi.Message{}) }
		b.reportsTo.Store(&s.reporter)
		c.splits, c.owed = append(c.splits, s), append(c.owed, &s.owed)
		for k := range c.blocksPerSplit() {
			block := uint32(i*c.blocksPerSplit() + k)
			s.free = append(s.free, block)
			c.h.OnFree(c.arena, block, s.credit)
		}
	}
	for _, s := range c.splits {
		s.all = c.splits
	}
	c.changes.splits = c.splits
	c.h.Receiver.Control(loop.Func(c.begin), hostabi.Message{})
	return nil
}

// begin begins a block of each split: in the order of a restored state, because others may rely on the order of blocks.
func (c *Rollout) begin(*hostabi.Message) {
	for _, s := range inTurn(c.splits) {
		if !s.rows.writing {
			s.begin()
		}
	}
}

// EnvName returns the name of the [env] table.
func (c *Rollout) EnvName() string { return c.config.Env }

// PrepareEnvs makes the environments of a change, one batch for each split, and has each of them observe something in
// its own block, so that first calls are done when they go over. See component.EnvRunner.
//
// A trial goes over when episodes end, whatever boundary the change names. Errors: a *component.SpacesError,
// component.ErrChanging, or the plugin's own.
func (c *Rollout) PrepareEnvs(_ context.Context, o component.EnvChange) (component.PreparedEnvs, error) {
	if o.Plugin == nil || o.Envs < 0 || o.Envs > c.config.Envs {
		return nil, fmt.Errorf("%s: change of %d of %d environments to plugin %v", c.h.Name, o.Envs, c.config.Envs, o.Plugin)
	}
	if o.Envs == c.config.Envs {
		o.Envs = 0
	}
	return c.changes.prepare(o)
}

// Pause makes every split stop at the end of its block; a split that waits for a block has paused, unless it is behind.
func (c *Rollout) Pause(rested func()) {
	c.rest.wanted, c.rest.rested = true, rested
	c.splits[0].endPause()
}

// Resume lets the splits begin blocks again.
func (c *Rollout) Resume() {
	c.rest.wanted, c.rest.rested = false, nil
	for _, s := range c.splits {
		if !s.rows.writing {
			s.begin()
		}
	}
}

// Cut has the environments end their current step; see component.Cuttable.
func (c *Rollout) Cut() { c.cut() }

// Waiting returns nothing: the component's requests are answered before it has paused.
func (c *Rollout) Waiting() []component.Waiting { return nil }

// onActions resumes the split whose row has been written.
func (c *Rollout) onActions(m *hostabi.Message) {
	r := trajectory.ActRequestOf(m)
	if int(r.Split) >= len(c.splits) || !c.splits[r.Split].expects(r) {
		c.refuse(r.Block, fmt.Errorf("actions for %v row %d of split %d, which were not asked for", r.Block, r.T, r.Split))
		return
	}
	c.splits[r.Split].onActions(r.Policy, m.PolicyVersion)
}

// Stop closes the environments. The arena is the host's to close.
func (c *Rollout) Stop() error {
	var errs []error
	for _, s := range c.splits {
		errs = append(errs, s.stop())
	}
	c.splits = nil
	c.changes.stop()
	if c.cut != nil {
		defer c.cut()
	}
	return errors.Join(append(errs, c.closing.wait())...)
}

// bindParams gets ready to ask for reset parameters, where the table says so.
func (c *Rollout) bindParams() (err error) {
	if !c.config.ResetParams {
		return nil
	}
	if c.schema.ParamBytes() == 0 {
		return &component.ConfigError{Key: "reset_params", Reason: fmt.Sprintf("asks for reset parameters, and %s has none", c.schema.Spec.Name), Help: "leave it out"}
	}
	c.h.Slot("on_params", func(m *hostabi.Message) { c.onAnswer(m, awaitsParams, (*split).onParams) })
	c.resets, err = c.asks("reset_params", "reset parameters", signalResets)
	return err
}

// bindShaping gets ready to ask for shaped rewards, where the table says so.
func (c *Rollout) bindShaping() (err error) {
	if !c.config.ShapedRewards {
		return nil
	}
	if !c.schema.Has(trajectory.ShapedReward) {
		return &component.ConfigError{Key: "shaped_rewards", Reason: "asks for shaped rewards, and nobody may write them",
			Help: fmt.Sprintf("add write = [%q] to the wire of %s", trajectory.ShapedReward.String(), component.Qualified(c.h.Name, signalRewards))}
	}
	c.h.Slot("on_shaped", func(m *hostabi.Message) { c.onAnswer(m, awaitsRewards, (*split).onShaped) })
	c.rewards, err = c.asks("shaped_rewards", "shaped rewards", signalRewards)
	return err
}

// asks returns the signal of the requests that a key of the table asks for.
func (c *Rollout) asks(key, what, signal string) (*bus.Signal, error) {
	if c.h.Readers(signal) == 0 {
		return nil, &component.ConfigError{Key: key, Reason: fmt.Sprintf("asks for %s, and nobody answers", what),
			Help: fmt.Sprintf("wire %s to a component that does, and back", component.Qualified(c.h.Name, signal))}
	}
	return c.h.Signal(signal), nil
}

// refuse handles an answer that no split waits for. It ends the run, unless it is about none of their blocks and may answer a predecessor's
// request.
func (c *Rollout) refuse(block hostabi.Handle, err error) {
	own := slices.ContainsFunc(c.splits, func(s *split) bool { return s.loan.Handle() == block })
	if own || !c.h.Abrupt {
		c.h.Fail(err)
	}
}

// onAnswer resumes the split that waits for an answer.
func (c *Rollout) onAnswer(m *hostabi.Message, w awaits, next func(*split)) {
	r := trajectory.BlockRequestOf(m)
	if int(r.Split) >= len(c.splits) || c.splits[r.Split].awaits != w || c.splits[r.Split].loan.Handle() != r.Block {
		c.refuse(r.Block, fmt.Errorf("an answer about %v of split %d, which was not asked for", r.Block, r.Split))
		return
	}
	c.splits[r.Split].awaits = awaitsNothing
	c.splits[r.Split].owed.set(awaitsNothing, 0)
	next(c.splits[r.Split])
}
