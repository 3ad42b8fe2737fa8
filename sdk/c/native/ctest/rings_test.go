package ctest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/queue"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
)

// patience bounds a test's wait for another process.
const patience = 30 * time.Second

// peer is the program in C at the other end.
type peer struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// start runs the program with duplicates of files, from 3 on.
func start(t testing.TB, program string, fds []int, args ...string) *peer {
	t.Helper()
	p := &peer{cmd: exec.Command(program, args...)}
	for _, fd := range fds {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(own), "shared")
		defer f.Close()
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, f)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// wait waits for the program to end and returns its output.
func (p *peer) wait(t testing.TB) string {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.cmd.Args[1:], err, p.err.String())
	}
	return p.out.String()
}

func numbered(i uint64) hostabi.Message {
	return hostabi.Message{Sequence: i, Handle: hostabi.Handle(3 * i), Kind: uint16(i), T: ^uint32(i), Inline: [2]uint64{i * i, ^i}}
}

func TestMessages_TravelBetweenGoAndC(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	const n = 50_000
	for _, batch := range []int{1, 17, 64} {
		t.Run(fmt.Sprintf("to C by %d", batch), func(t *testing.T) {
			r := newMessages(t)
			p := start(t, program, []int{r.FD()}, "messages-get", strconv.Itoa(n), "32")
			ms := make([]hostabi.Message, batch)
			for i := uint64(0); i < n; {
				k := min(uint64(batch), n-i)
				for j := range k {
					ms[j] = numbered(i + j)
				}
				put := r.Put(ms[:k])
				i += uint64(put)
				if put == 0 && !r.WaitRoom(patience) {
					t.Fatal("no room")
				}
			}
			p.wait(t)
		})
		t.Run(fmt.Sprintf("from C by %d", batch), func(t *testing.T) {
			r := newMessages(t)
			p := start(t, program, []int{r.FD()}, "messages-put", strconv.Itoa(n), strconv.Itoa(batch))
			ms := make([]hostabi.Message, 32)
			for i := uint64(0); i < n; {
				if !r.Wait(patience) {
					t.Fatal("no message")
				}
				for _, m := range ms[:r.Get(ms)] {
					if want := numbered(i); m != want {
						t.Fatalf("message %d is %+v, want %+v", i, m, want)
					}
					i++
				}
			}
			p.wait(t)
		})
	}
}

func newMessages(t testing.TB) *ring.SPSC {
	t.Helper()
	r, err := ring.New("test", 256)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestMessages_EndWhenTheRingIsShut(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	in, out := newMessages(t), newMessages(t)
	p := start(t, program, []int{in.FD(), out.FD()}, "echo")
	got := make([]hostabi.Message, 1)
	for i := range uint64(1000) {
		in.Put([]hostabi.Message{numbered(i)})
		if !out.Wait(patience) || out.Get(got) != 1 || got[0] != numbered(i) {
			t.Fatalf("echo %d is %+v", i, got[0])
		}
	}
	in.Shut()
	p.wait(t)
}

// TestQueue_IsSharedByGoAndC lets producers and consumers of both languages work on one queue: each item arrives
// once, a producer's items in order.
func TestQueue_IsSharedByGoAndC(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	q, err := queue.New("test", 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	const n = 20_000
	consumers := []*peer{start(t, program, []int{q.FD()}, "queue-get", "10"), start(t, program, []int{q.FD()}, "queue-get", "11")}
	producers := []*peer{
		start(t, program, []int{q.FD()}, "queue-put", "1", strconv.Itoa(n), "1"),
		start(t, program, []int{q.FD()}, "queue-put", "2", strconv.Itoa(n), "7"),
	}
	own := make(chan [2]uint64)
	go func() { own <- getAll(q.As(12)) }()
	if err := putAll(q.As(3), 3, n); err != nil {
		t.Fatal(err)
	}
	for _, p := range producers {
		p.wait(t)
	}
	q.Shut()
	total := <-own
	for _, c := range consumers {
		var count, sum uint64
		if _, err := fmt.Sscan(c.wait(t), &count, &sum); err != nil {
			t.Fatal(err)
		}
		total[0] += count
		total[1] += sum
	}
	if want := [2]uint64{3 * n, 3 * n * (n - 1) / 2}; total != want {
		t.Errorf("got %d items with sum %d, want %d with %d", total[0], total[1], want[0], want[1])
	}
}

// putAll puts the same items as the program in C.
func putAll(e *queue.End, owner uint64, n int) error {
	for i := range uint64(n) {
		item := queue.Item{Kind: uint32(i), Payload: make([]byte, 16+i%40)}
		putWords(item.Payload, owner, i)
		if err := e.Put(item, patience); err != nil {
			return err
		}
	}
	return nil
}

func putWords(b []byte, owner, i uint64) {
	for k := range 8 {
		b[k], b[8+k] = byte(owner>>(8*k)), byte(i>>(8*k))
	}
	for k := 16; k < len(b); k++ {
		b[k] = byte(i)
	}
}

// getAll counts items, and the sum of their numbers, until the queue is shut.
func getAll(e *queue.End) (total [2]uint64) {
	items := queue.Items(16, 64)
	for {
		k, err := e.GetMany(items, patience)
		if err != nil {
			return total
		}
		for _, item := range items[:k] {
			total[0]++
			for j := range 8 {
				total[1] += uint64(item.Payload[8+j]) << (8 * j)
			}
		}
	}
}

// TestQueue_SurvivesAKilledProgram kills the program in C between its puts and gets. Go and C repair the queue in turn;
// then the queue is empty after as many gets as it has items.
func TestQueue_SurvivesAKilledProgram(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	q, err := queue.New("test", 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for round := range 20 {
		victim := start(t, program, []int{q.FD()}, "queue-churn", "7")
		e := q.As(1)
		buf := make([]byte, 16)
		for theirs := 0; theirs < 1+9*round; { // until that many of the victim's items have been seen
			_ = e.Put(queue.Item{Payload: []byte("dddddddddddddddd")}, 0) // it may be full
			if item, err := e.Get(buf, 0); err == nil && item.Payload[0] != 'd' {
				theirs++
			}
		}
		_ = victim.cmd.Process.Kill()
		_ = victim.cmd.Wait() // it was killed
		if round%2 == 0 {
			q.Recover(7, nil)
		} else {
			start(t, program, []int{q.FD()}, "recover", "7").wait(t)
		}
		drainWhole(t, q, e)
	}
}

// drainWhole empties a queue, then fills and empties it again: no cell may be stuck.
func drainWhole(t *testing.T, q *queue.MPMC, e *queue.End) {
	t.Helper()
	buf := make([]byte, 16)
	for {
		item, err := e.Get(buf, 0)
		if err != nil {
			break
		}
		if p := item.Payload; len(p) != 16 || strings.Trim(string(p), string(p[:1])) != "" {
			t.Fatalf("torn item %q", p)
		}
	}
	for i := range q.Cells() {
		if err := e.Put(queue.Item{Kind: uint32(i)}, 0); err != nil {
			t.Fatalf("put %d of %d into an empty queue: %v", i, q.Cells(), err)
		}
	}
	for i := range q.Cells() {
		item, err := e.Get(buf, 0)
		if err != nil || item.Kind != uint32(i) {
			t.Fatalf("item %d is %d: %v", i, item.Kind, err)
		}
	}
}
