package rollout

import (
	"errors"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// split is one part of the environments: a guest instance, its blocks and where it is in its turn.
type split struct {
	*batch // that steps into the block, or did before others began to step beside it
	sides  *sides

	c     *Rollout
	index int
	first int // global index of environment 0
	n     int // environments
	seeds []uint64
	tries int // attempt that the seeds are for

	free    []uint32 // blocks, in the order of their credits
	loan    arena.Loan
	tr      trajectory.Trajectory
	writing bool // a block is bound
	t       int  // row that inference is asked about
	asked   bool

	steps     uint64 // env steps that each environment made before row 0 of the block
	sequence  uint64 // of the block
	bootstrap bool   // row t-1 has truncated environments whose last observation wants a value

	carried                bool   // what was observed in row T of the previous block waits in carry
	carry                  []byte // see trajectory.SaveObserved
	phantom                []byte // 1 where the next step belongs to no episode (next-step autoreset)
	resetMask              []byte
	minVersion, maxVersion uint64

	ages     []uint32 // env steps of the running episodes, for the episode limit
	limited  []byte   // 1 where the limit ended the episode in row t
	accounts []account
	reports  reports

	ready    func() // posts onReady
	stepping bool   // row t is being stepped
	arrived  int    // calls of onReady for it

	next  *move  // waits for its boundary
	spare *batch // that the split may have to go back to

	stamped []int32  // rows of the block whose maker is written down, by environment
	mixed   bool     // some are
	makers  []uint16 // [T][N], of those: places in the cast
	stamps  []uint64 // by block, the version of all its rows where one has made them
	cast    []maker

	gone    []byte // 1 where the environment was lost and has not been reset since
	anyGone bool
	cuts    []byte // [T][N]: what losses did to the block's rows, see lost.go
	anyCuts bool
}

func newSplit(c *Rollout, index, first, n int, b *batch) *split {
	s := &split{
		batch: b, c: c, index: index, first: first, n: n, stamped: make([]int32, n),
		makers: make([]uint16, n*c.config.Horizon), stamps: make([]uint64, c.arena.Blocks()),
		seeds: make([]uint64, n), phantom: make([]byte, n), resetMask: make([]byte, n),
		ages: make([]uint32, n), limited: make([]byte, n), accounts: make([]account, n),
		gone: make([]byte, n), cuts: make([]byte, n*c.config.Horizon), carry: make([]byte, c.schema.ObservedBytes()),
	}
	for block := range s.stamps {
		s.stamps[block] = stampedBySeveral
	}
	s.seed(c.attempts)
	s.steps = uint64(c.life) * trajectory.LifeSteps
	onReady := s.onReady
	s.ready = func() { c.h.Receiver.Post(onReady, hostabi.Message{}) }
	return s
}

// seed derives the environments' seeds; attempt counts restarts and changes, so that an environment which is begun
// anew does not replay what it did before, or what led to a fault.
func (s *split) seed(attempt int) {
	s.tries = attempt
	run := s.c.seedOf(attempt)
	for i := range s.seeds {
		s.seeds[i] = env.Seed(run, s.first+i)
	}
}

// What each life has room for: instances that begin while the run goes on, until it is resumed, and attempts.
const (
	maxBegun     = 1 << 14
	lifeAttempts = 1 << 20
)

// seedOf returns what takes the place of the run's seed in an attempt.
func (c *Rollout) seedOf(attempt int) uint64 {
	if attempt == 0 {
		return c.h.Run.Seed
	}
	return env.Seed(c.h.Run.Seed, -attempt)
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

// begin starts a block: binds it, writes row 0 and asks for its actions.
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
	s.loan, s.writing, s.t, s.bootstrap = loan, true, 0, false
	s.tr = trajectory.Trajectory{Schema: s.c.schema, Mem: loan.Bytes()}
	s.minVersion, s.maxVersion = ^uint64(0), 0
	s.forgetCuts()
	s.forgetStamps()
	if err := s.firstRow(loan.Block()); err != nil {
		s.fault(err)
		return
	}
	s.ask()
}

// firstRow binds the block and writes what is observed in row 0.
func (s *split) firstRow(block uint32) error {
	if err := s.bind(block); err != nil {
		if !s.lose(err) {
			return err
		}
		s.strike(-1, false)
	}
	if s.carried {
		s.tr.LoadObserved(0, s.carry)
		s.c.carriedBytes.Add(uint64(len(s.carry)))
		return s.revive(0)
	}
	s.foundAll() // the reset is for all
	if err := s.reset(0, nil, s.seeds); err != nil {
		return err
	}
	return s.revive(0)
}

// bind makes the environments step into a block. Those that step beside others have a block of their own.
func (s *split) bind(block uint32) error {
	if s.sides != nil {
		s.sides.turn()
		return nil
	}
	err := s.env.Bind(s.blockFor(s.batch, block))
	if s.pad != nil && err == nil {
		s.letGo(s.pad) // that it was bound to before
		s.pad = nil
	}
	return err
}

// blockFor returns the block in the words of one version.
func (s *split) blockFor(b *batch, block uint32) env.Block {
	return env.Block{
		Trajectory: trajectory.Trajectory{Schema: b.schema, Mem: s.tr.Mem}, Index: block, FD: s.c.arena.FD(),
		Offset: s.c.arena.BlockOffset(block),
	}
}

// ask sends row t to inference.
func (s *split) ask() {
	r := trajectory.ActRequest{
		Block: s.loan.Handle(), T: s.t, Split: uint32(s.index),
		Step: s.steps + uint64(s.t), FirstEnv: uint32(s.first),
		ValueOnly: s.t == s.c.config.Horizon, Bootstrap: s.bootstrap,
	}
	s.asked = true
	m := r.Message()
	m.Sender = s.c.h.ID // the reply comes back to it
	if err := s.c.obsReady.Emit(m); err != nil {
		s.c.h.Fail(err)
	}
}

func (s *split) expects(r trajectory.ActRequest) bool {
	return s.asked && r.Block == s.loan.Handle() && r.T == s.t
}

// onActions steps the environments with the actions of row t, or finishes the block after its last row.
func (s *split) onActions(version uint64) {
	s.asked = false
	if s.t == s.c.config.Horizon {
		s.finish()
		return
	}
	if s.next != nil && s.next.at == component.AtNow {
		s.drop()
		return
	}
	s.minVersion, s.maxVersion = min(s.minVersion, version), max(s.maxVersion, version)
	if s.sides != nil {
		s.stepSides()
		return
	}
	s.calls++
	if s.starter == nil {
		s.stepped(s.env.Step(s.t))
		return
	}
	over, err := s.starter.StartStep(s.t, s.ready)
	s.batch.stepping, s.stepping = !over, !over
	if over {
		s.stepped(err)
	}
}

// onReady goes on with a step that was begun.
func (s *split) onReady(*hostabi.Message) {
	if !s.stepping {
		return
	}
	if s.sides != nil {
		s.arrivedSide()
		return
	}
	s.batch.stepping, s.stepping = false, false
	s.stepped(s.starter.FinishStep())
}

// stepped goes on when Step has returned.
func (s *split) stepped(err error) {
	if err := s.settle(err); err != nil {
		s.fault(err)
		return
	}
	s.t++
	if s.next == nil || s.crossRow() {
		s.ask()
	}
}

// settle completes row t, in which the environments have written the rest and obs[t+1].
func (s *split) settle(err error) error {
	if s.sides != nil {
		return s.settleSides()
	}
	if err != nil {
		if !s.lose(err) {
			return err
		}
		s.strike(s.t, false)
	}
	ended, env, err := s.tr.CheckStep(s.t, s.c.mode)
	if err != nil {
		return s.outputFault(hostabi.ExportStep, env, err)
	}
	s.markValid()
	if s.c.config.EpisodeLimit > 0 {
		ended = s.limit(ended)
	}
	s.endReports()
	s.bootstrap = ended&trajectory.AnyTruncated != 0
	if ended == 0 || s.c.mode == hostabi.SameStep && s.c.config.EpisodeLimit == 0 {
		return s.revive(s.t + 1)
	}
	if err := s.endEpisodes(); err != nil {
		return err
	}
	return s.revive(s.t + 1)
}

// markValid writes valid[t]: 0 for steps that belong to no episode, whose flags then mean nothing, and for lost ones.
func (s *split) markValid() {
	valid := s.tr.Row(trajectory.Valid, s.t).Data
	if s.c.mode != hostabi.NextStep {
		for i := range valid {
			valid[i] = 1 - s.gone[i]
		}
		return
	}
	terminated, truncated := s.tr.Row(trajectory.Terminated, s.t).Data, s.tr.Row(trajectory.Truncated, s.t).Data
	for i := range valid {
		valid[i] = 1 - (s.phantom[i] | s.gone[i])
		if s.phantom[i] != 0 {
			terminated[i], truncated[i] = 0, 0
		}
		s.phantom[i] = 0
	}
}

// endEpisodes does what a same-step guest does itself, where the guest does not or where the host's limit ended
// the episode: keeps the last observation in final_obs, then resets, or lets the next step be the phantom one.
func (s *split) endEpisodes() error {
	terminated, truncated := s.tr.Row(trajectory.Terminated, s.t).Data, s.tr.Row(trajectory.Truncated, s.t).Data
	reset := false
	for i := range s.n {
		limited := s.limited[i] != 0
		s.limited[i], s.resetMask[i] = 0, 0
		if terminated[i]|truncated[i] == 0 || !limited && s.c.mode == hostabi.SameStep {
			continue
		}
		s.tr.KeepFinal(i, s.t+1)
		if !limited && s.c.mode == hostabi.NextStep {
			s.phantom[i] = 1
			continue
		}
		s.resetMask[i], reset = 1, true
	}
	if !reset {
		return nil
	}
	return s.reset(s.t+1, s.resetMask, nil)
}

// reset starts new episodes where mask is not 0, or everywhere, in a row of the block. Environments that are lost
// meanwhile wait for revive.
func (s *split) reset(row int, mask []byte, seeds []uint64) error {
	if s.sides != nil {
		return s.resetSides(row, mask, seeds)
	}
	if err := s.env.Reset(row, mask, seeds); err != nil {
		if !s.lose(err) {
			return err
		}
		s.strike(row-1, true)
	}
	if s.anyGone {
		return nil // revive looks at the row when it is complete
	}
	if env, err := s.tr.CheckObs(row); err != nil {
		return s.outputFault(hostabi.ExportReset, env, err)
	}
	return nil
}

// finish commits the block, emits it with the episodes that ended in it, and goes on if a block is free.
func (s *split) finish() {
	m := s.next
	crosses := m != nil && m.at != component.AtEpisode
	if crosses {
		m.arrive()
		s.leave(s.t, true)
	}
	rows := s.account()
	s.reports.drop()
	*s.tr.Meta() = trajectory.Meta{
		Sequence: s.sequence, FirstEnv: uint32(s.first), Rollout: uint16(s.c.h.Index), Split: uint16(s.index),
		FirstStep: s.steps, ValidRows: uint32(rows), PluginVersion: s.newest().version.id,
		MinVersion: s.minVersion, MaxVersion: s.maxVersion,
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
		s.goOver()
	}
	s.begin()
	if crosses {
		s.crossed(m)
	}
	s.c.rests()
}

// keepRow keeps what is observed in a row for the next block.
func (s *split) keepRow(row int) {
	s.tr.SaveObserved(s.carry, row)
	s.carried = true
}

// handOver commits the block and lets go of it; whoever received it holds claims of their own.
func (s *split) handOver() error {
	handle, err := s.loan.Commit()
	if err != nil {
		return err
	}
	err = s.c.trajectories.Emit(hostabi.Message{
		Handle: handle, Split: uint32(s.index), PolicyVersion: s.minVersion,
	})
	if err != nil {
		return err
	}
	return s.c.arena.Release(handle)
}

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
