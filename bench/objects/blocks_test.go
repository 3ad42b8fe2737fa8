package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
)

// childVariable makes the test binary the consumer: its value describes the arena.
const childVariable = "RLHOST_BENCH_BLOCKS"

// told is the description for the consumer; its files are 3 to 7: words, data, messages to it and from it, a floor.
type told struct {
	Shared arena.Shared
	Holder int
}

// How many blocks are under way: few enough to stay in caches where they are written and read.
const (
	handleWindow  = 256
	writtenWindow = 8
)

// Kinds of messages: a block to be read to the end, and T blocks of the floor to be read.
const (
	readIt    = 1
	readFloor = 2
)

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := consume(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// consume leases every block that it hears of, reads it if asked to, releases it and says so.
func consume(text string) error {
	var t told
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	t.Shared.WordsFD, t.Shared.DataFD = 3, 4
	a, err := arena.Attach(t.Shared, t.Holder)
	if err != nil {
		return err
	}
	in, err := ring.Open(5)
	if err != nil {
		return err
	}
	out, err := ring.Open(6)
	if err != nil {
		return err
	}
	f, err := openFloor(7, a.BlockBytes())
	if err != nil {
		return err
	}
	ms := make([]hostabi.Message, handleWindow)
	for in.Wait(time.Minute) {
		n, said := in.Get(ms), 0
		for i := range ms[:n] {
			if err := look(a, f, &ms[i]); err != nil {
				return err
			}
			if ms[i].Kind == readIt || i == n-1 { // the producer may be waiting for a block that takes so long
				said += out.Put(ms[said : i+1])
			}
		}
		if said < n {
			return errors.New("the ring is full")
		}
	}
	return nil
}

func look(a *arena.Arena, f *floor, m *hostabi.Message) error {
	if m.Kind == readFloor {
		return f.get(int(m.T))
	}
	lease, err := a.Lease(m.Handle)
	if err != nil {
		return err
	}
	// Every byte is looked at, at the speed of memory: none of them is 0xff.
	if m.Kind == readIt && bytes.IndexByte(lease.Bytes(), 0xff) >= 0 {
		return fmt.Errorf("block %v holds what nobody wrote", m.Handle)
	}
	return lease.Release()
}

// way is a producer and, in another process, a consumer.
type way struct {
	b       *testing.B
	arenas  *arena.Set
	arena   *arena.Arena
	out, in *ring.SPSC
	cmd     *exec.Cmd
	floor   *floor
	window  int
	flying  int
	ms      []hostabi.Message
}

func newWay(b *testing.B, window, blockBytes int) *way {
	b.Helper()
	w := &way{b: b, window: window, arenas: arena.NewSet(), ms: make([]hostabi.Message, window)}
	var err error
	w.arena, err = w.arenas.Add(arena.Config{Name: "bench", Blocks: window, BlockBytes: blockBytes})
	check(b, err)
	w.out, err = ring.New("bench out", hostabi.LinkCells)
	check(b, err)
	w.in, err = ring.New("bench in", hostabi.LinkCells)
	check(b, err)
	holder, err := w.arenas.Grant()
	check(b, err)
	s := w.arena.Share()
	text, err := json.Marshal(told{s, holder})
	check(b, err)
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	w.cmd.Stderr = os.Stderr
	for _, fd := range []int{s.WordsFD, s.DataFD, w.out.FD(), w.in.FD(), w.addFloor(blockBytes)} {
		copied, err := syscall.Dup(fd)
		check(b, err)
		file := os.NewFile(uintptr(copied), "shared")
		defer file.Close()
		w.cmd.ExtraFiles = append(w.cmd.ExtraFiles, file)
	}
	check(b, w.cmd.Start())
	b.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait() // killed
	})
	return w
}

// check asks for its caller only when it has to: Helper costs more than the block that is handed over.
func check(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

// send hands one block over, written if there is something to write.
func (w *way) send(data []byte) {
	if w.flying == w.window {
		for w.flying > w.window/2 { // half at a time, so that no process is woken for a single block
			w.settle()
		}
	}
	loan, err := w.arena.Loan()
	check(w.b, err)
	m := hostabi.Message{}
	if data != nil {
		copy(loan.Bytes(), data)
		m.Kind = readIt
	}
	m.Handle, err = loan.Commit()
	check(w.b, err)
	w.ms[0] = m
	if w.out.Put(w.ms[:1]) != 1 {
		w.b.Fatal("the ring is full")
	}
	w.flying++
}

// settle takes back the blocks that the consumer has finished with.
func (w *way) settle() {
	if !w.in.Wait(10 * time.Second) {
		w.b.Fatal("the consumer does not answer")
	}
	n := w.in.Get(w.ms)
	for i := range w.ms[:n] {
		check(w.b, w.arenas.Release(w.ms[i].Handle))
	}
	w.flying -= n
}

func (w *way) finish() {
	for w.flying > 0 {
		w.settle()
	}
}

// A handle must cost the same whatever the size of its block.
func BenchmarkBlock(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("handle/%d", size), func(b *testing.B) {
			w := newWay(b, handleWindow, size)
			w.send(nil)
			w.finish()
			for b.Loop() {
				w.send(nil)
			}
			w.finish()
		})
	}
}
