package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// fault gives up the split's unfinished block after an error of its environments. The guest is renewed, its
// environments start new episodes, and what was lost is counted; or, if others are to come or were there before a
// change that is on probation, those start; or, if the component itself is on probation, it is replaced. It ends the
// run once the budget is spent, or if the error is not the environment's.
func (s *split) fault(err error) {
	c := s.c
	if isFault(err) {
		s.batch.version.faults.Inc()
	}
	if s.versions == nil && s.batch.onFault(err) {
		s.batch.probation.rollBack(err)
	}
	m := s.next
	crosses := m != nil && m.progress == waiting && s.versions == nil && (m.back || m.share == s.c.envs())
	switch {
	case crosses && (isFault(err) || m.back):
		m.startClock()
	case !isFault(err):
		c.h.Fail(err)
		return
	case !crosses && c.h.Yield(err):
		c.lostSteps.Add(uint64(s.validBefore(s.t)))
		s.abort()
		return
	case s.versions == nil && !crosses && s.futile(err):
		c.h.Fail(err)
		return
	case s.versions != nil || !c.spend():
		c.h.Fail(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, c.restarted))
		return
	}
	lost := s.validBefore(s.t)
	c.lostSteps.Add(uint64(lost))
	c.h.Log.Warn("environments restarted", "error", err, "restart", c.restarted, "max_restarts", c.config.MaxRestarts,
		"lost_env_steps", lost)
	if crosses {
		m.episodes = allEnded
		m.newSeeds()
	}
	if !crosses || !m.back { // those that are left may have to come back, though they are not needed now
		if err := s.renew(); err != nil && !crosses {
			c.h.Fail(err)
			return
		}
	}
	s.carried = false
	s.forget()
	s.steps += uint64(s.t)
	s.abort()
	if crosses {
		m.goOver()
		s.begin()
		m.finish()
	}
	s.endPause()
}

// loseSome takes an error that says that some of the environments are lost: it costs them the step that they were in,
// and the others nothing. It reports false for every other error, and when the budget is spent. Lost environments
// wait for resetLost.
func (s *split) loseSome(err error) bool {
	c, lost := s.c, env.Lost(err)
	if lost == nil || s.batch.onFault(err) || s.next == nil && c.h.Yield(err) || !c.spend() {
		return false
	}
	s.batch.version.faults.Inc()
	n := 0
	for _, span := range lost {
		for env := max(span.First, 0); env < min(span.First+span.Count, c.envs()); env++ {
			s.loseEnv(env)
			n++
		}
	}
	c.h.Log.Warn("environments lost", "error", err, "envs", n, "restart", c.restarted, "max_restarts", c.config.MaxRestarts)
	return true
}

// futile reports whether environments that begin again would fail in the same way: their instance had no memory to give
// for one of the split's blocks, each of which asks for its own once.
func (s *split) futile(err error) bool {
	var f *env.Fault
	return errors.As(err, &f) && f.Kind == env.FaultMemory && f.Call == hostabi.ExportAlloc &&
		s.batch.calls <= uint64(s.c.config.Horizon*s.c.blocksPerSplit())
}

// renew takes the guest back to its creation. The aborted block's credit begins the next one, with a reset.
func (s *split) renew() error {
	if err := s.batch.env.Renew(); err != nil {
		return err
	}
	s.seeds.draw(s.c.attempts)
	s.batch.calls = 0
	return nil
}
