package ppo

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/reduce"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
)

// CodeLearners is the code of a number of learners that a backend cannot have; rlhost explain has its page.
const CodeLearners = "E150"

// Seat is the place of one learner among several that learn together; *reduce.Seat is one.
type Seat interface {
	// Place returns the number of the seat, from 0, and how many there are.
	Place() (number, of int)
	// Sum returns the sum of the vectors of all seats, and the numbers of each: the same for all, or an error for all.
	Sum(vector []float32, numbers []float64) (sum []float32, all [][]float64, err error)
	// Leave ends the sum for all.
	Leave(why error)
}

// Seated is the engine of one of several learners. It computes the gradient of its seat's share of each step's rows, and makes the step of
// the sum of all seats, so that all have the same parameters after it, bit for bit.
type Seated interface {
	Engine
	// Sit gives the engine a seat, between two calls. It forgets that a learner was missed.
	Sit(s Seat)
	// Over reports whether all further work of the update is skipped.
	Over() bool
	// Missed reports whether the last call did nothing because a learner on another host was lost meanwhile.
	Missed() bool
}

// Dividing is a Program that several learners can improve together.
type Dividing interface {
	Program
	// NewSeated prepares learning as NewLearner does, for a seat that Sit gives.
	NewSeated(params []float32, c Config) (Seated, error)
}

// newTeam prepares learning by c.Learners engines here, and by hosts.
func newTeam(b policy.Backend, p policy.Program, n *policy.Network, params []float32, c Config, hosts Hosts) (Learner, error) {
	divides, ok := p.(Dividing)
	if !ok {
		return nil, &table.Error{Key: "learners", Code: CodeLearners, Reason: fmt.Sprintf("is %d, and backend %s learns with one", c.Learners+hosts.Most, b.Name()),
			Help: `leave it out, or set backend = "cpu" in the policy's table`}
	}
	t := &team{away: away{hosts: hosts, network: n, config: c, backend: b}}
	t.told.L, t.done.L = &t.mu, &t.mu
	for range c.Learners {
		e, err := divides.NewSeated(params, c)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.add(e)
	}
	t.sit()
	return Over(t, n, n.Params(), c)
}

// team is an engine that is several, which work at the same time. The first belongs to the goroutine of the caller, each other one to
// one of its own, which does what the first does, in the same order.
type team struct {
	away
	engines []*member
	sums    *reduce.Team
	running sync.WaitGroup

	call   call // written while all are idle
	rows   []uint32
	ends   []int
	posted atomic.Uint64 // calls
	busy   atomic.Int64  // members but the first that have not done the newest one

	mu         sync.Mutex
	told, done sync.Cond // posted has grown, busy is 0
}

// member is one engine of a team.
type member struct {
	Seated
	far  *far // it is on another host; else nil
	gone bool // written while it is idle
}

// call is a call of an Engine's method.
type call struct {
	do    func(t *team, e Engine)
	round *Round
	lo    int
}

// add adds an engine. All are idle.
func (t *team) add(e Seated) {
	m := &member{Seated: e}
	m.far, _ = e.(*far)
	t.engines = append(t.engines, m)
	if len(t.engines) > 1 {
		before := t.posted.Load()
		t.running.Go(func() { t.follow(m, before) })
	}
}

// drop closes engines that are gone. All are idle.
func (t *team) drop(gone func(m *member) bool) (dropped bool) {
	t.engines = slices.DeleteFunc(t.engines, func(m *member) bool {
		if !gone(m) {
			return false
		}
		m.gone, dropped = true, true // its goroutine ends at the next call
		t.lose(m.far)
		return true
	})
	return dropped
}

// sit gives all engines a seat. All are idle.
func (t *team) sit() {
	t.sums = reduce.New(len(t.engines))
	for i, m := range t.engines {
		m.Sit(t.sums.Seat(i))
	}
}

// follow makes each call after that number with an engine, until one without a method or until the engine is gone.
func (t *team) follow(m *member, n uint64) {
	for {
		n++
		await(&t.mu, &t.told, func() bool { return t.posted.Load() >= n })
		if m.gone {
			return
		}
		do := t.call.do
		if do != nil {
			do(t, m)
		}
		t.mu.Lock()
		if t.busy.Add(-1) == 0 {
			t.done.Broadcast()
		}
		t.mu.Unlock()
		if do == nil {
			return
		}
	}
}

// idle waits until all calls are done.
func (t *team) idle() { await(&t.mu, &t.done, func() bool { return t.busy.Load() == 0 }) }

// all makes a call with each engine, and returns when the first has done it. All are idle before.
func (t *team) all(c call) {
	t.call = c
	t.mu.Lock()
	t.busy.Store(int64(max(0, len(t.engines)-1)))
	t.posted.Add(1)
	t.told.Broadcast()
	t.mu.Unlock()
	if c.do != nil {
		c.do(t, t.engines[0])
	}
}

// together makes a call with each engine, and again without those on hosts that are lost meanwhile, if nobody has done it. sums says that
// each takes part in a sum, unless the update is over.
func (t *team) together(c call, sums bool) {
	for {
		for _, m := range t.engines {
			if m.far != nil {
				m.far.must = sums && !t.engines[0].Over()
			}
		}
		t.all(c)
		if !t.hasFar() {
			return
		}
		t.idle()
		missed := t.engines[0].Missed()
		if !t.drop(lost) {
			return
		}
		t.sit()
		if !missed {
			return
		}
	}
}

func lost(m *member) bool { return m.far != nil && m.far.err != nil }

func (t *team) hasFar() bool {
	return slices.ContainsFunc(t.engines, func(m *member) bool { return m.far != nil })
}

// looks is how often await looks before it sleeps: for some ten microseconds, which is more than engines of a small network are apart.
const looks = 30_000

// await waits until something is true, which is told by a condition.
func await(mu *sync.Mutex, told *sync.Cond, is func() bool) {
	for range looks {
		if is() {
			return
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for !is() {
		told.Wait()
	}
}

// Begin is Engine's. Hosts that have come since the last update begin to learn.
func (t *team) Begin(r *Round) {
	t.idle()
	t.sums.Gather()
	if t.arrive() {
		t.sit()
	}
	t.together(call{do: func(t *team, e Engine) { e.Begin(t.call.round) }, round: r}, false)
}

// arrive adds engines on hosts that are new, and reports whether it did.
func (t *team) arrive() (arrived bool) {
	here := 0
	for _, m := range t.engines {
		if m.far != nil {
			here++
		}
	}
	for _, caller := range t.newcomers(here) {
		s, err := t.engines[0].State()
		if err != nil {
			break
		}
		if e := t.open(caller, s); e != nil {
			t.add(e)
			arrived = true
		}
	}
	return arrived
}

// Target is Engine's.
func (t *team) Target() {
	t.idle()
	t.together(call{do: func(_ *team, e Engine) { e.Target() }}, t.config.VTrace)
}

// Epoch is Engine's. It copies the rows: after an error an engine may be behind the caller.
func (t *team) Epoch(rows []uint32) {
	t.idle()
	t.rows = append(t.rows[:0], rows...)
	t.together(call{do: func(t *team, e Engine) { e.Epoch(t.rows) }}, false)
}

// Step is Engine's.
func (t *team) Step(lo int, ends []int) {
	t.idle()
	t.ends = append(t.ends[:0], ends...)
	t.together(call{do: func(t *team, e Engine) { e.Step(t.call.lo, t.ends) }, lo: lo}, true)
}

// Finish returns the statistics of the first engine, which are everyone's, and the error that the others have ended for. A host whose
// parameters are not everyone's learns no more.
func (t *team) Finish() (Stats, error) {
	t.idle()
	stats, err := t.engines[0].Finish()
	for _, m := range t.engines[1:] {
		s, other := m.Finish()
		if m.far != nil && m.far.err != nil {
			continue
		}
		stats.Gathered += s.Gathered
		if err == nil || errors.Is(err, reduce.ErrLost) && other != nil {
			err = other
		}
	}
	if t.hasFar() {
		t.compare(t.engines)
		if t.drop(lost) {
			t.sit()
		}
	}
	return stats, err
}

// Rescale is Engine's.
func (t *team) Rescale(h Head, scale, shift float64) {
	t.idle()
	for _, e := range t.engines {
		e.Rescale(h, scale, shift)
	}
}

// Params copies the parameters of the first engine, which are everyone's.
func (t *team) Params(dst []float32) error {
	t.idle()
	return t.engines[0].Params(dst)
}

// State returns that of the first engine, which is everyone's.
func (t *team) State() (State, error) {
	t.idle()
	return t.engines[0].State()
}

// SetState gives all engines the same state: those on other hosts when the next update begins.
func (t *team) SetState(s State) error {
	t.idle()
	if t.drop(func(m *member) bool { return m.far != nil }) {
		t.sit()
	}
	var errs []error
	for _, e := range t.engines {
		errs = append(errs, e.SetState(s))
	}
	return errors.Join(errs...)
}

// Close ends the goroutines and closes all engines.
func (t *team) Close() error {
	t.idle()
	t.all(call{do: nil})
	t.running.Wait()
	var errs []error
	for _, e := range t.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}
