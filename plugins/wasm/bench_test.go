package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
)

func BenchmarkStep(b *testing.B) {
	p := load(b, newRuntime(b), cartPole, nil, Config{})
	e := newEnv(b, p, rollout.EnvOptions{Envs: 64, Autoreset: hostabi.SameStep})
	all := blocks(b, p.Spec(), rollout.Shape{Steps: 32, Envs: 64}, 1)
	if err := e.Bind(all[0]); err != nil {
		b.Fatal(err)
	}
	if err := e.Reset(0, nil, seeds(64)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		if err := e.Step(k & 31); err != nil {
			b.Fatal(err)
		}
		k++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/env")
}
