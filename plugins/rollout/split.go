package rollout

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// split is one part of the environments: a guest instance, its blocks and where it is in its turn.
type split struct {
	rows  rows
	all   []*split // of the component, this one too
	index int
	first int // global index of environment 0
	seeds seeds

	batch    *batch    // that steps into the block, or did before others began to step next to it
	versions *versions // while several step side by side; else nil
	spare    *batch    // that the split may have to go back to
	next     *move     // waits for its boundary

	free  []uint32 // blocks, in the order of their credits
	loan  arena.Loan
	t     int    // row that inference is asked about
	last  bool   // nothing is stepped after it: its values complete the block
	asked uint64 // policies that have not answered yet, a bit each

	steps    uint64 // Meta.FirstStep of the block
	sequence uint64 // of the block
	lost     uint64 // its dropped blocks that were made up for; see recount
	turn     uint64 // of the block, counted over all splits
	carried  bool   // the observation in row T of the previous block waits in carry
	carry    []byte // see trajectory.SaveObserved
	params   []byte // reset parameters of the newest block
	awaits   awaits // the columns that another component is asked to write into this block
	owed     owed   // the same, and actions, for other goroutines

	minVersion uint64    // of the policies that acted in the block
	since      time.Time // when it was begun, where datasets are followed

	ready    func() // posts onReady
	reporter reporter
	stepping bool // row t is being stepped
}

// Signals of the requests that a split makes of other components.
const (
	signalResets  = "resets"
	signalRewards = "rewards"
)

// awaits says what another component has yet to write into a split's block.
type awaits uint8

const (
	awaitsNothing awaits = iota
	awaitsParams         // the reset parameters, before row 0
	awaitsRewards        // the rewards to learn from, after the last step
	awaitsActions        // for row t; of owed alone
)

// inTurn returns the splits in the order in which they began their blocks.
func inTurn(splits []*split) []*split {
	return slices.SortedStableFunc(slices.Values(splits), func(a, b *split) int { return cmp.Compare(a.turn, b.turn) })
}

func newSplit(c *shared, index int, b *batch) (*split, error) {
	rows, err := newRows(c)
	s := &split{
		rows: rows, index: index, first: b.first(), batch: b, carry: make([]byte, c.schema.ObservedBytes()),
		params: make([]byte, c.schema.ParamBytes()),
		steps:  uint64(c.life) * trajectory.LifeSteps,
	}
	trajectory.ClearParams(s.params)
	s.reporter = s.report
	s.seeds = seeds{c: c, first: s.first, values: make([]uint64, c.envs())}
	s.seeds.draw(c.attempts)
	return s, err
}

// report counts a number with the episode that it belongs to. Where the runtime does not know the environment (-1) the
// number counts by itself, unless another batch makes some of the rows: then nobody knows whether it is about an environment
// that counts.
func (s *split) report(b *batch, r env.Metric) {
	if s.versions != nil && (r.Env < 0 || s.versions.owner[r.Env] != b) {
		return
	}
	m := s.rows.reports.metric(r.Name)
	switch {
	case r.Env >= 0:
		m.running[r.Env*s.rows.c.schema.Agents].add(r.Value, r.Gather)
	case !b.onTrial:
		m.to.Observe(r.Value)
	}
}

// lend takes the next free block. A block that another process has taken or spoilt comes back with a credit.
func (s *split) lend() (arena.Loan, error) {
	for len(s.free) > 0 {
		block := s.free[0]
		s.free = append(s.free[:0], s.free[1:]...)
		if loan, err := s.rows.c.arena.LoanBlock(block); !errors.Is(err, arena.ErrBusy) {
			return loan, err
		}
	}
	return arena.Loan{}, arena.ErrBusy
}

// letGo closes c, but not before stepping resumes: while memory is given back nobody can map any, or touch some for
// the first time.
func (s *split) letGo(c closer) {
	if s.next == nil || !s.next.later(c) {
		s.rows.c.closing.release(c)
	}
}

// stampBlock completes the column of versions of the block. It returns the maker of all rows, nil if there are several.
func (s *split) stampBlock() *maker {
	if b := s.stepper().whole(); b != nil && !s.rows.mixed {
		s.rows.stampAll(b.maker)
		return &b.maker
	}
	s.stampRows(s.rows.c.config.Horizon, nil)
	return nil
}

// stampRows records the makers of the rows before row t, except of one batch's environments.
func (s *split) stampRows(t int, but *batch) {
	for env := range s.rows.c.envs() {
		if first, end := s.rows.c.schema.RowsOf(env); s.ownerOf(env) != but {
			s.rows.stamp(first, end, t, s.ownerOf(env).maker)
		}
	}
}

// keepRow keeps the observation in a row for the next block.
func (s *split) keepRow(row int) {
	s.rows.tr.SaveObserved(s.carry, row)
	s.carried = true
}

// handOver commits the block and releases it; its receivers hold their own claims.
func (s *split) handOver() error {
	handle, err := s.loan.Commit()
	if err != nil {
		return err
	}
	s.batch.countCopied()
	s.rows.c.h.Trace.Wrote(s.rows.c.h.Name, s.index, handle, s.since)
	err = s.rows.c.trajectories.Emit(hostabi.Message{
		Handle: handle, Split: uint32(s.index), PolicyVersion: s.minVersion,
	})
	if err != nil {
		return err
	}
	return s.rows.c.arena.Release(handle)
}

// record writes what the environments have done in the block, which is about to be handed over or given up.
func (s *split) record() {
	if s.rows.c.h.Run.Tape == nil {
		return
	}
	for _, b := range s.batches() {
		b.tape.Flush()
	}
}

// abort gives the block up. Its credit comes back.
func (s *split) abort() {
	s.rows.writing = false
	s.record()
	s.owed.set(awaitsNothing, 0)
	if err := s.loan.Abort(); err != nil {
		s.rows.c.h.Fail(err)
	}
}

// ownerOf returns the batch whose rows of an environment count.
func (s *split) ownerOf(env int) *batch { return s.stepper().ownerOf(env) }

// batches returns all batches of the split.
func (s *split) batches() []*batch {
	list := slices.Clone(s.stepper().batches())
	add := func(b *batch) {
		if b != nil && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	add(s.spare)
	if s.next != nil {
		add(s.next.to)
	}
	return list
}

// stop closes the split's batches and pad, and gives its block up.
func (s *split) stop() error {
	var errs []error
	s.record()
	for _, b := range s.batches() {
		errs = append(errs, b.close())
	}
	if s.next != nil && s.next.pad != nil {
		errs = append(errs, s.next.pad.close())
	}
	if s.rows.writing {
		s.rows.writing = false
		errs = append(errs, s.loan.Abort())
	}
	return errors.Join(errs...)
}

// request asks another component to write into the block.
func (s *split) request(w awaits, on *bus.Signal) {
	m := trajectory.BlockRequest{Block: s.loan.Handle(), Split: uint32(s.index), Step: s.steps, FirstEnv: uint32(s.first)}.Message()
	m.Sender = s.rows.c.h.ID
	s.awaits = w
	s.owed.set(w, 0)
	if err := on.Emit(m); err != nil {
		s.rows.c.h.Fail(err)
	}
}

// behind reports whether another split has begun a block of a dataset that this one has no block in yet. In synchronous
// mode learning from that dataset waits for this split, whose credit has come with the other's: a pause in between
// would keep the blocks of the others for good.
func (s *split) behind() bool {
	if !s.rows.c.h.Run.Synchronous {
		return false
	}
	for _, other := range s.all {
		if other.begun() > s.begun() {
			return true
		}
	}
	return false
}

// begun returns how many datasets the split has begun a block of.
func (s *split) begun() uint64 {
	n := s.sequence - s.lost
	if s.rows.writing {
		n++
	}
	return n
}

// recount notes that the split's block is free. In synchronous mode a block that is free before another split has begun its block of the
// same dataset was dropped on its way, and one more is made for that dataset. Otherwise the split would be ahead for good. The others would
// be behind, never pause, and might wait for a block that this split does not begin.
func (s *split) recount() {
	for _, other := range s.all {
		if n := other.begun(); n < s.begun() {
			s.lost = s.sequence - n
		}
	}
}
