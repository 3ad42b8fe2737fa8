package batcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// config is the component's table.
type config struct {
	Policy       string `toml:"policy" doc:"Policy whose rows count; empty = all." range:"a [policy] table"`
	DatasetRows  int    `toml:"dataset_rows" doc:"Env steps of a dataset, of all policies that act in its blocks: a number of environments times horizon." range:"1 to 67,108,864" unit:"env steps"`
	MaxPolicyLag int    `toml:"max_policy_lag" doc:"Drops blocks with a larger policy lag; 0 = none." range:"0 or more" unit:"versions"`
}

func defaults() config { return config{DatasetRows: 2048, MaxPolicyLag: 8} }

// datasetBlocks is how many datasets may be under way at once.
const datasetBlocks = component.DatasetBlocks

// claimed is a leased block that waits to become part of a dataset, or is part of one; or the part of a block that does.
type claimed struct {
	lease    arena.Lease
	of       trajectory.Trajectory // of the policy
	part     trajectory.Part
	firstEnv uint32 // of the block
	sequence uint64
	version  uint64 // oldest policy version that acted in it
	shape    trajectory.Shape
	rows     int
	valid    int // rows of them that the policy learns from
	split    uint32
	place    int // of the policy in it
}

// Batcher gathers trajectories into datasets.
type Batcher struct {
	config   config
	h        *component.Host
	arena    *arena.Arena
	datasets *bus.Signal

	newest  uint64 // policy version
	index   uint64 // of the next dataset
	waiting []claimed
	rows    map[trajectory.Shape]int // of waiting; a dataset has blocks of one shape
	held    [datasetBlocks][]claimed // by dataset block
	makes   [datasetBlocks]uint64    // policy version that learning from it will make
	free    []uint32                 // dataset blocks whose members have been released
	members []trajectory.Member
	pausing bool
	rested  func() // called when no dataset is in flight; nil if not pausing

	droppedRows               *stat.Counter
	waitingRows, underwayRows *stat.Gauge // over all batchers of the run
}

var (
	_ component.Component = (*Batcher)(nil)
	_ component.Pauser    = (*Batcher)(nil)
)

// New returns an unconfigured batcher.
func New() component.Component { return &Batcher{} }

// Manifest lists the ports.
func (b *Batcher) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "datasets", Payload: component.PayloadDataset, Doc: "enough rows for one learner round"}},
		Slots: []component.Port{
			{Name: "on_trajectories", Payload: component.PayloadTrajectory, Doc: "a full block"},
			{Name: "on_weights", Payload: component.PayloadWeights, Doc: "a new policy version, to tell how old blocks are"},
		},
	}
}

// Configure reads the component's table.
func (b *Batcher) Configure(decode func(into any) error) error {
	b.config = defaults()
	if err := decode(&b.config); err != nil {
		return err
	}
	if b.config.DatasetRows < 1 || b.config.DatasetRows > 1<<26 {
		return &component.ConfigError{Key: "dataset_rows",
			Reason: fmt.Sprintf("is %d, want 1 to %d", b.config.DatasetRows, 1<<26)}
	}
	if b.config.MaxPolicyLag < 0 {
		return &component.ConfigError{Key: "max_policy_lag",
			Reason: fmt.Sprintf("is %d, want 0 (no bound) or more", b.config.MaxPolicyLag)}
	}
	return nil
}

// Flow returns how many rows must circulate in the pipeline.
func (b *Batcher) Flow() component.Flow { return component.Flow{DatasetRows: b.config.DatasetRows} }

// Start makes the arena of dataset blocks.
func (b *Batcher) Start(h *component.Host) error {
	b.h = h
	b.datasets = h.Signal("datasets")
	h.Slot("on_trajectories", b.onTrajectory)
	h.Slot("on_weights", b.onWeights)
	b.rows = map[trajectory.Shape]int{}
	b.droppedRows = h.Stats.Counter("lag/dropped_rows")
	b.waitingRows, b.underwayRows = h.Stats.Gauge("batcher/waiting_rows"), h.Stats.Gauge("batcher/underway_rows")
	a, err := h.Arena(arena.Config{
		Name: h.Name + ".datasets", Blocks: datasetBlocks, BlockBytes: trajectory.DatasetBytes(b.config.DatasetRows),
		ReadOnly: true,
	})
	if err != nil {
		return err
	}
	b.arena = a
	for block := range uint32(datasetBlocks) {
		b.free = append(b.free, block)
		h.OnFree(a, block, func(block uint32) {
			h.Receiver.Control(loop.Func(b.onReleased), hostabi.Message{T: block})
		})
	}
	return nil
}

func (b *Batcher) onWeights(m *hostabi.Message) { b.newest = max(b.newest, m.PolicyVersion) }

// onTrajectory claims a block and emits a dataset once there are enough rows.
func (b *Batcher) onTrajectory(m *hostabi.Message) {
	t, err := b.claim(m)
	if err != nil {
		b.h.Fail(fmt.Errorf("trajectory %v: %w", m.Handle, err))
		return
	}
	b.waiting = append(b.waiting, t)
	b.addWaiting(&t)
	b.emit()
}

// addWaiting counts a trajectory that waits for its dataset.
func (b *Batcher) addWaiting(t *claimed) {
	b.rows[t.shape] += t.rows
	b.waitingRows.Add(float64(t.valid))
}

// removeWaiting undoes addWaiting.
func (b *Batcher) removeWaiting(t *claimed) {
	if b.rows[t.shape] -= t.rows; b.rows[t.shape] == 0 && len(b.rows) > 1 {
		delete(b.rows, t.shape)
	}
	b.waitingRows.Add(-float64(t.valid))
}

// claim leases the block of a message.
func (b *Batcher) claim(m *hostabi.Message) (claimed, error) {
	tr, lease, err := trajectory.Lease(b.h.Arenas, m.Handle)
	if err != nil {
		return claimed{}, err
	}
	meta, shape := tr.Meta(), tr.Schema.Shape
	t := claimed{
		lease: lease, of: tr, firstEnv: meta.FirstEnv, sequence: meta.Sequence, version: meta.MinVersion, split: m.Split,
		shape: shape, rows: shape.Steps * shape.Envs, valid: min(int(meta.ValidRows), shape.Steps*tr.Schema.Rows()),
	}
	if b.config.Policy != "" && shape.Policies != "" {
		if t.of.Schema, err = tr.Schema.Of(b.config.Policy); err != nil {
			return t, errors.Join(err, lease.Release())
		}
		t.place, _ = t.of.Schema.PolicyPlace(b.config.Policy)
		t.version, t.valid = slices.Min(t.of.Uint64(trajectory.PolicyVersion)[:shape.Steps]), t.of.ValidIn(trajectory.Part{}, trajectory.Valid)
	}
	if handedOn := m.Sequence == 0; handedOn && m.Inline != [2]uint64{} { // the words of a signal's messages are their senders'
		if err := t.restOf(m); err != nil {
			return t, errors.Join(err, lease.Release())
		}
	}
	return t, nil
}

// emit drops blocks that would be too old and emits as many datasets as there are rows and dataset blocks for.
func (b *Batcher) emit() {
	for !b.pausing && len(b.free) > 0 {
		shape, ok := b.full()
		if !ok {
			return
		}
		if b.dropOld() {
			continue
		}
		if err := b.emitOne(shape); err != nil {
			b.h.Fail(err)
			return
		}
	}
}

// full returns the shape of the blocks for the next dataset, the oldest if there are several. After a change of the
// trajectories' shape the previous blocks wait until they are too old.
func (b *Batcher) full() (shape trajectory.Shape, ok bool) {
	for i := range b.waiting {
		shape = b.waiting[i].shape
		if b.rows[shape] >= b.config.DatasetRows {
			return shape, true
		}
		if len(b.rows) == 1 {
			break
		}
	}
	return shape, false
}

// dropOld releases the waiting blocks that the bound on policy lag rules out: each dataset that is still under way
// will make one more version before the next one is learned from. It reports whether it dropped any.
func (b *Batcher) dropOld() bool {
	if b.config.MaxPolicyLag == 0 {
		return false
	}
	at := b.newest + uint64(b.underWay())
	kept := b.waiting[:0]
	for _, t := range b.waiting {
		if at <= t.version || at-t.version <= uint64(b.config.MaxPolicyLag) {
			kept = append(kept, t)
			continue
		}
		b.removeWaiting(&t)
		b.droppedRows.Add(uint64(t.valid))
		b.settle(&t)
		b.release(t)
	}
	dropped := len(kept) < len(b.waiting)
	b.waiting = kept
	return dropped
}

// settle notes that a trajectory is too old to be learned from.
func (b *Batcher) settle(t *claimed) {
	h := t.lease.Handle()
	a, err := b.h.Arenas.Of(h)
	if err == nil {
		err = trajectory.Settle(a, h, t.of.Schema.PartPlace(t.place, t.part.Number), trajectory.TooOld)
	}
	if err != nil {
		b.h.Fail(fmt.Errorf("trajectory %v: %w", h, err))
	}
}

func (b *Batcher) release(t claimed) {
	if err := t.lease.Release(); err != nil {
		b.h.Fail(err)
	}
}

// emitOne makes a dataset of the blocks of one shape that have waited longest.
func (b *Batcher) emitOne(shape trajectory.Shape) error {
	block := b.free[0]
	b.free = append(b.free[:0], b.free[1:]...)
	loan, err := b.arena.LoanBlock(block)
	if errors.Is(err, arena.ErrBusy) {
		return nil // another process has taken or corrupted it; it comes back with a credit
	}
	if err != nil {
		return err
	}
	members := b.take(b.held[block][:0], shape)
	b.held[block] = members
	b.makes[block] = b.newest + uint64(b.underWay())
	b.members = b.members[:0]
	for i := range members {
		b.members = append(b.members, trajectory.Member{Handle: members[i].lease.Handle(), Part: members[i].part})
	}
	if err := trajectory.WriteDataset(loan.Bytes(), b.index, b.members); err != nil {
		return err
	}
	b.index++
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	b.h.Trace.Batched(b.h.Name, handle, b.members)
	if err := b.datasets.Emit(hostabi.Message{Handle: handle, PolicyVersion: b.newest}); err != nil {
		return err
	}
	return b.arena.Release(handle)
}

// take moves one dataset's blocks from waiting to dst, in order of their environments, then of their time, so
// that a dataset does not depend on which split was faster. The last one is cut where the dataset is full.
func (b *Batcher) take(dst []claimed, shape trajectory.Shape) []claimed {
	rows, left := 0, b.waiting[:0]
	for _, t := range b.waiting {
		if t.shape != shape || rows >= b.config.DatasetRows {
			left = append(left, t)
			continue
		}
		if rest, ok := b.cut(&t, b.config.DatasetRows-rows); ok {
			left = append(left, rest)
		}
		rows += t.rows
		dst = append(dst, t)
		b.removeWaiting(&t)
		b.underwayRows.Add(float64(t.valid))
	}
	b.waiting = left
	slices.SortFunc(dst, func(x, y claimed) int {
		return cmp.Or(cmp.Compare(x.firstEnv, y.firstEnv), cmp.Compare(x.sequence, y.sequence))
	})
	return dst
}

// onReleased ends the claims of a dataset that its last reader has released. By then the learner has published the
// version that it made of it, but the message may still be on its way, and must not make old blocks look younger.
func (b *Batcher) onReleased(m *hostabi.Message) {
	b.drop(m.T)
	b.free = append(b.free, m.T)
	b.newest = max(b.newest, b.makes[m.T])
	b.emit()
	b.checkPaused()
}

// underWay returns how many datasets are under way. A block that its reader has freed counts until its members are
// released: it cannot be used before.
func (b *Batcher) underWay() int { return datasetBlocks - len(b.free) }

func (b *Batcher) drop(block uint32) {
	for _, t := range b.held[block] {
		b.release(t)
		b.underwayRows.Add(-float64(t.valid))
	}
	b.held[block] = b.held[block][:0]
}

// Snapshot saves the counters; blocks in flight are not part of it.
func (b *Batcher) Snapshot() (component.State, error) {
	return component.State{Meta: saved{Index: b.index, Newest: b.newest}}, nil
}

// Restore continues the count of datasets.
func (b *Batcher) Restore(s component.State) error {
	var from saved
	if err := s.Decode(&from); err != nil {
		return err
	}
	b.index, b.newest = from.Index, max(b.newest, from.Newest)
	return nil
}

type saved struct {
	Index  uint64
	Newest uint64
}

// Stop releases every claim.
func (b *Batcher) Stop() error {
	for _, t := range b.waiting {
		b.removeWaiting(&t)
		b.release(t)
	}
	b.waiting = nil
	for block := range b.held {
		b.drop(uint32(block))
	}
	return nil
}
