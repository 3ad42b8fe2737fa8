package objects

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// Places in a floor's file: how many blocks were written, how many were read, and the blocks.
const (
	floorRead   = 128
	floorBlocks = 4096
)

// How often one end looks at the other's counter before it yields the processor between looks, because on a busy
// machine the other may be waiting for it, and before it gives up.
const (
	floorSpins = 1 << 12
	floorLooks = 1 << 24
)

// floor is two processes that write and read shared memory with nothing in between but two counters: no claims, no handles, no
// messages, no peer that may be dead, and no sleep. All of its cost is bringing a block's cache lines from one processor to the other.
type floor struct {
	written, read *atomic.Uint64
	blocks        [][]byte
	count         uint64 // of blocks that this end has written or read
}

func floorBytes(blocks, size int) int { return floorBlocks + blocks*size }

func newFloor(s *shm.Segment, blocks, size int) *floor {
	mem := s.Bytes()
	f := &floor{
		written: (*atomic.Uint64)(unsafe.Pointer(&mem[0])),
		read:    (*atomic.Uint64)(unsafe.Pointer(&mem[floorRead])),
	}
	for i := range blocks {
		at := floorBlocks + i*size
		f.blocks = append(f.blocks, mem[at:at+size])
	}
	return f
}

// await waits until a counter has reached n.
func (f *floor) await(counter *atomic.Uint64, n uint64) error {
	for look := range floorLooks {
		if counter.Load() >= n {
			return nil
		}
		if look >= floorSpins {
			shm.Yield()
		}
	}
	return errors.New("nobody is at the other end")
}

// put writes n blocks.
func (f *floor) put(data []byte, n int) error {
	for range n {
		if f.count >= uint64(len(f.blocks)) {
			if err := f.await(f.read, f.count+1-uint64(len(f.blocks))); err != nil {
				return err
			}
		}
		copy(f.blocks[f.count%uint64(len(f.blocks))], data)
		f.count++
		f.written.Store(f.count)
	}
	return f.await(f.read, f.count)
}

// get reads n blocks.
func (f *floor) get(n int) error {
	for range n {
		if err := f.await(f.written, f.count+1); err != nil {
			return err
		}
		if bytes.IndexByte(f.blocks[f.count%uint64(len(f.blocks))], 0xff) >= 0 {
			return errors.New("shared memory holds what nobody wrote")
		}
		f.count++
		f.read.Store(f.count)
	}
	return nil
}

// addFloor makes a floor of as many blocks as are under way where they are written; the consumer gets its file.
func (w *way) addFloor(blockBytes int) int {
	s, err := shm.Create("bench floor", floorBytes(writtenWindow, blockBytes))
	check(w.b, err)
	w.b.Cleanup(func() { _ = s.Close() })
	w.floor = newFloor(s, writtenWindow, blockBytes)
	return s.FD()
}

// overFloor writes n blocks there that the consumer reads.
func (w *way) overFloor(data []byte, n int) {
	w.ms[0] = hostabi.Message{Kind: readFloor, T: uint32(n)}
	if w.out.Put(w.ms[:1]) != 1 {
		w.b.Fatal("the ring is full")
	}
	check(w.b, w.floor.put(data, n))
	if !w.in.Wait(10*time.Second) || w.in.Get(w.ms) != 1 {
		w.b.Fatal("the consumer does not answer")
	}
}

// turnBytes is how much each contender writes and reads in its turn.
const turnBytes = 64 << 20

// A block that one process writes and another reads must cost little more than the same memory without arenas. The two
// take turns, with a copy by one thread as a third, which stays in one processor's caches.
func BenchmarkBlock_OverFloor(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			data, n := bytes.Repeat([]byte{7}, size), turnBytes/size
			w := newWay(b, writtenWindow, size)
			targets := make([][]byte, writtenWindow)
			for i := range targets {
				targets[i] = bytes.Repeat([]byte{1}, size)
			}
			turns := []func(){
				func() {
					for range n {
						w.send(data)
					}
					w.finish()
				},
				func() { w.overFloor(data, n) },
				func() {
					for i := range n {
						copy(targets[i%len(targets)], data)
					}
				},
			}
			reportTurns(b, turns, n)
		})
	}
}

// reportTurns lets the three take turns and reports the medians of their times for a block and of their ratios.
func reportTurns(b *testing.B, turns []func(), n int) {
	for _, turn := range turns {
		turn()
	}
	var times [3][]float64
	var toFloor, toMemcpy []float64
	for b.Loop() {
		for i, turn := range turns {
			begin := time.Now()
			turn()
			times[i] = append(times[i], float64(time.Since(begin).Nanoseconds())/float64(n))
		}
		last := len(times[0]) - 1
		toFloor = append(toFloor, times[0][last]/times[1][last])
		toMemcpy = append(toMemcpy, times[0][last]/times[2][last])
	}
	b.ReportMetric(0, "ns/op") // of three different things
	b.ReportMetric(median(times[0]), "ns/block")
	b.ReportMetric(median(times[1]), "ns/floor")
	b.ReportMetric(median(times[2]), "ns/memcpy")
	b.ReportMetric(median(toFloor), "x-floor")
	b.ReportMetric(median(toMemcpy), "x-memcpy")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// openFloor is the consumer's end.
func openFloor(fd, size int) (*floor, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size < int64(floorBytes(writtenWindow, size)) {
		return nil, fmt.Errorf("a floor of %d bytes is too small", st.Size)
	}
	s, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return nil, err
	}
	return newFloor(s, writtenWindow, size), nil
}
