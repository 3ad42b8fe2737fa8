package plugintest

import (
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// between runs fn between two slots of the component, also while it is held.
func (a *act) between(fn func()) { a.Host.Receiver.Loop().Do(fn) }

func (a *act) pauser() component.Pauser {
	a.t.Helper()
	p, ok := a.Component.(component.Pauser)
	if !ok {
		a.t.Fatal("the component cannot be paused")
	}
	return p
}

// pause pauses the component; then it handles no messages.
func (a *act) pause() (rested chan struct{}) {
	a.t.Helper()
	rested = make(chan struct{})
	p := a.pauser()
	a.between(func() {
		p.Pause(func() {
			a.Host.Receiver.Hold()
			close(rested)
		})
	})
	return rested
}

// goOn resumes the component.
func (a *act) goOn() {
	a.t.Helper()
	a.between(a.pauser().Resume)
	a.Host.Receiver.Release()
}

func scenePauses(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	for round := range uint64(3) {
		const told = 40
		for i := range uint64(told) {
			a.tell(OpEcho, i, 0)
		}
		rested := a.pause()
		a.Until("rest", func() bool {
			select {
			case <-rested:
				return true
			default:
				return false
			}
		})
		// Later messages wait. All earlier ones are in the state, and their answers have been sent.
		before := a.numbers.Connections()[0].Stats().Delivered
		a.tell(OpEcho, told, 0)
		var state component.State
		var err error
		a.between(func() { state, err = a.Component.Snapshot() })
		if err != nil {
			t.Fatal(err)
		}
		if _, opaque := state.Blobs[component.OpaqueBlob]; !opaque { // else only the plugin's language can read it
			var saved probeState
			if err := state.Decode(&saved); err != nil {
				t.Fatal(err)
			}
			a.expect("messages in the state", saved.Numbers, before)
		}
		heard := uint64(0)
		for ; round*(told+1)+heard < before; heard++ {
			a.expect("answer", a.Next("numbers").Inline[0], heard)
		}
		if a.Waiting("numbers") > 0 {
			t.Error("it says something at rest")
		}
		a.goOn()
		for ; heard <= told; heard++ {
			a.expect("answer", a.Next("numbers").Inline[0], heard)
		}
	}
}

func scenePauseTakenBack(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	p := a.pauser()
	for i := range uint64(20) {
		a.tell(OpEcho, i, 0)
		a.between(func() {
			resumed := false
			p.Pause(func() {
				if resumed {
					t.Error("at rest after the pause was taken back")
				}
			})
			p.Resume()
			resumed = true
		})
		a.expect("answer", a.Next("numbers").Inline[0], i)
	}
	a.expect("count", a.ask(OpCount, 0, 0), [2]uint64{21, 0})
}

func sceneHandsOver(t *testing.T, h *RuntimeHarness) {
	if !h.Rests {
		t.Skip("components of this runtime are at rest when they have nothing to do")
	}
	a := play(t, h, StageOptions{})
	a.From("asks", false, bus.Options{Mode: bus.Queue, Depth: 16, Overflow: bus.Block})
	x := a.Arena(4, 4096, nil)
	loan := a.loan(x)
	q := hostabi.Message{Handle: loan.Handle(), Kind: AskLater, T: 5, Split: 3, PolicyVersion: 7, Inline: [2]uint64{1, 2}}
	a.emit(a.asks, q)
	a.tell(OpAsk, 11, 0)
	open := a.Next("asks")
	rested := a.pause()
	a.ask(OpEcho, 0, 0) // slots run until it has paused
	select {
	case <-rested:
		t.Fatal("at rest while its question is open")
	default:
	}
	a.emit(a.answers, open)
	<-rested
	a.Done(a.Next("blocks").Handle)
	var list []component.Waiting
	a.between(func() { list = a.pauser().Waiting() })
	if len(list) != 1 || list[0].Slot != "on_ask" || list[0].Claimed {
		t.Fatalf("waiting %+v, want the one request", list)
	}
	q.Sender = 77
	a.expect("request", sent(list[0].Message), q)
	a.must(loan.Abort())
	a.Close()
}
