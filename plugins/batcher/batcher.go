package batcher

import (
	"bytes"
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
	Policy       string `toml:"policy"`         // whose rows count; empty: all
	DatasetRows  int    `toml:"dataset_rows"`   // env steps of one dataset, of all policies that act in its blocks
	MaxPolicyLag int    `toml:"max_policy_lag"` // in policy versions; older blocks are dropped; 0 = no bound
}

func defaults() config { return config{DatasetRows: 2048, MaxPolicyLag: 8} }

// datasetBlocks is how many datasets may be under way at once.
const datasetBlocks = component.DatasetBlocks

// claimed is a leased block that waits to become part of a dataset, or is part of one.
type claimed struct {
	lease    arena.Lease
	firstEnv uint32
	sequence uint64
	version  uint64 // oldest policy version that acted in it
	shape    trajectory.Shape
	rows     int
	valid    int // of them, those that the policy learns from
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
	handles []hostabi.Handle
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
func (c *Batcher) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "datasets", Payload: component.PayloadDataset, Doc: "enough rows for one learner round"}},
		Slots: []component.Port{
			{Name: "on_trajectories", Payload: component.PayloadTrajectory, Doc: "a full block"},
			{Name: "on_weights", Payload: component.PayloadWeights, Doc: "a new policy version, to tell how old blocks are"},
		},
	}
}

// Configure reads the component's table.
func (c *Batcher) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	if c.config.DatasetRows < 1 || c.config.DatasetRows > 1<<26 {
		return &component.ConfigError{Key: "dataset_rows",
			Reason: fmt.Sprintf("is %d, want 1 to %d", c.config.DatasetRows, 1<<26)}
	}
	if c.config.MaxPolicyLag < 0 {
		return &component.ConfigError{Key: "max_policy_lag",
			Reason: fmt.Sprintf("is %d, want 0 (no bound) or more", c.config.MaxPolicyLag)}
	}
	return nil
}

// Flow returns how many rows must circulate in the pipeline.
func (c *Batcher) Flow() component.Flow { return component.Flow{DatasetRows: c.config.DatasetRows} }

// Start makes the arena of dataset blocks.
func (c *Batcher) Start(h *component.Host) error {
	c.h = h
	c.datasets = h.Signal("datasets")
	h.Slot("on_trajectories", c.onTrajectory)
	h.Slot("on_weights", c.onWeights)
	c.rows = map[trajectory.Shape]int{}
	c.droppedRows = h.Stats.Counter("lag/dropped_rows")
	c.waitingRows, c.underwayRows = h.Stats.Gauge("batcher/waiting_rows"), h.Stats.Gauge("batcher/underway_rows")
	a, err := h.Arena(arena.Config{
		Name: h.Name + ".datasets", Blocks: datasetBlocks, BlockBytes: trajectory.DatasetBytes(c.config.DatasetRows),
		ReadOnly: true,
	})
	if err != nil {
		return err
	}
	c.arena = a
	for block := range uint32(datasetBlocks) {
		c.free = append(c.free, block)
		h.OnFree(a, block, func(block uint32) {
			h.Receiver.Control(loop.Func(c.onReleased), hostabi.Message{T: block})
		})
	}
	return nil
}

func (c *Batcher) onWeights(m *hostabi.Message) { c.newest = max(c.newest, m.PolicyVersion) }

// onTrajectory claims a block and emits a dataset once there are enough rows.
func (c *Batcher) onTrajectory(m *hostabi.Message) {
	t, err := c.claim(m.Handle)
	if err != nil {
		c.h.Fail(fmt.Errorf("trajectory %v: %w", m.Handle, err))
		return
	}
	t.split = m.Split
	c.waiting = append(c.waiting, t)
	c.addWaiting(&t)
	c.emit()
}

// addWaiting counts a trajectory that waits for its dataset.
func (c *Batcher) addWaiting(t *claimed) {
	c.rows[t.shape] += t.rows
	c.waitingRows.Add(float64(t.valid))
}

// removeWaiting undoes addWaiting.
func (c *Batcher) removeWaiting(t *claimed) {
	if c.rows[t.shape] -= t.rows; c.rows[t.shape] == 0 && len(c.rows) > 1 {
		delete(c.rows, t.shape)
	}
	c.waitingRows.Add(-float64(t.valid))
}

func (c *Batcher) claim(h hostabi.Handle) (claimed, error) {
	tr, lease, err := trajectory.Lease(c.h.Arenas, h)
	if err != nil {
		return claimed{}, err
	}
	meta, shape := tr.Meta(), tr.Schema.Shape
	t := claimed{
		lease: lease, firstEnv: meta.FirstEnv, sequence: meta.Sequence, version: meta.MinVersion,
		shape: shape, rows: shape.Steps * shape.Envs, valid: min(int(meta.ValidRows), shape.Steps*tr.Schema.Rows()),
	}
	if c.config.Policy == "" || shape.Policies == "" {
		return t, nil
	}
	if tr.Schema, err = tr.Schema.Of(c.config.Policy); err != nil {
		return t, errors.Join(err, lease.Release())
	}
	t.place, _ = tr.Schema.PolicyPlace(c.config.Policy)
	t.version, t.valid = slices.Min(tr.Uint64(trajectory.PolicyVersion)[:shape.Steps]), bytes.Count(tr.Bytes(trajectory.Valid), []byte{1})
	return t, nil
}

// emit drops blocks that would be too old and emits as many datasets as there are rows and dataset blocks for.
func (c *Batcher) emit() {
	for !c.pausing && len(c.free) > 0 {
		shape, ok := c.full()
		if !ok {
			return
		}
		if c.dropOld() {
			continue
		}
		if err := c.emitOne(shape); err != nil {
			c.h.Fail(err)
			return
		}
	}
}

// full returns the shape of the blocks for the next dataset, the oldest if there are several. After a change of the
// trajectories' shape the previous blocks wait until they are too old.
func (c *Batcher) full() (shape trajectory.Shape, ok bool) {
	for i := range c.waiting {
		shape = c.waiting[i].shape
		if c.rows[shape] >= c.config.DatasetRows {
			return shape, true
		}
		if len(c.rows) == 1 {
			break
		}
	}
	return shape, false
}

// dropOld releases the waiting blocks that the bound on policy lag rules out: each dataset that is still under way
// will make one more version before the next one is learned from. It reports whether it dropped any.
func (c *Batcher) dropOld() bool {
	if c.config.MaxPolicyLag == 0 {
		return false
	}
	at := c.newest + uint64(c.underWay())
	kept := c.waiting[:0]
	for _, t := range c.waiting {
		if at <= t.version || at-t.version <= uint64(c.config.MaxPolicyLag) {
			kept = append(kept, t)
			continue
		}
		c.removeWaiting(&t)
		c.droppedRows.Add(uint64(t.valid))
		c.settle(&t)
		c.release(t)
	}
	dropped := len(kept) < len(c.waiting)
	c.waiting = kept
	return dropped
}

// settle notes that a trajectory is too old to be learned from.
func (c *Batcher) settle(t *claimed) {
	h := t.lease.Handle()
	a, err := c.h.Arenas.Of(h)
	if err == nil {
		err = trajectory.Settle(a, h, t.place, trajectory.TooOld)
	}
	if err != nil {
		c.h.Fail(fmt.Errorf("trajectory %v: %w", h, err))
	}
}

func (c *Batcher) release(t claimed) {
	if err := t.lease.Release(); err != nil {
		c.h.Fail(err)
	}
}

// emitOne makes a dataset of the blocks of one shape that have waited longest.
func (c *Batcher) emitOne(shape trajectory.Shape) error {
	block := c.free[0]
	c.free = append(c.free[:0], c.free[1:]...)
	loan, err := c.arena.LoanBlock(block)
	if errors.Is(err, arena.ErrBusy) {
		return nil // another process has taken or corrupted it; it comes back with a credit
	}
	if err != nil {
		return err
	}
	members := c.take(c.held[block][:0], shape)
	c.held[block] = members
	c.makes[block] = c.newest + uint64(c.underWay())
	c.handles = c.handles[:0]
	for i := range members {
		c.handles = append(c.handles, members[i].lease.Handle())
	}
	if err := trajectory.WriteDataset(loan.Bytes(), c.index, c.handles); err != nil {
		return err
	}
	c.index++
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	if err := c.datasets.Emit(hostabi.Message{Handle: handle, PolicyVersion: c.newest}); err != nil {
		return err
	}
	return c.arena.Release(handle)
}

// take moves one dataset's blocks from waiting to dst, in order of their environments, then of their time, so
// that a dataset does not depend on which split was faster.
func (c *Batcher) take(dst []claimed, shape trajectory.Shape) []claimed {
	rows, left := 0, c.waiting[:0]
	for _, t := range c.waiting {
		if t.shape != shape || rows >= c.config.DatasetRows {
			left = append(left, t)
			continue
		}
		rows += t.rows
		dst = append(dst, t)
		c.removeWaiting(&t)
		c.underwayRows.Add(float64(t.valid))
	}
	c.waiting = left
	slices.SortFunc(dst, func(a, b claimed) int {
		return cmp.Or(cmp.Compare(a.firstEnv, b.firstEnv), cmp.Compare(a.sequence, b.sequence))
	})
	return dst
}

// onReleased ends the claims of a dataset that its last reader has released. By then the learner has published the
// version that it made of it, but the message may still be on its way, and must not make old blocks look younger.
func (c *Batcher) onReleased(m *hostabi.Message) {
	c.drop(m.T)
	c.free = append(c.free, m.T)
	c.newest = max(c.newest, c.makes[m.T])
	c.emit()
	c.rest()
}

// underWay returns how many datasets are under way. A block that its reader has freed counts until its members are
// released: it cannot be used before.
func (c *Batcher) underWay() int { return datasetBlocks - len(c.free) }

func (c *Batcher) drop(block uint32) {
	for _, t := range c.held[block] {
		c.release(t)
		c.underwayRows.Add(-float64(t.valid))
	}
	c.held[block] = c.held[block][:0]
}

// Snapshot saves the counters; blocks in flight are not part of it.
func (c *Batcher) Snapshot() (component.State, error) {
	return component.State{Meta: saved{Index: c.index, Newest: c.newest}}, nil
}

// Restore continues the count of datasets.
func (c *Batcher) Restore(s component.State) error {
	var from saved
	if err := s.Decode(&from); err != nil {
		return err
	}
	c.index, c.newest = from.Index, max(c.newest, from.Newest)
	return nil
}

type saved struct {
	Index  uint64
	Newest uint64
}

// Stop releases every claim.
func (c *Batcher) Stop() error {
	for _, t := range c.waiting {
		c.removeWaiting(&t)
		c.release(t)
	}
	c.waiting = nil
	for block := range c.held {
		c.drop(uint32(block))
	}
	return nil
}
