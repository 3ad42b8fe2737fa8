package rollout

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// shared is the splits' common part of a component. It belongs to the loop, except closing.
type shared struct {
	config config
	h      *component.Host
	schema *trajectory.Schema
	arena  *arena.Arena
	mode   hostabi.Autoreset

	policies *policies // nil where one acts in all rows

	obsReady, trajectories, episodes *bus.Signal
	resets, rewards                  *bus.Signal // nil: nobody is asked for reset parameters, for shaped rewards

	envSteps, lostSteps, restarts, carriedBytes *stat.Counter
	cutSteps                                    *stat.Counter // of blocks that were given up because the run was cut
	wrappedBytes                                *stat.Counter // that wrappers have copied
	untold                                      *stat.Counter // episodes that could not be announced
	cutEpisodes                                 *stat.Counter // that were longer than a block of whole episodes
	lostEpisodes                                *stat.Counter // episodes that ended with the process they were in
	swap                                        struct{ ended, kept, dropped *stat.Counter }
	pause                                       *stat.Histogram
	known                                       knownVersions
	restarted                                   component.Restarts
	life                                        int    // tells apart the times when environments begin without a state
	attempts                                    int    // how often environments got new seeds, from lifeAttempts on for each life
	begun                                       uint64 // blocks, by all splits
	first                                       firstSteps

	wanted  context.Context // ends when the run is cut
	cut     context.CancelFunc
	closing closing
	rest    struct { // of a Pause
		wanted bool
		rested func() // nil once it was called
	}
}

// start makes the counters and begins a life.
func (c *shared) start(h *component.Host) {
	c.h, c.life = h, h.Run.Resumes*maxBegun+h.Begun
	c.wanted, c.cut = context.WithCancel(context.Background())
	c.attempts = c.life * lifeAttempts
	c.obsReady, c.trajectories, c.episodes = h.Signal("obs_ready"), h.Signal("trajectories"), h.Signal("episodes")
	c.envSteps, c.lostSteps = h.Stats.Counter("rollout/env_steps"), h.Stats.Counter("rollout/lost_env_steps")
	c.cutSteps = h.Stats.Counter(component.CounterCutEnvs)
	c.restarts, c.carriedBytes = h.Stats.Counter("rollout/restarts"), h.Stats.Counter("rollout/carried_bytes")
	c.wrappedBytes = h.Stats.Counter("rollout/wrapped_bytes")
	c.lostEpisodes = h.Stats.Counter("rollout/lost_episodes")
	c.untold, c.cutEpisodes = h.Stats.Counter("rollout/episodes_untold"), h.Stats.Counter("rollout/cut_episodes")
	c.swap.ended, c.swap.kept = h.Stats.Counter("swap/ended_episodes"), h.Stats.Counter("swap/kept_episodes")
	c.swap.dropped, c.pause = h.Stats.Counter("swap/dropped_env_steps"), h.Stats.Histogram("swap/pause_ns")
	c.known = knownVersions{h.Stats, map[uint64]*version{}}
}

// envs is how many environments a split has.
func (c *shared) envs() int { return c.config.Envs / c.config.Splits }

func (c *shared) blocksPerSplit() int {
	if c.h.Run.Synchronous {
		return 1
	}
	return c.config.Blocks
}

// spend takes one restart from the budget; it reports false if there is none left.
func (c *shared) spend() bool {
	if !c.mayRestart() {
		return false
	}
	c.restarted.Count()
	c.attempts++
	c.restarts.Add(1)
	return true
}

// mayRestart reports whether there is a restart left.
func (c *shared) mayRestart() bool { return c.counted() < c.config.MaxRestarts }

// counted returns how many restarts count against max_restarts now.
func (c *shared) counted() int { return c.restarted.Within(c.config.RestartWindow) }

// Room in each life: for instances that begin during the run, until it is resumed, and for attempts.
const (
	maxBegun     = 1 << 14
	lifeAttempts = 1 << 20
)

// seedOf returns the seed of an attempt, in place of the run's.
func (c *shared) seedOf(attempt int) uint64 {
	if attempt == 0 {
		return c.h.Run.Seed
	}
	return env.Seed(c.h.Run.Seed, -attempt)
}

// seeds are the seeds of a split's environments.
type seeds struct {
	c       *shared
	first   int // global index of environment 0
	attempt int // that they are for
	values  []uint64
}

// draw derives the seeds of an attempt, which counts restarts and changes, so that an environment that begins again does
// not replay earlier steps, or the steps that led to a fault.
func (s *seeds) draw(attempt int) {
	s.attempt = attempt
	run := s.c.seedOf(attempt)
	for i := range s.values {
		s.values[i] = env.Seed(run, s.first+i)
	}
}

// drawBlock derives the seeds of a block of whole episodes, which begins with a reset of all environments.
func (s *seeds) drawBlock(sequence uint64) {
	s.draw(s.attempt)
	if sequence > 0 {
		env.Seeds(s.values, env.Seed(s.c.seedOf(s.attempt), math.MinInt64/2+int(sequence)), s.first)
	}
}

// closer is something that takes long to close.
type closer interface{ close() error }

// closing runs slow closes in the background. Giving memory back takes long, so the loop does not wait for it.
type closing struct {
	group sync.WaitGroup
	mu    sync.Mutex
	errs  []error // guarded by mu
}

func (k *closing) release(c closer) {
	k.group.Go(func() {
		if err := c.close(); err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.errs = append(k.errs, err)
		}
	})
}

// wait waits for all closes and returns their errors.
func (k *closing) wait() error {
	k.group.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	err := errors.Join(k.errs...)
	k.errs = nil
	return err
}
