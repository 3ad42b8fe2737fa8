package proxy

import (
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
)

// echo returns a function that sends a message to a probe in a process and waits for the answer.
func echo(t testing.TB) func() {
	s := plugintest.NewStage(t, newProbe(t, spawntest.Self(t, "probe")), plugintest.StageOptions{})
	all := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	answers := make(chan struct{}, 64)
	s.Handle("numbers", all, func(*hostabi.Message) { answers <- struct{}{} })
	to := s.To("on_number", false, all)
	return func() {
		if err := to.Emit(hostabi.Message{}); err != nil {
			t.Fatal(err)
		}
		<-answers
	}
}

func TestMessage_AllocatesNothing(t *testing.T) {
	round := echo(t)
	for range 200 { // until queues have grown
		round()
	}
	if n := testkit.Allocs(20, 20, round); n != 0 {
		t.Errorf("%v allocations for a message and its answer, want 0", n)
	}
}

// BenchmarkEcho is from a signal of the host to a component in a process, and back to a slot of the host.
func BenchmarkEcho(b *testing.B) {
	round := echo(b)
	round()
	for b.Loop() {
		round()
	}
}
