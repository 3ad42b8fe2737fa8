package batcher

import (
	"slices"
	"testing"
)

func (r *rig) gauge(name string) float64 { return r.Host.Stats.Gauge(name).Value() }

func TestPause_RestsWhenTheDatasetsUnderWayHaveComeBack(t *testing.T) {
	r := newRig(t, 2*blockRows, 0)
	for k := range 3 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	rested := 0
	r.c.Pause(func() { rested++ })
	r.give(t, 0, 3, 0)
	r.MustSettle()
	r.expect(t, "paused", []int{0, 1})
	if rested != 0 {
		t.Error("at rest with a dataset under way")
	}
	r.learn(t)
	r.MustSettle()
	if rested != 1 {
		t.Errorf("rested %d times, want once", rested)
	}
	r.c.Resume()
	r.MustSettle()
	r.expect(t, "resumed", []int{0, 1}, []int{2, 3})
}

func TestResume_EndsAPauseThatHasNotComeToRest(t *testing.T) {
	r := newRig(t, blockRows, 0)
	r.give(t, 0, 0, 0)
	r.MustSettle()
	r.c.Pause(func() { t.Error("at rest after Resume") })
	r.c.Resume()
	r.learn(t)
	r.MustSettle()
}

// Waiting blocks pass to a successor with their claims.
func TestWaiting_HandsOverTrajectoriesThatAreInNoDataset(t *testing.T) {
	r := newRig(t, 4*blockRows, 0)
	for k := range 3 {
		r.give(t, 0, k, uint64(k))
	}
	r.MustSettle()
	rested := false
	r.c.Pause(func() { rested = true })
	list := r.c.Waiting()
	if !rested || len(list) != 3 || r.gauge("batcher/waiting_rows") != 0 {
		t.Fatalf("rested %v, %d waiting, %v rows counted; want true, 3, 0", rested, len(list), r.gauge("batcher/waiting_rows"))
	}
	state, err := r.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t, 3*blockRows, 0)
	if err := next.c.Restore(state); err != nil {
		t.Fatal(err)
	}
	var versions []uint64
	for i := range list {
		if list[i].Slot != "on_trajectories" || !list[i].Claimed {
			t.Errorf("waiting %+v, want one of on_trajectories with its claim", list[i])
		}
		versions = append(versions, list[i].Message.PolicyVersion)
		if err := r.arena.Release(list[i].Message.Handle); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(versions, []uint64{0, 1, 2}) {
		t.Errorf("in the order of versions %v, want that in which they came", versions)
	}
	if s := r.arena.Stats(); s.Live != 0 {
		t.Errorf("%+v, want no claim left", s)
	}
}

// The gauges add up valid rows wherever they are.
func TestGauges_FollowTrajectories(t *testing.T) {
	r := newRig(t, 2*blockRows, 0)
	for k := range 3 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	if w, u := r.gauge("batcher/waiting_rows"), r.gauge("batcher/underway_rows"); w != blockRows || u != 2*blockRows {
		t.Errorf("%v rows wait and %v are under way, want %d and %d", w, u, blockRows, 2*blockRows)
	}
	r.learn(t)
	r.MustSettle()
	if w, u := r.gauge("batcher/waiting_rows"), r.gauge("batcher/underway_rows"); w != blockRows || u != 0 {
		t.Errorf("read: %v rows wait and %v are under way, want %d and 0", w, u, blockRows)
	}
	if err := r.c.Stop(); err != nil {
		t.Error(err)
	}
	if w := r.gauge("batcher/waiting_rows"); w != 0 {
		t.Errorf("stopped: %v rows wait, want 0", w)
	}
}

// A successor gets the credits of the inherited blocks when it starts, and not before.
func TestBatcher_TakesOverTheDatasetsOfItsPredecessor(t *testing.T) {
	r := newRig(t, blockRows, 0)
	r.give(t, 0, 0, 0)
	r.MustSettle()
	h := *r.Host
	h.Inherited = r.Host.OwnArenas()
	next := New().(*Batcher)
	if err := next.Configure(func(into any) error {
		*into.(*config) = config{DatasetRows: blockRows}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h.Bind(next.Manifest())
	if err := next.Start(&h); err != nil {
		t.Fatal(err)
	}
	if next.arena != r.c.arena {
		t.Fatal("it has an arena of its own")
	}
	rested := false
	r.c.Pause(func() { rested = true })
	r.learn(t)
	r.MustSettle()
	if !rested {
		t.Fatal("the predecessor did not get the credit of its dataset")
	}
	h.TakeOver()
	loan, err := next.arena.LoanBlock(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := loan.Abort(); err != nil {
		t.Fatal(err)
	}
	free := len(next.free)
	r.MustSettle()
	if len(next.free) != free+1 {
		t.Errorf("%d free blocks after a credit, want %d", len(next.free), free+1)
	}
	if err := next.Stop(); err != nil {
		t.Error(err)
	}
}
