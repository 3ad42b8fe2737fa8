package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// fault gives up the split's unfinished block after an error of its environments. The guest is renewed, its
// environments start new episodes, and what was lost is counted; or, if others are to come or were there before a
// change that is on probation, those start; or, if the component itself is on probation, it is replaced. It ends the
// run once the budget is spent, or if the error is not the environment's.
func (s *split) fault(err error) {
	c := s.c
	if isFault(err) {
		s.version.faults.Inc()
	}
	if s.sides == nil && c.falls(s.batch, err) {
		c.fall(err)
	}
	m := s.next
	crosses := m != nil && !m.gone && s.sides == nil && (m.back || m.share == s.n)
	switch {
	case crosses && (isFault(err) || m.back):
		m.arrive()
	case !isFault(err):
		c.h.Fail(err)
		return
	case !crosses && c.h.Yield(err):
		c.lostSteps.Add(uint64(s.lost()))
		s.abort()
		return
	case s.sides == nil && !crosses && s.futile(err):
		c.h.Fail(err)
		return
	case s.sides != nil || !c.spend():
		c.h.Fail(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, c.restarted))
		return
	}
	c.lostSteps.Add(uint64(s.lost()))
	c.h.Log.Warn("environments restarted", "error", err, "restart", c.restarted, "max_restarts", c.config.MaxRestarts,
		"lost_env_steps", s.lost())
	if crosses {
		m.begun, m.fresh = true, true
		m.x.newSeeds()
	}
	if !crosses || !m.back { // those that are left may have to come back, though nobody needs them now
		if err := s.renew(); err != nil && !crosses {
			c.h.Fail(err)
			return
		}
	}
	s.forget()
	s.abort()
	if crosses {
		s.goOver()
		s.begin()
		s.crossed(m)
	}
	c.rests()
}

// isFault reports whether an error is the environments' own.
func isFault(err error) bool {
	var f *env.Fault
	return errors.As(err, &f)
}

// futile reports whether environments that begin again would fail in the same way: their instance had no memory to give
// for one of the split's blocks, each of which asks for its own once.
func (s *split) futile(err error) bool {
	var f *env.Fault
	return errors.As(err, &f) && f.Kind == env.FaultMemory && f.Call == hostabi.ExportAlloc &&
		s.calls <= uint64(s.c.config.Horizon*s.c.blocksPerSplit())
}

// lost is how many env steps the unfinished block holds that have not been counted as lost before.
func (s *split) lost() (steps int) {
	for _, valid := range s.tr.Bytes(trajectory.Valid)[:s.t*s.n] {
		steps += int(valid)
	}
	return steps
}

// renew takes the guest back to its creation. The aborted block's credit begins the next one, with a reset.
func (s *split) renew() error {
	if err := s.env.Renew(); err != nil {
		return err
	}
	s.seed(s.c.attempts)
	s.calls = 0
	return nil
}

// forget forgets the running episodes.
func (s *split) forget() {
	s.carried = false
	s.foundAll()
	s.steps += uint64(s.t)
	clear(s.phantom)
	clear(s.limited)
	clear(s.ages)
	clear(s.accounts)
	for env := range s.n {
		s.reports.forget(env)
	}
}

// abort gives the block up. Its credit comes back.
func (s *split) abort() {
	s.reports.drop()
	s.writing = false
	if err := s.loan.Abort(); err != nil {
		s.c.h.Fail(err)
	}
}

// outputFault blames an environment for what it wrote.
func (s *split) outputFault(call string, index int, err error) error {
	b := s.batch
	if index >= 0 {
		b = s.ownerOf(index)
		index += s.first
	}
	return &env.Fault{
		Kind: env.FaultOutput, Name: s.c.h.Name, Source: b.schema.Spec.Name, Call: call, Env: index,
		Step: b.calls, Err: err,
	}
}
