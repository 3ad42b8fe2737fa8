package rollout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// rows is the account of a split's rows and of the episodes in them: which rows are valid, which were lost, which end
// episodes, and their makers.
type rows struct {
	c *shared
	n int // environments, or agents of all of them

	tr        trajectory.Trajectory
	block     uint32
	writing   bool // a block is bound
	bootstrap bool // the newest row has truncated environments whose last observation wants a value

	reports   reports
	accounts  []account
	numbers   []uint32 // of the running episodes, from 0 in each life
	phantom   []byte   // 1 where the next step belongs to no episode (next-step autoreset)
	resetMask []byte
	leaving   []byte // room for the argument of endWhere

	acting acting
	agents *agents // nil where each environment is one agent that always acts
	whole  *whole  // nil where episodes continue in the next block

	gone    []byte // 1 where the environment was lost and has not been reset since
	anyGone bool
	ones    []byte // valid where no environment is gone
	cuts    []byte // [T][N]: effects of losses and changes on the block's rows
	anyCuts bool

	stamped []int32  // rows of the block whose maker is recorded, by environment
	mixed   bool     // some are
	makers  []uint16 // [T][N], of the rows: places in the cast
	stamps  []uint64 // by block, the version of all its rows where one has made them
	cast    []maker
}

// account counts one environment's running episode.
type account struct {
	Return float64
	Length uint32
}

// add counts an env step.
func (a *account) add(reward float32) {
	a.Return += float64(reward)
	a.Length++
}

// Effects of a loss or a change on a row of one environment.
const (
	invalid = 1 << iota // the row has been dealt with
	lostRow             // its env step is lost: the running episode ends here, untold
	cutRow              // truncated by the host because the next row is lost
	endRow              // truncated by the host because other environments make the next row
	lateEnd             // the flags arrived in a later row, where the agent did not act: the episode ends there
)

func newRows(c *shared) (r rows, err error) {
	n := c.schema.Rows()
	r = rows{
		c: c, n: n, acting: newActing(c.policies, c.schema), reports: newReports(c.h.Stats, c.schema), accounts: make([]account, n), numbers: make([]uint32, n), phantom: make([]byte, n),
		resetMask: make([]byte, c.envs()), leaving: make([]byte, n), gone: make([]byte, n), ones: bytes.Repeat([]byte{1}, n), cuts: make([]byte, n*c.config.Horizon),
		stamped: make([]int32, n), makers: make([]uint16, n*c.config.Horizon), stamps: make([]uint64, c.arena.Blocks()),
	}
	for block := range r.stamps {
		r.stamps[block] = stampedBySeveral
	}
	r.whole = newWhole(c)
	r.agents, err = newAgents(c.schema, &r.reports)
	return r, err
}

// open begins the rows of a block.
func (r *rows) open(mem []byte, block uint32) {
	r.tr, r.block, r.writing, r.bootstrap = trajectory.Trajectory{Schema: r.c.schema, Mem: mem}, block, true, false
	r.reports.drop()
	clear(r.acting.newest)
	r.whole.open(r.tr)
	if r.agents != nil {
		r.agents.open()
	}
	if r.anyCuts {
		clear(r.cuts)
		r.anyCuts = false
	}
	if r.mixed {
		clear(r.stamped)
		r.cast, r.mixed = r.cast[:0], false
	}
}

// paramsOf are the reset parameters of the block.
func (r *rows) paramsOf() trajectory.Params { return trajectory.Params{Trajectory: r.tr} }

// noteBegins notes which episodes begin in row t, which has been stepped, and checks what the environments say of them. It has to be called
// before complete.
func (r *rows) noteBegins(t int) (env int, err error) {
	begins := r.reports.begins
	if begins == nil {
		return -1, nil
	}
	acts := r.tr.Acts(t)
	for i := range begins {
		switch {
		case r.agents != nil:
			begins[i] = flagOf(!r.agents.Running(i) && (acts == nil || acts[i] != 0))
		case t == 0:
			begins[i] = flagOf(r.accounts[i].Length == 0)
		default:
			begins[i] = flagOf(r.hasEnded((t-1)*r.n + i))
		}
		if r.phantom[i]|r.gone[i] != 0 || r.whole.idles(i) {
			begins[i] = 0
		}
	}
	if r.agents != nil {
		r.agents.noteEnvs(begins, r.c.schema.Agents)
	}
	return r.checkBegins(t)
}

// checkBegins returns the first environment that says something that is no number of an episode that begins in row t, and the error.
func (r *rows) checkBegins(t int) (env int, err error) {
	for k := range r.reports.figures {
		f := &r.reports.figures[k]
		if env, err := r.tr.CheckBegun(&f.Figure, t, func(i int) bool { return r.begins(i, f.Agents) }); err != nil {
			return env, err
		}
	}
	return -1, nil
}

// begins reports whether the episode of a row begins in the newest row: of several agents, the agent's own, or its environment's, which begins
// where some agents begin and none ran before.
func (r *rows) begins(i int, agent bool) bool {
	if r.agents == nil || agent {
		return r.reports.begins[i] != 0
	}
	return r.agents.began[i/r.c.schema.Agents] != 0
}

func flagOf(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// complete writes the host's part of row t; ended has the row's kinds of ends.
func (r *rows) complete(t int, ended trajectory.Ended) trajectory.Ended {
	r.whole.discard(r.tr, t)
	r.markValid(t)
	r.whole.invalidate(r.tr.RowBytes(trajectory.Valid, t))
	if r.agents != nil {
		r.completeAgents(t, ended)
	} else {
		r.markAges(t)
		r.bootstrap = ended&trajectory.AnyTruncated != 0
		r.reports.gather(r.tr, t, ended)
		r.reports.end(t, r.ends)
	}
	r.whole.note(r, t)
	return ended
}

// markValid writes valid[t]: 0 for steps that belong to no episode, whose flags then mean nothing, for lost ones, and for agents that
// do not act.
func (r *rows) markValid(t int) {
	valid := r.tr.RowBytes(trajectory.Valid, t)
	if r.c.mode != hostabi.NextStep {
		copy(valid, r.ones)
		if r.anyGone {
			for i, gone := range r.gone {
				valid[i] = 1 - gone
			}
		}
		for i, acts := range r.tr.Acts(t) {
			valid[i] &= acts
		}
		return
	}
	terminated, truncated := r.tr.RowBytes(trajectory.Terminated, t), r.tr.RowBytes(trajectory.Truncated, t)
	for i := range valid {
		valid[i] = 1 - (r.phantom[i] | r.gone[i])
		if r.phantom[i] != 0 {
			terminated[i], truncated[i] = 0, 0
		}
		r.phantom[i] = 0
	}
}

// markAges writes how long the episodes of row t+1 have been running, if the block keeps it. Under next-step autoreset a row
// that belongs to no episode is between an episode's last observation and the first of the next.
func (r *rows) markAges(t int) {
	next := r.tr.Ages(t + 1)
	if next == nil {
		return
	}
	ages, valid, acts := r.tr.Ages(t), r.tr.RowBytes(trajectory.Valid, t), r.tr.Acts(t)
	terminated, truncated := r.tr.RowBytes(trajectory.Terminated, t), r.tr.RowBytes(trajectory.Truncated, t)
	for i, age := range ages {
		next[i] = 0
		switch ended := terminated[i]|truncated[i] != 0 && r.c.mode != hostabi.NextStep; {
		case ended || r.gone[i] != 0:
		case valid[i] != 0:
			next[i] = trajectory.Older(age)
		case acts != nil && acts[i] == 0:
			next[i] = age
		}
	}
}

// endOne does for one environment in row t the work of a same-step guest: it keeps the last observation, then asks for a
// reset in resetMask, or lets the next step be the phantom one.
func (r *rows) endOne(t, env int, ended bool) (reset bool) {
	r.resetMask[env] = 0
	if !ended || r.c.mode == hostabi.SameStep {
		return false
	}
	r.tr.KeepFinal(env, t+1)
	if r.c.mode == hostabi.NextStep {
		r.phantom[env] = 1
		return false
	}
	if r.whole != nil { // it waits until the block ends
		return false
	}
	r.resetMask[env] = 1
	return true
}

// loseEnv is lose for all agents of an environment.
func (r *rows) loseEnv(env int) {
	for row, end := r.c.schema.RowsOf(env); row < end; row++ {
		r.lose(row)
	}
}

// lose is for an environment, or an agent of one, that is lost: it waits for a reset.
func (r *rows) lose(env int) { r.gone[env], r.anyGone = 1, true }

// goneMask returns the environments that are lost.
func (r *rows) goneMask() []byte {
	for env := range r.resetMask {
		r.resetMask[env] = r.gone[env*r.c.schema.Agents]
	}
	return r.resetMask
}

// foundAll is for when no environment is lost any more.
func (r *rows) foundAll() {
	clear(r.gone)
	r.anyGone = false
}

// invalidateRow takes row t of the environments that are gone out of the block, unless their episode ended in it: it is
// then in no loss, no statistic, and no episode, and the episode before it is cut off with the value of the last known
// observation. stepped says whether the row had been written when they were lost. Row -1 is the time before a block's
// first step.
func (r *rows) invalidateRow(t int, stepped bool) {
	for env, gone := range r.gone {
		if gone == 0 {
			continue
		}
		r.reports.forget(env)
		if t >= 0 && r.whole.idles(env) {
			r.invalidateIdle(t, env, stepped)
			continue
		}
		if r.agents != nil && r.tr.Schema.Has(trajectory.Active) {
			r.invalidateAgent(t, env, stepped)
			continue
		}
		phantom := r.phantom[env] != 0
		r.phantom[env] = 0
		if t < 0 {
			if r.accounts[env].Length > 0 {
				r.endUntold(&r.accounts[env])
			}
			continue
		}
		at := t*r.n + env
		if r.cuts[at] != 0 || stepped && r.hasEnded(at) {
			continue
		}
		r.anyCuts = true
		r.cuts[at] = invalid
		r.tr.Bytes(trajectory.Valid)[at] = 0
		r.tr.ClearOutcomeOf(env, t)
		if !phantom {
			r.cuts[at] |= lostRow
			r.c.lostSteps.Inc()
			r.cut(t, env)
		}
	}
	if t >= 0 {
		r.whole.endWhere(r.gone)
	}
}

// invalidateIdle is invalidateRow for an environment whose episode in a block of whole episodes is over.
func (r *rows) invalidateIdle(t, env int, stepped bool) {
	r.phantom[env] = 0
	if !stepped {
		r.tr.ClearOutcomeOf(env, t)
	}
}

// hasEnded reports whether a written row has no step of an episode that continues.
func (r *rows) hasEnded(at int) bool {
	return r.tr.Bytes(trajectory.Valid)[at] == 0 ||
		r.tr.Bytes(trajectory.Terminated)[at]|r.tr.Bytes(trajectory.Truncated)[at] != 0
}

// ends reports whether a written row is the last of an episode.
func (r *rows) ends(at int) bool { return r.tr.Bytes(trajectory.Valid)[at] != 0 && r.hasEnded(at) }

// cut truncates an episode that was running before row t because that row is lost: obs[t] is its last observation, and value[t],
// which has been asked for already, is its value. A previous block takes its last value from its own last row.
func (r *rows) cut(t, env int) {
	before := (t-1)*r.n + env
	if t == 0 || r.hasEnded(before) {
		return
	}
	r.tr.Bytes(trajectory.Truncated)[before] = 1
	r.tr.KeepFinal(env, t)
	r.tr.Float32(trajectory.Bootstrap)[before] = r.tr.Float32(trajectory.Value)[t*r.n+env]
	r.cuts[before] |= cutRow
	r.anyCuts = true
}

// endWhere truncates episodes before row t because other environments make the next rows. It concerns the environments, or
// agents, for which ends is not 0. They wait for a reset. ends is left 1 where an episode was running, and endWhere returns
// their number. valued says that value[t] is there.
func (r *rows) endWhere(ends []byte, t int, valued bool) (ended int) {
	var ages []byte
	if r.writing {
		ages = r.tr.Ages(t)
	}
	for i, end := range ends {
		if end == 0 {
			continue
		}
		r.phantom[i] = 0
		r.reports.forget(i)
		r.lose(i)
		if ages != nil {
			ages[i] = 0
		}
	}
	switch {
	case t == 0:
		r.endCarried(ends)
	case r.tr.Schema.Has(trajectory.Active):
		r.endActing(ends, t, valued)
	default:
		r.endStepped(ends, t, valued)
	}
	if t > 0 {
		r.whole.endWhere(r.gone)
	}
	return bytes.Count(ends, []byte{1})
}

// endCarried is endWhere before the first row of a block.
func (r *rows) endCarried(ends []byte) {
	for i, end := range ends {
		if end == 0 {
			continue
		}
		if r.accounts[i].Length == 0 {
			ends[i] = 0
		}
		r.accounts[i] = account{}
		if r.agents != nil {
			r.agents.forget(i)
		}
	}
}

// endStepped is endWhere after the first row of a block, where agents always act.
func (r *rows) endStepped(ends []byte, t int, valued bool) {
	valid, cuts := r.tr.RowBytes(trajectory.Valid, t-1), r.cuts[(t-1)*r.n:]
	terminated, truncated := r.tr.RowBytes(trajectory.Terminated, t-1), r.tr.RowBytes(trajectory.Truncated, t-1)
	bootstrap, value := r.tr.Row(trajectory.Bootstrap, t-1).Float32(), r.tr.Row(trajectory.Value, t).Float32()
	for i, end := range ends {
		if end == 0 || valid[i] == 0 || terminated[i]|truncated[i] != 0 {
			ends[i] = 0
			continue
		}
		truncated[i] = 1
		cuts[i] |= endRow
		r.anyCuts = true
		if valued {
			bootstrap[i] = value[i]
		} else {
			r.bootstrap = true
		}
	}
	r.tr.KeepFinalWhere(ends, t)
}

// endUntold forgets a running episode. It has not ended by itself, so its return says nothing of the policy.
func (r *rows) endUntold(a *account) {
	r.c.lostEpisodes.Inc()
	*a = account{}
}

// forget forgets the running episodes.
func (r *rows) forget() {
	r.foundAll()
	clear(r.phantom)
	clear(r.accounts)
	for env := range r.n {
		r.reports.forget(env)
		if r.agents != nil {
			r.agents.forget(env)
		}
	}
}

// validBefore returns how many env steps of the rows before row t have not been counted as lost.
func (r *rows) validBefore(t int) (steps int) {
	for _, valid := range r.tr.Bytes(trajectory.Valid)[:t*r.n] {
		steps += int(valid)
	}
	return steps
}

// count goes through the block in (t, env) order, emits the episodes that end in it and returns the number of valid
// rows. Rewards are raw. An episode that a loss has cut is not emitted: the host ended it, and a window of returns
// that counted it would be lower the more processes die. The same goes for an episode that a change has ended. by
// made all of the block; nil if several did. Environments are counted from first on, steps from firstStep.
func (r *rows) count(by *maker, first int, firstStep uint64) (valid int) {
	if r.agents != nil {
		r.holdUnfinished()
	}
	c := counted{rows: r, by: by, first: first, firstStep: firstStep,
		reward: r.tr.Float32(trajectory.Reward), valid: r.tr.Bytes(trajectory.Valid),
		terminated: r.tr.Bytes(trajectory.Terminated), truncated: r.tr.Bytes(trajectory.Truncated),
	}
	for at := 0; at < len(c.valid); at += r.n {
		env := 0
		for ; env+together <= r.n; env += together {
			valid += c.several(env, at+env)
		}
		for ; env < r.n; env++ {
			valid += c.one(env, at+env)
		}
	}
	if r.agents != nil {
		r.countUnfinished()
	}
	if by != nil {
		by.version.episodes.Add(c.episodes)
		by.version.returns.Add(c.returns)
	}
	r.countRows(valid, by)
	return valid
}

// counted has the columns that count reads, by place.
type counted struct {
	*rows
	by    *maker
	first int

	firstStep uint64 // of the block

	reward                       []float32
	valid, terminated, truncated []byte

	episodes uint64 // announced of by's
	returns  float64
}

// together is how many environments several counts: as many as a word has flags.
const together = 8

// several counts the rows of environments from env on, and returns how many are valid. Nearly always all are, and none or one ends.
func (c *counted) several(env, at int) (valid int) {
	const allValid = 0x0101010101010101
	if binary.LittleEndian.Uint64(c.valid[at:]) != allValid {
		for i := range together {
			valid += c.one(env+i, at+i)
		}
		return valid
	}
	reward := c.reward[at:][:together]
	for i := range c.accounts[env:][:together] {
		c.accounts[env+i].add(reward[i])
	}
	ends := binary.LittleEndian.Uint64(c.terminated[at:]) | binary.LittleEndian.Uint64(c.truncated[at:])
	for ; ends != 0; ends &= ends - 1 { // each is one bit
		i := bits.TrailingZeros64(ends) / 8
		c.end(env+i, at+i)
	}
	return together
}

// one counts a row of one environment, and returns 1 if it is valid.
func (c *counted) one(env, at int) (valid int) {
	a := &c.accounts[env]
	if c.valid[at] != 0 {
		valid = 1
		a.add(c.reward[at])
	} else if !c.endsUnlearned(at, a) {
		return 0
	}
	if c.terminated[at]|c.truncated[at] != 0 {
		c.end(env, at)
	}
	return valid
}

// end is for the last row of an episode.
func (c *counted) end(env, at int) {
	a := &c.accounts[env]
	switch cut := c.cuts[at]; {
	case cut&lateEnd != 0: // it ends in a later row
		return
	case cut&endRow != 0: // by a change
	case cut&cutRow != 0: // the lost row after it ends the episode
		return
	default:
		c.announce(env, at, a)
	}
	*a = account{}
}

// announce emits an episode that has ended.
func (c *counted) announce(env, at int, a *account) {
	by, agents := c.makerOf(at, c.by), c.c.schema.Agents
	if c.by != nil {
		c.episodes++
		c.returns += a.Return
	} else {
		by.version.episodes.Inc()
		by.version.returns.Add(a.Return)
	}
	version, policy := c.acting.in(c.tr, at)
	e := trajectory.Episode{
		Return: float32(a.Return), Length: a.Length, Env: uint32(c.first + env/agents), Agent: uint16(env % agents),
		Terminated: c.terminated[at] != 0, Task: by.task, Policy: policy, Number: c.numbers[env], Begun: uint16(c.c.h.Begun),
	}
	c.numbers[env]++
	m := e.Message()
	m.PolicyVersion = version
	by.tape.End(at/c.n, &e, version, c.firstStep)
	err := c.c.episodes.Emit(m)
	switch {
	case errors.Is(err, bus.ErrOverrun): // more episodes in one block than can wait: the receiver gets the others
		c.c.untold.Inc()
	case err != nil:
		c.c.h.Fail(err)
	}
	if !by.onTrial {
		c.reports.count(at)
	}
}

// endsUnlearned reports whether an episode may end in a row that is in no loss: a row where its agent does not act. An episode that was
// lost or cut off there is not announced.
func (r *rows) endsUnlearned(at int, a *account) bool {
	switch cut := r.cuts[at]; {
	case cut&lostRow != 0:
		r.endUntold(a)
	case cut&endRow != 0:
		*a = account{}
	}
	return a.Length > 0
}

// countRows counts the valid rows of the block for the versions that have made them.
func (r *rows) countRows(valid int, by *maker) {
	if by != nil {
		by.version.envSteps.Add(uint64(valid))
		return
	}
	for i, valid := range r.tr.Bytes(trajectory.Valid) {
		r.makerOf(i, nil).version.envSteps.Add(uint64(valid))
	}
}

// countDropped counts the rows before row t of a block that is given up, for episodes that continue without them.
// Episodes that ended in them are not announced.
func (r *rows) countDropped(t int) {
	reward, valid := r.tr.Float32(trajectory.Reward), r.tr.Bytes(trajectory.Valid)
	terminated, truncated := r.tr.Bytes(trajectory.Terminated), r.tr.Bytes(trajectory.Truncated)
	r.forgetCarried()
	for i := range t * r.n {
		a := &r.accounts[i%r.n]
		switch {
		case valid[i] == 0 && r.cuts[i]&lostRow != 0:
			r.endUntold(a)
		case terminated[i]|truncated[i] != 0:
			*a = account{}
		case valid[i] == 0:
		default:
			a.add(reward[i])
		}
	}
}
