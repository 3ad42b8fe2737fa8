package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/bench"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// languageEnvs is how many environments a call steps, languageBursts how many bursts of steps each way has.
const (
	languageEnvs   = 64
	languageBursts = 4000
)

// BenchmarkLanguages steps CartPole in each language that it is written in, in turns with the same arithmetic as native Go, and reports
// its speed over native Go's. A burst of steps takes some 25 µs, so that the best ones are whole even where other programs take most of
// the processor. Control is native Go's speed over its own.
//
//	go test -run '^$' -bench Languages ./cmd/rlhost
func BenchmarkLanguages(b *testing.B) {
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	files := testkit.Guests(b, "cartpole", b.TempDir())
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b.Run(strings.TrimPrefix(name, "cartpole-"), func(b *testing.B) { benchmarkOverNative(b, parts, files[name]) })
	}
}

// benchmarkOverNative is BenchmarkLanguages for one module.
func benchmarkOverNative(b *testing.B, parts *graph.Parts, module string) {
	table := graph.EnvTable{Source: env.DefaultSource()}
	table.Use = module
	plugin, err := parts.Load(context.Background(), "", table, ".")
	if err != nil {
		b.Fatal(err)
	}
	defer plugin.Close()
	ways := []func() time.Duration{guestBurst(b, plugin), newNativeCarts(languageEnvs).burst, newNativeCarts(languageEnvs).burst}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for range languageBursts {
			for i, burst := range ways {
				burst() // warms the caches
				took[i] = append(took[i], burst())
			}
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	median := len(took[0]) / 2
	b.ReportMetric(0, "ns/op") // of all ways together
	b.ReportMetric(languageEnvs*env.DriverRows*1e3/float64(took[0][0].Nanoseconds()), "M-env-steps/s")
	b.ReportMetric(float64(took[1][0])/float64(took[0][0]), "of-native")
	b.ReportMetric(float64(took[1][median])/float64(took[0][median]), "of-native-median")
	b.ReportMetric(float64(took[1][median])/float64(took[2][median]), "control")
}

// guestBurst returns a function that steps a guest's environments through all rows of their block, and says how long that took.
func guestBurst(b *testing.B, plugin env.Plugin) func() time.Duration {
	b.Helper()
	driver, err := env.NewDriver(plugin, env.DriverOptions{Options: env.Options{Name: "bench", Envs: languageEnvs, Seed: bench.Seed}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := driver.Close(); err != nil {
			b.Error(err)
		}
	})
	words := make([]uint64, languageEnvs)
	env.Seeds(words, bench.Seed, 0)
	if err := driver.Reset(nil, words); err != nil {
		b.Fatal(err)
	}
	step := uint64(0)
	return func() time.Duration {
		tr, row := driver.Acting()
		for i := range env.DriverRows {
			env.ActionWords(words, bench.Seed, step, 0)
			tr.DrawActionsFrom(row+i, words)
			step++
		}
		started := time.Now()
		for range env.DriverRows {
			if err := driver.Advance(); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(started)
	}
}
