package pipeline

import (
	"context"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// learnedStep is how often it is looked whether trajectories have been learned from. Who lets go of a block tells only
// who writes it.
const learnedStep = 200 * time.Microsecond

// learned waits, in synchronous mode, until what a rollout has made has been learned from and the weights that came of
// it are on their way. A rollout begins its next trajectories when its blocks come back, so with the newest weights; a
// successor with blocks of its own, as in another process, would not wait for that.
func (s *swapStep) learned(ctx context.Context) error {
	if !s.old.host.Run.Synchronous || s.old.of.Flow.Envs == 0 || s.old.live.failed() != nil {
		return nil
	}
	left := s.trajectories()
	look := time.NewTicker(learnedStep)
	defer look.Stop()
	for outstanding(left) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.old.loop.ended:
			return ErrEnded
		}
	}
	if len(left) > 0 {
		s.t.p.catchUp()
	}
	return nil
}

// trajectories returns the arenas of the old instance's trajectories that the new one has not taken.
func (s *swapStep) trajectories() (list []*arena.Arena) {
	taken := s.new.host.OwnArenas()
	for name, a := range s.old.host.OwnArenas() {
		if _, ok := a.Schema().(*trajectory.Schema); ok && taken[name] != a {
			list = append(list, a)
		}
	}
	return list
}

// outstanding reports whether somebody has a claim on a block.
func outstanding(list []*arena.Arena) bool {
	for _, a := range list {
		if s := a.Stats(); s.Live+s.Zombie > 0 {
			return true
		}
	}
	return false
}

// catchUp delivers what instances in processes have emitted: a learner there lets go of blocks behind the weights, but
// in shared memory, which is faster.
func (p *Pipeline) catchUp() {
	for _, x := range p.instancesAlive() {
		if c, ok := x.component.(component.Remote); ok {
			c.CatchUp()
		}
	}
}
