package queue

import (
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

func TestCell_IsAsLargeAsTheLayoutSays(t *testing.T) {
	if got, want := unsafe.Sizeof(cell{}), unsafe.Sizeof(hostabi.RingCell{}); got != want {
		t.Errorf("a cell has %d bytes, the layout says %d", got, want)
	}
}

func TestWord_KeepsItsParts(t *testing.T) {
	for _, pos := range []uint64{0, 1, 1<<40 - 1, 1 << 40, 1<<40 + 5} {
		w := claim(pos, hostabi.RingReading, 255, MaxOwner)
		if w.pos() != pos&positionMask || w.state() != hostabi.RingReading || w.count() != 255 || w.owner() != MaxOwner {
			t.Errorf("claim at %d = pos %d, state %d, count %d, owner %d", pos, w.pos(), w.state(), w.count(), w.owner())
		}
		for _, d := range []uint64{0, 1, 7, 1 << 20} {
			if got := w.ahead(pos - d); got>>posShift != int64(d) {
				t.Errorf("word at %d is %d ahead of %d", pos, got>>posShift, pos-d)
			}
			if got := w.ahead(pos + d); got>>posShift != -int64(d) {
				t.Errorf("word at %d is %d ahead of %d", pos, got>>posShift, pos+d)
			}
		}
	}
}

func TestMPMC_PositionsWrapAround(t *testing.T) {
	q := heapQueue(t, 4, 16)
	start := uint64(1<<40 - 6)
	q.h.Tail.Store(start)
	q.h.Head.Store(start)
	for i := range uint64(4) {
		q.cells.at(start + i).ctl.Store(uint64(free(start + i)))
	}
	put, get := q.As(1), q.As(2)
	items, got := Items(3, 16), Items(3, 16)
	for i := range 20 {
		items[0].Kind = uint32(i)
		if err := put.PutMany(items, 0); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 { // a process is killed on both sides of the seam
			dead := q.As(9)
			stopAfter(i%5, func(step func()) { dead.getSteps(got, step) })
			q.Recover(9, nil)
		}
		for {
			if _, err := get.GetMany(got, 0); err != nil {
				break
			}
		}
	}
	if q.Len() != 0 {
		t.Errorf("%d messages are left", q.Len())
	}
}
