package ring

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 3, 0xff, 40, 9, 9, 9, 9, 9, 4, 0, 3, 0xff, 0, 0, 0, 1, 0x80, 0})
	f.Add([]byte{0x80, 0, 2, 9, 0, 0, 1, 2, 0xf7, 0, 0x80, 2, 0, 1, 1, 0x80, 1, 1, 0xff, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		g := geometryOf(4)
		seg, check := guarded(t, g)
		format(seg, g)
		out, in := newSPSC(seg, g), newSPSC(seg, g)
		ms := make([]hostabi.Message, 6)
		for len(script) >= 5 {
			op := script[4]
			script = spoil(seg.Bytes()[:g.total()], script)
			within(t, "a call on a ring of messages", func() {
				if n := out.Put(ms[:op%7]); n < 0 || n > int(op%7) || n > 4 {
					t.Fatalf("Put of %d = %d", op%7, n)
				}
				if n := in.Get(ms[:op/7%7]); n < 0 || n > int(op/7%7) || n > 4 {
					t.Fatalf("Get of %d = %d", op/7%7, n)
				}
				in.Wait(time.Duration(op%2) * time.Microsecond)
				out.WaitRoom(time.Duration(op/2%2) * time.Microsecond)
				if n := out.Len(); n < 0 || n > 4 {
					t.Fatalf("Len() = %d of 4 cells", n)
				}
				in.Nudge()
			})
			if got, err := inspect(seg.Bytes(), hostabi.RingMessages); err == nil && got != g && got.total() > seg.Size() {
				t.Fatalf("a header says %+v in %d bytes", got, seg.Size())
			}
		}
		check()
	})
}

func TestSPSC_PeerThatLiesAboutItsPosition(t *testing.T) {
	for _, lie := range []uint64{5, 1 << 40, ^uint64(0), 1 << 63, 0} {
		out, in := heapSPSC(t, 4)
		ms := make([]hostabi.Message, 8)
		if n := out.Put(ms[:3]); n != 3 {
			t.Fatalf("Put = %d", n)
		}
		out.h.head.Store(lie) // ahead of the messages put, or behind them
		if n := out.Put(ms); n > 4 {
			t.Errorf("head %d: Put = %d into 4 cells", lie, n)
		}
		out.h.tail.Store(lie)
		if n := in.Get(ms); n > 4 {
			t.Errorf("tail %d: Get = %d from 4 cells", lie, n)
		}
		if n := in.Len(); n < 0 || n > 4 {
			t.Errorf("Len() = %d", n)
		}
	}
}

func TestSPSC_PeerThatOpensTheRingAgainAfterShut(t *testing.T) {
	out, _ := heapSPSC(t, 4)
	out.Shut()
	out.h.closed.Store(0)
	if n := out.Put(make([]hostabi.Message, 1)); n != 0 || !out.IsShut() {
		t.Errorf("Put = %d, shut %v after the peer cleared the flag", n, out.IsShut())
	}
}
