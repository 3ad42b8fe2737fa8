package rollout

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
)

// stage says how far a change has got. It is the whole life of a change:
//
//	prepared ──Commit──▶ crossing ───────all splits over──────▶ onProbation ──Settle──▶ confirmed
//	   │                    ├─Settle─▶ confirming ─all splits over──────────────────────────▲
//	 Close,                 │                                        │
//	 Cancel              Cancel, a fault of the new environments ◀───┘
//	   ▼                    ▼
//	 closed             returning ──all splits back──▶ rolledBack
//
// Between Commit and "all splits over" each split has a move, which waits for the split's boundary: there the new
// environments take the place of the others, or, at AtEpisode, both step side by side until each environment's episode has
// ended. A change is confirmed without Settle when another change takes its place. A trial can be taken back when it is
// confirmed, too.
type stage uint8

const (
	prepared stage = iota // everything is made, the running environments are unchanged
	closed
	crossing
	confirming
	onProbation // where the change asks for it; else it just waits for Settle
	confirmed
	returning
	rolledBack
)

// changes are the component's changes of its environments. A change is prepared on any goroutine; from Commit on the
// loop works on it alone.
type changes struct {
	c      *shared
	splits []*split

	mu       sync.Mutex
	reserved *change // the change that is prepared or under way; guarded by mu
	trial    *change // the change whose environments run next to others; guarded by mu
	stopped  bool    // guarded by mu

	current *change // the newest that was committed and can be taken back
}

// change is a change of the component's environments. It implements component.PreparedEnvs.
type change struct {
	k       *changes
	c       *shared
	o       component.EnvChange
	batches []*batch // one for each split, nil where none of its environments goes over
	pads    []*pad   // for the running environments, if they continue next to the new ones
	stage   stage    // written by the loop from Commit on; guarded by changes.mu

	// Of the loop, from Commit on:
	moves  []*move // one for each split that goes over, or back
	left   int     // of them, that are not done
	went   component.EnvsWent
	seeded bool  // new seeds were made
	fault  error // that takes the component back
}

var _ component.PreparedEnvs = (*change)(nil)

// prepare makes a change ready to be committed. Any goroutine.
func (k *changes) prepare(o component.EnvChange) (component.PreparedEnvs, error) {
	x := &change{k: k, c: k.c, o: o}
	if err := x.reserve(); err != nil {
		return nil, err
	}
	if err := x.make(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// reserve makes this the component's one change.
func (x *change) reserve() error {
	k := x.k
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
	k := x.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reserved == x {
		k.reserved = nil
	}
	if k.trial == x && x.goesBack() {
		k.trial = nil
	}
}

// enter begins a stage, if the change is in the one before, and reports whether it was.
func (x *change) enter(from, to stage) bool {
	k := x.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.stage != from {
		return false
	}
	x.stage = to
	return true
}

func (x *change) isTrial() bool { return x.o.Envs > 0 }

// goesBack reports whether the component goes back, or has gone. It is for the loop, and for a change that is not committed.
func (x *change) goesBack() bool { return x.stage == returning || x.stage == rolledBack }

// share returns how many environments of a split the change concerns.
func (x *change) share(split int) int {
	n := x.c.envs()
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

// make makes the batches and the pads.
func (x *change) make() error {
	c := x.c
	schema, err := c.schemaFor(x.o.Plugin)
	if err != nil {
		return err
	}
	besides := x.at() == component.AtEpisode
	x.batches, x.pads = make([]*batch, c.config.Splits), make([]*pad, c.config.Splits)
	for i := range c.config.Splits {
		if x.share(i) == 0 {
			continue
		}
		if x.batches[i], err = newBatch(c, x.o.Plugin, schema, i, x.o.Number); err != nil {
			return err
		}
		if besides { // they continue with their block
			if x.pads[i], err = newPad(c.h.Name, c.schema); err != nil {
				return err
			}
		}
		if err := x.batches[i].prepare(x.o.KeepState, !besides); err != nil {
			return err
		}
	}
	return nil
}

// Close releases a change that was not committed; see component.PreparedEnvs.
func (x *change) Close() error {
	if !x.enter(prepared, closed) {
		return nil
	}
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

// Commit makes the change; see component.PreparedEnvs.
func (x *change) Commit() error {
	c, k := x.c, x.k
	k.mu.Lock()
	if x.stage != prepared || k.stopped {
		k.mu.Unlock()
		return fmt.Errorf("%s: this change was committed or closed before", c.h.Name)
	}
	x.stage = crossing
	if k.trial = nil; x.isTrial() {
		k.trial = x
	}
	k.mu.Unlock()
	if k.current != nil {
		k.current.giveWay()
	}
	k.current = x
	version := c.known.of(x.o.Plugin.Hash())
	x.moves = make([]*move, len(k.splits))
	for i, b := range x.batches {
		if b == nil {
			continue
		}
		b.maker = maker{version, x.o.Task, x.isTrial(), b.tape}
		if x.o.Probation {
			b.probation = &probation{x.onFault, x.rollBack}
		}
		x.send(i, &move{to: b, at: x.at(), keepState: x.o.KeepState && x.at() != component.AtEpisode, share: x.share(i), pad: x.pads[i]})
		x.pads[i] = nil
	}
	x.start()
	return nil
}

// send gives a split its move.
func (x *change) send(split int, m *move) {
	m.s, m.newSeeds, m.rollBack, m.over = x.k.splits[split], x.newSeeds, x.rollBack, x.splitOver
	m.s.next, x.moves[split] = m, m
	x.left++
}

// start lets the splits go over that are at their boundary already.
func (x *change) start() {
	for i, s := range x.k.splits {
		if m := x.moves[i]; m != nil && s.next == m {
			m.start()
		}
	}
}

// newSeeds makes seeds for the environments that begin again for the change: the same seeds in any split.
func (x *change) newSeeds() {
	if !x.seeded {
		x.seeded = true
		x.c.attempts++
	}
}

// splitOver is for a split that has gone over, or back.
func (x *change) splitOver(m *move) {
	x.left--
	if !m.back {
		x.went.Envs += m.share
		x.went.Kept += m.went.Kept
		x.went.Truncated += m.went.Truncated
		x.went.Dropped += m.went.Dropped
		x.went.PauseNS = append(x.went.PauseNS, m.took.Nanoseconds())
		x.c.pause.Observe(float64(m.took.Nanoseconds()))
	}
	switch {
	case x.left > 0:
		return
	case x.goesBack():
		x.isBack()
		return
	case x.enter(confirming, confirmed):
		x.free()
		x.confirm()
	default:
		x.enter(crossing, onProbation)
		x.free()
	}
	if x.o.Went != nil {
		x.o.Went(x.went)
	}
}

// onFault reports whether a fault of the new environments takes the component back.
func (x *change) onFault(fault error) bool {
	if x.k.current == x && !x.goesBack() && x.o.OnFault != nil && !x.o.OnFault(fault) {
		x.endProbation()
		return false
	}
	return true
}

// Settle ends the probation; see component.PreparedEnvs.
func (x *change) Settle() {
	if x.k.current != x || x.goesBack() {
		return
	}
	x.endProbation()
	if !x.enter(crossing, confirming) && x.enter(onProbation, confirmed) {
		x.confirm()
	}
}

// endProbation makes faults of the new environments cost what other faults cost.
func (x *change) endProbation() {
	for _, b := range x.batches {
		if b != nil {
			b.probation = nil
		}
	}
}

// confirm releases the environments that the component could have gone back to. The environments next to a trial stay.
func (x *change) confirm() {
	if x.isTrial() { // one can always go back from a trial
		return
	}
	for i, b := range x.batches {
		if s := x.k.splits[i]; b != nil && s.spare != nil {
			x.c.closing.release(s.spare)
			s.spare = nil
		}
	}
	if x.k.current == x {
		x.k.current = nil
	}
}

// giveWay ends the rest of a change when another one is committed.
func (x *change) giveWay() {
	x.endProbation()
	x.confirm()
	x.k.current = nil
	if !x.goesBack() {
		x.enter(x.stage, confirmed)
		return
	}
	if x.left == 0 {
		return
	}
	for i, s := range x.k.splits { // the new change takes the split from where it is
		if s.next != nil && s.next == x.moves[i] {
			s.next = nil
		}
	}
	x.isBack()
}

// Cancel gives the change up; see component.PreparedEnvs.
func (x *change) Cancel() {
	switch {
	case x.enter(prepared, closed):
		x.free()
		x.c.closing.release(x)
	case x.stage != closed && !x.goesBack() && x.k.current == x:
		x.goBack()
	}
}

// rollBack takes the component back to the previous environments, because of a fault of the new ones.
func (x *change) rollBack(fault error) {
	if x.k.current != x || x.goesBack() {
		return
	}
	x.c.h.Log.Warn("environments go back to the previous version", "error", fault)
	x.fault = fault
	x.goBack()
}

// goBack sends every split that has gone over, or has begun to, back to where it came from. The others stay; from here
// on their episodes count like the returned ones.
func (x *change) goBack() {
	x.enter(x.stage, returning)
	x.left, x.seeded = 0, false
	for i, b := range x.batches {
		if b == nil {
			continue
		}
		s := x.k.splits[i]
		if m := x.moves[i]; s.next != nil && s.next == m {
			m.giveUp()
			s.next = nil
		}
		home := s.spare
		if s.versions != nil {
			home = s.batch
		}
		come := slices.Contains(s.stepper().batches(), b)
		if !come || home == nil {
			home = s.batch
		}
		if !x.isTrial() {
			home.task = x.o.TaskBack // episodes on trial count nowhere, so none has to count again
			home.onTrial = false
		}
		x.moves[i] = nil
		if !come {
			x.c.closing.release(b)
			continue
		}
		x.send(i, &move{to: home, at: component.AtStep, back: true})
	}
	if x.left == 0 {
		x.isBack()
		return
	}
	x.start()
}

// isBack ends a change whose environments are all back.
func (x *change) isBack() {
	x.enter(returning, rolledBack)
	x.free()
	if x.k.current == x {
		x.k.current = nil
	}
	if x.fault != nil && x.o.RolledBack != nil {
		x.o.RolledBack(x.fault)
	}
}

// stop ends all changes: nothing is left to settle or to take back.
func (k *changes) stop() {
	k.current = nil
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.reserved, k.trial = true, nil, nil
}
