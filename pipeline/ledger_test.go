package pipeline

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// books is a ledger with an arena of four blocks, in a run of rollout (1), chooser (2), batcher (3), learner (4) and logger (5).
type books struct {
	*testing.T
	*ledger
	schema *trajectory.Schema
	arena  *arena.Arena
	set    *arena.Set
}

func newBooks(t *testing.T, policies string, learned ...string) *books {
	t.Helper()
	schema, err := trajectory.NewSchema(graphtest.Described{Obs: 4}.Spec(), trajectory.Shape{Steps: 4, Envs: 2, Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	to := &assigned{learned: map[string]bool{}, onWay: map[string]bool{"rollout": true, "chooser": true, "batcher": true, "learner": true},
		ids: map[string][]uint16{reasonComponent + "chooser": {2}, reasonComponent + "batcher": {3}, reasonComponent + "learner": {4}}}
	for _, name := range learned {
		to.learned[name] = true
	}
	b := &books{T: t, ledger: newLedger(func() *assigned { return to }), schema: schema, set: arena.NewSet()}
	if b.arena, err = b.set.Add(arena.Config{Name: "rollout.trajectories", Blocks: 4, BlockBytes: schema.Bytes, Schema: schema}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.arena.Committed(b.free)
		if err := b.set.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// hand sends a trajectory with so many valid rows of each policy, and keeps a claim on it.
func (b *books) hand(rows ...int) hostabi.Handle {
	b.Helper()
	loan, err := b.arena.Loan()
	if err != nil {
		b.Fatal(err)
	}
	tr := trajectory.Trajectory{Schema: b.schema, Mem: loan.Bytes()}
	for place, n := range rows {
		column := trajectory.Valid
		if len(b.schema.Policies()) > 0 {
			column = trajectory.Valid.At(1 + place)
		}
		clear(tr.Bytes(column))
		for row := range n {
			tr.Bytes(column)[row] = 1
		}
	}
	h, err := loan.Commit()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.send(1, 0, b.arena, tr, h); err != nil {
		b.Fatal(err)
	}
	return h
}

// sendOn sends a trajectory as the instance with that ID.
func (b *books) sendOn(id uint16, h hostabi.Handle) error {
	tr, lease, err := trajectory.Lease(b.set, h)
	if err != nil {
		return err
	}
	defer lease.Release()
	_, err = b.send(id, 0, b.arena, tr, h)
	return err
}

func (b *books) comes(id uint16, name string, h hostabi.Handle) {
	b.take(by{id: id, name: name}, b.arena, trajectory.Member{Handle: h})
}

func (b *books) settle(h hostabi.Handle, place int, f trajectory.Fate) {
	b.Helper()
	if err := trajectory.Settle(b.arena, h, place, f); err != nil {
		b.Fatal(err)
	}
}

func (b *books) free(h hostabi.Handle) {
	b.Helper()
	if err := b.arena.Release(h); err != nil {
		b.Fatal(err)
	}
}

// says compares a reading with the expected one, and with its own sum.
func (b *books) says(trained, tooOld, underWay uint64, dropped map[string]uint64) {
	b.Helper()
	r := b.read()
	sum := r.underWay
	for _, n := range r.settled {
		sum += n
	}
	for why, n := range r.dropped {
		sum += n
		if dropped[why] != n {
			b.Errorf("dropped %v, want %v", r.dropped, dropped)
		}
	}
	for why := range dropped {
		if r.dropped[why] == 0 {
			b.Errorf("dropped %v, want %v", r.dropped, dropped)
		}
	}
	if r.made != sum || r.settled[trajectory.Trained] != trained || r.settled[trajectory.TooOld] != tooOld || r.underWay != underWay {
		b.Errorf("%+v, want %d trained, %d too old, %d under way", r, trained, tooOld, underWay)
	}
}

func TestLedger_CountsEachTrajectoryOnce(t *testing.T) {
	b := newBooks(t, "", "main")
	first := b.hand(8)
	b.says(0, 0, 8, nil)
	b.comes(3, "batcher", first)
	b.settle(first, 0, trajectory.Trained)
	b.says(8, 0, 0, nil)
	b.free(first)
	b.says(8, 0, 0, nil)
	old := b.hand(5)
	b.comes(3, "batcher", old)
	b.settle(old, 0, trajectory.TooOld)
	b.free(old)
	b.says(8, 5, 0, nil)
}

func TestLedger_NamesWhoHadItLast(t *testing.T) {
	b := newBooks(t, "", "main")
	kept := b.hand(8)
	b.comes(2, "chooser", kept)
	b.comes(5, "logger", kept) // off the way
	b.free(kept)
	b.says(0, 0, 0, map[string]uint64{"component.chooser": 8})
	on := b.hand(4)
	b.comes(2, "chooser", on)
	if err := b.sendOn(2, on); err != nil {
		t.Fatal(err)
	}
	b.lose(b.arena, on)
	b.free(on)
	b.says(0, 0, 0, map[string]uint64{"component.chooser": 8, reasonWire: 4})
	beside := b.hand(2)
	b.comes(5, "logger", beside)
	b.free(beside)
	nobody := b.hand(1)
	b.free(nobody)
	b.says(0, 0, 0, map[string]uint64{"component.chooser": 8, reasonWire: 5, "component.logger": 2})
	has := b.hand(3)
	b.comes(3, "batcher", has)
	b.lose(b.arena, has) // another wire's
	b.free(has)
	for range 4 {
		b.hand(1) // each block again, before anybody has looked
	}
	b.says(0, 0, 4, map[string]uint64{"component.chooser": 8, reasonWire: 5, "component.logger": 2, "component.batcher": 3})
}

func TestLedger_RefusesToCountTwice(t *testing.T) {
	b := newBooks(t, "", "main")
	h := b.hand(8)
	if err := b.sendOn(1, h); !errors.Is(err, component.ErrTwice) {
		t.Errorf("its maker sends it again: %v", err)
	}
	if err := b.sendOn(2, h); !errors.Is(err, errNotGiven) {
		t.Errorf("who has not been given it: %v", err)
	}
	b.comes(2, "chooser", h)
	if err := b.sendOn(2, h); err != nil {
		t.Errorf("sent on once: %v", err)
	}
	if err := b.sendOn(2, h); !errors.Is(err, component.ErrTwice) {
		t.Errorf("sent on twice: %v", err)
	}
	b.comes(2, "chooser", h) // again, as after a restart
	if err := b.sendOn(2, h); !errors.Is(err, component.ErrTwice) || !b.sentBy(2, b.arena, h) || b.sentBy(3, b.arena, h) {
		t.Errorf("sent on after it has come again: %v", err)
	}
	b.says(0, 0, 8, nil)
}

func TestLedger_KnowsTheRowsOfEachPolicy(t *testing.T) {
	b := newBooks(t, "main past", "main")
	h := b.hand(3, 5)
	b.comes(3, "batcher", h)
	b.says(0, 0, 3, map[string]uint64{reasonNotLearned: 5})
	b.settle(h, 0, trajectory.Trained)
	b.free(h)
	b.says(3, 0, 0, map[string]uint64{reasonNotLearned: 5})
}

// A plugin's learner may settle nothing: trajectories that it got and that are free again count as learned from. If it settles, its word
// counts.
func TestLedger_LearnersOfPluginsNeedNotSettle(t *testing.T) {
	b := newBooks(t, "", "main")
	h := b.hand(8)
	b.comes(3, "batcher", h)
	b.take(by{id: 4, name: "learner", learns: true, foreign: true}, b.arena, trajectory.Member{Handle: h})
	b.says(0, 0, 8, nil)
	b.free(h)
	b.says(8, 0, 0, nil)
	for range 2 {
		h = b.hand(4)
		b.comes(3, "batcher", h)
		b.take(by{id: 4, name: "learner", learns: true, foreign: true}, b.arena, trajectory.Member{Handle: h})
		if b.settles[reasonComponent+"learner"] {
			b.free(h)
			continue
		}
		b.settle(h, 0, trajectory.Trained)
		b.free(h)
		b.says(12, 0, 0, nil)
	}
	b.says(12, 0, 0, map[string]uint64{"component.learner": 4})
}

// A learner that goes back to an earlier state has lost its later learning, except for trajectories that it gets again. Learning that
// two returns undo is lost once.
func TestLedger_ALearnersLossesWithItsState(t *testing.T) {
	b := newBooks(t, "", "main")
	me := by{id: 4, name: "learner", learns: true, policy: "main"}
	learn := func(rows int) hostabi.Handle {
		h := b.hand(rows)
		b.comes(3, "batcher", h)
		b.take(me, b.arena, trajectory.Member{Handle: h})
		b.settle(h, 0, trajectory.Trained)
		return h
	}
	b.free(learn(8))
	older := b.learned(4)
	b.free(learn(7))
	newer := b.learned(4)
	open := learn(5)
	b.free(learn(3))
	b.says(23, 0, 0, nil)
	b.again(4, b.arena, trajectory.Member{Handle: open})
	b.goesBack(4, "learner", "main", newer)
	b.says(15, 0, 5, map[string]uint64{"component.learner": 3})
	b.settle(open, 0, trajectory.Trained)
	b.free(open)
	b.says(20, 0, 0, map[string]uint64{"component.learner": 3})
	for range 2 {
		b.goesBack(4, "learner", "main", older)
		b.says(8, 0, 0, map[string]uint64{"component.learner": 15})
	}
	b.goesBack(4, "learner", "main", newer) // a state that it has gone back behind
	b.says(8, 0, 0, map[string]uint64{"component.learner": 15})
	if n := b.lostOf("main"); n != 15 {
		t.Errorf("lost %d of the policy", n)
	}
}

// Trajectories removed with their arena keep their fate.
func TestLedger_ClosesTheBookOfAnArena(t *testing.T) {
	b := newBooks(t, "", "main")
	learned, lost := b.hand(8), b.hand(2)
	b.settle(learned, 0, trajectory.Trained)
	b.comes(3, "batcher", lost)
	b.free(learned)
	b.free(lost)
	b.close(b.arena)
	b.says(8, 0, 0, map[string]uint64{"component.batcher": 2})
}

// Parts of a trajectory meet fates of their own, at places of their own, and what is left of it one more.
func TestLedger_CountsThePartsOfATrajectory(t *testing.T) {
	part := func(h hostabi.Handle, first, number int) trajectory.Member {
		return trajectory.Member{Handle: h, Part: trajectory.Part{First: first, Envs: 1, Number: number}}
	}
	for name, foreign := range map[string]bool{"built in": false, "a plugin's learner": true} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t, "", "main")
			me := by{id: 4, name: "learner", learns: true, policy: "main", foreign: foreign}
			learn := func(m trajectory.Member) {
				b.cutOff(m)
				b.take(me, b.arena, m)
				if !foreign {
					b.settle(m.Handle, m.Part.Number, trajectory.Trained)
				}
			}
			now := func(trained, underWay uint64) (uint64, uint64) { // a plugin's learner is not known to have learned while it has a claim
				if foreign {
					return 0, trained + underWay
				}
				return trained, underWay
			}
			h := b.hand(7) // of 4 steps of 2 environments, all but the last one of the second environment
			b.comes(3, "batcher", h)
			learn(part(h, 0, 0))
			trained, underWay := now(4, 3)
			b.says(trained, 0, underWay, nil)
			learn(part(h, 1, 1))
			trained, underWay = now(7, 0)
			b.says(trained, 0, underWay, nil)
			b.free(h)
			b.says(7, 0, 0, nil)

			h = b.hand(8)
			b.comes(3, "batcher", h)
			learn(part(h, 0, 0))
			b.settle(h, 1, trajectory.TooOld)
			b.free(h)
			b.says(11, 4, 0, nil)

			h = b.hand(8)
			b.comes(3, "batcher", h)
			learn(part(h, 0, 0))
			b.free(h)
			b.says(15, 4, 0, map[string]uint64{"component.batcher": 4})
			if n := b.learned(4); n != 15 {
				t.Errorf("the learner has learned from %d rows, want 15", n)
			}
		})
	}
}

// Where several policies act in a block, each has parts of its own.
func TestLedger_CountsThePartsOfEachPolicy(t *testing.T) {
	b := newBooks(t, "east west", "east", "west")
	h := b.hand(3, 5)
	b.comes(3, "batcher", h)
	m := trajectory.Member{Handle: h, Part: trajectory.Part{First: 0, Envs: 1}}
	b.cutFor("west", m)
	b.take(by{id: 4, name: "learner", learns: true, policy: "west"}, b.arena, m)
	b.settle(h, 1, trajectory.Trained)
	b.says(3, 0, 5, nil) // rows 0, 2 and 4 of west's are the first environment's
	b.settle(h, 2*1+1, trajectory.TooOld)
	b.settle(h, 0, trajectory.Trained)
	b.says(6, 2, 0, nil)
	b.again(4, b.arena, m)
	b.says(3, 2, 3, nil)
	b.free(h)
}

func (b *books) cutOff(m trajectory.Member) { b.cutFor("", m) }

// cutFor is the batcher's dataset of a policy.
func (b *books) cutFor(policy string, m trajectory.Member) {
	b.Helper()
	tr, lease, err := trajectory.Lease(b.set, m.Handle)
	if err != nil {
		b.Fatal(err)
	}
	defer lease.Release()
	b.cut(policy, b.arena, m, tr)
}
