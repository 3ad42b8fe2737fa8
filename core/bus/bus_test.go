package bus

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestEmit_BlockLosesNothingAndKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := loop.New("a"), loop.New("b")
		src, dst := a.NewReceiver("src"), b.NewReceiver("dst")
		sig := NewSignal(src, "out", "x", nil)
		var got []uint64
		slot := NewSlot(dst, "in", "x", func(m *hostabi.Message) { got = append(got, m.Sequence) })
		c, err := Connect(sig, slot, Options{Mode: All, Depth: 3, Overflow: Block})
		if err != nil {
			t.Fatal(err)
		}
		go a.Run(context.Background())
		for range 100 {
			src.Post(func(*hostabi.Message) {
				for range 10 {
					sig.Emit(hostabi.Message{})
				}
			}, hostabi.Message{})
		}
		synctest.Wait()
		if s := c.Stats(); s.Parked != 7 || !src.Paused() {
			t.Errorf("%+v", s)
		}
		go b.Run(context.Background())
		synctest.Wait()
		if len(got) != 1000 {
			t.Errorf("got %d", len(got))
		}
		t.Logf("%+v", c.Stats())
		a.Stop()
		b.Stop()
		synctest.Wait()
	})
}
