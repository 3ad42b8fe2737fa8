package batcher

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// First and second environment of a block of two, as its parts.
var (
	whole  = trajectory.Part{}
	first  = trajectory.Part{First: 0, Envs: 1, Number: 0}
	second = trajectory.Part{First: 1, Envs: 1, Number: 1}
)

func (r *rig) expectParts(t *testing.T, what string, want ...[]trajectory.Part) {
	t.Helper()
	if !slices.EqualFunc(r.parts, want, slices.Equal[[]trajectory.Part]) {
		t.Errorf("%s: parts %v, want %v", what, r.parts, want)
	}
}

// The rest of a block goes into the next dataset, and the block is held until both have been read.
func TestCut_DatasetsHaveExactlyTheirRows(t *testing.T) {
	const rows = 3 * blockRows / 2
	r := newRig(t, rows, 0)
	for k := range 4 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.expect(t, "12 rows of blocks of 8", []int{0, 1}, []int{1, 2})
	r.expectParts(t, "12 rows of blocks of 8", []trajectory.Part{whole, first}, []trajectory.Part{second, whole})
	if w, u := r.gauge("batcher/waiting_rows"), r.gauge("batcher/underway_rows"); w != blockRows || u != 2*rows {
		t.Errorf("%v rows wait and %v are under way, want %d and %d", w, u, blockRows, 2*rows)
	}
	for _, live := range []int{3, 1} {
		r.learn(t)
		r.MustSettle()
		if s := r.arena.Stats(); s.Live != live {
			t.Errorf("%+v, want %d blocks live", s, live)
		}
	}
}

// A dataset may be smaller than a block, which then is in several.
func TestCut_ABlockOfSeveralDatasets(t *testing.T) {
	r := newRig(t, 4, 0)
	r.reshape(t, trajectory.Shape{Steps: 2, Envs: 5})
	for k := range 2 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.expect(t, "4 rows of blocks of 10", []int{0}, []int{0}, []int{0, 1}, []int{1}, []int{1})
	part := func(first, envs, number int) trajectory.Part {
		return trajectory.Part{First: first, Envs: envs, Number: number}
	}
	r.expectParts(t, "4 rows of blocks of 10", []trajectory.Part{part(0, 2, 0)}, []trajectory.Part{part(2, 2, 1)},
		[]trajectory.Part{part(4, 1, 2), part(0, 1, 0)}, []trajectory.Part{part(1, 2, 1)}, []trajectory.Part{part(3, 2, 2)})
}

// A block has as many parts as its marks tell apart; its rest stays together then.
func TestCut_ABlockHasABoundedNumberOfParts(t *testing.T) {
	most := trajectory.MaxParts(1)
	r := newRig(t, 1, 0)
	r.reshape(t, trajectory.Shape{Steps: 1, Envs: most + 8})
	r.give(t, 0, 0, 0)
	r.MustSettle()
	for len(r.leases) > 0 {
		r.learn(t)
		r.MustSettle()
	}
	if last := r.parts[len(r.parts)-1][0]; len(r.parts) != most || last != (trajectory.Part{First: most - 1, Envs: 9, Number: most - 1}) {
		t.Errorf("%d datasets, the last with %+v", len(r.parts), last)
	}
	if s := r.arena.Stats(); s.Live != 0 {
		t.Errorf("%+v, want no block live", s)
	}
}

// The rest of a block that becomes too old is dropped, and settled as the part that it would have been.
func TestCut_TheRestOfABlockCanBeTooOld(t *testing.T) {
	r := newRig(t, 3*blockRows/2, 1)
	r.give(t, 0, 0, 0)
	r.give(t, 0, 1, 0)
	r.MustSettle()
	h := r.c.waiting[0].lease.Handle()
	r.publish(t, 5)
	for k := range 2 {
		r.give(t, 0, 2+k, 5)
	}
	r.MustSettle()
	r.expect(t, "version 5", []int{0, 1}, []int{2, 3})
	r.expectParts(t, "version 5", []trajectory.Part{whole, first}, []trajectory.Part{whole, first})
	if settled := trajectory.Settled(r.arena, h, trajectory.TooOld); settled != 1<<1 || r.dropped() != blockRows/2 {
		t.Errorf("%d rows dropped, parts %b settled; want the second part's %d", r.dropped(), settled, blockRows/2)
	}
}

// What waits of a block passes to a successor, and nothing of it twice.
func TestWaiting_HandsOverTheRestOfABlock(t *testing.T) {
	r := newRig(t, 3*blockRows/2, 0)
	for k := range 2 {
		r.give(t, 0, k, 0)
	}
	r.MustSettle()
	r.c.Pause(func() {})
	list := r.c.Waiting()
	if len(list) != 1 || list[0].Message.Inline != [2]uint64{1, 1} {
		t.Fatalf("waiting %+v, want a message about the second environment", list)
	}
	next := &rig{c: New().(*Batcher)}
	next.Rig = r.Rig
	next.c.h, next.c.config, next.c.rows = r.c.h, config{DatasetRows: 4 * blockRows}, map[trajectory.Shape]int{}
	next.c.waitingRows = r.c.waitingRows
	m := list[0].Message
	next.c.onTrajectory(&m)
	if got := next.c.waiting; len(got) != 1 || got[0].part != second || got[0].rows != blockRows/2 || got[0].valid != blockRows/2 {
		t.Errorf("the successor has %+v", got)
	}
	for _, w := range next.c.Waiting() {
		if w.Message.Inline != m.Inline {
			t.Errorf("handed over again it is %v, was %v", w.Message.Inline, m.Inline)
		}
		if err := r.arena.Release(w.Message.Handle); err != nil {
			t.Error(err)
		}
	}
	if err := r.arena.Release(m.Handle); err != nil {
		t.Error(err)
	}
}

// A message about a part that the block does not have is an error that names it.
func TestCut_RefusesARestThatIsNotThere(t *testing.T) {
	for _, inline := range [][2]uint64{{2, 1}, {1, 0}, {0, 1}, {1, 32}, {1 << 40, 1}} {
		r := newRig(t, blockRows, 0)
		r.give(t, 0, 0, 0)
		r.MustSettle()
		var h hostabi.Handle
		r.arena.Committed(func(of hostabi.Handle) { h = of })
		_, err := r.c.claim(&hostabi.Message{Handle: h, Inline: inline})
		if err == nil {
			t.Errorf("part %v of two environments is taken", inline)
		}
	}
}

// Only a predecessor says which part waits. What a component on the way of trajectories writes into their messages changes nothing.
func TestCut_TheWordsOfASendersMessagesAreItsOwn(t *testing.T) {
	for _, inline := range [][2]uint64{{1, 1}, {1<<64 - 1, 1<<64 - 1}} {
		r := newRig(t, 2*blockRows, 0)
		r.give(t, 0, 0, 0)
		r.MustSettle()
		var h hostabi.Handle
		r.arena.Committed(func(of hostabi.Handle) { h = of })
		c, err := r.c.claim(&hostabi.Message{Handle: h, Sequence: 1, Inline: inline})
		if err != nil || c.part != whole || c.rows != blockRows {
			t.Fatalf("with the words %v: %+v, %v", inline, c.part, err)
		}
		if err := c.lease.Release(); err != nil {
			t.Error(err)
		}
	}
}
