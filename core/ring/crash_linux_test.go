package ring

import (
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(mainOf(m, putNumbered)) }

// batch is the task of a child process: to put messages, so many at a time.
type batch int

func (b batch) String() string { return strconv.Itoa(int(b)) }

// putNumbered puts messages in batches until it is killed.
func putNumbered(text string, n *notes) error {
	size, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	r, err := Open(3)
	if err != nil {
		return err
	}
	n.running.Store(1)
	ms := make([]hostabi.Message, size)
	for seq := uint64(0); ; {
		for i := range ms {
			ms[i].Sequence, ms[i].Inline[0] = seq+uint64(i)+1, ^(seq + uint64(i) + 1)
		}
		put := r.Put(ms)
		seq += uint64(put)
		n.moved.Store(seq)
		if put == 0 {
			r.WaitRoom(-1)
		}
	}
}

func TestSPSC_KilledProducerLeavesItsMessages(t *testing.T) {
	rng := testkit.Random(t)
	count := testkit.Kills(t, 20)
	arrived := uint64(0)
	for range count {
		r, err := New("test", 8)
		if err != nil {
			t.Fatal(err)
		}
		n, seg := newNotes(t)
		cmd := startChild(t, batch(1+rng.IntN(5)), r.FD(), seg)
		deadline := time.Duration(rng.IntN(1_000_000))
		next := uint64(1)
		buf := make([]hostabi.Message, 3)
		var started time.Time
		for {
			next = takeMessages(t, r, buf, next)
			if started.IsZero() && n.running.Load() != 0 {
				started = time.Now()
			}
			if !started.IsZero() && time.Since(started) > deadline {
				break
			}
			r.Wait(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		waitDead(t, cmd)
		next = takeMessages(t, r, buf, next)
		if put := n.moved.Load(); next-1 < put || next-1 > put+5 {
			t.Errorf("%d messages arrived, %d were put", next-1, put)
		}
		arrived += next - 1
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d processes killed at random moments, %d messages arrived", count, arrived)
}

func takeMessages(t testing.TB, r *SPSC, buf []hostabi.Message, next uint64) uint64 {
	t.Helper()
	for {
		n := r.Get(buf)
		if n == 0 {
			return next
		}
		for _, m := range buf[:n] {
			if m.Sequence != next || m.Inline[0] != ^next {
				t.Fatalf("got message %d (%x), want %d", m.Sequence, m.Inline[0], next)
			}
			next++
		}
	}
}

func TestSPSC_SignalsDoNotEndAWait(t *testing.T) {
	r, err := New("test", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stop := make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = syscall.Kill(syscall.Getpid(), syscall.SIGURG)
				time.Sleep(200 * time.Microsecond)
			}
		}
	})
	started := time.Now()
	if r.Wait(30 * time.Millisecond) {
		t.Error("Wait on an empty ring reports messages")
	}
	if d := time.Since(started); d < 30*time.Millisecond {
		t.Errorf("Wait of 30 ms ended after %v", d)
	}
	close(stop)
	signals.Wait()
}
