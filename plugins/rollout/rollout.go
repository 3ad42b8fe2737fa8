package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// Rollout runs the environments of one instance of the component.
type Rollout struct {
	config config
	h      *component.Host
	plugin env.Plugin // of the environments that it began with
	schema *trajectory.Schema
	arena  *arena.Arena
	mode   hostabi.Autoreset
	splits []*split

	obsReady, trajectories, episodes *bus.Signal

	envSteps, lostSteps, restarts, carriedBytes *stat.Counter
	untold                                      *stat.Counter // episodes that could not be announced
	lostEpisodes                                *stat.Counter // episodes that ended with the process they were in
	versions                                    map[uint64]*version
	restarted                                   int
	life                                        int // tells apart the times when environments begin without a state
	attempts                                    int // how often environments got new seeds, from lifeAttempts on for each life

	changes changes
	rest    rest
}

var (
	_ component.Component = (*Rollout)(nil)
	_ component.EnvRunner = (*Rollout)(nil)
	_ component.Pauser    = (*Rollout)(nil)
)

// New returns an unconfigured rollout component.
func New() component.Component { return &Rollout{} }

// Manifest lists the ports.
func (c *Rollout) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{
			{Name: "obs_ready", Payload: component.PayloadRequest, OnLoan: true, Doc: "a row of observations waits for actions"},
			{Name: "trajectories", Payload: component.PayloadTrajectory, Doc: "a full block"},
			{Name: "episodes", Payload: component.PayloadEpisode, Doc: "an episode has ended"},
		},
		Slots: []component.Port{
			{Name: "on_actions", Payload: component.PayloadActions, Doc: "the row asked about has been written"},
		},
	}
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
		EpisodeLimit: c.config.EpisodeLimit,
	}
}

// Start makes the arena and the environments and posts the first turn of every split.
func (c *Rollout) Start(h *component.Host) error {
	c.h, c.life = h, h.Run.Resumes*maxBegun+h.Begun
	c.attempts = c.life * lifeAttempts
	c.obsReady, c.trajectories, c.episodes = h.Signal("obs_ready"), h.Signal("trajectories"), h.Signal("episodes")
	h.Slot("on_actions", c.onActions)
	c.envSteps, c.lostSteps = h.Stats.Counter("rollout/env_steps"), h.Stats.Counter("rollout/lost_env_steps")
	c.restarts, c.carriedBytes = h.Stats.Counter("rollout/restarts"), h.Stats.Counter("rollout/carried_bytes")
	c.lostEpisodes = h.Stats.Counter("rollout/lost_episodes")
	c.untold = h.Stats.Counter("rollout/episodes_untold")
	c.changes.start(h.Stats)
	plugin, err := h.Env(c.config.Env)
	if err != nil {
		return err
	}
	c.plugin = plugin
	if err := c.layOut(); err != nil {
		return err
	}
	return c.makeSplits()
}

// layOut makes the schema and the arena.
func (c *Rollout) layOut() error {
	spec := c.plugin.Spec()
	c.mode = spec.PickAutoreset()
	soa := c.config.Layout == "soa" || c.config.Layout == "auto" && spec.Caps&hostabi.CapPreferSoA != 0
	schema, err := trajectory.NewSchema(spec, trajectory.Shape{
		Steps: c.config.Horizon, Envs: c.config.Envs / c.config.Splits, SoA: soa,
	})
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

func (c *Rollout) blocksPerSplit() int {
	if c.h.Run.Synchronous {
		return 1
	}
	return c.config.Blocks
}

// makeSplits makes one guest instance for each split and gives it its blocks.
func (c *Rollout) makeSplits() error {
	n := c.config.Envs / c.config.Splits
	for i := range c.config.Splits {
		b, err := c.newBatch(c.plugin, c.schema, i)
		if err != nil {
			return err
		}
		b.maker = maker{version: c.versionOf(c.plugin.Hash()), task: c.h.Task}
		s := newSplit(c, i, c.h.FirstEnv+i*n, n, b)
		b.reportsTo.Store(s)
		c.splits = append(c.splits, s)
		for k := range c.blocksPerSplit() {
			block := uint32(i*c.blocksPerSplit() + k)
			c.h.OnFree(c.arena, block, s.credit)
			s.credit(block)
		}
	}
	return nil
}

// credit announces, from whatever goroutine freed it, that a block of the split is free.
func (s *split) credit(block uint32) {
	s.c.h.Receiver.Control(loop.Func(s.onCredit), hostabi.Message{T: block})
}

// onActions goes on with the split whose row has been written.
func (c *Rollout) onActions(m *hostabi.Message) {
	r := trajectory.ActRequestOf(m)
	if int(r.Split) >= len(c.splits) || !c.splits[r.Split].expects(r) {
		c.h.Fail(fmt.Errorf("actions for %v row %d of split %d, which nobody asked for", r.Block, r.T, r.Split))
		return
	}
	c.splits[r.Split].onActions(m.PolicyVersion)
}

// Stop closes the environments. The arena is the host's to close.
func (c *Rollout) Stop() error {
	var errs []error
	for _, s := range c.splits {
		errs = append(errs, s.stop())
	}
	c.splits, c.changes.current = nil, nil // nothing is left to settle or to take back
	return errors.Join(append(errs, c.changes.stop())...)
}
