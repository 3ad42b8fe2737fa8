package ctest

import (
	"encoding/binary"
	"errors"
	"strconv"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// Operations of the program in C.
const (
	opLoan = iota + 1
	opCommit
	opAbort
	opLease
	opRelease
	opRevoke
	opClaims
)

// remote is an arena as the program in C sees it.
type remote struct {
	t       testing.TB
	peer    *peer
	to      *ring.SPSC
	from    *ring.SPSC
	answers [1]hostabi.Message
}

func startRemote(t testing.TB, program string, a *arena.Arena, holder int) *remote {
	t.Helper()
	r := &remote{t: t, to: newMessages(t), from: newMessages(t)}
	s := a.Share()
	r.peer = start(t, program, []int{s.WordsFD, s.DataFD, r.to.FD(), r.from.FD()},
		"arena", strconv.Itoa(int(s.ID)), strconv.Itoa(s.Blocks), strconv.Itoa(s.BlockBytes), strconv.Itoa(holder))
	return r
}

// do runs an operation in the program and returns its error as Go's arenas would.
func (r *remote) do(op uint16, h hostabi.Handle) (hostabi.Message, error) {
	r.t.Helper()
	r.to.Put([]hostabi.Message{{Kind: op, Handle: h}})
	if !r.from.Wait(patience) || r.from.Get(r.answers[:]) != 1 {
		r.t.Fatalf("no answer: %s", r.peer.err.String())
	}
	m := r.answers[0]
	codes := []error{nil, arena.ErrExhausted, arena.ErrBusy, arena.ErrStale, arena.ErrForeign, arena.ErrRange, arena.ErrState, arena.ErrSpent}
	if int(m.Kind) >= len(codes) {
		r.t.Fatalf("operation %d ends in error %d", op, m.Kind)
	}
	return m, codes[m.Kind]
}

// side is one of the two processes in the model.
type side struct {
	loans  map[hostabi.Handle]bool
	claims map[hostabi.Handle]int
}

// model is an arena by the rules of hostabi.ArenaBlock.
type model struct {
	sides   [2]side
	revoked map[hostabi.Handle]bool
}

func (m *model) held(h hostabi.Handle) bool { return m.sides[0].claims[h]+m.sides[1].claims[h] > 0 }

func (m *model) readable(h hostabi.Handle) error {
	switch {
	case m.sides[0].loans[h] || m.sides[1].loans[h]:
		return arena.ErrState
	case !m.held(h) || m.revoked[h]:
		return arena.ErrStale
	}
	return nil
}

// want returns the error that an operation of one side must have.
func (m *model) want(s int, op uint16, h hostabi.Handle, blocks int) error {
	me := &m.sides[s]
	switch op {
	case opLoan:
		used := len(m.sides[0].loans) + len(m.sides[1].loans)
		seen := map[hostabi.Handle]bool{}
		for i := range m.sides {
			for h := range m.sides[i].claims {
				seen[h] = true
			}
		}
		if used+len(seen) == blocks {
			return arena.ErrExhausted
		}
		return nil
	case opCommit, opAbort:
		if !me.loans[h] {
			return arena.ErrSpent
		}
		return nil
	case opRelease:
		if me.claims[h] > 0 {
			return nil
		}
		if m.held(h) {
			return arena.ErrSpent
		}
	}
	return m.readable(h)
}

// apply applies an operation that succeeds.
func (m *model) apply(s int, op uint16, h hostabi.Handle) {
	me := &m.sides[s]
	switch op {
	case opLoan:
		me.loans[h] = true
	case opCommit:
		delete(me.loans, h)
		me.claims[h]++
	case opAbort:
		delete(me.loans, h)
	case opLease:
		me.claims[h]++
	case opRelease:
		if me.claims[h]--; me.claims[h] == 0 {
			delete(me.claims, h)
		}
	case opRevoke:
		m.revoked[h] = true
	}
}

// TestArena_GoAndCFollowTheSameRules runs random operations of Go and C on one arena, one after the other, and compares
// every result with a model.
func TestArena_GoAndCFollowTheSameRules(t *testing.T) {
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "shared", Blocks: 4, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	holder, err := set.Grant()
	if err != nil {
		t.Fatal(err)
	}
	r := startRemote(t, Build(t, Sanitized, "../testdata/interop.c"), a, holder)
	rng := testkit.Random(t)
	m := &model{revoked: map[hostabi.Handle]bool{}}
	for i := range m.sides {
		m.sides[i] = side{map[hostabi.Handle]bool{}, map[hostabi.Handle]int{}}
	}
	own := &local{a: a, loans: map[hostabi.Handle]arena.Loan{}}
	var recent []hostabi.Handle
	for step := range 20_000 {
		s, op := rng.IntN(2), uint16(opLoan+rng.IntN(opRevoke))
		h := hostabi.Handle(0)
		if op != opLoan && len(recent) > 0 {
			h = recent[rng.IntN(len(recent))]
		}
		if op != opLoan && h == 0 {
			continue
		}
		want := m.want(s, op, h, a.Blocks())
		got, answer := error(nil), hostabi.Message{}
		if s == 0 {
			answer, got = own.do(op, h)
		} else {
			answer, got = r.do(op, h)
		}
		if !errors.Is(got, want) {
			t.Fatalf("step %d: side %d, operation %d on %v: %v, want %v", step, s, op, h, got, want)
		}
		if got != nil {
			continue
		}
		if op == opLoan {
			h = answer.Handle
			if recent = append(recent, h); len(recent) > 8 {
				recent = recent[1:]
			}
			for h := range m.sides[s].loans { // at most two of each, so that all blocks are used
				if len(m.sides[s].loans) > 1 {
					m.finishLoan(s, h, own, r)
				}
			}
		}
		if op == opLease && answer.Inline[0] != uint64(h) {
			t.Fatalf("step %d: side %d read %x from %v", step, s, answer.Inline[0], h)
		}
		m.apply(s, op, h)
	}
	for i := range m.sides {
		for h := range m.sides[i].loans {
			m.finishLoan(i, h, own, r)
		}
	}
	if claims, _ := r.do(opClaims, 0); claims.Inline[0] != uint64(total(m.sides[1].claims)) {
		t.Errorf("C counts %d claims, want %d", claims.Inline[0], total(m.sides[1].claims))
	}
	m.sides[1].release(t, func(h hostabi.Handle) error { _, err := r.do(opRelease, h); return err })
	m.sides[0].release(t, a.Release)
	r.to.Shut()
	r.peer.wait(t)
	if s := a.Stats(); s.Free != a.Blocks() {
		t.Errorf("at the end %+v", s)
	}
}

func total(claims map[hostabi.Handle]int) int {
	n := 0
	for _, k := range claims {
		n += k
	}
	return n
}

func (s *side) release(t *testing.T, release func(hostabi.Handle) error) {
	t.Helper()
	for h, n := range s.claims {
		for range n {
			if err := release(h); err != nil {
				t.Errorf("release %v: %v", h, err)
			}
		}
	}
}

// finishLoan aborts a loan of one side.
func (m *model) finishLoan(s int, h hostabi.Handle, own *local, r *remote) {
	err := error(nil)
	if s == 0 {
		_, err = own.do(opAbort, h)
	} else {
		_, err = r.do(opAbort, h)
	}
	if err != nil {
		r.t.Fatalf("abort %v: %v", h, err)
	}
	m.apply(s, opAbort, h)
}

// local is the host's side.
type local struct {
	a     *arena.Arena
	loans map[hostabi.Handle]arena.Loan
}

func (l *local) do(op uint16, h hostabi.Handle) (answer hostabi.Message, err error) {
	switch op {
	case opLoan:
		loan, err := l.a.Loan()
		if err != nil {
			return answer, err
		}
		answer.Handle = loan.Handle()
		binary.LittleEndian.PutUint64(loan.Bytes(), uint64(loan.Handle()))
		l.loans[loan.Handle()] = loan
	case opCommit:
		loan := l.loans[h]
		delete(l.loans, h)
		_, err = loan.Commit()
	case opAbort:
		loan := l.loans[h]
		delete(l.loans, h)
		err = loan.Abort()
	case opLease:
		lease, err := l.a.Lease(h)
		if err != nil {
			return answer, err
		}
		answer.Inline[0] = binary.LittleEndian.Uint64(lease.Bytes()) // the claim stays: it is released by its handle
	case opRelease:
		err = l.a.Release(h)
	case opRevoke:
		err = l.a.Revoke(h)
	}
	return answer, err
}

// TestArena_SweepTakesBackWhatAKilledProgramHeld kills the program with a loan, claims and a revoked block.
func TestArena_SweepTakesBackWhatAKilledProgramHeld(t *testing.T) {
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "shared", Blocks: 4, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	holder, err := set.Grant()
	if err != nil {
		t.Fatal(err)
	}
	r := startRemote(t, Build(t, Sanitized, "../testdata/interop.c"), a, holder)
	for range 3 {
		m, err := r.do(opLoan, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.do(opCommit, m.Handle); err != nil {
			t.Fatal(err)
		}
		if _, err := r.do(opRevoke, m.Handle); err != nil && m.Handle.Block() == 0 {
			t.Fatal(err)
		}
	}
	if _, err := r.do(opLoan, 0); err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Free != 0 || s.Others != 4 {
		t.Errorf("before the death %+v", s)
	}
	_ = r.peer.cmd.Process.Kill()
	_ = r.peer.cmd.Wait() // it was killed
	swept, err := set.Sweep(holder)
	if err != nil || swept.Freed != 4 {
		t.Errorf("swept %+v: %v", swept, err)
	}
	if s := a.Stats(); s.Free != 4 {
		t.Errorf("after the sweep %+v", s)
	}
}

// TestArena_KillsAtRandomMomentsLoseNothing kills the program at random moments. All its blocks are free after the
// sweep, and the arena still works.
func TestArena_KillsAtRandomMomentsLoseNothing(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "shared", Blocks: 4, BlockBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	rng := testkit.Random(t)
	held := 0
	for range 40 {
		holder, err := set.Grant()
		if err != nil {
			t.Fatal(err)
		}
		s := a.Share()
		p := start(t, program, []int{s.WordsFD, s.DataFD}, "arena-churn", strconv.Itoa(int(s.ID)), "4", "4096", strconv.Itoa(holder))
		for seen, enough := 0, 1+rng.IntN(200); seen < enough; { // moments when it held something
			if a.Stats().Others > 0 {
				seen++
			}
			if loan, err := a.Loan(); err == nil { // the host takes part
				if err := loan.Abort(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // it was killed
		swept, err := set.Sweep(holder)
		if err != nil || swept.Mended != 0 {
			t.Fatalf("swept %+v: %v", swept, err)
		}
		held += swept.Write + swept.Live + swept.Zombie
		if s := a.Stats(); s.Free != 4 {
			t.Fatalf("after the sweep of %+v: %+v", swept, s)
		}
	}
	t.Logf("%d blocks were held at the moment of death", held)
}
