package queue

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/internal/fifo"
	"github.com/rlhost/rlhost/core/internal/fifo/fifotest"
	"github.com/rlhost/rlhost/core/shm"
)

func heapQueue(t testing.TB, cells, payload int) *MPMC {
	t.Helper()
	g := fifo.QueueGeometry(cells, payload)
	seg, err := shm.Heap(g.Total())
	if err != nil {
		t.Fatal(err)
	}
	fifo.Format(seg, g, func(seg *shm.Segment) { clearCells(seg, g) })
	return newMPMC(seg, g)
}

// Cells claimed by a killed producer are reused by the next one, though no consumer gets.
func TestPut_FindsTheRoomOfADeadProducer(t *testing.T) {
	for dead := uint64(1); dead <= 4; dead++ {
		q := heapQueue(t, 4, 8)
		if _, ok := q.claimRoom(dead, 7); !ok {
			t.Fatalf("no room for %d cells", dead)
		}
		e := q.As(1)
		if err := e.PutMany(make([]Item, 4), 0); !errors.Is(err, ErrFull) {
			t.Errorf("%d of 4 cells are claimed: %v, want %v", dead, err, ErrFull)
		}
		if done := q.Recover(7, nil); done.Voided != int(dead) {
			t.Errorf("recovered %+v, want %d voided", done, dead)
		}
		if err := e.PutMany(make([]Item, 4), 0); err != nil {
			t.Errorf("%d cells of a dead producer: %v", dead, err)
		}
		items := []Item{{Payload: make([]byte, 0, 8)}, {Payload: make([]byte, 0, 8)}, {Payload: make([]byte, 0, 8)}, {Payload: make([]byte, 0, 8)}}
		if n, err := e.GetMany(items, 0); n != 4 || err != nil {
			t.Errorf("%d messages come out (%v), want 4", n, err)
		}
	}
}

func TestMPMC_PassesMessagesOfAnySize(t *testing.T) {
	q, err := New("test", 4, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	other, err := Open(fifotest.OpenAgain(t, q.FD()))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	put, get := q.As(1), other.As(2)
	buf := make([]byte, 100)
	for size := range 101 {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(size + i)
		}
		if err := put.Put(Item{Kind: uint32(size), Payload: data}, 0); err != nil {
			t.Fatal(err)
		}
		item, err := get.Get(buf, 0)
		if err != nil || item.Kind != uint32(size) || string(item.Payload) != string(data) {
			t.Fatalf("Get = %v, %v; want %d bytes", item, err, size)
		}
	}
	if err := put.Put(Item{Payload: make([]byte, 101)}, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Put of 101 bytes = %v, want ErrTooLarge", err)
	}
	if _, err := get.Get(buf[:99:99], 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Get into 99 bytes = %v, want ErrTooLarge", err)
	}
}

func TestMPMC_ManyGoroutinesLoseAndRepeatNothing(t *testing.T) {
	const producers, consumers, each = 3, 3, 9_000
	q := heapQueue(t, 16, 16)
	var wg, puts sync.WaitGroup
	for p := range producers {
		end := q.As(uint16(p))
		wg.Add(1)
		puts.Go(func() {
			defer wg.Done()
			items := Items(3, 16)
			for i := 0; i < each; i += len(items) {
				for j := range items {
					items[j].Payload = binary.LittleEndian.AppendUint64(items[j].Payload[:0], uint64(i+j))
					items[j].Kind = uint32(p)
				}
				if err := end.PutMany(items, -1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var mu sync.Mutex
	seen := map[[2]uint64]int{}
	for c := range consumers {
		end := q.As(uint16(producers + c))
		wg.Go(func() {
			items := Items(5, 16)
			var last [producers]uint64
			for {
				n, err := end.GetMany(items, time.Second)
				if err != nil {
					if !errors.Is(err, ErrShut) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				for _, item := range items[:n] {
					v := binary.LittleEndian.Uint64(item.Payload)
					if v < last[item.Kind] {
						t.Errorf("producer %d: %d after %d", item.Kind, v, last[item.Kind])
					}
					last[item.Kind] = v
					seen[[2]uint64{uint64(item.Kind), v}]++
				}
				mu.Unlock()
			}
		})
	}
	puts.Wait()
	q.Shut()
	wg.Wait()
	if len(seen) != producers*each {
		t.Errorf("%d different messages arrived, want %d", len(seen), producers*each)
	}
	for k, n := range seen {
		if n != 1 {
			t.Fatalf("message %v arrived %d times", k, n)
		}
	}
}

func TestMPMC_ShutDeliversEarlierMessages(t *testing.T) {
	q := heapQueue(t, 4, 16)
	put, get, slow := q.As(1), q.As(2), q.As(3)
	items, buf := Items(1, 16), make([]byte, 16)
	for range 2 {
		if err := put.Put(items[0], 0); err != nil {
			t.Fatal(err)
		}
	}
	stopAfter(2, func(step func()) { slow.putSteps(items, step) }) // claimed, not yet ready
	q.Shut()
	if err := put.Put(items[0], -1); !errors.Is(err, ErrShut) {
		t.Errorf("Put after Shut = %v, want ErrShut", err)
	}
	for range 2 {
		if _, err := get.Get(buf, -1); err != nil {
			t.Errorf("Get of what was put before Shut = %v", err)
		}
	}
	if _, err := get.Get(buf, time.Microsecond); !errors.Is(err, ErrEmpty) {
		t.Errorf("Get while a message is being written = %v, want ErrEmpty", err)
	}
	q.Recover(3, nil)
	if _, err := get.Get(buf, -1); !errors.Is(err, ErrShut) {
		t.Errorf("Get at the end = %v, want ErrShut", err)
	}
}

func TestMPMC_ShutWakesEverybody(t *testing.T) {
	full, empty := heapQueue(t, 2, 16), heapQueue(t, 2, 16)
	items := Items(2, 16)
	if err := full.As(1).PutMany(items, 0); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	const each = 3
	for i := range uint16(each) {
		go func() { ended <- full.As(2+i).Put(Item{}, -1) }()
		go func() {
			_, err := empty.As(2+i).Get(make([]byte, 16), -1)
			ended <- err
		}()
	}
	for full.Counters().FullWaits < each || empty.Counters().EmptyWaits < each {
		runtime.Gosched()
	}
	full.Shut()
	empty.Shut()
	for range 2 * each {
		if err := <-ended; !errors.Is(err, ErrShut) {
			t.Errorf("a wait ended in %v, want ErrShut", err)
		}
	}
}

func TestMPMC_BatchesAreAllOrNothing(t *testing.T) {
	q := heapQueue(t, 4, 16)
	put, get := q.As(1), q.As(2)
	if err := put.PutMany(Items(3, 16), 0); err != nil {
		t.Fatal(err)
	}
	if err := put.PutMany(Items(2, 16), time.Millisecond); !errors.Is(err, ErrFull) || q.Len() != 3 {
		t.Errorf("PutMany of 2 into 1 cell = %v, %d messages are there; want ErrFull, 3", err, q.Len())
	}
	if err := put.PutMany(Items(5, 16), 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("PutMany of 5 into 4 cells = %v, want ErrTooLarge", err)
	}
	if n, err := get.GetMany(Items(9, 16), 0); n != 3 || err != nil {
		t.Errorf("GetMany = %d, %v; want all 3", n, err)
	}
	if _, err := get.GetMany(Items(9, 16), 0); !errors.Is(err, ErrEmpty) {
		t.Errorf("GetMany = %v, want ErrEmpty", err)
	}
}
