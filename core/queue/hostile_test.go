package queue

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/internal/fifo"
	"github.com/rlhost/rlhost/core/internal/fifo/fifotest"
	"github.com/rlhost/rlhost/core/shm"
)

func FuzzCells(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 3, 0xff, 40, 9, 9, 9, 9, 9, 9, 0, 3, 0x21, 20, 0, 0x10, 1, 0x80, 0})
	f.Add([]byte{9, 0, 3, 1, 20, 10, 0, 3, 4, 12, 11, 0, 3, 0xff, 24, 9, 0, 3, 1, 53})
	f.Fuzz(func(t *testing.T, script []byte) {
		g := fifo.QueueGeometry(4, 16)
		seg, check := fifotest.Guarded(t, g)
		fifo.Format(seg, g, func(seg *shm.Segment) { clearCells(seg, g) })
		q := newMPMC(seg, g)
		put, get := q.As(1), q.As(2)
		items, got := Items(4, 16), Items(4, 16)
		for i := range items {
			items[i].Payload = items[i].Payload[:16]
		}
		for len(script) >= 5 {
			op := script[4]
			script = fifotest.Spoil(seg.Bytes()[:g.Total()], script)
			fifotest.Within(t, "a call on a queue", func() {
				_ = put.PutMany(items[:op%5], time.Duration(op%2)*time.Microsecond)
				n, _ := get.GetMany(got[:op/5%5], time.Duration(op/2%2)*time.Microsecond)
				if n < 0 || n > int(op/5%5) {
					t.Fatalf("GetMany of %d = %d", op/5%5, n)
				}
				for i := range got[:n] {
					if len(got[i].Payload) > 16 {
						t.Fatalf("a message has %d bytes", len(got[i].Payload))
					}
				}
				if op%3 == 0 {
					q.Recover(uint16(op%4), func(item Item) {
						if len(item.Payload) > 16 {
							t.Fatalf("a lost message has %d bytes", len(item.Payload))
						}
					})
				}
			})
		}
		check()
	})
}
