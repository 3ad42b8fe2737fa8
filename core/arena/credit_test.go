package arena

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// network is a host and two other processes with one arena, and the credits between them.
type network struct {
	t      testing.TB
	set    [3]*Set
	arena  [3]*Arena
	told   []string // notified process, and the block
	posted []string // holder and handle that went by Credits, by process
	hold   bool     // messages wait in mail
	mail   []func()
}

func newNetwork(t testing.TB, blocks int) *network {
	n := &network{t: t}
	n.set[0] = NewSet()
	a, err := n.set[0].Add(Config{Name: "network", Blocks: blocks, BlockBytes: 8, Segment: heap})
	ok(t, err)
	n.arena[0] = a
	for p := 1; p <= 2; p++ {
		holder, err := n.set[0].Grant()
		ok(t, err)
		n.set[p] = NewPeerSet(holder, nil)
		n.arena[p] = seen(a, n.set[p])
		ok(t, n.set[p].arrive(n.arena[p]))
	}
	for p := range n.set {
		for holder := range n.set {
			n.set[p].Credits(holder, func(h hostabi.Handle) { n.post(p, holder, h) })
		}
	}
	return n
}

// post carries a credit: from a plugin to the host, from the host to the plugin that is meant.
func (n *network) post(from, holder int, h hostabi.Handle) {
	n.posted = append(n.posted, fmt.Sprintf("%d: %d %v", from, holder, h))
	to := 0
	if from == 0 {
		to = holder
	}
	deliver := func() { _ = n.set[to].Credit(h) }
	if n.hold {
		n.mail = append(n.mail, deliver)
		return
	}
	deliver()
}

func (n *network) listen(p int, block uint32) {
	n.arena[p].OnFree(block, func(block uint32) { n.told = append(n.told, fmt.Sprintf("%d: %d", p, block)) })
}

func (n *network) expect(what string, want ...string) {
	n.t.Helper()
	if !slices.Equal(n.told, want) {
		n.t.Errorf("%s: told %q, want %q", what, n.told, want)
	}
	n.told = nil
}

// use lends a block in one process and frees it in another.
func (n *network) use(from, to int, block uint32) hostabi.Handle {
	n.t.Helper()
	l, err := n.arena[from].LoanBlock(block)
	ok(n.t, err)
	h, err := l.Commit()
	ok(n.t, err)
	ok(n.t, n.set[to].Retain(h))
	ok(n.t, n.set[from].Release(h))
	ok(n.t, n.set[to].Release(h))
	return h
}

func TestCredit_ReachesItsReceiverWhicheverProcessFrees(t *testing.T) {
	n := newNetwork(t, 3)
	for p := range 3 {
		n.listen(p, uint32(p))
	}
	for from := range 3 {
		for to := range 3 {
			for block := range uint32(3) {
				n.use(from, to, block)
				n.expect(fmt.Sprintf("block of %d, from %d, freed by %d", block, from, to), fmt.Sprintf("%d: %d", block, block))
			}
		}
	}
	n.arena[2].OnFree(2, nil)
	n.use(0, 1, 2)
	n.use(1, 0, 2)
	n.expect("after the last receiver is gone")
}

func TestCredit_NamesTheUseThatIsOver(t *testing.T) {
	n := newNetwork(t, 1)
	n.listen(1, 0)
	h := n.use(0, 0, 0)
	if want := fmt.Sprintf("0: 1 %v", h); !slices.Equal(n.posted, []string{want}) {
		t.Errorf("posted %q, want %q", n.posted, want)
	}
}

func TestCredit_IsGivenOnceForEachFree(t *testing.T) {
	n := newNetwork(t, 1)
	n.listen(0, 0)
	h := n.use(0, 1, 0)
	for range 3 {
		if err := n.set[0].Credit(h); !errors.Is(err, ErrSpent) {
			t.Errorf("Credit of a free that was credited = %v, want ErrSpent", err)
		}
	}
	n.expect("one free", "0: 0")
	n.hold = true
	n.use(0, 1, 0)
	n.use(1, 2, 0)
	n.use(0, 0, 0) // overtakes the two messages
	n.expect("a free here", "0: 0")
	for _, deliver := range n.mail {
		deliver()
	}
	n.expect("late messages")
}

func TestCredit_OfABlockInUseIsRefused(t *testing.T) {
	n := newNetwork(t, 2)
	n.listen(0, 0)
	a := n.arena[0]
	l, err := a.LoanBlock(0)
	ok(t, err)
	refused := func(what string, h hostabi.Handle, want error) {
		t.Helper()
		if err := n.set[0].Credit(h); !errors.Is(err, want) {
			t.Errorf("Credit of %s = %v, want %v", what, err, want)
		}
	}
	refused("a block on loan", l.Handle(), ErrBusy)
	h, err := l.Commit()
	ok(t, err)
	refused("a live block", h, ErrBusy)
	a.view.blocks[0].word.Store(uint64(makeWord(h.Generation()+1, stateFree, 0)))
	refused("a block that a process calls free and the host holds", h, ErrBusy)
	if _, err := a.LoanBlock(0); !errors.Is(err, ErrBusy) {
		t.Errorf("LoanBlock of such a block = %v, want ErrBusy", err)
	}
	refused("no block", hostabi.MakeHandle(a.ID(), 2, 1), ErrRange)
	refused("another arena", hostabi.MakeHandle(a.ID()+1, 0, 1), ErrForeign)
	refused("nothing", 0, ErrForeign)
	refused("a block that nobody asked for", hostabi.MakeHandle(a.ID(), 1, 1), ErrSpent)
	n.expect("nothing was freed")
}

func TestCredit_WrongCreditorsInSharedMemoryDoNoHarm(t *testing.T) {
	for _, creditor := range []uint32{hostabi.MaxHolder + 2, 64, math.MaxUint32, 1} {
		n := newNetwork(t, 2)
		n.listen(0, 0)
		for b := range n.arena[0].view.blocks {
			n.arena[0].view.blocks[b].creditor.Store(creditor)
		}
		n.use(0, 0, 0)
		n.expect("the host's own receiver", "0: 0")
		n.use(0, 0, 1)
		if len(n.posted) != 0 {
			t.Errorf("creditor %d: posted %q", creditor, n.posted)
		}
	}
}

func TestSweep_GivesCreditsThatTheDeadCouldNot(t *testing.T) {
	n := newNetwork(t, 4)
	n.listen(0, 0)
	n.listen(2, 1)
	n.listen(1, 2)
	n.hold = true // the dead process's posts are lost
	n.use(0, 1, 0)
	n.use(0, 1, 1)
	_, err := n.arena[1].LoanBlock(3)
	ok(t, err)
	n.hold, n.mail = false, nil
	if _, err := n.set[0].Sweep(1); err != nil {
		t.Fatal(err)
	}
	n.expect("after the sweep", "0: 0", "2: 1")
	if got := n.arena[0].view.blocks[2].creditor.Load(); got != 0 {
		t.Errorf("block 2 still has creditor %d, which is dead", got)
	}
	n.use(0, 0, 2)
	n.expect("a block of the dead process")
}

func TestOnFree_CreditsAllocateNothing(t *testing.T) {
	if invariants {
		t.Skip("this build remembers stacks")
	}
	n := newNetwork(t, 2)
	count := 0
	for p := range n.set {
		for holder := range n.set {
			n.set[p].Credits(holder, func(h hostabi.Handle) { _ = n.set[holder].Credit(h) })
		}
	}
	n.arena[0].OnFree(0, func(uint32) { count++ })
	n.arena[1].OnFree(1, func(uint32) { count++ })
	if got := testing.AllocsPerRun(100, func() {
		n.use(0, 1, 0)
		n.use(2, 0, 1)
	}); got != 0 || count == 0 {
		t.Errorf("%v allocations for %d credits, want none", got, count)
	}
}
