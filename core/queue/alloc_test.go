package queue

import (
	"testing"
	"time"
)

func TestMPMC_AllocatesNothing(t *testing.T) {
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
