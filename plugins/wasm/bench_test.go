package wasm

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
)

// BenchmarkStep steps guests through Env.Step; nop is a guest that does nothing, so its time is the host's.
func BenchmarkStep(b *testing.B) {
	nop := wasmtest.Guest{Functions: map[string]asm.Code{hostabi.ExportStep: asm.Const(0)}}.Bytes()
	b.Run("nop", func(b *testing.B) { benchmarkStep(b, nop, 1) })
	for name, source := range exampleGuests(b, "cartpole") {
		b.Run(name, func(b *testing.B) { benchmarkStep(b, source, 64) })
	}
}

// stepper returns an Env with a bound block of 32 rows full of actions.
func stepper(b *testing.B, source []byte, envs int) *Env {
	p := load(b, newRuntime(b), "guest.wasm", source, env.Source{})
	e := newEnv(b, p, env.Options{Envs: envs})
	all := blocks(b, p.Spec(), trajectory.Shape{Steps: 32, Envs: envs}, 1)
	begin(b, e, all)
	x := uint64(1)
	for k := range all[0].Int32(trajectory.Action) {
		x = x*6364136223846793005 + 1442695040888963407
		all[0].Int32(trajectory.Action)[k] = int32(x >> 63)
	}
	return e
}

func benchmarkStep(b *testing.B, source []byte, envs int) {
	e := stepper(b, source, envs)
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		if err := e.Step(k & 31); err != nil {
			b.Fatal(err)
		}
		k++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(envs), "ns/env")
}

// BenchmarkStepOverhead steps a guest through Env.Step and through its bare function in turns, and reports the cost
// of the host's part.
func BenchmarkStepOverhead(b *testing.B) {
	e := stepper(b, readGuest(b, cartPole), 64)
	const calls = 1000
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		start := time.Now()
		for k := range calls {
			if err := e.Step(k & 31); err != nil {
				b.Fatal(err)
			}
		}
		best[0] = min(best[0], time.Since(start))
		start = time.Now()
		for k := range calls {
			e.inst.Stack[0], e.inst.Stack[1] = e.batch, uint64(k&31)
			if _, err := e.inst.Run(guest.Step); err != nil {
				b.Fatal(err)
			}
		}
		best[1] = min(best[1], time.Since(start))
	}
	b.ReportMetric(float64(best[0].Nanoseconds())/calls, "ns/Step")
	b.ReportMetric(float64((best[0]-best[1]).Nanoseconds())/calls, "ns-over-bare-call")
}

// BenchmarkNewEnv makes environments of a plugin that is loaded: forks of its image.
func BenchmarkNewEnv(b *testing.B) {
	for name, source := range exampleGuests(b, "cartpole") {
		b.Run(name, func(b *testing.B) {
			p := load(b, newRuntime(b), name, source, env.Source{})
			spec := p.Spec()
			for b.Loop() {
				e, err := p.NewEnv(env.Options{Envs: 64, Autoreset: spec.PickAutoreset()})
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRenew renews an environment that was stepped.
func BenchmarkRenew(b *testing.B) {
	for name, source := range exampleGuests(b, "cartpole") {
		b.Run(name, func(b *testing.B) {
			p := load(b, newRuntime(b), name, source, env.Source{})
			e := newEnv(b, p, env.Options{Envs: 64})
			all := blocks(b, p.Spec(), trajectory.Shape{Steps: 32, Envs: 64}, 1)
			for b.Loop() {
				if err := e.Bind(all[0]); err != nil {
					b.Fatal(err)
				}
				if err := e.Renew(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad loads a module whose compiled code is in the cache on disk.
func BenchmarkLoad(b *testing.B) {
	for name, source := range exampleGuests(b, "cartpole") {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := New(Options{CacheDir: testCache})
				if err != nil {
					b.Fatal(err)
				}
				p, err := r.Load(b.Context(), name, source, env.Source{})
				if err != nil {
					b.Fatal(err)
				}
				p.Close()
				r.Close()
			}
		})
	}
}
