package arena

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

func TestSweep_RepairsScribblesBetweenOperations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rounds, mended := 300, 0
	if testing.Short() {
		rounds = 60
	}
	for round := range uint64(rounds) {
		s, e := scribbled(t, 1+int((seed+round)%9), seed+round)
		for range 400 {
			e.step()
			if e.random.IntN(4) == 0 {
				s.scribble()
			}
		}
		mended += sweepScribbled(t, e)
	}
	t.Logf("%d blocks mended", mended)
	if mended == 0 {
		t.Error("nothing was mended")
	}
}

// scribbled is a host, its arena in a set, and a scribbler.
func scribbled(t testing.TB, blocks int, seed uint64) (*scribbler, *endure) {
	t.Helper()
	set := NewSet()
	a, err := set.Add(Config{Name: "scribbled", Blocks: blocks, BlockBytes: 64, Segment: heap})
	ok(t, err)
	_, err = set.Grant()
	ok(t, err)
	a.patience /= 20
	return &scribbler{a: attach(a, 1), random: rand.New(rand.NewPCG(seed, 2))}, newEndure(t, a, seed)
}

// sweepScribbled sweeps the scribbler, which has ended, and checks that the arena is whole.
func sweepScribbled(t testing.TB, e *endure) (mended int) {
	t.Helper()
	swept, err := e.a.set.Sweep(1)
	ok(t, err)
	if again, err := e.a.sweepAmong(1, 0); err != nil || again != (Swept{}) {
		t.Fatalf("second sweep = %+v, %v: the first left something", again, err)
	}
	e.whole()
	ok(t, e.a.Close())
	return swept.Mended
}

func TestSweep_MendsWhileTheHostWorks(t *testing.T) {
	// The sweep runs while goroutines of the host are anywhere between counter and word.
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for round := range uint64(rounds) {
		s, first := scribbled(t, 32, seed+round)
		hosts := []*endure{first, newEndure(t, first.a, seed+round+1000)}
		for range 200 {
			s.scribble()
		}
		var working sync.WaitGroup
		for _, e := range hosts {
			working.Go(func() {
				for range 3000 {
					e.step()
				}
			})
		}
		if _, err := first.a.sweepAmong(1, 0); err != nil {
			t.Fatal(err)
		}
		working.Wait()
		hosts[1].giveBack()
		sweepScribbled(t, first)
	}
}

func TestSweep_OfAnHonestProcessMendsNothing(t *testing.T) {
	a := small(t, 16)
	a.patience = time.Minute // a busy machine can keep our own goroutines waiting
	var working sync.WaitGroup
	stop := make(chan struct{})
	for k := range 3 {
		working.Go(func() {
			e := newEndure(t, a, uint64(k))
			for {
				select {
				case <-stop:
					e.giveBack()
					return
				default:
					e.step()
				}
			}
		})
	}
	for range 200 {
		swept, err := a.Sweep(otherHolder)
		ok(t, err)
		if swept != (Swept{}) {
			t.Errorf("Sweep of a process that held nothing = %+v", swept)
		}
	}
	close(stop)
	working.Wait()
	if s := a.Stats(); s.Free != a.Blocks() || s.Leases != 0 {
		t.Errorf("after it %+v, want %d free", s, a.Blocks())
	}
}

func TestSweep_KeepsBlocksOfTheLiving(t *testing.T) {
	const dead, alive, absent = word(1 << 1), word(1 << 2), word(1 << 9)
	const g = 5
	for _, c := range []struct {
		name     string
		from, to word
		mended   int
	}{
		{"a reader", makeWord(g, stateLive, alive|dead), makeWord(g, stateLive, alive), 0},
		{"a reader and nobody", makeWord(g, stateLive, alive|absent), makeWord(g, stateLive, alive), 1},
		{"a reader and the host, who does not", makeWord(g, stateLive, alive|1), makeWord(g, stateLive, alive), 1},
		{"a writer", makeWord(g, stateWrite, alive), makeWord(g, stateWrite, alive), 0},
		{"a writer and the dead", makeWord(g, stateWrite, alive|dead), makeWord(g, stateWrite, alive), 1},
		{"free with a holder", makeWord(g, stateFree, alive), makeWord(g+generationSkip, stateZombie, alive), 1},
		{"no state", makeWord(g, 7, alive), makeWord(g+generationSkip, stateZombie, alive), 1},
		{"closed", makeWord(g, stateClosed, alive), makeWord(g+generationSkip, stateZombie, alive), 1},
		{"a generation of nobody", makeWord(1<<36, stateLive, alive), makeWord(generationSkip, stateZombie, alive), 1},
		{"nobody", makeWord(g, stateLive, 0), makeWord(g+generationSkip, stateFree, 0), 1},
		{"the absent", makeWord(g, stateWrite, absent), makeWord(g+generationSkip, stateFree, 0), 1},
		{"the last generation that may come next", makeWord(generationJump-1, 7, alive), makeWord(generationSkip, stateZombie, alive), 1},
		{"generation 0", makeWord(0, stateFree, 0), makeWord(generationSkip, stateFree, 0), 1},
		{"the dead", makeWord(g, stateZombie, dead), makeWord(g+1, stateFree, 0), 0},
	} {
		a := small(t, 1)
		a.view.blocks[0].word.Store(uint64(c.from))
		swept, err := a.sweepAmong(1, dead|alive)
		if got := a.word(0); err != nil || got != c.to || swept.Mended != c.mended {
			t.Errorf("%s: word %#x, %+v, %v, want %#x and %d mended", c.name, got, swept, err, c.to, c.mended)
		}
		if again, err := a.sweepAmong(1, alive); err != nil || again != (Swept{}) {
			t.Errorf("%s: second sweep = %+v, %v: the first left something", c.name, again, err)
		}
	}
}

func TestSweep_RestoresTheHostsBlocks(t *testing.T) {
	const dead, alive = word(1 << 1), word(1 << 2)
	const g = 1 // of the only block
	for _, c := range []struct {
		name       string
		loan       bool // the host writes the block, else it has committed it and holds a claim
		from, to   word
		mended     int
		unreadable bool
	}{
		{"a loan", true, makeWord(g, stateWrite, 1), makeWord(g, stateWrite, 1), 0, true},
		{"a loan, called free", true, makeWord(g, stateFree, 0), makeWord(g, stateWrite, 1), 1, true},
		{"a loan, taken by another", true, makeWord(g, stateWrite, alive), makeWord(g, stateWrite, 1), 1, true},
		{"a loan with readers", true, makeWord(g, stateLive, alive|1), makeWord(g, stateWrite, 1), 1, true},
		{"a claim", false, makeWord(g, stateLive, 1|dead|alive), makeWord(g, stateLive, 1|alive), 0, false},
		{"a revoked claim", false, makeWord(g, stateZombie, 1|dead), makeWord(g, stateZombie, 1), 0, true},
		{"a claim of nobody", false, makeWord(g, stateLive, dead), makeWord(g, stateLive, 1), 1, false},
		{"a claim beside nobody", false, makeWord(g, stateLive, 1|1<<20), makeWord(g, stateLive, 1), 1, false},
		{"a claim, called free", false, makeWord(g, stateFree, alive), makeWord(g, stateLive, 1|alive), 1, false},
		{"a claim, called on loan", false, makeWord(g, stateWrite, dead), makeWord(g, stateLive, 1), 1, false},
		{"a claim on a later use", false, makeWord(g+1, stateLive, 1|alive), makeWord(g, stateLive, 1), 1, false},
		{"a claim on an earlier use", false, makeWord(0, stateLive, alive), makeWord(g, stateLive, 1), 1, false},
		{"a claim, withdrawn", false, makeWord(g, stateClosed, 0), makeWord(g, stateLive, 1), 1, false},
	} {
		a := small(t, 1)
		a.patience = 0
		l := loan(t, a)
		stamp(l.Bytes(), l.Handle())
		if !c.loan {
			_, err := l.Commit()
			ok(t, err)
		}
		a.view.blocks[0].word.Store(uint64(c.from))
		swept, err := a.sweepAmong(1, dead|alive)
		if got := a.word(0); err != nil || got != c.to || swept.Mended != c.mended {
			t.Errorf("%s: word %#x, %+v, %v, want %#x and %d mended", c.name, got, swept, err, c.to, c.mended)
		}
		lease, err := a.Lease(l.Handle())
		if (err != nil) != c.unreadable || err == nil && !stamped(lease.Bytes(), l.Handle()) {
			t.Errorf("%s: Lease = %v", c.name, err)
		}
	}
}

func TestHost_WorksWhileWordsLie(t *testing.T) {
	// Another process writes each word over a block that the host holds; before any sweep.
	for _, lie := range []word{0, 1<<64 - 1, makeWord(1, stateFree, 0), makeWord(1, stateClosed, 0), makeWord(1, 6, 5),
		makeWord(2, stateFree, 0), makeWord(2, stateWrite, 4), makeWord(2, stateLive, 1), makeWord(1<<36, stateLive, 1)} {
		a := small(t, 1)
		l := loan(t, a)
		spoil := func() { a.view.blocks[0].word.Store(uint64(lie)) }
		spoil()
		if l.Bytes() == nil {
			t.Errorf("word %#x: an open loan has no bytes", lie)
		}
		if mem, err := a.Loaned(l.Handle()); mem == nil || err != nil {
			t.Errorf("word %#x: Loaned = %v", lie, err)
		}
		if _, err := a.LoanBlock(0); !errors.Is(err, ErrBusy) {
			t.Errorf("word %#x: LoanBlock of a block on loan = %v, want ErrBusy", lie, err)
		}
		if _, err := a.Loan(); !errors.Is(err, ErrExhausted) {
			t.Errorf("word %#x: Loan of a block on loan = %v, want ErrExhausted", lie, err)
		}
		h, err := l.Commit()
		if err != nil || a.word(0) != makeWord(1, stateLive, 1) {
			t.Errorf("word %#x: Commit = %v, word %#x", lie, err, a.word(0))
		}
		spoil()
		lease, err := a.Lease(h)
		if err != nil || lease.Bytes() == nil {
			t.Errorf("word %#x: Lease of a block that the host holds = %v", lie, err)
		}
		spoil()
		for _, err := range []error{lease.Release(), a.Release(h)} {
			if err != nil {
				t.Errorf("word %#x: Release = %v", lie, err)
			}
		}
		spoil()
		if err := a.Close(); err == nil && lie.state() != stateFree && lie.state() != stateClosed {
			t.Errorf("word %#x: closed", lie)
		}
	}
}

func TestHost_HandlesThatAreOverStayStaleWhateverTheWordSays(t *testing.T) {
	const alive = word(1 << 2)
	for name, end := range map[string]func(*Arena) hostabi.Handle{
		"released": func(a *Arena) hostabi.Handle { h := commit(t, a); ok(t, a.Release(h)); return h },
		"aborted":  func(a *Arena) hostabi.Handle { l := loan(t, a); ok(t, l.Abort()); return l.Handle() },
	} {
		a := small(t, 1)
		h := end(a)
		a.view.blocks[0].word.Store(uint64(makeWord(h.Generation(), stateLive, alive)))
		if _, err := a.Lease(h); !errors.Is(err, ErrStale) {
			t.Errorf("%s: Lease of a use that was over = %v, want ErrStale", name, err)
		}
		a.view.blocks[0].word.Store(uint64(makeWord(h.Generation(), stateFree, 0)))
		if _, err := a.LoanBlock(0); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: LoanBlock under a generation that was over = %v, want ErrBusy", name, err)
		}
		a.view.blocks[0].word.Store(uint64(makeWord(h.Generation(), stateLive, alive)))
		_, err := a.sweepAmong(1, alive)
		ok(t, err)
		if _, err := a.Lease(h); !errors.Is(err, ErrStale) || a.word(0).state() != stateZombie {
			t.Errorf("%s: after the sweep Lease = %v, word %#x", name, err, a.word(0))
		}
	}
}

func TestSweep_RestoresTheHeaderForTheNext(t *testing.T) {
	a := small(t, 3)
	a.view.header.magic.Store(0)
	a.view.header.blocks, a.view.header.stride, a.view.header.first = 1<<40, 7, 0
	_, err := a.Sweep(otherHolder)
	ok(t, err)
	if err := a.view.checkDescribed(a.layout, a.ID()); err != nil {
		t.Error(err)
	}
}

func TestRemove_DamagedWordsDoNotLeadBackToOldGenerations(t *testing.T) {
	s := NewSet()
	a := add(t, s, "damaged")
	h := commit(t, a)
	ok(t, a.Release(h))
	a.view.blocks[0].word.Store(uint64(makeWord(1<<30<<6, stateFree, 0)))
	ok(t, s.Remove(a.ID()))
	if next := s.next[h.Arena()]; !follows(next, h.Generation()) || next == h.Generation() {
		t.Errorf("the next arena of that ID begins with generation %d, the last one had %d", next, h.Generation())
	}
}

// FuzzScribble takes the host's operations and the values written into the words from the bytes.
func FuzzScribble(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add(uint64(2), []byte{0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 2, 9, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add(uint64(3), []byte{0, 2, 10, 1, 0, 2, 0, 0, 8, 0, 0, 5, 7, 9, 1, 0, 0, 16, 0, 0, 0, 0, 7, 7})
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		data = data[:min(len(data), 2000)]
		s, e := scribbled(t, 1+int(seed%5), seed)
		for len(data) > 0 {
			op := data[0]
			data = data[1:]
			switch {
			case op%12 < 9:
				e.step()
			case op%12 == 9 && len(data) >= 8:
				block := &s.a.view.blocks[int(op)%len(s.a.view.blocks)]
				block.word.Store(binary.LittleEndian.Uint64(data))
				block.creditor.Store(uint32(op))
				data = data[8:]
			case op%12 == 10 && len(data) >= 2:
				block := &s.a.view.blocks[int(op)%len(s.a.view.blocks)]
				w := word(block.word.Load())
				block.word.Store(uint64(makeWord(w.generation()+uint64(data[0]%5)-2, state(data[1]&7), word(data[1]>>3))))
				data = data[2:]
			default:
				s.scribble()
			}
		}
		sweepScribbled(t, e)
	})
}
