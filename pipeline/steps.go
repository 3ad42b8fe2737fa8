package pipeline

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// stepCounter counts the env steps of a run; see Pipeline.Steps.
type stepCounter struct {
	*running
	round   *round
	last    atomic.Pointer[control.StepCounts] // at the end of the run
	untold  atomic.Int64                       // env steps that processes which ended have held or counted and not reported; below 0 those made
	lost    atomic.Uint64                      // those of trajectories that wires have dropped, or that nobody took
	ignored atomic.Uint64                      // those of policies that nobody learns
	looking sync.Mutex                         // one look for what is not accounted for at a time
	uncounted
}

func (c *stepCounter) read() control.StepCounts {
	if last := c.last.Load(); last != nil {
		return *last
	}
	if s, yes := c.readOthers(); yes {
		return s
	}
	if s := c.readOnce(); missing(&s) == 0 {
		return s
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	return c.look()
}

// look reads until all steps are accounted for. What never is, all the time, is what processes that ended have not told: while
// steps move, an estimate from the safe side, which a later look corrects, and exact where nothing moves. A moment at which all are
// says nothing of that: what moves may make up for what is lost. The caller must hold looking.
func (c *stepCounter) look() control.StepCounts {
	s := c.readOnce()
	least, most := missing(&s), missing(&s)
	limit := stepTime
	if c.remote() || c.processDeaths() > 0 {
		limit = stepTimeRemote
	}
	for end := time.Now().Add(limit); missing(&s) != 0 && time.Now().Before(end); {
		<-time.After(stepPause)
		s = c.readOnce()
		least, most = min(least, missing(&s)), max(most, missing(&s))
	}
	if missing(&s) == 0 || c.processDeaths() == 0 || least < 0 && most > 0 {
		return s
	}
	if least < 0 {
		least = most // the nearer to 0
	}
	c.untold.Add(least)
	return c.readOnce()
}

// Counters of env steps, each kept where it happens.
const (
	stepsMade    = "rollout/env_steps"      // handed over in trajectories
	stepsFaulty  = "rollout/lost_env_steps" // of trajectories or environments lost to a fault
	stepsSwapped = "swap/dropped_env_steps" // of trajectories that a change cut short
	stepsTooOld  = "lag/dropped_rows"       // older than the bound on policy lag
	stepsTrained = component.CounterTrained
)

// Steps are read one after the other while the run goes on, so a step that moves meanwhile may be missed, or counted
// twice: then they are read again, with so much time between, for so long; longer where processes count, which report
// ten times a second. A counter notifies nobody, so that counting costs a step no lock.
const (
	stepPause      = time.Millisecond
	stepTime       = 20 * time.Millisecond
	stepTimeRemote = 300 * time.Millisecond
)

// missing returns how many steps are not accounted for; below 0, how many are twice.
func missing(s *control.StepCounts) int64 { return int64(s.Made - s.Trained - s.Dropped - s.UnderWay) }

// remote reports whether processes count steps.
func (c *stepCounter) remote() bool {
	return slices.ContainsFunc(c.now().members, func(m member) bool { return m.process().State != "" })
}

// processDeaths returns how many processes of components have ended.
func (r *running) processDeaths() (n uint64) {
	r.stats.Each(func(name string, deaths *stat.Counter) {
		if strings.HasPrefix(name, "process/deaths/") {
			n += deaths.Value()
		}
	}, nil, nil)
	return n
}

func (c *stepCounter) readOnce() control.StepCounts {
	count := func(name string) uint64 { return c.stats.Counter(name).Value() }
	s := control.StepCounts{Trained: count(stepsTrained) + c.uncounted.steps(), Reasons: map[string]uint64{}}
	drop := func(reason string, n uint64) {
		if n > 0 {
			s.Reasons[reason] = n
		}
		s.Dropped += n
	}
	faulty, swapped := count(stepsFaulty), count(stepsSwapped)
	drop("fault", faulty)
	drop("swap", swapped)
	drop("policy_lag", count(stepsTooOld))
	drop("cut", count(component.CounterCut))
	drop("wire", c.lost.Load())
	untold := c.untold.Load()
	drop("process", uint64(max(untold, 0)))
	drop("not_learned", c.ignored.Load())
	s.UnderWay = c.underWay()
	s.Made = count(stepsMade) + faulty + swapped + uint64(max(-untold, 0))
	return s
}

// underWay counts the valid rows of the claimed trajectories: by a wire, a batcher, a dataset. Those that only a round
// claims have been learned from.
func (c *stepCounter) underWay() (n uint64) {
	c.arenas.Each(func(a *arena.Arena) {
		if _, ok := a.Schema().(*trajectory.Schema); !ok {
			return
		}
		a.Committed(func(h hostabi.Handle) {
			tr, lease, err := trajectory.Lease(c.arenas, h)
			if err != nil {
				return // it has become free meanwhile
			}
			if tr.Schema.Shape.Policies != "" || !c.round.keeps(h) {
				n += uint64(tr.Unsettled())
			}
			_ = lease.Release() // this lease has no other user
		})
	})
	return n
}

// lose counts the env steps of a trajectory that no wire took or that one has dropped by its overflow policy.
func (c *stepCounter) lose(h hostabi.Handle) {
	tr, lease, err := trajectory.Lease(c.arenas, h)
	if err != nil {
		return // the run is over, or the block holds no trajectory
	}
	c.lost.Add(uint64(tr.Unsettled()))
	_ = lease.Release() // this lease has no other user
}

// hand counts the env steps of a trajectory that an instance is about to hand over.
func (c *stepCounter) hand(x *instance, h hostabi.Handle) {
	tr, lease, err := trajectory.Lease(c.arenas, h)
	if err != nil {
		return // the run is over, or the block holds no trajectory
	}
	tr.Meta().Settled = 0 // nobody else has it yet; what made it may have left what stood there
	rows := tr.Unsettled()
	x.handed.Add(uint64(rows))
	if tr.Schema.Shape.Policies != "" {
		c.ignore(tr, rows)
	}
	_ = lease.Release() // this lease has no other user
}

// ignore settles the rows of policies that nobody learns in a trajectory with so many that are not settled.
func (c *stepCounter) ignore(tr trajectory.Trajectory, rows int) {
	learned := c.policies().learned
	if learned[""] { // a learner that names no policy
		return
	}
	for place, name := range tr.Schema.Policies() {
		if !learned[name] {
			tr.Settle(place)
		}
	}
	c.ignored.Add(uint64(rows - tr.Unsettled()))
}

// Ignored returns the env steps of policies that nobody learns. Any goroutine.
func (p *Pipeline) Ignored() uint64 { return p.steps.ignored.Load() }

// readings is how often steps are read until none has been made meanwhile.
const readings = 16

// uncounted are the env steps of learners that do not count what they learn, such as a component of a plugin that is
// not made with this program's learner: blocks that are no longer held and were not dropped were trained on.
type uncounted struct {
	mu     sync.Mutex
	of     *instance // the learner
	from   uint64    // what the counter said when it was first seen
	own    int64     // its steps
	before int64     // those of learners before it
}

func (u *uncounted) steps() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return uint64(max(u.before+u.own, 0))
}

// note takes what is missing from a reading. It reports whether the learner is one that has counted nothing so far.
func (u *uncounted) note(of *instance, counter uint64, missing int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if of != u.of {
		u.before += u.own
		u.of, u.from, u.own = of, counter, 0
	}
	if counter != u.from {
		u.own = 0
		return false
	}
	u.own += missing
	return true
}

// readOthers is Steps while the learner does not count.
func (c *stepCounter) readOthers() (control.StepCounts, bool) {
	of := c.learner()
	if of == nil {
		return control.StepCounts{}, false
	}
	var s control.StepCounts
	for range readings {
		made := c.stats.Counter(stepsMade).Value()
		if s = c.readOnce(); c.stats.Counter(stepsMade).Value() == made {
			break
		}
	}
	m := missing(&s)
	if !c.uncounted.note(of, c.stats.Counter(stepsTrained).Value(), m) {
		return s, false
	}
	s.Trained += uint64(m)
	return s, true
}

// learner returns the instance of a plugin that datasets go to, nil where this program's own learner runs.
func (c *stepCounter) learner() *instance {
	for _, m := range c.now().members {
		if m.of.Plugin != "" && m.learns() {
			return m.instance
		}
	}
	return nil
}
