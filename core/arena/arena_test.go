package arena

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// heap makes segments that the race detector can see.
func heap(_ string, bytes int) (*shm.Segment, error) { return shm.Heap(bytes) }

// small returns an arena of heap memory with a few small blocks.
func small(t testing.TB, blocks int) *Arena {
	t.Helper()
	a, err := New(Config{ID: 7, Name: "small", Blocks: blocks, BlockBytes: 100, Segment: heap})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// attach returns the view that another process would have of a.
func attach(a *Arena, holder int) *Arena { return over(a.words, a.data, a.config, a.layout, holder) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loan lends any block of a.
func loan(t testing.TB, a *Arena) Loan {
	t.Helper()
	l, err := a.Loan()
	ok(t, err)
	return l
}

// commit lends and commits any block of a.
func commit(t testing.TB, a *Arena) hostabi.Handle {
	t.Helper()
	h, err := loan(t, a).Commit()
	ok(t, err)
	return h
}

func TestNew_BlocksDoNotShareAnything(t *testing.T) {
	for _, c := range []Config{
		{Blocks: 1, BlockBytes: 1},
		{Blocks: 65, BlockBytes: 4096},
		{Blocks: 3, BlockBytes: 4097},
		{Blocks: 130, BlockBytes: 100},
	} {
		c.Segment = heap
		a, err := New(c)
		ok(t, err)
		if a.Blocks() != c.Blocks || a.BlockBytes() != c.BlockBytes || a.FD() != -1 {
			t.Errorf("%d × %d: has %d × %d, fd %d", c.Blocks, c.BlockBytes, a.Blocks(), a.BlockBytes(), a.FD())
		}
		end := int64(0)
		for b := range uint32(c.Blocks) {
			at := a.BlockOffset(b)
			if at < end || at%int64(shm.PageSize()) != 0 || at+int64(c.BlockBytes) > int64(len(a.mem)) {
				t.Errorf("%d × %d: block %d at %d, free from %d", c.Blocks, c.BlockBytes, b, at, end)
			}
			if mem := a.bytes(b); len(mem) != c.BlockBytes || cap(mem) != c.BlockBytes || &mem[0] != &a.mem[at] {
				t.Errorf("%d × %d: block %d has length %d, capacity %d", c.Blocks, c.BlockBytes, b, len(mem), cap(mem))
			}
			end = at + int64(c.BlockBytes)
		}
		for _, b := range []uint32{uint32(c.Blocks), math.MaxUint32} {
			if got := a.BlockOffset(b); got != -1 {
				t.Errorf("BlockOffset(%d) = %d, want -1", b, got)
			}
			if _, err := a.LoanBlock(b); !errors.Is(err, ErrRange) {
				t.Errorf("LoanBlock(%d) = %v, want ErrRange", b, err)
			}
		}
	}
}

func TestNew_ImpossibleConfigurationsAreErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []Config{
		{Blocks: 0, BlockBytes: 1},
		{Blocks: -1, BlockBytes: 1},
		{Blocks: hostabi.MaxBlock + 2, BlockBytes: 1},
		{Blocks: 1, BlockBytes: 0},
		{Blocks: 1, BlockBytes: math.MinInt},
		{Blocks: 1, BlockBytes: math.MaxInt},
		{Blocks: 1 << 18, BlockBytes: math.MaxInt >> 17},
		{Blocks: 1, BlockBytes: math.MaxInt >> 1},
		{Blocks: 1, BlockBytes: 1, Segment: func(string, int) (*shm.Segment, error) { return nil, broken }},
		{Blocks: 1, BlockBytes: 1, Segment: func(string, int) (*shm.Segment, error) { return shm.Heap(1) }},
	} {
		if a, err := New(c); err == nil {
			t.Errorf("%d × %d made %v", c.Blocks, c.BlockBytes, a)
		}
	}
	_, err := New(Config{Name: "x", Blocks: 1, BlockBytes: 1,
		Segment: func(string, int) (*shm.Segment, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("New = %v, want the segment's error", err)
	}
}

func TestLoan_LendsEachBlockOnce(t *testing.T) {
	const blocks = 130
	a := small(t, blocks)
	seen := map[uint32]bool{}
	var loans []Loan
	for range blocks {
		l := loan(t, a)
		if seen[l.Block()] {
			t.Fatalf("block %d was lent twice", l.Block())
		}
		seen[l.Block()] = true
		loans = append(loans, l)
	}
	if _, err := a.Loan(); !errors.Is(err, ErrExhausted) {
		t.Errorf("Loan of %d of %d = %v, want ErrExhausted", blocks+1, blocks, err)
	}
	ok(t, loans[97].Abort())
	if l := loan(t, a); l.Block() != loans[97].Block() {
		t.Errorf("Loan = block %d, want %d, the only free one", l.Block(), loans[97].Block())
	}
}

func TestLoan_FindsBlocksWithoutHint(t *testing.T) {
	a := small(t, 70)
	for i := range a.view.hints {
		a.view.hints[i].Store(0)
	}
	a.view.header.cursor.Store(math.MaxUint32)
	for range 70 {
		loan(t, a)
	}
	for i := range a.view.hints {
		a.view.hints[i].Store(math.MaxUint64)
	}
	if _, err := a.Loan(); !errors.Is(err, ErrExhausted) {
		t.Errorf("Loan with wrong hints = %v, want ErrExhausted", err)
	}
}

func TestLoan_BytesEndWithIt(t *testing.T) {
	a := small(t, 2)
	l := loan(t, a)
	copy(l.Bytes(), "written")
	h, err := l.Commit()
	ok(t, err)
	if h != l.Handle() {
		t.Errorf("Commit = %v, Handle said %v", h, l.Handle())
	}
	if l.Bytes() != nil {
		t.Error("bytes of a committed loan are writable")
	}
	lease, err := a.Lease(h)
	ok(t, err)
	if got := string(lease.Bytes()[:7]); got != "written" {
		t.Errorf("lease reads %q", got)
	}
	ok(t, lease.Release())
	if lease.Bytes() != nil || lease.Handle() != h {
		t.Error("a released lease has bytes or lost its handle")
	}
}

func TestZeroValues_AreSpent(t *testing.T) {
	var l Loan
	var lease Lease
	if _, err := l.Commit(); !errors.Is(err, ErrSpent) {
		t.Errorf("Commit = %v", err)
	}
	if err := l.Abort(); !errors.Is(err, ErrSpent) {
		t.Errorf("Abort = %v", err)
	}
	if err := lease.Release(); !errors.Is(err, ErrSpent) {
		t.Errorf("Release = %v", err)
	}
	if l.Bytes() != nil || lease.Bytes() != nil {
		t.Error("zero values have bytes")
	}
}

func TestRetain_CountIsBounded(t *testing.T) {
	a := small(t, 1)
	h := commit(t, a)
	a.local[0].claims.Store(uint64(makeClaims(h.Generation(), claimMax)))
	if err := a.Retain(h); !errors.Is(err, ErrClaims) {
		t.Errorf("Retain beyond the counter = %v, want ErrClaims", err)
	}
	a.local[0].claims.Store(uint64(makeClaims(h.Generation(), 1)))
	ok(t, a.Release(h))
}

func TestGeneration_WrapsPastZero(t *testing.T) {
	a, err := newArena(Config{ID: 7, Blocks: 1, BlockBytes: 100, Segment: heap}, hostabi.MaxGeneration-1)
	ok(t, err)
	var got []uint64
	for range 4 {
		h := commit(t, a)
		got = append(got, h.Generation())
		lease, err := a.Lease(h)
		ok(t, err)
		ok(t, lease.Release())
		ok(t, a.Release(h))
		if _, err := a.Lease(h); !errors.Is(err, ErrStale) {
			t.Errorf("Lease of %v after its end = %v, want ErrStale", h, err)
		}
	}
	if want := []uint64{hostabi.MaxGeneration - 1, hostabi.MaxGeneration, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("generations %v, want %v", got, want)
	}
	if d := generationsBetween(hostabi.MaxGeneration-1, 3); d != 4 {
		t.Errorf("from %d to 3 are %d uses, want 4", hostabi.MaxGeneration-1, d)
	}
	for _, n := range []uint64{0, 1, 5} {
		from := uint64(hostabi.MaxGeneration - 2)
		if d := generationsBetween(from, generationAfter(from, n)); d != n {
			t.Errorf("%d uses after %d are counted as %d", n, from, d)
		}
	}
}

func TestLoaned_OnlyWhileOnLoan(t *testing.T) {
	a := small(t, 1)
	l := loan(t, a)
	mem, err := a.Loaned(l.Handle())
	ok(t, err)
	if &mem[0] != &l.Bytes()[0] || len(mem) != a.BlockBytes() {
		t.Error("Loaned gives other bytes than the loan")
	}
	_, err = l.Commit()
	ok(t, err)
	if _, err := a.Loaned(l.Handle()); !errors.Is(err, ErrStale) {
		t.Errorf("Loaned after commit = %v, want ErrStale", err)
	}
	for h, want := range map[hostabi.Handle]error{
		hostabi.MakeHandle(8, 0, 1): ErrForeign,
		hostabi.MakeHandle(7, 1, 1): ErrRange,
		hostabi.MakeHandle(7, 0, 2): ErrStale,
	} {
		if _, err := a.Loaned(h); !errors.Is(err, want) {
			t.Errorf("Loaned(%v) = %v, want %v", h, err, want)
		}
	}
}

func TestHotPath_AllocatesNothing(t *testing.T) {
	if invariants {
		t.Skip("this build remembers stacks")
	}
	s := NewSet()
	a, err := s.Add(Config{Name: "hot", Blocks: 4, BlockBytes: 64, Segment: heap})
	ok(t, err)
	a.OnFree(0, func(uint32) {})
	stale := commit(t, a)
	ok(t, a.Release(stale))
	if n := testing.AllocsPerRun(100, func() {
		l, _ := a.Loan()
		h, _ := l.Commit()
		_ = s.Retain(h)
		lease, _ := s.Lease(h)
		_ = s.Release(h)
		_ = lease.Release()
		_ = lease.Release()
		_ = a.Release(h)
		_ = a.Release(h)
		_, _ = s.Lease(stale)
		l, _ = a.LoanBlock(0)
		_ = l.Abort()
	}); n != 0 {
		t.Errorf("a cycle allocates %v times", n)
	}
}
