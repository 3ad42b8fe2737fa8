package store

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// player makes random operations in a session and checks its reads.
type player struct {
	t     *testing.T
	s     *Store
	u     *Session
	id    uint32
	r     *rand.Rand
	reads []*Op // held
	spare uint64
	block uint32
}

func (p *player) fill(block uint32) {
	b := p.s.block(p.id, 0, block)
	mark := byte(p.r.Uint32())
	for i := range b {
		b[i] = mark
	}
}

func (p *player) check(op *Op) {
	for _, v := range op.Views {
		b := p.s.block(p.id, 0, v.Block)
		for i := range b {
			if b[i] != b[0] {
				p.t.Errorf("entry %d is torn at byte %d", v.Index, i)
				return
			}
		}
	}
}

// read keeps an entry for a while, and checks it again before the release.
func (p *player) read(op Op) {
	op.Object = p.id
	if got := do(p.u, op); got.Err == nil {
		p.check(got)
		p.reads = append(p.reads, got)
	}
}

func (p *player) release() {
	if len(p.reads) == 0 {
		return
	}
	i := p.r.IntN(len(p.reads))
	op := p.reads[i]
	p.reads = append(p.reads[:i], p.reads[i+1:]...)
	p.check(op)
	if err := do(p.u, Op{Kind: OpRelease, Claim: op.Claim}).Err; err != nil {
		p.t.Errorf("Release = %v", err)
	}
}

func (p *player) push() {
	if p.spare == 0 {
		w := do(p.u, Op{Kind: OpNew, Object: p.id, Wait: p.patience()})
		if w.Err != nil {
			return
		}
		p.spare, p.block = w.Claim, w.Block
	}
	p.fill(p.block)
	c := do(p.u, Op{Kind: OpCommit, Claim: p.spare, Values: floats(1), Next: true, Wait: p.patience()})
	if c.Err == nil {
		p.spare, p.block = c.Spare, c.SpareBlock
	}
}

func (p *player) patience() time.Duration { return time.Duration(p.r.IntN(200)) * time.Microsecond }

func (p *player) turn() {
	st, err := p.s.Stat(p.id)
	if err != nil {
		p.t.Error(err)
		return
	}
	index := st.Oldest + uint64(p.r.IntN(4))
	switch p.r.IntN(9) {
	case 0, 1, 2:
		p.push()
	case 3:
		p.read(Op{Kind: OpPop, Lend: p.r.IntN(2) == 0, Wait: p.patience()})
	case 4:
		p.read(Op{Kind: OpLatest, Wait: p.patience()})
	case 5:
		p.read(Op{Kind: OpRead, Index: index})
	case 6:
		p.read(Op{Kind: OpBatch, Index: index, Most: 3})
	case 7:
		do(p.u, Op{Kind: OpDelete, Object: p.id, Index: index, Revoke: p.r.IntN(2) == 0})
	case 8:
		if p.spare != 0 && p.r.IntN(8) == 0 {
			do(p.u, Op{Kind: OpAbort, Claim: p.spare})
			p.spare = 0
		}
	}
	for len(p.reads) > p.r.IntN(3) {
		p.release()
	}
}

func TestHammer_NothingTornNothingLeaked(t *testing.T) {
	s := newStore(t, Limits{})
	id := create(t, s, "x", 8)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for life := range 6 {
				u, err := s.Session(fmt.Sprintf("%d.%d", i, life))
				if err != nil {
					t.Error(err)
					return
				}
				p := &player{t: t, s: s, u: u, id: id, r: r}
				for range 150 {
					p.turn()
				}
				_ = u.Close() // with open claims
			}
		})
	}
	all.Wait()
	got := stat(t, s, id)
	if got.Claims != 0 || got.Writing != 0 || got.Kept != 0 || got.Spares != 0 || got.Lent != 0 || got.Waiting != 0 {
		t.Errorf("after all have gone: %+v", got)
	}
}

// The same player, alone, with everything checked after every turn.
func TestHammer_EveryStateIsConsistent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStore(t, Limits{})
	id := create(t, s, "x", 4)
	players := make([]*player, 3)
	for i := range players {
		players[i] = &player{t: t, s: s, u: newSession(t, s), id: id, r: rand.New(rand.NewPCG(seed, uint64(i)))}
	}
	for range 2000 {
		p := players[players[0].r.IntN(len(players))]
		p.turn()
		checkStore(t, s)
		if p.r.IntN(100) == 0 {
			_ = p.u.Close() // with open claims
			checkStore(t, s)
			*p = player{t: t, s: s, u: newSession(t, s), id: id, r: p.r}
		}
	}
}

func TestRefcounts_AreExactUnderConcurrency(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	index := write(t, u, id, 1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			user := newSession(t, s)
			for range 500 {
				a, b := do(user, Op{Kind: OpRead, Object: id, Index: index}), do(user, Op{Kind: OpLatest, Object: id})
				if a.Err != nil || b.Err != nil {
					t.Errorf("read: %v, %v", a.Err, b.Err)
					return
				}
				do(user, Op{Kind: OpRelease, Claim: a.Claim})
				do(user, Op{Kind: OpRelease, Claim: b.Claim})
			}
		})
	}
	all.Wait()
	if got := stat(t, s, id); got.Claims != 0 || got.Counters.Reads != 8000 {
		t.Errorf("%d claims are left of %d reads, want 0 of 8000", got.Claims, got.Counters.Reads)
	}
	must(t, u, Op{Kind: OpDelete, Object: id, Index: index}) // would be ErrBusy
}

func TestPop_GivesEachEntryToOneSession(t *testing.T) {
	s := newStore(t, Limits{})
	id := create(t, s, "x", 4)
	const writers, readers, each = 4, 4, 300
	var mu sync.Mutex
	got := map[uint64]int{}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			u := newSession(t, s)
			for range each {
				w := do(u, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
				if c := do(u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)}); w.Err != nil || c.Err != nil {
					t.Errorf("push: %v, %v", w.Err, c.Err)
				}
			}
		})
	}
	for range readers {
		all.Go(func() {
			u := newSession(t, s)
			for range writers * each / readers {
				op := do(u, Op{Kind: OpPop, Object: id, Wait: wire.Forever})
				mu.Lock()
				got[op.Index]++
				mu.Unlock()
				do(u, Op{Kind: OpRelease, Claim: op.Claim})
			}
		})
	}
	all.Wait()
	if len(got) != writers*each {
		t.Errorf("%d entries were popped, want %d, each once", len(got), writers*each)
	}
}

func TestOperations_DoNotAllocate(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 8)
	values := floats(1)
	var w, c, r, e Op
	for _, op := range []*Op{&w, &c, &r, &e} {
		op.Done = func(*Op) {}
	}
	round := func() {
		w.Kind, w.Object = OpNew, id
		u.Do(&w)
		c.Kind, c.Claim, c.Values = OpCommit, w.Claim, values
		u.Do(&c)
		r.Kind, r.Object = OpPop, id
		u.Do(&r)
		e.Kind, e.Claim = OpRelease, r.Claim
		u.Do(&e)
	}
	if n := testing.AllocsPerRun(500, round); n != 0 || e.Err != nil {
		t.Errorf("a push and a pop allocate %v times, want 0 (%v)", n, e.Err)
	}
}

// The time of a pop and of a read of the newest must not depend on the number of entries.
func BenchmarkPop(b *testing.B) {
	for _, n := range []int{16, 1 << 16} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			s := newStore(b, Limits{})
			u := newSession(b, s)
			id := create(b, s, "x", n)
			for range n - 1 {
				write(b, u, id, 1)
			}
			values := floats(1)
			done := func(*Op) {}
			for b.Loop() {
				w := Op{Kind: OpNew, Object: id, Done: done}
				u.Do(&w)
				u.Do(&Op{Kind: OpCommit, Claim: w.Claim, Values: values, Done: done})
				latest := Op{Kind: OpLatest, Object: id, Done: done}
				u.Do(&latest)
				u.Do(&Op{Kind: OpRelease, Claim: latest.Claim, Done: done})
				pop := Op{Kind: OpPop, Object: id, Done: done}
				u.Do(&pop)
				u.Do(&Op{Kind: OpRelease, Claim: pop.Claim, Done: done})
			}
		})
	}
}
