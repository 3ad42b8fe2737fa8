package component

import (
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// idle is a guest whose slot looks at a column and does nothing.
func idle(t testing.TB) Source {
	b := built{functions: map[string]asm.Code{hostabi.ExportSlot: asm.Const(0)}, manifest: described(reads("reward"))}
	return source(file(t, b.bytes()), everything...)
}

// BenchmarkSlot is a slot call into an empty guest, whose block has been mapped before.
func BenchmarkSlot(b *testing.B) {
	r, g := started(b, idle(b), plugintest.RigOptions{}, nil)
	x := newBlocks(b, r.Host.Arenas, 1, trajectory.Shape{Steps: 128, Envs: 64})
	m := hostabi.Message{Handle: x.with(1)}
	b.ReportAllocs()
	for b.Loop() {
		g.handle(g.slots[0], &m)
	}
	must(b, x.arena.Release(m.Handle))
}

// BenchmarkRoundTrip is a message from a builtin component to a guest, which passes it on, and back, on one loop.
func BenchmarkRoundTrip(b *testing.B) {
	s := source(file(b, built{manifest: described(reads("reward"))}.bytes()), everything...)
	r, _ := started(b, s, plugintest.RigOptions{}, nil)
	x := newBlocks(b, r.Host.Arenas, 1, trajectory.Shape{Steps: 128, Envs: 64})
	in, h := r.To("in"), x.with(1)
	n, want := 0, 0
	r.From("out", func(*hostabi.Message) {
		if n++; n < want {
			if err := in.Emit(hostabi.Message{Handle: h}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		const trips = 1000 // of an operation, so that the loop's start does not count
		n, want = 0, trips
		must(b, in.Emit(hostabi.Message{Handle: h}))
		r.MustRun(func() bool { return n == trips })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/trip")
	must(b, x.arena.Release(h))
}

func TestSlot_ACallAllocatesNothing(t *testing.T) {
	for name, columns := range map[string][]hostabi.ManifestColumn{
		"reads": {reads("reward"), reads("obs")}, "writes": {{Name: "reward", Flags: hostabi.ColumnWrite}},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(file(t, slotOf(passOn(), columns...).bytes()), everything...)
			r, g := started(t, s, plugintest.RigOptions{Grants: map[string][]string{"in": {"reward"}}}, nil)
			x := newBlocks(t, r.Host.Arenas, 2, trajectory.Shape{Steps: 4, Envs: 2})
			a, b := x.with(1), x.with(2)
			call := func() {
				g.handle(g.slots[0], &hostabi.Message{Handle: a})
				g.handle(g.slots[0], &hostabi.Message{Handle: b})
			}
			call()
			if n := testing.AllocsPerRun(200, call); n != 0 {
				t.Errorf("%v allocations for two slot calls, want 0", n)
			}
			must(t, x.arena.Release(a))
			must(t, x.arena.Release(b))
		})
	}
}
