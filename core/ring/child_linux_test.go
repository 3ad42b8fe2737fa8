package ring

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// childVariable holds what a child process of the tests does; see childTask.
const childVariable = "RLHOST_RING_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childTask is what a child does until it is killed, or has put its messages, or the ring is shut.
type childTask struct {
	role     string // put, get, message, park
	owner    int
	batch    int
	total    int // messages to put; 0: without end
	visits   int // complete operations before the last
	step     int // the last one ends before this step by SIGKILL; -1: there is no last one
	producer int
	bytes    int // of a message
}

func (c childTask) String() string {
	return fmt.Sprintf("%s %d %d %d %d %d %d %d", c.role, c.owner, c.batch, c.total, c.visits, c.step, c.producer, c.bytes)
}

// notes are what a child tells its parent through shared memory.
type notes struct {
	running atomic.Uint32
	moved   atomic.Uint64 // messages that it has put or got
	sum     atomic.Uint64 // of those got
	wrong   atomic.Uint64 // messages out of order or torn
}

func newNotes(t testing.TB) (*notes, *shm.Segment) {
	t.Helper()
	seg, err := shm.Create("notes", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	return notesIn(seg), seg
}

func notesIn(seg *shm.Segment) *notes { return (*notes)(unsafe.Pointer(&seg.Bytes()[0])) }

// startChild starts a process with the ring and the notes.
func startChild(t testing.TB, task childTask, ring int, seg *shm.Segment) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+task.String())
	cmd.Stderr = os.Stderr
	for _, fd := range []int{ring, seg.FD()} {
		f := os.NewFile(uintptr(openAgain(t, fd)), "ring")
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	})
	return cmd
}

// waitDead waits for a child that kills itself or is killed.
func waitDead(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the child was to die by a signal: %v", err)
	}
}

func runChild(text string) error {
	var c childTask
	_, err := fmt.Sscan(text, &c.role, &c.owner, &c.batch, &c.total, &c.visits, &c.step, &c.producer, &c.bytes)
	if err != nil {
		return err
	}
	seg, err := shm.Open(4, shm.ReadWrite)
	if err != nil {
		return err
	}
	n := notesIn(seg)
	if c.role == "message" {
		return c.putMessages(n)
	}
	q, err := OpenQueue(3)
	if err != nil {
		return err
	}
	e := q.As(uint16(c.owner))
	n.running.Store(1)
	if c.role == "put" {
		return c.put(e, n)
	}
	return c.get(e, n)
}

// numberedBytes is the size of most messages of the tests.
const numberedBytes = 24

// number writes a message that fills the item's room: its producer, its number, and what shows that it is whole.
func number(item *Item, producer int, seq uint64) {
	item.Kind = uint32(producer)
	b := item.Payload[:cap(item.Payload)]
	binary.LittleEndian.PutUint64(b, seq)
	binary.LittleEndian.PutUint64(b[8:], seq*31)
	binary.LittleEndian.PutUint64(b[len(b)-8:], ^seq)
	item.Payload = b
}

func numberOf(item *Item) (seq uint64, whole bool) {
	b := item.Payload
	if len(b) < numberedBytes {
		return 0, false
	}
	seq = binary.LittleEndian.Uint64(b)
	return seq, binary.LittleEndian.Uint64(b[8:]) == seq*31 && binary.LittleEndian.Uint64(b[len(b)-8:]) == ^seq
}

func (c *childTask) put(e *End, n *notes) error {
	items := Items(c.batch, c.bytes)
	for visit := 0; ; visit++ {
		for i := range items {
			number(&items[i], c.producer, n.moved.Load()+uint64(i)+1)
		}
		if c.step >= 0 && visit == c.visits {
			for !e.putSteps(items, c.dieAtStep()) {
				time.Sleep(time.Millisecond) // full: the step was not reached
			}
			return fmt.Errorf("survived step %d of a put", c.step)
		}
		if err := e.PutMany(items, -1); err != nil {
			return err
		}
		n.moved.Add(uint64(c.batch))
		if c.total > 0 && n.moved.Load() >= uint64(c.total) {
			return nil
		}
	}
}

// dieAtStep returns a function that kills the process at the call for the task's step.
func (c *childTask) dieAtStep() func() {
	at := 0
	return func() {
		if at == c.step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		at++
	}
}

func (c *childTask) get(e *End, n *notes) error {
	items := Items(c.batch, c.bytes)
	var last [64]uint64
	for visit := 0; ; visit++ {
		got, err := c.take(e, items, visit)
		if err == ErrShut {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range items[:got] {
			seq, whole := numberOf(&items[i])
			producer := items[i].Kind % uint32(len(last))
			if !whole || seq <= last[producer] {
				n.wrong.Add(1)
			}
			last[producer] = seq
			n.sum.Add(seq)
		}
		n.moved.Add(uint64(got))
	}
}

// take gets messages; after enough visits step by step, as often as it takes to find a batch that has the last step.
func (c *childTask) take(e *End, items []Item, visit int) (int, error) {
	if c.step < 0 || visit < c.visits {
		return e.GetMany(items, -1)
	}
	n := e.getSteps(items, c.dieAtStep())
	if n == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	return n, nil
}

func (c *childTask) putMessages(n *notes) error {
	r, err := OpenMessages(3)
	if err != nil {
		return err
	}
	n.running.Store(1)
	ms := make([]hostabi.Message, c.batch)
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

// kills returns how many processes a test kills at random moments: a few, or as many as RLHOST_KILLS says.
func kills(t testing.TB, few int) int {
	t.Helper()
	text := strings.TrimSpace(os.Getenv("RLHOST_KILLS"))
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RLHOST_KILLS=%q: want a positive number", text)
	}
	return n
}

// dice returns random numbers whose seed the test prints.
func dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
