package rollout

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// outcome is the consequence of an error of a split's environments.
type outcome uint8

const (
	runFails       outcome = iota // the error ends the run
	noRestarts                    // the same, because all restarts are spent
	ownerReplaces                 // the owner of the component, which was on probation, replaces it
	nextStepIn                    // the environments of the change that waits for its boundary
	previousStepIn                // the environments that ran before a change
	beginAnew                     // the environments begin again, which costs a restart
)

// situation is all that an outcome depends on.
type situation struct {
	fault     bool // the error is the environments' own
	way       way
	beside    bool // several versions step side by side
	probation bool // of the component, whose owner has taken the fault
	futile    bool // environments that begin again would fail again
	restarts  bool // there are some left
}

// way is where a split's environments go at the next boundary, if all of them do.
type way uint8

const (
	stays way = iota
	goesOver
	goesBack
)

// crosses reports whether other environments can step in.
func (x *situation) crosses() bool { return x.way != stays && !x.beside }

// outcome picks the row of the table "When environments fail" in docs/how-to/change-a-run.md.
func (x *situation) outcome() outcome {
	switch {
	case x.crosses() && x.way == goesBack:
		return previousStepIn
	case !x.fault:
		return runFails
	case x.crosses():
		return nextStepIn
	case x.probation:
		return ownerReplaces
	case x.futile && !x.beside:
		return runFails
	case x.beside || !x.restarts: // environments next to others have begun again as often as they may
		return noRestarts
	}
	return beginAnew
}

// fault handles an error of the environments. Unless the run ends, the unfinished block is given up, and its rows are counted as lost.
func (s *split) fault(err error) {
	c := s.rows.c
	if c.wanted.Err() != nil {
		s.leave()
		return
	}
	x := s.situation(err)
	switch x.outcome() {
	case runFails:
		if x.fault && !c.first.made {
			err = fmt.Errorf("%w; %w", err, env.ErrFirstStep)
		}
		c.h.Fail(err)
	case noRestarts:
		c.h.Fail(fmt.Errorf("%w; restarted %d times already (max_restarts)", err, c.counted()))
	case ownerReplaces:
		c.lostSteps.Add(uint64(s.rows.validBefore(s.t)))
		s.abort()
	case nextStepIn, previousStepIn:
		s.next.crossFault(err)
	case beginAnew:
		s.restart(err)
	}
}

// situation counts a fault and has it take a change on probation back, or asks the owner of a component on probation.
func (s *split) situation(err error) situation {
	c := s.rows.c
	x := situation{fault: isFault(err), beside: s.versions != nil, restarts: c.mayRestart()}
	if x.fault {
		s.batch.version.faults.Inc()
	}
	if !x.beside && s.batch.onFault(err) {
		s.batch.probation.rollBack(err)
	}
	switch m := s.next; {
	case m == nil || m.progress != waiting:
	case m.back:
		x.way = goesBack
	case m.share == c.envs():
		x.way = goesOver
	}
	x.futile = s.futile(err) || x.fault && c.first.hopeless(s.index, c.config.Splits)
	x.probation = x.fault && !x.crosses() && c.h.Yield(err)
	return x
}

// restart has the environments begin again.
func (s *split) restart(err error) {
	s.rows.c.spend()
	s.tellLost(err)
	if err := s.renew(); err != nil {
		s.rows.c.h.Fail(err)
		return
	}
	s.dropBlock()
	s.endPause()
}

// tellLost counts and logs the losses of a fault.
func (s *split) tellLost(err error) {
	c, lost := s.rows.c, s.rows.validBefore(s.t)
	c.lostSteps.Add(uint64(lost))
	restart := c.counted()
	c.first.tell(func() {
		c.h.Log.Warn("environments restarted", "error", err, "restart", restart, "max_restarts", c.config.MaxRestarts, "lost_env_steps", lost)
	})
}

// firstSteps tells environments that cannot make a single step from environments that fail now and then.
type firstSteps struct {
	made   bool         // a split has made a step
	failed map[int]bool // splits that had a fault before that
	faults int          // that they had
	untold []func()     // log them
}

// hopeless takes in a fault of a split. It reports whether no step has been made although each split has tried, and one of them has
// tried twice if there is only one: what begins again would fail again.
func (f *firstSteps) hopeless(split, splits int) bool {
	if f.made {
		return false
	}
	if f.failed == nil {
		f.failed = map[int]bool{}
	}
	f.failed[split] = true
	f.faults++
	return len(f.failed) == splits && f.faults > 1
}

// tell logs a fault. It waits for a step that is made: if there is none, the error that ends the run says the same.
func (f *firstSteps) tell(log func()) {
	if f.made {
		log()
		return
	}
	f.untold = append(f.untold, log)
}

// stepped takes in a step that was made.
func (f *firstSteps) stepped() {
	if f.made {
		return
	}
	f.made = true
	for _, log := range f.untold {
		log()
	}
	f.untold = nil
}

// dropBlock gives the unfinished block up, and its episodes.
func (s *split) dropBlock() {
	s.carried = false
	s.rows.forget()
	s.steps += uint64(s.t)
	s.abort()
}

// leave gives up the block of a run that is cut, whose environments have been made to end their step.
func (s *split) leave() {
	s.rows.c.cutSteps.Add(uint64(s.rows.validBefore(s.t)))
	s.abort()
	s.endPause()
}

// futile reports whether environments that begin again would fail in the same way: their instance lacked memory for one
// of the split's blocks, each of which asks for its own once.
func (s *split) futile(err error) bool {
	var f *env.Fault
	return errors.As(err, &f) && f.Kind == env.FaultMemory && f.Call == hostabi.ExportAlloc &&
		s.batch.calls <= uint64(s.rows.c.config.Horizon*s.rows.c.blocksPerSplit())
}

// renew takes the guest back to its creation. The aborted block's credit begins the next one, with a reset.
func (s *split) renew() error {
	if err := s.batch.renew(); err != nil {
		return err
	}
	s.seeds.draw(s.rows.c.attempts)
	s.batch.calls = 0
	return nil
}
