package component

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
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

// BenchmarkSwap measures how long a component's messages wait while one instance takes another's place, except for the wires: rl_pause,
// rl_snapshot, rl_restore, and the first message of the successor, whose blocks are mapped in it. Use -benchtime 1000x.
func BenchmarkSwap(b *testing.B) {
	for _, example := range []string{"shaper", "episodes"} {
		for name, path := range testkit.Guests(b, example, b.TempDir()) {
			b.Run(name, func(b *testing.B) {
				s, l := source(path, "log", "metric"), modules(b)
				c, err := l.Component(s)
				must(b, err)
				g := c.(*component)
				r := plugintest.NewRig(b, g, plugintest.RigOptions{Name: "guest", Grants: granted()}, plugintest.DecodeTable(nil))
				m := hostabi.Message{}
				if example == "shaper" {
					loan, err := newBlocks(b, r.Host.Arenas, 1, trajectory.Shape{Steps: 32, Envs: 64, Granted: "shaped_reward"}).arena.Loan()
					must(b, err)
					defer func() { must(b, loan.Abort()) }()
					m.Handle = loan.Handle()
				}
				var all []time.Duration
				for b.Loop() {
					b.StopTimer()
					c, err := l.Component(s)
					must(b, err)
					next := c.(*component)
					must(b, next.Configure(plugintest.DecodeTable(nil)))
					r.Host.Bind(next.Manifest())
					must(b, next.Start(r.Host))
					b.StartTimer()
					began := time.Now()
					g.Pause(func() {})
					state, err := g.Snapshot()
					must(b, err)
					must(b, next.Restore(state))
					next.handle(next.slots[0], &m)
					all = append(all, time.Since(began))
					b.StopTimer()
					must(b, g.Stop())
					g = next
					b.StartTimer()
				}
				must(b, g.Stop())
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
			})
		}
	}
}

// BenchmarkBoundary measures the cost of a dataset boundary for a component in a sandbox: its state is saved before its next message,
// which the measurement includes.
func BenchmarkBoundary(b *testing.B) {
	for name, path := range testkit.Guests(b, "shaper", b.TempDir()) {
		b.Run(name, func(b *testing.B) {
			r, g := started(b, source(path, "log", "metric"), plugintest.RigOptions{Grants: granted()}, nil)
			loan, err := newBlocks(b, r.Host.Arenas, 1, trajectory.Shape{Steps: 32, Envs: 64, Granted: "shaped_reward"}).arena.Loan()
			must(b, err)
			m := hostabi.Message{Handle: loan.Handle()}
			for _, boundaries := range []bool{false, true} {
				b.Run(map[bool]string{false: "message", true: "boundary and message"}[boundaries], func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if boundaries {
							g.SaveState()
						}
						g.handle(g.slots[0], &m)
					}
				})
			}
			must(b, loan.Abort())
		})
	}
}

// residentPages returns how many pages of this process are in memory.
func residentPages(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	n, err := strconv.Atoi(strings.Fields(string(text))[1])
	must(t, err)
	return n
}

// What 64 components with 8 windows each hold does not grow with the messages that they handle. RLHOST_LONG=1 gives them a million.
func TestWindows_HoldNoMoreAfterManyMessages(t *testing.T) {
	const components, windows = 64, 8
	rounds := 10
	if os.Getenv("RLHOST_LONG") != "" {
		rounds = 1_000_000/(components*windows) + 1
	}
	begin := held(t)
	l := modules(t)
	s := source(file(t, reader("").bytes()), everything...)
	var all []*component
	var handles []hostabi.Handle
	var x *blocks
	for range components {
		c, err := l.Component(s)
		must(t, err)
		g := c.(*component)
		r := plugintest.NewRig(t, g, plugintest.RigOptions{Name: "guest"}, plugintest.DecodeTable(nil))
		if x == nil {
			x = newBlocks(t, r.Host.Arenas, windows, trajectory.Shape{Steps: 32, Envs: 64})
			for k := range windows {
				handles = append(handles, x.with(float32(k)))
			}
		}
		g.windows.arenas, g.blocks.arenas = x.set, x.set // all look at the blocks of the first
		all = append(all, g)
	}
	round := func() {
		for _, g := range all {
			for k, h := range handles {
				g.handle(g.slots[0], &hostabi.Message{Handle: h})
				if got := noted(t, g); got != float32(k) {
					t.Fatalf("block %d: the guest reads %v", k, got)
				}
			}
		}
	}
	round()
	before, resident := held(t), residentPages(t)
	for range rounds {
		round()
	}
	after, then := held(t), residentPages(t)
	t.Logf("%d messages; %+v before, %+v with %d components, %+v after; %d and %d pages resident", (1+rounds)*components*windows, begin, before, components, after, resident, then)
	const slack = 32 // mappings of Go's own heap
	if after.leaked(before) != "" || after.mappings > before.mappings+slack {
		t.Errorf("before %+v, after %+v", before, after)
	}
	for _, h := range handles {
		must(t, x.arena.Release(h))
	}
}
