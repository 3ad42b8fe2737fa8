package arena

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// The model is an arena built from maps and slices. Two processes, the host and another one, use the same arena;
// the same random operations go to both and to the model, which says what each must answer.
type model struct {
	t        testing.TB
	process  [2]*Arena
	blocks   []modelBlock
	loans    []modelLoan
	leases   []*modelLease
	handles  []hostabi.Handle
	credits  map[uint32]uint64
	previous map[uint32]uint64 // credits that were expected

	commits, aborts, frees uint64
}

type modelBlock struct {
	generation uint64
	state      state
	writer     int
	anonymous  [2]int // claims by handle, of each process
	leases     [2]int // claims by Lease
}

type modelLoan struct {
	process int
	loan    Loan
}

type modelLease struct {
	process int
	lease   Lease
	open    bool
}

const modelBlocks = 5

func newModel(t testing.TB) *model {
	a := small(t, modelBlocks)
	m := &model{t: t, process: [2]*Arena{a, attach(a, otherHolder)}, blocks: make([]modelBlock, modelBlocks),
		credits: map[uint32]uint64{}, previous: map[uint32]uint64{}}
	for b := range m.blocks {
		m.blocks[b].generation = 1
		a.OnFree(uint32(b), func(block uint32) { m.credits[block]++ })
	}
	m.link()
	return m
}

// link carries the credits of the other process to the host, each of them twice.
func (m *model) link() {
	s := NewPeerSet(otherHolder, nil)
	s.Credits(hostabi.ArenaHost, func(h hostabi.Handle) {
		m.expect("Credit", h, m.process[0].Credit(h), nil)
		m.expect("second Credit", h, m.process[0].Credit(h), ErrSpent)
	})
	m.process[1].set = s
}

// block returns the block that h names if its generation is the present one.
func (m *model) block(h hostabi.Handle) *modelBlock {
	if b := &m.blocks[h.Block()]; b.generation == h.Generation() {
		return b
	}
	return nil
}

// readable is the error that a new claim on h must get.
func (m *model) readable(h hostabi.Handle) error {
	b := m.block(h)
	switch {
	case b == nil || b.state == stateFree || b.state == stateZombie:
		return ErrStale
	case b.state == stateWrite:
		return ErrState
	}
	return nil
}

func (m *model) free(b *modelBlock, index uint32) {
	*b = modelBlock{generation: nextGeneration(b.generation)}
	m.frees++
	m.previous[index]++
}

func (m *model) freeIfUnclaimed(h hostabi.Handle) {
	b := m.block(h)
	if b.anonymous == [2]int{} && b.leases == [2]int{} {
		m.free(b, h.Block())
	}
}

// expect checks an answer.
func (m *model) expect(what string, h hostabi.Handle, got, want error) bool {
	m.t.Helper()
	if !errors.Is(got, want) {
		m.t.Fatalf("%s of %v = %v, want %v", what, h, got, want)
	}
	return want == nil
}

// pick chooses one of n by a byte.
func pick(by byte, n int) int { return int(by) % n }

func (m *model) doLoan(p int, arg byte) {
	if arg&1 == 0 {
		l, err := m.process[p].Loan()
		m.loaned("Loan", p, l, err, -1)
		return
	}
	block := pick(arg>>1, modelBlocks)
	l, err := m.process[p].LoanBlock(uint32(block))
	m.loaned("LoanBlock", p, l, err, block)
}

func (m *model) loaned(what string, p int, l Loan, err error, block int) {
	var want error
	if block >= 0 && m.blocks[block].state != stateFree {
		want = ErrBusy
	}
	if block < 0 {
		want = ErrExhausted
		for _, b := range m.blocks {
			if b.state == stateFree {
				want = nil
			}
		}
	}
	if !m.expect(what, l.Handle(), err, want) {
		return
	}
	b := m.block(l.Handle())
	if b == nil || b.state != stateFree || block >= 0 && int(l.Block()) != block {
		m.t.Fatalf("%s(%d) lent %v, which is not free", what, block, l.Handle())
	}
	b.state, b.writer = stateWrite, p
	stamp(l.Bytes(), l.Handle())
	m.loans = append(m.loans, modelLoan{p, l})
	m.handles = append(m.handles, l.Handle())
}

// stamp writes a handle to both ends of its block.
func stamp(mem []byte, h hostabi.Handle) {
	binary.LittleEndian.PutUint64(mem, uint64(h))
	binary.LittleEndian.PutUint64(mem[len(mem)-8:], uint64(h))
}

// stamped reports whether a block bears the stamp of h.
func stamped(mem []byte, h hostabi.Handle) bool {
	return len(mem) >= 8 && binary.LittleEndian.Uint64(mem) == uint64(h) &&
		binary.LittleEndian.Uint64(mem[len(mem)-8:]) == uint64(h)
}

func (m *model) doEnd(abort bool, arg byte) {
	if len(m.loans) == 0 {
		return
	}
	l := m.loans[pick(arg, len(m.loans))] // most of them have ended before
	h := l.loan.Handle()
	b := m.block(h)
	var want error
	if b == nil || b.state != stateWrite {
		want = ErrSpent
	}
	if abort {
		if m.expect("Abort", h, l.loan.Abort(), want) {
			m.aborts++
			m.free(b, h.Block())
		}
		return
	}
	got, err := l.loan.Commit()
	if m.expect("Commit", h, err, want) {
		if got != h {
			m.t.Fatalf("Commit = %v, want %v", got, h)
		}
		m.commits++
		b.state = stateLive
		b.anonymous[l.process]++
	}
}

func (m *model) handle(arg byte) (hostabi.Handle, bool) {
	if len(m.handles) == 0 {
		return 0, false
	}
	recent := m.handles[max(len(m.handles)-12, 0):]
	return recent[pick(arg, len(recent))], true
}

func (m *model) doLease(p int, arg byte) {
	h, some := m.handle(arg)
	if !some {
		return
	}
	lease, err := m.process[p].Lease(h)
	if !m.expect("Lease", h, err, m.readable(h)) {
		return
	}
	m.block(h).leases[p]++
	m.leases = append(m.leases, &modelLease{p, lease, true})
	if !stamped(lease.Bytes(), h) {
		m.t.Fatalf("lease of %v reads another block", h)
	}
}

func (m *model) doEndLease(arg byte) {
	if len(m.leases) == 0 {
		return
	}
	l := m.leases[pick(arg, len(m.leases))]
	h := l.lease.Handle()
	if !l.open {
		m.expect("second Lease.Release", h, l.lease.Release(), ErrSpent)
		return
	}
	if !stamped(l.lease.Bytes(), h) {
		m.t.Fatalf("lease of %v does not keep its block", h)
	}
	m.expect("Lease.Release", h, l.lease.Release(), nil)
	l.open = false
	m.block(h).leases[l.process]--
	m.freeIfUnclaimed(h)
}

func (m *model) doRetain(p int, arg byte) {
	if h, some := m.handle(arg); some && m.expect("Retain", h, m.process[p].Retain(h), m.readable(h)) {
		m.block(h).anonymous[p]++
	}
}

func (m *model) doRelease(p int, arg byte) {
	h, some := m.handle(arg)
	if !some {
		return
	}
	b := m.block(h)
	if b != nil && b.anonymous[p] == 0 && b.leases[p] > 0 {
		return // it would take the claim of a lease
	}
	want := m.readable(h)
	if b != nil && (b.state == stateLive || b.state == stateZombie) {
		want = nil
		if b.anonymous[p] == 0 {
			want = ErrSpent
		}
	}
	if m.expect("Release", h, m.process[p].Release(h), want) {
		b.anonymous[p]--
		m.freeIfUnclaimed(h)
	}
}

func (m *model) doRevoke(p int, arg byte) {
	if h, some := m.handle(arg); some && m.expect("Revoke", h, m.process[p].Revoke(h), m.readable(h)) {
		m.block(h).state = stateZombie
	}
}

// doSweep ends the other process and starts it again.
func (m *model) doSweep() {
	var want Swept
	for i := range m.blocks {
		b := &m.blocks[i]
		frees := m.frees
		switch {
		case b.state == stateWrite && b.writer == 1:
			want.Write++
			m.aborts++
			m.free(b, uint32(i))
		case b.anonymous[1]+b.leases[1] > 0:
			if b.state == stateLive {
				want.Live++
			} else {
				want.Zombie++
			}
			b.anonymous[1], b.leases[1] = 0, 0
			m.freeIfUnclaimed(hostabi.MakeHandle(7, uint32(i), b.generation))
		}
		want.Freed += int(m.frees - frees)
	}
	got, err := m.process[0].Sweep(otherHolder)
	if err != nil || got != want {
		m.t.Fatalf("Sweep = %+v, %v, want %+v", got, err, want)
	}
	m.process[1] = attach(m.process[0], otherHolder)
	m.link()
	m.forgetProcess(1)
}

func (m *model) forgetProcess(p int) {
	var loans []modelLoan
	for _, l := range m.loans {
		if l.process != p {
			loans = append(loans, l)
		}
	}
	m.loans = loans
	var leases []*modelLease
	for _, l := range m.leases {
		if l.process != p {
			leases = append(leases, l)
		}
	}
	m.leases = leases
}

// check compares all that can be seen.
func (m *model) check() {
	want := Stats{Commits: m.commits, Aborts: m.aborts, Frees: m.frees}
	for i, b := range m.blocks {
		switch b.state {
		case stateFree:
			want.Free++
		case stateWrite:
			want.Write++
			want.Loans += 1 - b.writer
			want.Others += b.writer
		case stateLive:
			want.Live++
		case stateZombie:
			want.Zombie++
		}
		want.Leases += b.anonymous[0] + b.leases[0]
		if b.anonymous[1]+b.leases[1] > 0 {
			want.Others++
		}
		if got := m.credits[uint32(i)]; got != m.previous[uint32(i)] {
			m.t.Fatalf("block %d gave %d credits, want %d", i, got, m.previous[uint32(i)])
		}
	}
	if got := m.process[0].Stats(); got != want {
		m.t.Fatalf("stats:\n got %+v\nwant %+v", got, want)
	}
}

// run makes the operations in the bytes, two bytes for each.
func (m *model) run(data []byte) {
	for ; len(data) >= 2; data = data[2:] {
		op, arg := data[0], data[1]
		p := int(op >> 7)
		switch op & 0x7f % 12 {
		case 0, 1:
			m.doLoan(p, arg)
		case 2, 3, 4:
			m.doEnd(false, arg)
		case 5:
			m.doEnd(true, arg)
		case 6:
			m.doLease(p, arg)
		case 7:
			m.doEndLease(arg)
		case 8:
			m.doRetain(p, arg)
		case 9:
			m.doRelease(p, arg)
		case 10:
			if arg < 128 {
				m.doRevoke(p, arg)
			} else if arg > 250 {
				m.doSweep()
			}
		case 11:
			m.doRelease(p, arg)
		}
		m.check()
	}
}

// finish gives everything back and closes.
func (m *model) finish() {
	m.doSweep()
	for _, l := range m.leases {
		if l.open {
			m.expect("last Lease.Release", l.lease.Handle(), l.lease.Release(), nil)
			m.block(l.lease.Handle()).leases[0]--
			m.freeIfUnclaimed(l.lease.Handle())
		}
	}
	for i := range m.blocks {
		b := &m.blocks[i]
		h := hostabi.MakeHandle(7, uint32(i), b.generation)
		for range b.anonymous[0] {
			m.expect("last Release", h, m.process[0].Release(h), nil)
			b.anonymous[0]--
			m.freeIfUnclaimed(h)
		}
	}
	for _, l := range m.loans {
		if b := m.block(l.loan.Handle()); b != nil && b.state == stateWrite {
			m.expect("last Abort", l.loan.Handle(), l.loan.Abort(), nil)
			m.aborts++
			m.free(b, l.loan.Block())
		}
	}
	m.check()
	ok(m.t, m.process[0].Close())
}

func TestArena_AgreesWithModel(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 50
	}
	testkit.Scripts(t, rounds, 800, playModel)
}

func playModel(t *testing.T, script []byte) {
	m := newModel(t)
	m.run(script)
	m.finish()
}

func FuzzArenaOps(f *testing.F) {
	f.Add([]byte{0, 0, 2, 0, 6, 0, 9, 0, 7, 0, 7, 0})                  // a cycle, and a release too many
	f.Add([]byte{0, 1, 5, 0, 5, 0, 0, 1, 2, 1, 10, 0, 9, 1})           // abort twice, then revoke
	f.Add([]byte{0x80, 0, 2, 0, 8, 0, 0x8b, 0, 10, 255, 9, 0})         // the other process commits, shares and dies
	f.Add([]byte{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 9, 0x80, 255}) // exhausted
	f.Fuzz(func(t *testing.T, data []byte) {
		playModel(t, data[:min(len(data), 2000)])
	})
}
