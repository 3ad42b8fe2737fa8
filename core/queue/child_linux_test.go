package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/internal/fifo/fifotest"
)

func TestMain(m *testing.M) { os.Exit(fifotest.Main(m, runChild)) }

// childTask is a child's task until it is killed, or has put its messages, or the ring is shut.
type childTask struct {
	role     string // put, get
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

func runChild(text string, n *fifotest.Notes) error {
	var c childTask
	_, err := fmt.Sscan(text, &c.role, &c.owner, &c.batch, &c.total, &c.visits, &c.step, &c.producer, &c.bytes)
	if err != nil {
		return err
	}
	q, err := Open(3)
	if err != nil {
		return err
	}
	e := q.As(uint16(c.owner))
	n.Running.Store(1)
	if c.role == "put" {
		return c.put(e, n)
	}
	return c.get(e, n)
}

// numberedBytes is the size of most messages of the tests.
const numberedBytes = 24

// number writes a message that fills the item's room: its producer, its number, and a checksum.
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

func (c *childTask) put(e *End, n *fifotest.Notes) error {
	items := Items(c.batch, c.bytes)
	for visit := 0; ; visit++ {
		for i := range items {
			number(&items[i], c.producer, n.Moved.Load()+uint64(i)+1)
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
		n.Moved.Add(uint64(c.batch))
		if c.total > 0 && n.Moved.Load() >= uint64(c.total) {
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

func (c *childTask) get(e *End, n *fifotest.Notes) error {
	items := Items(c.batch, c.bytes)
	var last [64]uint64
	for visit := 0; ; visit++ {
		got, err := c.take(e, items, visit)
		if errors.Is(err, ErrShut) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range items[:got] {
			seq, whole := numberOf(&items[i])
			producer := items[i].Kind % uint32(len(last))
			if !whole || seq <= last[producer] {
				n.Wrong.Add(1)
			}
			last[producer] = seq
			n.Sum.Add(seq)
		}
		n.Moved.Add(uint64(got))
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
