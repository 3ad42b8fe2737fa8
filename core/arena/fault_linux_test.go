package arena

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

const (
	faultBytes  = 2048
	maxInFlight = 3
)

func stampAll(mem []byte, h hostabi.Handle) {
	for ; len(mem) >= 8; mem = mem[8:] {
		stamp(mem[:8], h)
	}
}

func stampedAll(mem []byte, h hostabi.Handle) bool {
	for ; len(mem) >= 8; mem = mem[8:] {
		if !stamped(mem[:8], h) {
			return false
		}
	}
	return true
}

// frame is a message between the processes of a test: a handle or 0, and how many handles of the other side the
// sender has finished with. The sender of a handle keeps its claim until then.
type frame struct {
	handle hostabi.Handle
	acked  uint64
}

func (f frame) send(w io.Writer) error {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(f.handle))
	binary.LittleEndian.PutUint64(b[8:], f.acked)
	_, err := w.Write(b[:]) // short enough for a pipe to take it whole
	return err
}

func receive(r io.Reader) (frame, error) {
	var b [16]byte
	_, err := io.ReadFull(r, b[:])
	return frame{hostabi.Handle(binary.LittleEndian.Uint64(b[:])), binary.LittleEndian.Uint64(b[8:])}, err
}

// sender keeps the claims of handles that were sent until they are acknowledged.
type sender struct {
	a      *Arena
	flying []hostabi.Handle
	acked  uint64
}

func (s *sender) acknowledged(total uint64) error {
	for ; s.acked < total && len(s.flying) > 0; s.acked++ {
		if err := s.a.Release(s.flying[0]); err != nil {
			return err
		}
		s.flying = s.flying[1:]
	}
	return nil
}

// write makes a block and claims it for the way.
func (s *sender) write() (hostabi.Handle, error) {
	l, err := s.a.Loan()
	if err != nil {
		return 0, err
	}
	stampAll(l.Bytes(), l.Handle())
	if l.Handle().Generation()%5 == 2 {
		return 0, l.Abort()
	}
	h, err := l.Commit()
	if err == nil {
		s.flying = append(s.flying, h)
	}
	return h, err
}

// read claims a block that was sent, and looks whether it is whole.
func read(a *Arena, h hostabi.Handle) error {
	lease, err := a.Lease(h)
	if err != nil {
		return err
	}
	if !stampedAll(lease.Bytes(), h) {
		return errTorn
	}
	return lease.Release()
}

var errTorn = errors.New("the block is not what its writer wrote")

// passOn is a process that writes blocks, sends them, and reads the blocks that the host sends.
func passOn(a *Arena) error {
	s, got := &sender{a: a}, uint64(0)
	for {
		if err := busy(a); err != nil {
			return fmt.Errorf("busy: %w", err)
		}
		if len(s.flying) < maxInFlight {
			h, err := s.write()
			if err == nil {
				if err := (frame{h, got}).send(os.Stdout); err != nil {
					return err
				}
				continue
			}
			if !errors.Is(err, ErrExhausted) {
				return fmt.Errorf("write: %w", err)
			}
			if len(s.flying) == 0 {
				time.Sleep(50 * time.Microsecond) // the others hold all blocks
				continue
			}
		}
		f, err := receive(os.Stdin)
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if err := s.acknowledged(f.acked); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		if f.handle == 0 {
			continue
		}
		if err := read(a, f.handle); err != nil {
			return fmt.Errorf("read %v: %w", f.handle, err)
		}
		got++
		if err := (frame{0, got}).send(os.Stdout); err != nil {
			return err
		}
	}
}

// busy does everything that a process can do with its own blocks, so that most kills hit the middle of an operation.
func busy(a *Arena) error {
	turns := 150
	if invariants {
		turns = 15 // each remembers its stack
	}
	for i := range turns {
		l, err := a.Loan()
		if errors.Is(err, ErrExhausted) {
			return nil
		}
		if err != nil {
			return err
		}
		stampAll(l.Bytes(), l.Handle())
		if i%3 == 0 {
			if err := l.Abort(); err != nil {
				return err
			}
			continue
		}
		h, err := l.Commit()
		if err != nil {
			return err
		}
		if err := read(a, h); err != nil {
			return err
		}
		if i%3 == 1 {
			if err := a.Revoke(h); err != nil {
				return err
			}
		}
		if err := a.Release(h); err != nil {
			return err
		}
	}
	return nil
}

// relay is the host's end of such a process.
type relay struct {
	*process
	set                *Set
	sent               sender
	got                uint64
	torn, stale, taken *atomic.Uint64
}

// serve takes frames until the process has ended; it kills it after some.
func (r *relay) serve(frames int, kill func()) {
	random := rand.New(rand.NewPCG(uint64(r.holder), uint64(frames)))
	for i := 0; ; i++ {
		if i == frames {
			kill()
		}
		f, err := receive(r.out)
		if err != nil {
			break
		}
		if err := r.sent.acknowledged(f.acked); err != nil {
			r.t.Errorf("Release of an acknowledged block = %v", err)
		}
		if f.handle == 0 {
			continue
		}
		r.take(f.handle)
		answer := frame{0, r.got}
		if random.IntN(3) == 0 {
			if h, err := r.sent.write(); err == nil {
				answer.handle = h
			} else if !errors.Is(err, ErrExhausted) {
				r.t.Errorf("write = %v", err)
			}
		}
		_ = answer.send(r.in) // a dead process reads nothing
	}
	if err := r.sent.acknowledged(1 << 62); err != nil {
		r.t.Errorf("Release of a block that nobody will read = %v", err)
	}
}

func (r *relay) take(h hostabi.Handle) {
	r.got++
	r.taken.Add(1)
	switch err := read(r.sent.a, h); {
	case errors.Is(err, errTorn):
		r.torn.Add(1)
	case err != nil:
		r.stale.Add(1)
	}
}

// scene of processes that share one arena.
type sharing struct {
	t                  *testing.T
	set                *Set
	a                  *Arena
	torn, stale, taken atomic.Uint64
	swept              Swept
	mu                 sync.Mutex // guards swept
}

func newSharing(t *testing.T, blocks int) *sharing {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	s := &sharing{t: t, set: NewSet()}
	a, err := s.set.Add(Config{Name: "shared by processes", Blocks: blocks, BlockBytes: faultBytes})
	ok(t, err)
	a.patience = time.Minute // a busy machine can keep our own goroutines waiting
	s.a = a
	return s
}

func (s *sharing) start() *relay {
	s.t.Helper()
	holder, err := s.set.Grant()
	ok(s.t, err)
	return &relay{
		process: start(s.t, "pass on", holder, s.a.Share()), set: s.set, sent: sender{a: s.a},
		torn: &s.torn, stale: &s.stale, taken: &s.taken,
	}
}

// end kills a process whose frames have all been taken, and sweeps it.
func (s *sharing) end(r *relay) {
	r.kill()
	swept, err := s.set.Sweep(r.holder)
	if err != nil {
		s.t.Errorf("Sweep = %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swept.add(swept)
}

// whole checks that nothing was lost, and closes the arena.
func (s *sharing) whole(kills int) {
	s.t.Helper()
	leaked := s.a.Blocks() - s.a.Stats().Free
	s.t.Logf("%d kills, %d blocks taken: torn %d, stale %d, leaked %d; swept %+v",
		kills, s.taken.Load(), s.torn.Load(), s.stale.Load(), leaked, s.swept)
	if s.torn.Load() != 0 || s.stale.Load() != 0 || leaked != 0 || s.swept.Mended != 0 || s.set.granted != 0 {
		s.t.Errorf("%d torn, %d stale, %d leaked, %d mended, holders %b, want none",
			s.torn.Load(), s.stale.Load(), leaked, s.swept.Mended, s.set.granted)
	}
	for range s.a.Blocks() {
		loan(s.t, s.a)
	}
}

// kills is how many processes a test kills.
func kills(t *testing.T) int {
	t.Helper()
	few := 100
	if raced {
		few = 8
	} else if testing.Short() {
		few = 40
	}
	return testkit.Kills(t, few)
}

func TestProcesses_KilledAtRandomMomentsLoseNothing(t *testing.T) {
	s := newSharing(t, 9)
	random := testkit.Random(t)
	const together = 4
	n := kills(t)
	for killed := 0; killed < n; killed += together {
		var ends sync.WaitGroup
		for range together {
			r, frames, delay := s.start(), 1+random.IntN(300), random.IntN(3000)
			ends.Go(func() {
				r.serve(frames, func() {
					for range delay {
						runtime.Gosched()
					}
					if err := r.cmd.Process.Kill(); err != nil {
						t.Errorf("kill: %v", err)
					}
				})
				s.end(r)
			})
		}
		ends.Wait()
	}
	s.whole(n)
}

func TestProcesses_AsManyAsThereAreHoldersAndOneStopped(t *testing.T) {
	if raced {
		t.Skip("the race detector sees nothing of other processes")
	}
	s := newSharing(t, 3*hostabi.MaxHolder)
	var all []*relay
	for range hostabi.MaxHolder {
		all = append(all, s.start())
	}
	if _, err := s.set.Grant(); !errors.Is(err, ErrHolders) {
		t.Errorf("Grant of the 24th = %v, want ErrHolders", err)
	}
	stopped := all[7]
	rounds := func(frames int, of []*relay) {
		var serving sync.WaitGroup
		for _, r := range of {
			serving.Go(func() {
				for want := r.got + uint64(frames); r.got < want; {
					f, err := receive(r.out)
					if err != nil {
						t.Errorf("process %d: %v", r.holder, err)
						return
					}
					if f.handle != 0 {
						r.take(f.handle)
						_ = frame{0, r.got}.send(r.in)
					}
				}
			})
		}
		serving.Wait()
	}
	rounds(20, all)
	ok(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	others := append(append([]*relay(nil), all[:7]...), all[8:]...)
	rounds(40, others)
	ok(t, stopped.cmd.Process.Signal(syscall.SIGCONT))
	rounds(20, []*relay{stopped})
	ok(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
	for _, r := range all {
		ok(t, r.cmd.Process.Kill()) // a stopped process too
	}
	for _, r := range all {
		r.serve(-1, nil)
		s.end(r)
	}
	s.whole(len(all))
}

// hoard takes all blocks there are, says how many, and keeps them.
func hoard(a *Arena) error {
	n := 0
	for {
		l, err := a.Loan()
		if errors.Is(err, ErrExhausted) {
			break
		}
		if err != nil {
			return err
		}
		if n++; n%2 == 0 {
			if _, err := l.Commit(); err != nil {
				return err
			}
		}
	}
	fmt.Println(n)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func TestProcesses_AFullArenaIsAnErrorAndNoHang(t *testing.T) {
	s := newSharing(t, 70)
	mine := loan(t, s.a)
	holder, err := s.set.Grant()
	ok(t, err)
	p := start(t, "hoard", holder, s.a.Share())
	if got := p.line(); got != "69" {
		t.Errorf("the process got %s blocks, want 69", got)
	}
	if _, err := s.a.Loan(); !errors.Is(err, ErrExhausted) {
		t.Errorf("Loan = %v, want ErrExhausted", err)
	}
	if _, err := s.a.LoanBlock(0); !errors.Is(err, ErrBusy) {
		t.Errorf("LoanBlock = %v, want ErrBusy", err)
	}
	ok(t, mine.Abort())
	again := loan(t, s.a)
	if again.Block() != mine.Block() {
		t.Errorf("Loan = block %d, want %d, the only free one", again.Block(), mine.Block())
	}
	ok(t, again.Abort())
	p.kill()
	swept, err := s.set.Sweep(holder)
	if want := (Swept{Write: 35, Live: 34, Freed: 69}); err != nil || swept != want {
		t.Errorf("Sweep = %+v, %v, want %+v", swept, err, want)
	}
	s.whole(1)
}
