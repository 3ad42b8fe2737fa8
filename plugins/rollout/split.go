package rollout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// split is one part of the environments: a guest instance, its blocks and where it is in its turn.
type split struct {
	rows
	all   []*split // of the component, this one too
	index int
	first int // global index of environment 0
	seeds seeds

	batch    *batch    // that steps into the block, or did before others began to step beside it
	versions *versions // while several step side by side; else nil
	spare    *batch    // that the split may have to go back to
	next     *move     // waits for its boundary

	free  []uint32 // blocks, in the order of their credits
	loan  arena.Loan
	t     int    // row that inference is asked about
	asked uint64 // of which policies, a bit each, that have not answered yet

	steps    uint64 // env steps that each environment made before row 0 of the block
	sequence uint64 // of the block
	carried  bool   // what was observed in row T of the previous block waits in carry
	carry    []byte // see trajectory.SaveObserved
	params   []byte // reset parameters of the newest block
	awaits   awaits // what another component is asked to write into this one

	minVersion uint64 // of the policies that acted in the block

	ready    func() // posts onReady
	reporter reporter
	stepping bool // row t is being stepped
}

func newSplit(c *shared, index int, b *batch) *split {
	s := &split{
		rows: newRows(c), index: index, first: b.first(), batch: b, carry: make([]byte, c.schema.ObservedBytes()),
		params: make([]byte, c.schema.ParamBytes()),
		steps:  uint64(c.life) * trajectory.LifeSteps,
	}
	s.reporter = s.report
	s.seeds = seeds{c: c, first: s.first, values: make([]uint64, c.envs())}
	s.seeds.draw(c.attempts)
	onReady := s.onReady
	s.ready = func() { c.h.Receiver.Post(onReady, hostabi.Message{}) }
	return s
}

// report counts a number with the episode that it belongs to. Where the runtime does not know the environment (-1) it counts
// by itself, unless another batch makes some of the rows: then nobody can tell whether it is about one that counts.
func (s *split) report(b *batch, r env.Metric) {
	if s.versions != nil && (r.Env < 0 || s.versions.owner[r.Env] != b) {
		return
	}
	m := s.reports.metric(r.Name)
	switch {
	case r.Env >= 0:
		m.running[r.Env*s.c.schema.Agents].add(r.Value, r.Gather)
	case !b.onTrial:
		m.to.Observe(r.Value)
	}
}

// credit announces, from the goroutine that freed it, that a block of the split is free.
func (s *split) credit(block uint32) {
	s.c.h.Receiver.Control(loop.Func(s.onCredit), hostabi.Message{T: block})
}

// onCredit takes a block that has become free and starts on it if the split has been waiting for one.
func (s *split) onCredit(m *hostabi.Message) {
	s.free = append(s.free, m.T)
	if !s.writing {
		s.begin()
	}
}

// lend takes the next free block. One that another process has taken or spoilt comes back with a credit.
func (s *split) lend() (arena.Loan, error) {
	for len(s.free) > 0 {
		block := s.free[0]
		s.free = append(s.free[:0], s.free[1:]...)
		if loan, err := s.c.arena.LoanBlock(block); !errors.Is(err, arena.ErrBusy) {
			return loan, err
		}
	}
	return arena.Loan{}, arena.ErrBusy
}

// begin starts a block: binds it, writes row 0 and asks for its actions, or for reset parameters first.
func (s *split) begin() {
	if s.c.rest.wanted && !s.behind() {
		return
	}
	loan, err := s.lend()
	if errors.Is(err, arena.ErrBusy) {
		return
	}
	if err != nil {
		s.c.h.Fail(err)
		return
	}
	s.loan, s.t = loan, 0
	s.open(loan.Bytes(), loan.Block())
	s.minVersion = ^uint64(0)
	if s.paramsOf().Load(s.params); s.c.resets != nil {
		s.request(awaitsParams, s.c.resets)
		return
	}
	s.enter()
}

// firstRow binds the block and writes what is observed in row 0.
func (s *split) firstRow() error {
	if err := s.bind(); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.invalidateRow(-1, false)
	}
	if s.carried {
		s.tr.LoadObserved(0, s.carry)
		s.c.carriedBytes.Add(uint64(len(s.carry)))
		return s.resetLost(0)
	}
	s.foundAll() // the reset is for all
	s.acting.beginAll(s.first, s.steps)
	if err := s.reset(0, nil, s.seeds.values); err != nil {
		return err
	}
	return s.resetLost(0)
}

// bind makes the environments step into the block. Those that step beside others have a block of their own.
func (s *split) bind() error {
	if s.versions != nil {
		s.versions.turn()
		return nil
	}
	err := s.batch.env.Bind(s.batch.block(s.tr.Mem, s.block))
	if s.batch.pad != nil && err == nil {
		s.letGo(s.batch.pad) // that it was bound to before
		s.batch.pad = nil
	}
	return err
}

// letGo releases what the split needs no more, but not before stepping goes on: while memory is given back nobody can
// map any, or touch some for the first time.
func (s *split) letGo(c closer) {
	if s.next == nil || !s.next.later(c) {
		s.c.closing.release(c)
	}
}

// ask sends row t to inference.
func (s *split) ask() {
	s.acting.mark(s.tr, s.t)
	r := trajectory.ActRequest{
		Block: s.loan.Handle(), T: s.t, Split: uint32(s.index),
		Step: s.steps + uint64(s.t), FirstEnv: uint32(s.first * s.c.schema.Agents),
		ValueOnly: s.t == s.c.config.Horizon, Bootstrap: s.bootstrap,
	}
	s.asked = 1<<len(s.acting.newest) - 1
	m := r.Message()
	m.Sender = s.c.h.ID // the reply comes back to it
	if err := s.c.obsReady.Emit(m); err != nil {
		s.c.h.Fail(err)
	}
}

func (s *split) expects(r trajectory.ActRequest) bool {
	return s.asked>>r.Policy&1 != 0 && r.Block == s.loan.Handle() && r.T == s.t
}

// onActions takes the answer of a policy. When all have answered, it steps the environments with the actions of row t, or finishes
// the block after its last row.
func (s *split) onActions(policy int, version uint64) {
	s.asked &^= 1 << policy
	if s.t < s.c.config.Horizon {
		s.minVersion, s.acting.newest[policy] = min(s.minVersion, version), max(s.acting.newest[policy], version)
	}
	if s.asked != 0 {
		return
	}
	if s.t == s.c.config.Horizon {
		if s.c.rewards != nil {
			s.request(awaitsRewards, s.c.rewards)
			return
		}
		s.finish()
		return
	}
	if s.next != nil && s.next.at == component.AtNow {
		s.next.drop()
		return
	}
	if s.agents != nil {
		s.tr.KeepState(s.t)
	}
	if s.versions != nil {
		if s.stepping = s.versions.step(s.t, s.ready); !s.stepping {
			s.stepped(nil)
		}
		return
	}
	s.batch.calls++
	if s.batch.starter == nil {
		s.stepped(s.batch.env.Step(s.t))
		return
	}
	over, err := s.batch.starter.StartStep(s.t, s.ready)
	s.batch.stepping, s.stepping = !over, !over
	if over {
		s.stepped(err)
	}
}

// onReady goes on with a step that was begun.
func (s *split) onReady(*hostabi.Message) {
	switch {
	case !s.stepping:
	case s.versions == nil:
		s.batch.stepping, s.stepping = false, false
		s.stepped(s.batch.starter.FinishStep())
	case s.versions.arrive():
		s.stepping = false
		s.stepped(nil)
	}
}

// stepped goes on when Step has returned.
func (s *split) stepped(err error) {
	if err := s.settle(err); err != nil {
		s.fault(err)
		return
	}
	s.t++
	if s.next == nil || s.next.crossRow() {
		s.ask()
	}
}

// settle completes row t, in which the environments have written the rest and obs[t+1].
func (s *split) settle(err error) error {
	if s.versions != nil {
		if err := s.versions.settle(s.t); err != nil {
			return err
		}
		return s.nextTurns()
	}
	s.batch.learnRaw(s.tr, s.t)
	if err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.invalidateRow(s.t, false)
	}
	ended, env, err := s.tr.CheckStep(s.t, s.c.mode)
	if err != nil {
		return s.batch.outputFault(hostabi.ExportStep, env, err)
	}
	ended = s.complete(s.t, ended)
	if err := s.nextTurns(); err != nil {
		return err
	}
	if ended != 0 && s.c.mode != hostabi.SameStep {
		if err := s.endEpisodes(); err != nil {
			return err
		}
	}
	return s.resetLost(s.t + 1)
}

// nextTurns draws who plays the agents whose episodes have ended in row t from now on. It returns an error for an environment
// none of whose agents acts any more.
func (s *split) nextTurns() error {
	if s.agents == nil {
		return nil
	}
	if s.agents.AnyEnded {
		s.acting.beginWhere(s.agents.Ended, s.first, s.steps+uint64(s.t)+1)
	}
	env := s.agents.Idle()
	if env < 0 {
		return nil
	}
	return s.ownerOf(env).outputFault(hostabi.ExportStep, env,
		fmt.Errorf("%w: no agent has acted in %d steps: somebody must be %v", trajectory.ErrOutput, trajectory.MaxIdle, trajectory.Active))
}

// endEpisodes does what the ends of episodes in row t ask for where the environments do not reset themselves in the same step, as those
// with agents do.
func (s *split) endEpisodes() error {
	terminated, truncated := s.tr.Row(trajectory.Terminated, s.t).Data, s.tr.Row(trajectory.Truncated, s.t).Data
	reset := false
	for env := range s.c.envs() {
		reset = s.endOne(s.t, env, terminated[env]|truncated[env] != 0) || reset
	}
	if !reset {
		return nil
	}
	return s.reset(s.t+1, s.resetMask, nil)
}

// reset starts new episodes where mask is not 0, or everywhere, in a row of the block. Environments that are lost
// meanwhile wait for resetLost.
func (s *split) reset(row int, mask []uint8, seeds []uint64) error {
	if s.versions != nil {
		return s.versions.reset(row, mask, seeds)
	}
	if err := s.batch.env.Reset(row, mask, seeds); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.invalidateRow(row-1, true)
	}
	s.tr.BeginWhere(row, mask)
	if s.anyGone {
		return nil // resetLost looks at the row when it is complete
	}
	if env, err := s.tr.CheckObs(row); err != nil {
		return s.batch.outputFault(hostabi.ExportReset, env, err)
	}
	return nil
}

// resetLost starts new episodes in the environments that are gone, with seeds that they have not had, until all of
// them observe something in that row.
func (s *split) resetLost(row int) error {
	if s.versions != nil {
		return s.versions.resetLost(row)
	}
	for s.anyGone {
		mask := s.goneMask()
		s.foundAll()
		s.seeds.draw(s.c.attempts)
		if err := s.reset(row, mask, s.seeds.values); err != nil {
			return err
		}
	}
	return nil
}

// finish commits the block, emits it with the episodes that ended in it, and goes on if a block is free.
func (s *split) finish() {
	m := s.next
	crosses := m != nil && m.at != component.AtEpisode
	if crosses {
		m.startClock()
		m.leave(s.t, true)
	}
	if s.agents != nil {
		s.agents.moveLate(s.tr)
	}
	by := s.stampBlock()
	rows := s.count(by, s.first)
	s.acting.divide(s.tr)
	newest := s.batch
	if s.versions != nil {
		newest = s.versions.all[len(s.versions.all)-1]
	}
	*s.tr.Meta() = trajectory.Meta{
		Sequence: s.sequence, FirstEnv: uint32(s.first), Rollout: uint16(s.c.h.Index), Split: uint16(s.index),
		FirstStep: s.steps, ValidRows: uint32(rows), PluginVersion: newest.version.id,
		MinVersion: s.minVersion, MaxVersion: slices.Max(s.acting.newest),
	}
	s.keepRow(s.t)
	s.steps += uint64(s.t)
	s.sequence++
	s.writing = false
	s.c.envSteps.Add(uint64(rows))
	if err := s.handOver(); err != nil {
		s.c.h.Fail(err)
		return
	}
	if crosses {
		m.goOver()
	}
	s.begin()
	if crosses {
		m.finish()
	}
	s.endPause()
}

// stampBlock completes the column of versions of the block. It returns what made all of it, nil if it is several.
func (s *split) stampBlock() *maker {
	if !s.mixed && s.versions == nil {
		s.stampAll(s.batch.maker)
		return &s.batch.maker
	}
	for row := range s.n {
		s.stamp(row, s.c.config.Horizon, s.ownerOf(row/s.c.schema.Agents).maker)
	}
	return nil
}

// keepRow keeps what is observed in a row for the next block.
func (s *split) keepRow(row int) {
	s.tr.SaveObserved(s.carry, row)
	s.carried = true
}

// handOver commits the block and lets go of it; what received it holds claims of its own.
func (s *split) handOver() error {
	handle, err := s.loan.Commit()
	if err != nil {
		return err
	}
	s.batch.countCopied()
	err = s.c.trajectories.Emit(hostabi.Message{
		Handle: handle, Split: uint32(s.index), PolicyVersion: s.minVersion,
	})
	if err != nil {
		return err
	}
	return s.c.arena.Release(handle)
}

// abort gives the block up. Its credit comes back.
func (s *split) abort() {
	s.writing = false
	if err := s.loan.Abort(); err != nil {
		s.c.h.Fail(err)
	}
}

// ownerOf returns the batch whose rows of an environment count.
func (s *split) ownerOf(env int) *batch {
	if s.versions == nil {
		return s.batch
	}
	return s.versions.owner[env]
}

// batches returns all that the split has.
func (s *split) batches() []*batch {
	list := []*batch{s.batch}
	add := func(b *batch) {
		if b != nil && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	if s.versions != nil {
		for _, b := range s.versions.all {
			add(b)
		}
	}
	add(s.spare)
	if s.next != nil {
		add(s.next.to)
	}
	return list
}

// stop closes all that the split has.
func (s *split) stop() error {
	var errs []error
	for _, b := range s.batches() {
		errs = append(errs, b.close())
	}
	if s.next != nil && s.next.pad != nil {
		errs = append(errs, s.next.pad.close())
	}
	if s.writing {
		s.writing = false
		errs = append(errs, s.loan.Abort())
	}
	return errors.Join(errs...)
}
