package rollout

import (
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// versions steps environments of several versions side by side: each batch steps all of its environments, in its own block,
// and the split's block gets the rows that count.
type versions struct {
	s     *split
	rows  *rows    // of the split
	all   []*batch // the newest last, the split's own first
	owner []*batch // by environment, the batch that counts

	target   *batch // where environments go over to when their episodes end; nil: nowhere
	share    int    // how many of them go, the first ones
	newSeeds func() // for environments that go over
	over     []byte // 1 where the environment has gone over in this row

	row            int // the first row of a new owner
	waits, arrived int // batches that step elsewhere, and how many of them are ready
}

// newVersions begins with the batch that has stepped alone so far.
func newVersions(s *split) *versions {
	n := s.rows.c.envs()
	return &versions{s: s, rows: &s.rows, all: []*batch{s.batch}, owner: slices.Repeat([]*batch{s.batch}, n), over: make([]byte, n)}
}

func (d *versions) ownerOf(env int) *batch { return d.owner[env] }

func (d *versions) whole() *batch { return nil }

func (d *versions) batches() []*batch { return d.all }

// add lets one more batch step next to the others from row t on; the first environments go over to it.
func (d *versions) add(b *batch, share, t int, newSeeds func()) {
	d.all = append(d.all, b)
	d.target, d.share, d.row, d.newSeeds = b, share, t, newSeeds
	b.pad.tr.CopyObserved(t, b.pad.tr, 0)
}

// beginAll lets environments go over that have no episode yet.
func (d *versions) beginAll() {
	for env := range d.share {
		d.owner[env] = d.target
	}
	d.wantOthers()
}

// wantOthers asks for resets of the environments that do not count.
func (d *versions) wantOthers() {
	for _, b := range d.all {
		for env, owner := range d.owner {
			if owner != b {
				b.want(env)
			}
		}
	}
}

// allOver reports whether every environment that is to go over has gone.
func (d *versions) allOver() bool {
	return !slices.ContainsFunc(d.owner[:d.share], func(b *batch) bool { return b != d.target })
}

// bind makes the last row of each batch's own block its first.
func (d *versions) bind() error {
	d.row = 0
	for _, b := range d.all {
		b.pad.tr.CopyObserved(0, b.pad.tr, b.schema.Shape.Steps)
	}
	return nil
}

// step steps every batch with the actions of row t, and keeps the errors for settle.
func (d *versions) step(t int, ready func()) (pending bool, _ error) {
	d.waits, d.arrived = 0, 0
	for _, b := range d.all {
		b.calls++
		d.giveActions(b, t)
		if b.starter == nil {
			continue
		}
		over, err := b.startStep(t, ready)
		if b.err, b.stepping = err, !over; !over {
			d.waits++
		}
	}
	for _, b := range d.all {
		if b.starter == nil {
			b.err = b.step(t)
		}
	}
	return d.waits > 0, nil
}

// arrive is for a batch that has called ready.
func (d *versions) arrive() (over bool, _ error) {
	if d.arrived++; d.arrived < d.waits {
		return false, nil
	}
	for _, b := range d.all {
		if b.stepping {
			b.stepping = false
			b.err = b.finishStep()
		}
	}
	return true, nil
}

// giveActions copies the actions of row t. An environment that does not count gets the action of the one that does,
// or a legal action where there are masks: it may be at another place.
func (d *versions) giveActions(b *batch, t int) {
	b.pad.tr.CopyActions(t, d.rows.tr)
	b.pad.tr.Execute(t)
	trajectory.Params{Trajectory: b.pad.tr}.Copy(d.rows.tr)
	if !d.rows.tr.Schema.Has(trajectory.Mask) {
		return
	}
	for row := range d.rows.n {
		if d.owner[row/d.rows.c.schema.Agents] != b {
			b.pad.tr.FirstLegal(row, t)
		}
	}
}

// settle completes row t, which every batch has stepped.
func (d *versions) settle(t int, _ error) error {
	d.row = t + 1
	for _, b := range d.all {
		trajectory.ShareOutcome(b.pad.tr, t)
		b.learnRaw(b.pad.tr, t)
	}
	for env, b := range d.owner {
		for row, end := d.rows.c.schema.RowsOf(env); row < end; row++ {
			d.rows.tr.CopyOutcomeOf(row, t, b.pad.tr)
		}
		d.gather(t+1, env)
	}
	for _, b := range d.all {
		if b.err == nil {
			continue
		}
		if err := d.loseBatch(b, b.err); err != nil {
			return err
		}
		b.err = nil
	}
	d.rows.invalidateRow(t, false)
	ended, err := d.check(t)
	if err != nil {
		return err
	}
	if env, err := d.rows.noteBegins(t); err != nil {
		return d.owner[env].outputFault(hostabi.ExportReset, env, err)
	}
	d.rows.complete(t, ended)
	if err := d.endEpisodes(t); err != nil {
		return err
	}
	if err := d.resetLost(t + 1); err != nil {
		return err
	}
	return d.s.nextTurns()
}

// gather copies the observation of one environment at t.
func (d *versions) gather(t, env int) {
	for row, end := d.rows.c.schema.RowsOf(env); row < end; row++ {
		d.rows.tr.CopyObservedOf(row, t, d.owner[env].pad.tr, t)
	}
}

// check checks row t. A batch that has written forbidden values has lost the step of all its environments.
func (d *versions) check(t int) (trajectory.Ended, error) {
	for {
		ended, env, err := d.rows.tr.CheckStep(t, d.rows.c.mode)
		if err == nil {
			return ended, nil
		}
		if env < 0 {
			return 0, d.all[0].outputFault(hostabi.ExportStep, env, err)
		}
		b := d.owner[env]
		if err := d.loseBatch(b, b.outputFault(hostabi.ExportStep, env, err)); err != nil {
			return 0, err
		}
		d.rows.invalidateRow(t, false)
	}
}

// endEpisodes handles the ends of episodes in row t: environments go over, or are reset where they count.
func (d *versions) endEpisodes(t int) error {
	reset, over := false, false
	for env, owner := range d.owner {
		idle, resets := d.idles(t, env)
		d.over[env] = 0
		if d.target == nil || env >= d.share || owner == d.target || !idle {
			reset = reset || resets
			continue
		}
		first, _ := d.rows.c.schema.RowsOf(env)
		if d.rows.gone[first] == 0 {
			d.over[env], over = 1, true
		} else {
			owner.want(env) // it is lost there too
		}
		d.assign(env, d.target)
		d.rows.phantom[first], d.rows.resetMask[env] = 0, 0
	}
	d.wantEnded(t)
	if over {
		d.newSeeds()
		d.s.seeds.draw(d.rows.c.attempts)
		if err := d.resetBatch(d.target, t+1, d.over, d.s.seeds.values); err != nil {
			return err
		}
	}
	if !reset {
		return nil
	}
	return d.reset(t+1, d.rows.resetMask, nil)
}

// idles reports whether no episode of an environment continues after row t, so that it can go over. It handles the end of an episode:
// resets says whether the environment is to be reset where it is.
func (d *versions) idles(t, env int) (idle, resets bool) {
	if d.rows.agents != nil {
		first, _ := d.rows.c.schema.RowsOf(env)
		d.rows.resetMask[env] = 0
		return d.rows.agents.EnvEnded[env] != 0 || d.rows.gone[first] != 0, false
	}
	at := t*d.rows.n + env
	ended := d.rows.tr.Bytes(trajectory.Terminated)[at]|d.rows.tr.Bytes(trajectory.Truncated)[at] != 0
	return ended || d.rows.tr.Bytes(trajectory.Valid)[at] == 0, d.rows.endOne(t, env, ended)
}

// wantEnded asks for resets of environments that do not count, where the guest does none itself.
func (d *versions) wantEnded(t int) {
	if d.rows.c.mode != hostabi.Disabled {
		return
	}
	for _, b := range d.all {
		terminated, truncated := b.pad.tr.Row(trajectory.Terminated, t).Data, b.pad.tr.Row(trajectory.Truncated, t).Data
		for env, owner := range d.owner {
			if owner != b && terminated[env]|truncated[env] != 0 {
				b.want(env)
			}
		}
	}
}

// assign makes another batch's rows of an environment count.
func (d *versions) assign(env int, to *batch) {
	if first, end := d.rows.c.schema.RowsOf(env); d.rows.writing {
		d.rows.stamp(first, end, d.row, d.owner[env].maker)
	}
	d.owner[env] = to
}

// reset starts new episodes in a row, everywhere or where mask is not 0: each environment is reset where it counts.
func (d *versions) reset(row int, mask []uint8, seeds []uint64) error {
	if mask == nil { // resetLost resets the others
		d.wantOthers()
	}
	for _, b := range d.all {
		any := false
		for env, owner := range d.owner {
			b.mask[env] = 0
			if owner == b && (mask == nil || mask[env] != 0) {
				b.mask[env], any = 1, true
			}
		}
		if !any {
			continue
		}
		if err := d.resetBatch(b, row, b.mask, seeds); err != nil {
			return err
		}
	}
	return nil
}

// resetBatch resets environments of a batch that count, and takes their observations.
func (d *versions) resetBatch(b *batch, row int, mask []uint8, seeds []uint64) error {
	err := b.reset(row, mask, seeds)
	if err == nil || env.Lost(err) != nil { // the others have been reset
		for env, m := range mask {
			if m != 0 {
				d.gather(row, env)
			}
		}
		d.rows.tr.BeginWhere(row, mask)
	}
	if err == nil {
		env, bad := d.rows.tr.CheckObs(row)
		if bad == nil || d.rows.anyGone { // resetLost looks at the row when it is complete
			return nil
		}
		if env < 0 {
			return d.all[0].outputFault(hostabi.ExportReset, env, bad)
		}
		b = d.owner[env]
		err = b.outputFault(hostabi.ExportReset, env, bad)
	}
	if err := d.loseBatch(b, err); err != nil {
		return err
	}
	d.rows.invalidateRow(row-1, true)
	return nil
}

// resetLost also makes the resets that batches want for environments that do not count.
func (d *versions) resetLost(row int) error {
	if err := d.s.resetGone(row); err != nil {
		return err
	}
	for _, b := range d.all {
		for b.wanting {
			copy(b.mask, b.wants)
			b.forgetWants()
			err := b.reset(row, b.mask, d.s.seeds.values)
			if err == nil {
				break
			}
			if err := d.loseBatch(b, err); err != nil {
				return err
			}
			d.rows.invalidateRow(row-1, true)
		}
	}
	if d.rows.anyGone {
		return d.resetLost(row)
	}
	return nil
}

// loseBatch takes an error of one batch: its environments lose their current step, and other batches nothing. They
// wait for resetLost. loseBatch returns an error that ends the run.
func (d *versions) loseBatch(b *batch, err error) error {
	if isFault(err) {
		b.version.faults.Inc()
	}
	if b.onFault(err) {
		b.probation.rollBack(err)
		for env, owner := range d.owner {
			if owner == b {
				d.rows.loseEnv(env)
				d.assign(env, d.all[0])
			}
		}
		b.forgetWants()
		return nil
	}
	leaving := d.target != nil && d.target != b && d.share == d.rows.c.envs()
	if !isFault(err) || !leaving && !d.rows.c.spend() {
		return err
	}
	d.rows.c.h.Log.Warn("environments lost next to others", "error", err, "restart", d.rows.c.counted(), "max_restarts", d.rows.c.config.MaxRestarts)
	if lost := env.Lost(err); lost != nil {
		for _, span := range lost {
			for env := max(span.First, 0); env < min(span.First+span.Count, d.rows.c.envs()); env++ {
				d.loseOne(b, env, leaving)
			}
		}
		return nil
	}
	for env := range d.owner {
		d.loseOne(b, env, leaving)
	}
	if err := b.renew(); err != nil {
		return err
	}
	b.calls = 0
	err = b.bindPad()
	if env.Lost(err) != nil {
		return nil // all are reset anyway
	}
	return err
}

// loseOne is loseBatch for one environment.
func (d *versions) loseOne(b *batch, env int, leaving bool) {
	if d.owner[env] == b {
		d.rows.loseEnv(env)
		if leaving {
			d.assign(env, d.target)
		}
	}
	if d.owner[env] != b {
		b.want(env)
	}
}
