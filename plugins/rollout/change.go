package rollout

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
)

// changes is what the component knows of changes of its environments. A change is prepared on any goroutine; from
// Commit on the loop works on it alone.
type changes struct {
	mu       sync.Mutex
	reserved *change // the one that is prepared or under way; guarded by mu
	trial    *change // the one whose environments run beside others; guarded by mu
	stopped  bool    // guarded by mu
	errs     []error // of what was closed behind the loop's back; guarded by mu
	closing  sync.WaitGroup

	current *change // the newest that was committed and is not settled
	ended   *stat.Counter
	kept    *stat.Counter
	dropped *stat.Counter
	pause   *stat.Histogram
}

func (k *changes) start(stats *stat.Registry) {
	k.ended, k.kept = stats.Counter("swap/ended_episodes"), stats.Counter("swap/kept_episodes")
	k.dropped, k.pause = stats.Counter("swap/dropped_env_steps"), stats.Histogram("swap/pause_ns")
}

// release closes what nobody needs any more. Giving memory back takes long, so the loop does not wait for it.
func (k *changes) release(c interface{ close() error }) {
	k.closing.Go(func() {
		if err := c.close(); err != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.errs = append(k.errs, err)
		}
	})
}

// stop waits for what is being closed and reports what went wrong with it.
func (k *changes) stop() error {
	k.closing.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.reserved, k.trial = true, nil, nil
	err := errors.Join(k.errs...)
	k.errs = nil
	return err
}

// stage says how far a change has got, as far as it matters to other goroutines.
type stage uint8

const (
	preparing stage = iota
	committed
	closed
)

// change is a change of the component's environments. It implements component.PreparedEnvs.
type change struct {
	c       *Rollout
	o       component.EnvChange
	stage   stage    // guarded by changes.mu
	batches []*batch // one for each split, nil where none of its environments goes over
	pads    []*pad   // for those that run there now, if they go on beside the new ones

	// Of the loop, from Commit on:
	left    int // splits that have not gone over, or gone back
	went    component.EnvsWent
	seeded  bool  // new seeds were made
	over    bool  // Went was called
	settled bool  // Settle was
	back    bool  // the component goes back
	fault   error // for this
}

var _ component.PreparedEnvs = (*change)(nil)

// EnvName returns the name of the [env] table.
func (c *Rollout) EnvName() string { return c.config.Env }

// PrepareEnvs makes the environments of a change, one batch for each split, and has each of them observe something in
// a block of its own, so that what comes first is behind them when they go over. See component.EnvRunner.
//
// A trial goes over when episodes end, whatever boundary the change names. Errors: a *component.SpacesError,
// component.ErrChanging, or what the plugin says.
func (c *Rollout) PrepareEnvs(o component.EnvChange) (component.PreparedEnvs, error) {
	if o.Plugin == nil || o.Envs < 0 || o.Envs > c.config.Envs {
		return nil, fmt.Errorf("%s: change of %d of %d environments to plugin %v", c.h.Name, o.Envs, c.config.Envs, o.Plugin)
	}
	if o.Envs == c.config.Envs {
		o.Envs = 0
	}
	x := &change{c: c, o: o}
	if err := x.reserve(); err != nil {
		return nil, err
	}
	if err := x.prepare(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// reserve makes this the component's one change.
func (x *change) reserve() error {
	k := &x.c.changes
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stopped:
		return fmt.Errorf("%s has stopped", x.c.h.Name)
	case k.reserved != nil:
		return fmt.Errorf("%s: %w", x.c.h.Name, component.ErrChanging)
	case k.trial != nil && x.isTrial():
		return fmt.Errorf("%s: %w: other environments are on trial", x.c.h.Name, component.ErrChanging)
	}
	k.reserved = x
	return nil
}

// free lets another change come.
func (x *change) free() {
	k := &x.c.changes
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reserved == x {
		k.reserved = nil
	}
	if k.trial == x && x.back {
		k.trial = nil
	}
}

func (x *change) isTrial() bool { return x.o.Envs > 0 }

// share returns how many environments of a split the change concerns.
func (x *change) share(split int) int {
	n := x.c.config.Envs / x.c.config.Splits
	if !x.isTrial() {
		return n
	}
	return min(max(x.o.Envs-split*n, 0), n)
}

// at is the boundary that the change waits for.
func (x *change) at() component.Boundary {
	if x.isTrial() {
		return component.AtEpisode
	}
	return x.o.At
}

// Commit makes the change; see component.PreparedEnvs.
func (x *change) Commit() error {
	c, k := x.c, &x.c.changes
	k.mu.Lock()
	if x.stage != preparing || k.stopped {
		k.mu.Unlock()
		return fmt.Errorf("%s: this change was committed or closed before", c.h.Name)
	}
	x.stage = committed
	if k.trial = nil; x.isTrial() {
		k.trial = x
	}
	k.mu.Unlock()
	if k.current != nil {
		k.current.giveWay()
	}
	k.current = x
	x.send()
	return nil
}

// newSeeds makes seeds for the environments that begin anew for the change: the same ones in whichever split they are.
func (x *change) newSeeds() {
	if !x.seeded {
		x.seeded = true
		x.c.attempts++
	}
}

// send tells every split that it concerns where it is to go.
func (x *change) send() {
	c := x.c
	v := c.versionOf(x.o.Plugin.Hash())
	for i, b := range x.batches {
		if b == nil {
			continue
		}
		b.maker, b.tried = maker{v, x.o.Task, x.isTrial()}, x.o.Probation
		m := &move{x: x, to: b, at: x.at(), keep: x.o.KeepState && x.at() != component.AtEpisode, share: x.share(i)}
		m.pad, x.pads[i] = x.pads[i], nil
		c.splits[i].next = m
		x.left++
	}
	for _, s := range c.splits {
		if s.next != nil && s.next.x == x {
			s.look()
		}
	}
}

// splitOver is for a split that has gone over, or back.
func (x *change) splitOver(m *move) {
	x.left--
	if !m.back {
		x.went.Envs += m.share
		x.went.PauseNS = append(x.went.PauseNS, m.took.Nanoseconds())
		x.c.changes.pause.Observe(float64(m.took.Nanoseconds()))
	}
	if x.left > 0 {
		return
	}
	if x.back {
		x.isBack()
		return
	}
	x.over = true
	x.free()
	if x.settled {
		x.settle()
	}
	if x.o.Went != nil {
		x.o.Went(x.went)
	}
}

// Settle ends the probation; see component.PreparedEnvs.
func (x *change) Settle() {
	if x.c.changes.current != x || x.back {
		return
	}
	x.settled = true
	x.trust()
	if x.over {
		x.settle()
	}
}

// trust makes faults of the new environments those of any.
func (x *change) trust() {
	for _, b := range x.batches {
		if b != nil {
			b.tried = false
		}
	}
}

// settle releases what the component could have gone back to. What runs beside environments on trial stays.
func (x *change) settle() {
	c := x.c
	x.trust()
	for i, b := range x.batches {
		if b == nil {
			continue
		}
		if s := c.splits[i]; s.spare != nil && !x.isTrial() { // one can always go back from a trial
			c.changes.release(s.spare)
			s.spare = nil
		}
	}
	if c.changes.current == x && !x.isTrial() {
		c.changes.current = nil
	}
}

// giveWay ends what is left of a change when another one is committed.
func (x *change) giveWay() {
	x.settle()
	if x.c.changes.current == x {
		x.c.changes.current = nil
	}
	if !x.back || x.left == 0 {
		return
	}
	for _, s := range x.c.splits { // the new one takes it from where it is
		if s.next != nil && s.next.x == x {
			s.next = nil
		}
	}
	x.isBack()
}

// Close releases a change that was not committed; see component.PreparedEnvs.
func (x *change) Close() error {
	k := &x.c.changes
	k.mu.Lock()
	if x.stage != preparing {
		k.mu.Unlock()
		return nil
	}
	x.stage = closed
	k.mu.Unlock()
	err := x.close()
	x.free()
	return err
}

func (x *change) close() error {
	var errs []error
	for _, b := range x.batches {
		if b != nil {
			errs = append(errs, b.close())
		}
	}
	for _, p := range x.pads {
		if p != nil {
			errs = append(errs, p.close())
		}
	}
	return errors.Join(errs...)
}
