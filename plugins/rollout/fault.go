package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/rollout"
)

// fault gives up the split's unfinished block after an error of its environments: the guest is renewed, its
// environments start new episodes, and what was lost is counted. It ends the run once the budget is spent, or if
// the error is not the environment's.
func (s *split) fault(err error) {
	var f *rollout.Fault
	if !errors.As(err, &f) {
		s.c.h.Fail(err)
		return
	}
	c := s.c
	if !c.spend() {
		c.h.Fail(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, c.restarted))
		return
	}
	c.lostSteps.Add(uint64(s.lost()))
	c.h.Log.Warn("environments restarted", "error", err, "restart", c.restarted, "max_restarts", c.config.MaxRestarts,
		"lost_env_steps", s.lost())
	if err := s.renew(); err != nil {
		c.h.Fail(err)
		return
	}
	s.writing = false
	if err := s.loan.Abort(); err != nil {
		c.h.Fail(err)
	}
}

// lost is how many env steps the unfinished block holds that have not been counted as lost before.
func (s *split) lost() (steps int) {
	for _, valid := range s.tr.Bytes(rollout.ColValid)[:s.t*s.n] {
		steps += int(valid)
	}
	return steps
}

// renew takes the guest back to its creation and forgets the running episodes. The aborted block's credit begins
// the next one, with a reset.
func (s *split) renew() error {
	if err := s.env.Renew(); err != nil {
		return err
	}
	s.seed(uint64(s.c.restarted))
	s.carried = false
	s.calls = 0
	s.foundAll()
	s.steps += uint64(s.t)
	clear(s.phantom)
	clear(s.limited)
	clear(s.ages)
	clear(s.accounts)
	return nil
}

// outputFault blames an environment for what it wrote.
func (s *split) outputFault(call string, env int, err error) error {
	if env >= 0 {
		env += s.first
	}
	return &rollout.Fault{
		Kind: rollout.FaultOutput, Name: s.c.h.Name, Source: s.c.plugin.Spec().Name, Call: call, Env: env,
		Step: s.calls, Err: err,
	}
}
