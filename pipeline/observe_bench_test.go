package pipeline

import (
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// BenchmarkStatus measures a request for status, on the goroutine that answers it.
func BenchmarkStatus(b *testing.B) {
	_, parts := newWorld()
	v := &valves{}
	parts.Kinds["valve"] = newValve(v)
	p, err := Build(b.Context(), mustParse(b, chain(""), parts, "component.first.count=8"), BuildOptions{Parts: parts})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = p.Status(), p.Wires(), p.Steps()
	}
}

// BenchmarkEmit_WithATap measures the cost of a tap per emit, on the loop that emits.
func BenchmarkEmit_WithATap(b *testing.B) {
	for _, taps := range []int{0, 1} {
		b.Run([]string{"without", "with"}[taps], func(b *testing.B) {
			_, parts := newWorld()
			p, err := Build(b.Context(), mustParse(b, tickFile(plain), parts), BuildOptions{Parts: parts})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			if taps > 0 {
				cancel, err := p.Tap("source.ticks", false, func(string, string, *hostabi.Message, *arena.Set) {})
				if err != nil {
					b.Fatal(err)
				}
				defer cancel()
			}
			sig := p.running.now().members[0].host.Signal("ticks")
			for _, c := range p.running.now().members[1].host.BoundSlot("on_ticks").Connections() {
				c.DisconnectNow() // without a receiver
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := sig.Emit(hostabi.Message{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
