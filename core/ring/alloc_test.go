package ring

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

func TestMessages_AllocateNothing(t *testing.T) {
	out, in := heapMessages(t, 4)
	ms := make([]hostabi.Message, 4)
	if n := testing.AllocsPerRun(200, func() {
		out.Put(ms)
		out.WaitRoom(time.Microsecond)
		in.Get(ms)
		in.Wait(time.Microsecond)
		in.Nudge()
		in.Wait(-1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestQueue_AllocatesNothing(t *testing.T) {
	q := heapQueue(t, 4, 16)
	put, get := q.As(1), q.As(2)
	items, got, buf := Items(3, 16), Items(3, 16), make([]byte, 16)
	if n := testing.AllocsPerRun(200, func() {
		_ = put.PutMany(items, 0)
		_ = put.Put(items[0], 0)
		_ = put.Put(items[0], time.Microsecond)
		_, _ = get.GetMany(got, -1)
		_, _ = get.Get(buf, -1)
		_, _ = get.Get(buf, time.Microsecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
