package bus_test

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

func TestTap_GetsEveryMessageBeforeEmitReturns(t *testing.T) {
	r := loop.New("l").NewReceiver("r")
	sig := bus.NewSignal(r, "out", "p", newClaims())
	var got []hostabi.Message
	refused := errors.New("refused")
	sig.Tap(func(m hostabi.Message) error {
		got = append(got, m)
		if m.T == 2 {
			return refused
		}
		return nil
	})
	for i := range uint32(3) {
		if err := sig.Emit(hostabi.Message{T: i, Handle: 1}); errors.Is(err, refused) != (i == 2) {
			t.Errorf("Emit %d = %v", i, err)
		}
	}
	if len(got) != 3 || got[1].T != 1 || got[1].Sequence != 2 {
		t.Errorf("the tap got %v", got)
	}
	if s := sig.Stats(); s.Emitted != 3 || s.Unconnected != 0 {
		t.Errorf("stats %+v", s)
	}
	sig.Tap(nil)
	if err := sig.Emit(hostabi.Message{}); err != nil || len(got) != 3 || sig.Stats().Unconnected != 1 {
		t.Errorf("without a tap: %v, %d messages", err, len(got))
	}
}

func TestTap_DoesNotAllocate(t *testing.T) {
	sig := bus.NewSignal(loop.New("l").NewReceiver("r"), "out", "p", nil)
	n := 0
	sig.Tap(func(m hostabi.Message) error { n += int(m.T); return nil })
	if a := testing.AllocsPerRun(100, func() { _ = sig.Emit(hostabi.Message{T: 1}) }); a != 0 {
		t.Errorf("%v allocations, want 0", a)
	}
}

func TestRun_RunsTheSlotHere(t *testing.T) {
	var got uint32
	slot := bus.NewSlot(loop.New("l").NewReceiver("r"), "in", "p", func(m *hostabi.Message) { got = m.T })
	if slot.Run(&hostabi.Message{T: 7}); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
