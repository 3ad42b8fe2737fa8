package objects

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/internal/testkit"
)

// counted makes an object "x" with n entries of 64 numbers, which are 0.
func counted(t *testing.T, s *Store, n int) {
	t.Helper()
	create(t, s, "x", n, 8*64)
	for range n {
		push(t, s, "x", make([]int64, 64))
	}
}

func read(t testing.TB, s *Store, index uint64) *Entry {
	t.Helper()
	e, err := s.Read(t.Context(), "x", index)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// locks returns a function that fails the test unless a lock can be had.
func locks(t testing.TB) func(*Lock, error) *Lock {
	return func(l *Lock, err error) *Lock {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// add adds to all numbers of an entry, and fails the test unless they are equal and want.
func add(t testing.TB, l *Lock, want, n int64) {
	t.Helper()
	a, err := Slice[int64](l, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i] != want {
			t.Fatalf("number %d is %d, want %d", i, a[i], want)
		}
		if n != 0 { // else it may be an RLock
			a[i] += n
		}
	}
}

func TestLock_WritesInPlaceAndEveryoneSeesIt(t *testing.T) {
	host := serve(t)
	s, other := dial(t, host.Path()), dial(t, host.Path())
	counted(t, s, 2)
	e, theirs := read(t, s, 0), read(t, other, 0)
	l := locks(t)(e.Lock(t.Context()))
	add(t, l, 0, 5)
	if view, err := View[int64](theirs, 0); err != nil || view[63] != 5 {
		t.Errorf("another sees %v, %v", view, err)
	}
	for name, lock := range map[string]func(context.Context) (*Lock, error){"Lock": theirs.Lock, "RLock": theirs.RLock, "Repair": theirs.Repair} {
		for _, within := range []func() (context.Context, context.CancelFunc){
			func() (context.Context, context.CancelFunc) { return NoWait(t.Context()), func() {} },
			func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 100*time.Millisecond)
			},
		} {
			ctx, cancel := within()
			if _, err := lock(ctx); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), `object "x": entry 0`) {
				t.Errorf("%s beside a lock = %v, want ErrLocked of entry 0 of x", name, err)
			}
			cancel()
		}
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := l.Tear(); !errors.Is(err, ErrSpent) || l.Bytes(0) != nil {
		t.Errorf("Tear after Unlock = %v, bytes %v, want ErrSpent and none", err, l.Bytes(0))
	}
	a, b := locks(t)(e.RLock(t.Context())), locks(t)(theirs.RLock(NoWait(t.Context())))
	if err := faults(func() { a.Bytes(0)[0] = 1 }); err == nil {
		t.Error("an RLock lets its holder write")
	}
	if err := errors.Join(a.Tear(), b.Unlock()); err != nil { // a reader tears nothing
		t.Fatal(err)
	}
	add(t, locks(t)(theirs.Lock(t.Context())), 5, 1)
	if err := theirs.Release(); err != nil { // with its lock
		t.Fatal(err)
	}
	if _, err := e.Lock(t.Context()); !errors.Is(err, ErrTorn) {
		t.Errorf("the lock after a release without Unlock = %v, want ErrTorn", err)
	}
	if err := e.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Lock(t.Context()); !errors.Is(err, ErrSpent) {
		t.Errorf("the lock of a released entry = %v, want ErrSpent", err)
	}
	batch, err := s.BatchRead(t.Context(), "x", []uint64{0, 1})
	if err != nil || !batch.Entry(0).Torn() || batch.Entry(1).Torn() {
		t.Fatalf("a batch: %v, want entry 0 torn and 1 whole", err)
	}
	if _, err := batch.Entry(1).Lock(t.Context()); !errors.Is(err, wire.ErrRequest) {
		t.Errorf("the lock of a part of a batch = %v", err)
	}
	if err := batch.Release(); err != nil {
		t.Fatal(err)
	}
	settled(t, s, "x", 1)
	for _, s := range []*Store{s, other} { // nothing keeps the memory mapped
		o := s.objects.get("x")
		if err := errors.Join(s.Remove(t.Context(), "x"), o.retire()); s != other && err != nil {
			t.Fatal(err)
		}
		if o.held != 0 || o.read != nil || o.write != nil {
			t.Errorf("%d uses of the memory are left", o.held)
		}
	}
}

func TestLock_OfAKilledWriterIsFreeAndItsEntryTorn(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	counted(t, s, 2)
	e, seen := read(t, s, 0), read(t, s, 0)
	p := run(t, "locker", host.Path())
	p.says(t, "locked")
	if _, err := e.RLock(NoWait(t.Context())); !errors.Is(err, ErrLocked) {
		t.Fatalf("beside the writer: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := e.Lock(context.Background()); waiting <- err }()
	testkit.Until(t, "the lock is waited for", func() bool {
		stat, err := s.Stat(t.Context(), "x")
		return err == nil && stat.Waiting == 1
	}, nil)
	p.kill(t)
	if err := <-waiting; !errors.Is(err, ErrTorn) {
		t.Errorf("who waited for the dead writer has %v, want ErrTorn", err)
	}
	if _, err := seen.RLock(t.Context()); !errors.Is(err, ErrTorn) || seen.Torn() {
		t.Errorf("RLock = %v, and torn %v when it was read", err, seen.Torn())
	}
	again := read(t, s, 0)
	if !again.Torn() {
		t.Error("a new reader is not told that the entry is torn")
	}
	l := locks(t)(again.Repair(t.Context()))
	a, err := Slice[int64](l, 0)
	if err != nil || a[0] != 1 || a[63] != 0 {
		t.Fatalf("the dead writer left %v, %v", a, err)
	}
	clear(a)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	add(t, locks(t)(seen.RLock(t.Context())), 0, 0)
}

// Writers die in the middle of anything they do; what another then locks is whole, or torn and said to be.
func TestLock_OfWritersKilledAtAnyMoment(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	counted(t, s, 2)
	e := read(t, s, 1)
	torn := 0
	for range 6 {
		p := run(t, "scribbler", host.Path())
		p.says(t, "more")
		l := locks(t)(e.RLock(t.Context()))
		add(t, l, whole(t, l), 0)
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
		p.says(t, "more")
		p.kill(t)
		testkit.Until(t, "the host has answered all that the writer had asked, and seen its end", func() bool {
			stat, err := s.Stat(t.Context(), "x")
			return err == nil && stat.Claims == 2 // this test's entry and its spare block
		}, nil)
		l, err := e.Lock(t.Context())
		if errors.Is(err, ErrTorn) {
			torn++
			l = locks(t)(e.Repair(t.Context()))
			clear(l.Bytes(0))
		} else if err != nil {
			t.Fatal(err)
		}
		add(t, l, whole(t, l), 1)
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 6 writers left the entry torn", torn)
}

// whole returns the first number of an entry.
func whole(t testing.TB, l *Lock) int64 {
	t.Helper()
	a, err := Slice[int64](l, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a[0]
}

// place is the model of an entry: who is in it, and whether it is torn. torn is written under the lock to write.
type place struct {
	inside atomic.Int32 // readers, or -1
	torn   atomic.Bool
	tears  atomic.Int32
}

// TestLock_Model lets stores lock entries at random, and end at any moment with locks.
func TestLock_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	host := serve(t)
	s := dial(t, host.Path())
	places := make([]place, 3)
	counted(t, s, len(places))
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			p := &locker{T: t, r: rand.New(rand.NewPCG(seed, uint64(n))), path: host.Path()}
			for range 150 {
				i := p.r.IntN(len(places))
				p.turn(uint64(i), &places[i])
			}
			p.end()
		})
	}
	all.Wait()
	settled(t, s, "x", 1) // the host has seen the end of all
	for i := range places {
		e := read(t, s, uint64(i))
		l, err := e.Lock(NoWait(t.Context()))
		if torn := places[i].torn.Load(); errors.Is(err, ErrTorn) != torn || !torn && err != nil {
			t.Errorf("entry %d at the end: %v, torn in the model: %v", i, err, torn)
		}
		if err == nil {
			add(t, l, whole(t, l), 0)
			err = l.Unlock()
		}
		if err := errors.Join(err, e.Release()); err != nil && !errors.Is(err, ErrTorn) {
			t.Fatal(err)
		}
		if places[i].tears.Load() == 0 {
			t.Errorf("nothing has torn entry %d: this tests nothing", i)
		}
	}
}

// locker is a player of the model.
type locker struct {
	*testing.T
	r    *rand.Rand
	path string
	s    *Store
}

func (p *locker) end() {
	if p.s != nil {
		_ = p.s.Close() // it may have been closed
	}
	p.s = nil
}

// turn locks an entry in one of three ways, checks it, changes it, and ends the lock in one of five ways.
func (p *locker) turn(index uint64, at *place) {
	if p.s == nil {
		p.s = dial(p.T, p.path)
	}
	e := read(p, p.s, index)
	ctx, cancel := context.WithTimeout(p.Context(), time.Duration(1+p.r.IntN(3000))*time.Microsecond)
	defer cancel()
	how := p.r.IntN(4)
	l, err := []func(context.Context) (*Lock, error){e.RLock, e.Lock, e.Repair, e.Lock}[how](ctx)
	switch {
	case errors.Is(err, ErrTorn):
		if at.tears.Load() == 0 {
			p.Error("an entry that nobody tore is torn")
		}
	case err != nil && !errors.Is(err, ErrLocked) && !errors.Is(err, context.DeadlineExceeded):
		p.Error(err)
	case err == nil && how == 0:
		p.readUnder(l, at)
	case err == nil:
		p.writeUnder(l, at)
		return
	}
	if err := e.Release(); err != nil {
		p.Error(err)
	}
}

func (p *locker) readUnder(l *Lock, at *place) {
	if at.inside.Add(1) <= 0 || at.torn.Load() {
		p.Errorf("%d inside, torn %v: a reader is in an entry that is being written, or torn", at.inside.Load(), at.torn.Load())
	}
	add(p, l, whole(p, l), 0)
	at.inside.Add(-1)
	if p.r.IntN(2) == 0 { // else the release ends it
		_ = l.Tear() // a reader tears nothing
	}
}

func (p *locker) writeUnder(l *Lock, at *place) {
	if !at.inside.CompareAndSwap(0, -1) || l.kind != toRepair && at.torn.Load() {
		p.Errorf("%d inside, torn %v: a writer is not alone, or in a torn entry", at.inside.Load(), at.torn.Load())
	}
	if l.kind == toRepair {
		clear(l.Bytes(0))
	}
	end := p.r.IntN(8)
	at.torn.Store(end < 3)
	if end >= 3 {
		add(p, l, whole(p, l), 1)
	} else {
		at.tears.Add(1)
		l.Bytes(0)[8*p.r.IntN(64)]++
	}
	at.inside.Store(0)
	switch end {
	case 0:
		p.end()
	case 1: // with its lock
	case 2:
		_ = l.Tear()
	default:
		_ = l.Unlock()
	}
	if err := l.entry.Release(); err != nil && end != 0 {
		p.Error(err)
	}
}
