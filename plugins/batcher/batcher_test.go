package batcher

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// rig is a batcher with a producer of blocks of 4 steps of 2 environments, and a learner that keeps datasets until the
// test releases them.
type rig struct {
	*plugintest.Rig
	c        *Batcher
	arena    *arena.Arena
	schema   *trajectory.Schema
	blocks   *bus.Signal
	weights  *bus.Signal
	index    []uint64 // of the datasets
	datasets [][]int  // sequence numbers of their blocks
	parts    [][]trajectory.Part
	leases   []arena.Lease // of the datasets
}

const blockRows = 8

func newRig(t *testing.T, rows, lag int) *rig {
	t.Helper()
	r := &rig{c: New().(*Batcher)}
	r.Rig = plugintest.NewRig(t, r.c, plugintest.RigOptions{Name: "batcher"}, func(into any) error {
		*into.(*config) = config{DatasetRows: rows, MaxPolicyLag: lag}
		return nil
	})
	var err error
	p := plugintest.New(plugintest.Script{})
	if r.schema, err = trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}); err != nil {
		t.Fatal(err)
	}
	r.arena, err = r.Host.Arenas.Add(arena.Config{Name: "blocks", Blocks: 64, BlockBytes: r.schema.Bytes, Schema: r.schema})
	if err != nil {
		t.Fatal(err)
	}
	r.blocks, r.weights = r.To("on_trajectories"), r.To("on_weights")
	r.From("datasets", func(m *hostabi.Message) { r.onDataset(t, m) })
	t.Cleanup(func() {
		for len(r.leases) > 0 {
			r.learn(t)
		}
	})
	return r
}

// give sends a block of a split, written with a policy version.
func (r *rig) give(t *testing.T, firstEnv, sequence int, version uint64) {
	t.Helper()
	plugintest.Give(t, r.blocks, hostabi.Message{}, r.arena, func(block []byte) {
		tr := trajectory.Trajectory{Schema: r.schema, Mem: block}
		*tr.Meta() = trajectory.Meta{
			FirstEnv: uint32(firstEnv), Sequence: uint64(sequence), MinVersion: version, MaxVersion: version + 1, ValidRows: blockRows,
		}
		for i := range tr.Bytes(trajectory.Valid) {
			tr.Bytes(trajectory.Valid)[i] = 1
		}
	})
}

func (r *rig) onDataset(t *testing.T, m *hostabi.Message) {
	lease, err := r.Host.Arenas.Lease(m.Handle)
	if err != nil {
		t.Error(err)
		return
	}
	index, list, err := trajectory.ReadDataset(lease.Bytes(), nil)
	if err != nil {
		t.Error(err)
	}
	var members []int
	var parts []trajectory.Part
	for _, m := range list {
		block, err := r.Host.Arenas.Lease(m.Handle)
		if err != nil {
			t.Error(err)
			continue
		}
		parts = append(parts, m.Part)
		members = append(members, int(trajectory.Trajectory{Schema: r.schema, Mem: block.Bytes()}.Meta().Sequence))
		if err := block.Release(); err != nil {
			t.Error(err)
		}
	}
	r.index, r.datasets, r.leases = append(r.index, index), append(r.datasets, members), append(r.leases, lease)
	r.parts = append(r.parts, parts)
}

// learn releases the oldest dataset.
func (r *rig) learn(t *testing.T) {
	t.Helper()
	if err := r.leases[0].Release(); err != nil {
		t.Error(err)
	}
	r.leases = r.leases[1:]
}

// publish announces a version.
func (r *rig) publish(t *testing.T, version uint64) {
	t.Helper()
	if err := r.weights.Emit(hostabi.Message{PolicyVersion: version}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) dropped() uint64 { return r.Host.Stats.Counter("lag/dropped_rows").Value() }

func (r *rig) expect(t *testing.T, what string, want ...[]int) {
	t.Helper()
	if !slices.EqualFunc(r.datasets, want, slices.Equal[[]int]) {
		t.Errorf("%s: datasets of blocks %v, want %v", what, r.datasets, want)
	}
}

func TestBatcher_EmitsWhenThereAreEnoughRows(t *testing.T) {
	r := newRig(t, 3*blockRows, 0)
	for k := range 7 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.expect(t, "seven blocks", []int{0, 1, 2}, []int{3, 4, 5})
	if !slices.Equal(r.index, []uint64{0, 1}) {
		t.Errorf("datasets are numbered %v", r.index)
	}
}

// A dataset lists its blocks by environment, then by time, whatever their order of arrival.
func TestBatcher_OrdersBlocks(t *testing.T) {
	r := newRig(t, 4*blockRows, 0)
	for _, b := range [][2]int{{2, 21}, {0, 1}, {2, 20}, {0, 0}} {
		r.give(t, b[0], b[1], 0)
	}
	r.MustSettle()
	r.expect(t, "two splits", []int{0, 1, 20, 21})
}

func TestBatcher_ADatasetThatIsNoWholeNumberOfBlocksIsRoundedUp(t *testing.T) {
	r := newRig(t, blockRows+1, 0)
	for k := range 4 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.expect(t, "9 rows from blocks of 8", []int{0, 1}, []int{2, 3})
}

// Blocks are free again when the last reader of their dataset has gone, and not before.
func TestBatcher_HoldsBlocksUntilTheDatasetIsRead(t *testing.T) {
	r := newRig(t, 2*blockRows, 0)
	for k := range 5 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	if s := r.arena.Stats(); s.Live != 5 {
		t.Errorf("%+v, want 5 blocks live", s)
	}
	r.learn(t)
	r.MustSettle()
	if s := r.arena.Stats(); s.Live != 3 {
		t.Errorf("one dataset read: %+v, want 3 blocks live", s)
	}
	r.learn(t)
	r.MustSettle()
	if s := r.arena.Stats(); s.Live != 1 {
		t.Errorf("both datasets read: %+v, want the block that waits", s)
	}
	if err := r.c.Stop(); err != nil {
		t.Error(err)
	}
	if s := r.arena.Stats(); s.Live != 0 {
		t.Errorf("stopped: %+v, want no block live", s)
	}
}

func TestBatcher_HasABoundOnDatasetsUnderWay(t *testing.T) {
	r := newRig(t, blockRows, 0)
	for k := range datasetBlocks + 3 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	if len(r.datasets) != datasetBlocks {
		t.Fatalf("%d datasets under way, want %d", len(r.datasets), datasetBlocks)
	}
	r.learn(t)
	r.MustSettle()
	if len(r.datasets) != datasetBlocks+1 {
		t.Errorf("%d datasets after one was read, want %d", len(r.datasets), datasetBlocks+1)
	}
}

// A native plugin may take a free block of a dataset before the batcher has it.
func TestBatcher_GoesOnWhenABlockIsTaken(t *testing.T) {
	r := newRig(t, blockRows, 0)
	var stolen []arena.Loan
	for block := range uint32(datasetBlocks) {
		loan, err := r.c.arena.LoanBlock(block)
		if err != nil {
			t.Fatal(err)
		}
		stolen = append(stolen, loan)
	}
	r.give(t, 0, 0, 0)
	r.MustSettle()
	if len(r.datasets) != 0 {
		t.Errorf("%d datasets, and every block was taken", len(r.datasets))
	}
	for _, loan := range stolen {
		if err := loan.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	r.MustSettle()
	r.expect(t, "once the blocks are free", []int{0})
}

// A block is as old, when it is learned from, as there are versions after its own then: each dataset under way makes
// one more.
func TestBatcher_DropsWholeBlocksThatWouldBeTooOld(t *testing.T) {
	r := newRig(t, 2*blockRows, 2)
	r.publish(t, 10)
	r.MustSettle()
	for k, version := range []uint64{7, 8, 9, 10} {
		r.give(t, 0, k, version)
	}
	r.MustSettle()
	r.expect(t, "version 10, lag 2", []int{1, 2})
	if r.dropped() != blockRows {
		t.Errorf("%d rows dropped, want the block of version 7", r.dropped())
	}
	r.give(t, 0, 4, 8) // with a dataset under way it would be learned from at version 11
	r.give(t, 0, 5, 10)
	r.MustSettle()
	r.expect(t, "one under way", []int{1, 2}, []int{3, 5})
	if r.dropped() != 2*blockRows {
		t.Errorf("%d rows dropped, want a second block", r.dropped())
	}
}

// Between the end of a dataset and the message about the version made of it, blocks must not look younger.
func TestBatcher_CountsTheVersionOfADatasetThatHasEnded(t *testing.T) {
	r := newRig(t, blockRows, 2)
	r.publish(t, 0)
	for k := range datasetBlocks + 4 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.expect(t, "all of version 0", []int{0}, []int{1}, []int{2})
	if r.dropped() != (datasetBlocks+1)*blockRows {
		t.Errorf("%d rows dropped, want all but three blocks", r.dropped())
	}
	for range 3 {
		r.learn(t) // and no message about versions 1 to 3 comes
	}
	r.MustSettle()
	r.give(t, 0, 50, 0)
	r.give(t, 0, 51, 1)
	r.MustSettle()
	r.expect(t, "at version 3", []int{0}, []int{1}, []int{2}, []int{51})
	r.publish(t, 2) // late
	r.give(t, 0, 52, 1)
	r.MustSettle()
	r.expect(t, "a late message changes nothing", []int{0}, []int{1}, []int{2}, []int{51})
}

func TestBatcher_WithoutABoundNothingIsDropped(t *testing.T) {
	r := newRig(t, blockRows, 0)
	r.publish(t, 1000)
	r.MustSettle()
	r.give(t, 0, 0, 0)
	r.MustSettle()
	r.expect(t, "version 1000", []int{0})
	if r.dropped() != 0 {
		t.Errorf("%d rows dropped", r.dropped())
	}
}

func TestBatcher_RefusesWhatIsNoTrajectory(t *testing.T) {
	r := newRig(t, blockRows, 0)
	other, err := r.Host.Arenas.Add(arena.Config{Name: "other", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Give(t, r.blocks, hostabi.Message{}, other, nil)
	if err := r.Settle(); err == nil || !strings.Contains(err.Error(), "batcher: trajectory") || !strings.Contains(err.Error(), "arena other holds no trajectories") {
		t.Errorf("got %v", err)
	}
	r = newRig(t, blockRows, 0)
	r.c.onTrajectory(&hostabi.Message{Handle: hostabi.MakeHandle(r.arena.ID(), 1, 9)})
	if err := r.Settle(); !errors.Is(err, arena.ErrStale) {
		t.Errorf("a stale handle: %v", err)
	}
}

func TestRestore_GoesOnCounting(t *testing.T) {
	r := newRig(t, blockRows, 0)
	for k := range 3 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	s, err := r.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t, blockRows, 0)
	if err := next.c.Restore(s); err != nil {
		t.Fatal(err)
	}
	next.give(t, 0, 0, 0)
	next.MustSettle()
	if !slices.Equal(next.index, []uint64{3}) {
		t.Errorf("the next dataset is number %v, want 3", next.index)
	}
	if err := next.c.Restore(component.State{RawMeta: []byte("[]")}); err == nil {
		t.Error("a state of another kind is taken")
	}
}

func TestConfigure_NamesWhatIsWrong(t *testing.T) {
	for want, c := range map[string]config{
		"`dataset_rows` is 0, want 1 to":                    {},
		"`max_policy_lag` is -1, want 0 (no bound) or more": {DatasetRows: 1, MaxPolicyLag: -1},
	} {
		err := New().Configure(func(into any) error { *into.(*config) = c; return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
