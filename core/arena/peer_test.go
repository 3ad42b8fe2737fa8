package arena

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// seen returns the view that the process of a peer set would have of a.
func seen(a *Arena, s *Set) *Arena { return attach(a, s.peer.holder) }

func TestSet_GrantsEveryHolderOnceAndNamesTheLimit(t *testing.T) {
	var s Set // the zero value is a host's
	a := add(t, &s, "shared")
	var holders []int
	for range hostabi.MaxHolder {
		holder, err := s.Grant()
		ok(t, err)
		holders = append(holders, holder)
	}
	slices.Sort(holders)
	if len(slices.Compact(holders)) != hostabi.MaxHolder || holders[0] != 1 || holders[len(holders)-1] != hostabi.MaxHolder {
		t.Errorf("granted %v, want 1 to %d", holders, hostabi.MaxHolder)
	}
	_, err := s.Grant()
	if !errors.Is(err, ErrHolders) || !strings.Contains(err.Error(), "23 processes can share the arenas of one host at a time") {
		t.Errorf("Grant of the 24th = %v, want ErrHolders with the limit", err)
	}
	if bits.OnesCount64(uint64(s.granted)) != hostabi.MaxHolder {
		t.Errorf("granted %b, want %d holders", s.granted, hostabi.MaxHolder)
	}
	loan(t, attach(a, 17))
	swept, err := s.Sweep(17)
	if want := (Swept{Write: 1, Freed: 1}); err != nil || swept != want {
		t.Errorf("Sweep = %+v, %v, want %+v", swept, err, want)
	}
	if holder, err := s.Grant(); err != nil || holder != 17 {
		t.Errorf("Grant after the sweep of 17 = %d, %v", holder, err)
	}
	ok(t, s.Close())
}

func TestSet_SweepIsForGrantedHoldersOfTheHost(t *testing.T) {
	s := NewSet()
	for _, holder := range []int{-1, 0, 1, hostabi.MaxHolder, hostabi.MaxHolder + 1, 99} {
		if _, err := s.Sweep(holder); err == nil {
			t.Errorf("Sweep(%d) succeeded, and nothing was granted", holder)
		}
	}
	peer := NewPeerSet(1, nil)
	_, grantErr := peer.Grant()
	_, sweepErr := peer.Sweep(1)
	_, addErr := peer.Add(Config{Blocks: 1, BlockBytes: 1})
	for _, err := range []error{grantErr, sweepErr, addErr, peer.Remove(1)} {
		if !errors.Is(err, ErrHost) {
			t.Errorf("in another process: %v, want ErrHost", err)
		}
	}
	if err := s.Detach(1); err == nil {
		t.Error("Detach at the host succeeded")
	}
	a := add(t, s, "one")
	if _, err := attach(a, 2).Sweep(1); !errors.Is(err, ErrHost) {
		t.Errorf("Sweep of an attached arena = %v, want ErrHost", err)
	}
	ok(t, s.Close())
	if swept, err := a.Sweep(1); err != nil || swept != (Swept{}) {
		t.Errorf("Sweep of a closed arena = %+v, %v, want nothing", swept, err)
	}
}

func TestSet_SweepCoversEveryArena(t *testing.T) {
	s := NewSet()
	first, second := add(t, s, "first"), add(t, s, "second")
	holder, err := s.Grant()
	ok(t, err)
	loan(t, attach(first, holder))
	h := commit(t, attach(second, holder))
	lease, err := s.Lease(h)
	ok(t, err)
	swept, err := s.Sweep(holder)
	if want := (Swept{Write: 1, Live: 1, Freed: 1}); err != nil || swept != want {
		t.Errorf("Sweep = %+v, %v, want %+v", swept, err, want)
	}
	ok(t, lease.Release())
	var names []string
	s.Each(func(a *Arena) { names = append(names, a.Name()) })
	if !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("Each visits %v", names)
	}
	ok(t, s.Close())
}

// notes are the calls that a watcher got.
type notes struct{ told []string }

func (n *notes) note(a *Arena, added bool) {
	if added {
		n.told = append(n.told, "+"+a.Name())
	} else {
		n.told = append(n.told, "-"+a.Name())
	}
}

func TestWatch_TellsOfAllArenasOnceUntilCancelled(t *testing.T) {
	s := NewSet()
	first := add(t, s, "first")
	var early, late notes
	cancelEarly := s.Watch(early.note)
	add(t, s, "second")
	cancelLate := s.Watch(late.note)
	ok(t, s.Remove(first.ID()))
	cancelEarly()
	cancelEarly()
	add(t, s, "third")
	ok(t, s.Close())
	cancelLate()
	if want := []string{"+first", "+second", "-first"}; !slices.Equal(early.told, want) {
		t.Errorf("the first watcher was told %v, want %v", early.told, want)
	}
	if want := []string{"+first", "+second", "-first", "+third", "-second", "-third"}; !slices.Equal(late.told, want) {
		t.Errorf("the second watcher was told %v, want %v", late.told, want)
	}
}

func TestWatch_HasNoGapAndNoDuplicateWhileArenasAreAdded(t *testing.T) {
	s := NewSet()
	const arenas = 40
	var adders sync.WaitGroup
	for k := range 2 {
		adders.Go(func() {
			for i := range arenas / 2 {
				add(t, s, fmt.Sprintf("arena %d of %d", i, k))
			}
		})
	}
	var all [20]notes
	for i := range all {
		defer s.Watch(all[i].note)()
	}
	adders.Wait()
	for i, n := range all {
		slices.Sort(n.told)
		if got := len(slices.Compact(n.told)); got != arenas || len(n.told) != arenas {
			t.Errorf("watcher %d was told %d times of %d arenas, want %d", i, len(n.told), got, arenas)
		}
	}
}

func TestPeerSet_AddAsksTheHost(t *testing.T) {
	host := NewSet()
	var peer *Set
	peer = NewPeerSet(3, func(c Config) (*Arena, error) {
		if c.Name == "refused" {
			return nil, ErrHolders
		}
		c.Segment = heap
		a, err := host.Add(c)
		if err != nil {
			return nil, err
		}
		view := seen(a, peer)
		if c.Name == "announced first" {
			return view, peer.arrive(view)
		}
		return view, nil
	})
	for _, name := range []string{"asked for", "announced first"} {
		a, err := peer.Add(Config{Name: name, Blocks: 1, BlockBytes: 8})
		ok(t, err)
		h := commit(t, a)
		if got, err := peer.Of(h); got != a || err != nil {
			t.Errorf("Of(%v) = %v, %v, want the arena that was added", h, got, err)
		}
		ok(t, host.Retain(h))
		ok(t, peer.Release(h))
		ok(t, host.Release(h))
	}
	if _, err := peer.Add(Config{Name: "refused"}); !errors.Is(err, ErrHolders) {
		t.Errorf("Add = %v, want the host's error", err)
	}
	ok(t, peer.Close())
	ok(t, host.Close())
}

func TestPeerSet_OfWaitsForAnAnnouncementOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, peer := NewSet(), NewPeerSet(3, nil)
		a := add(t, host, "late")
		h := commit(t, a)
		begin := time.Now()
		go func() {
			time.Sleep(announceWait / 2)
			ok(t, peer.arrive(seen(add(t, host, "another"), peer)))
			time.Sleep(announceWait / 4)
			ok(t, peer.arrive(seen(a, peer)))
		}()
		lease, err := peer.Lease(h)
		ok(t, err)
		if waited := time.Since(begin); waited != announceWait*3/4 {
			t.Errorf("Lease waited %v, want %v", waited, announceWait*3/4)
		}
		ok(t, lease.Release())
		begin = time.Now()
		if _, err := peer.Of(hostabi.MakeHandle(99, 0, 1)); !errors.Is(err, ErrForeign) || time.Since(begin) != announceWait {
			t.Errorf("Of an arena that never comes = %v after %v, want ErrForeign after %v", err, time.Since(begin), announceWait)
		}
		begin = time.Now()
		_, zeroErr := peer.Of(0)
		_, hostErr := host.Of(hostabi.MakeHandle(99, 0, 1))
		creditErr := peer.Credit(hostabi.MakeHandle(99, 0, 1))
		for _, err := range []error{zeroErr, hostErr, creditErr} {
			if !errors.Is(err, ErrForeign) || time.Since(begin) != 0 {
				t.Errorf("%v after %v, want ErrForeign at once", err, time.Since(begin))
			}
		}
	})
}

func TestPeerSet_OneViewForEachArena(t *testing.T) {
	host, peer := NewSet(), NewPeerSet(3, nil)
	a := add(t, host, "once")
	ok(t, peer.arrive(seen(a, peer)))
	if err := peer.arrive(seen(a, peer)); !errors.Is(err, ErrBusy) {
		t.Errorf("second view of one arena: %v, want ErrBusy", err)
	}
	var n notes
	peer.Watch(n.note)
	ok(t, peer.Detach(a.ID()))
	if err := peer.Detach(a.ID()); !errors.Is(err, ErrForeign) {
		t.Errorf("second Detach = %v, want ErrForeign", err)
	}
	ok(t, peer.arrive(seen(a, peer)))
	h := commit(t, a)
	ok(t, peer.Retain(h))
	ok(t, host.Release(h))
	if err := peer.Detach(a.ID()); !errors.Is(err, ErrOpen) {
		t.Errorf("Detach with a claim out = %v, want ErrOpen", err)
	}
	if want := []string{"+once", "-once", "+once", "-once"}; !slices.Equal(n.told, want) {
		t.Errorf("the watcher was told %v, want %v", n.told, want)
	}
}
