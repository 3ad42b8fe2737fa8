package worker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// BenchmarkEnvRoundTrip steps one environment in a process that does next to nothing: the cost of the way there
// and back, when the process still spins and when it has gone to sleep.
func BenchmarkEnvRoundTrip(b *testing.B) {
	for name, rest := range map[string]time.Duration{"spinning": 0, "parked": 30 * time.Microsecond} {
		b.Run(name, func(b *testing.B) {
			p := loadIn(b, 1, env.Source{Use: "empty@1"})
			const rows = 32
			e := newBatch(b, p, 1, blocksOf(b, p.Spec(), trajectory.Shape{Steps: rows, Envs: 1}, 1)[0])
			took := make([]time.Duration, 0, 1<<20)
			t := 0
			for b.Loop() {
				for began := time.Now(); time.Since(began) < rest; {
				}
				began := time.Now()
				if err := e.Step(t); err != nil {
					b.Fatal(err)
				}
				if len(took) < cap(took) {
					took = append(took, time.Since(began))
				}
				t = (t + 1) % rows
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/10]), "p10-ns")
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
		})
	}
}

// BenchmarkIsolatedCartPole steps CartPole in C in the host and in processes.
func BenchmarkIsolatedCartPole(b *testing.B) {
	inHost := loadHere(b, cartPole(b))
	for _, envs := range []int{64, 1024} {
		b.Run(fmt.Sprintf("envs=%d/host", envs), func(b *testing.B) { stepBatch(b, inHost, envs) })
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("envs=%d/workers=%d", envs, workers), func(b *testing.B) {
				stepBatch(b, loadIn(b, workers, env.Source{Use: cartPole(b)}), envs)
			})
		}
	}
}

// stepBatch steps through one block over and over.
func stepBatch(b *testing.B, p env.Plugin, envs int) {
	const rows = 32
	spec := p.Spec()
	block := blocksOf(b, spec, trajectory.Shape{Steps: rows, Envs: envs, SoA: spec.Caps&hostabi.CapPreferSoA != 0}, 1)[0]
	e := newBatch(b, p, envs, block)
	action := block.Int32(trajectory.Action)
	for i := range action {
		action[i] = int32(i*7/3) & 1
	}
	t := 0
	for b.Loop() {
		if err := e.Step(t); err != nil {
			b.Fatal(err)
		}
		t = (t + 1) % rows
	}
	b.ReportMetric(float64(envs)*float64(b.N)/b.Elapsed().Seconds(), "env_steps/s")
}
