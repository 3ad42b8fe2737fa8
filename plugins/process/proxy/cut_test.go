package proxy

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// If a process does not abandon its work when the run is cut, its newest state is saved, within a bound.
func TestCut_TakesTheNewestStateOfAProcessThatDoesNotGiveUp(t *testing.T) {
	t.Parallel()
	k := newKept(t, "keeper")
	var before, after component.State
	var err error
	k.OnLoop(func() { before, err = k.x.Snapshot() })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := k.x.SnapshotApart(); ok {
		t.Errorf("a state beside the loop, %v, though nothing is cut", err)
	}
	freeze(t, k.Process().PID)
	k.x.Cut()
	k.OnLoop(func() { after, err = k.x.Snapshot() })
	if err != nil || after.Meta != before.Meta {
		t.Errorf("the state of the cut is %+v, %v; want %+v", after, err, before)
	}
	if apart, ok, err := k.x.SnapshotApart(); !ok || err != nil || apart.Meta != before.Meta {
		t.Errorf("beside the loop it is %+v, %t, %v; want %+v", apart, ok, err, before)
	}
	k.x.newestSession().process.Kill()
}

// A snapshot does not wait for a process that hangs, once it is given up. The process can be asked again when it runs again.
func TestGiveUp_EndsASnapshotAndLeavesTheProcess(t *testing.T) {
	t.Parallel()
	k := newKept(t, "keeper")
	pid := k.Process().PID
	freeze(t, pid)
	why, given := errors.New("enough"), make(chan error, 1)
	go k.OnLoop(func() {
		_, err := k.x.Snapshot()
		given <- err
	})
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for waits := true; waits; {
		select {
		case err := <-given:
			if !errors.Is(err, why) {
				t.Errorf("the snapshot ended with %v, want %v", err, why)
			}
			waits = false
		case <-look.C:
			k.x.GiveUp(why)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var err error
	k.OnLoop(func() { _, err = k.x.Snapshot() })
	if p := k.Process(); err != nil || p.PID != pid || p.Restarts != 0 {
		t.Errorf("asked again: %v, of %+v, which was %d", err, p, pid)
	}
}

// A process's request about its blocks on loan is owed until it is answered, or no longer waited for.
func TestOwed_IsWhatAProcessHasNotBeenAnswered(t *testing.T) {
	k := newKept(t, "keeper")
	loan, err := k.arena.Loan()
	if err != nil {
		t.Fatal(err)
	}
	l := k.x.newestSession()
	owed := func() (list []component.Owed) {
		k.x.Owed(func(o component.Owed) { list = append(list, o) })
		return list
	}
	m := hostabi.Message{Handle: loan.Handle(), T: 1, Split: 3}
	for n := uint64(1); n <= 2; n++ {
		l.ask(0, &m, 1)
		if list := owed(); len(list) != 1 || list[0] != (component.Owed{Signal: "numbers", Split: 3, Mark: n}) {
			t.Fatalf("owed %+v", list)
		}
		if !l.answered(&m) || len(owed()) != 0 {
			t.Errorf("owed %+v after the answer", owed())
		}
	}
	l.ask(0, &m, 1)
	if err := loan.Abort(); err != nil {
		t.Error(err)
	}
	if list := owed(); len(list) != 0 {
		t.Errorf("owed %+v about a block that is not on loan any more", list)
	}
	l.answered(&m)
}
