package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// inGo binds one driver in Go for all benchmarks.
var inGo = sync.OnceValues(func() (*driver.Table, error) { return driver.Bind(fake.New(fake.Options{Seed: 1}).Lookup) })

// named are the options of the driver that RLHOST_CUDA_DRIVER names: a library, or fake for the one in Go, which tries a benchmark and measures
// nothing.
func named() cuda.Options {
	if os.Getenv("RLHOST_CUDA_DRIVER") == "fake" {
		return cuda.Options{Driver: inGo}
	}
	return cuda.Options{Driver: func() (*driver.Table, error) { return driver.Open(os.Getenv("RLHOST_CUDA_DRIVER")) }}
}

// Benchmarks say something on hardware alone: RLHOST_CUDA_DRIVER names the library.
func hardware(b *testing.B) *driver.Device {
	b.Helper()
	if os.Getenv("RLHOST_CUDA_DRIVER") == "" {
		b.Skip("RLHOST_CUDA_DRIVER is not set")
	}
	table, err := named().Driver()
	if err != nil {
		b.Fatal(err)
	}
	d, err := table.Device(0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	return d
}

// least is a size that is measured, or a size that is quick to try over the driver in Go.
func least(hardware, inGo int) int {
	if os.Getenv("RLHOST_CUDA_DRIVER") == "fake" {
		return min(hardware, inGo)
	}
	return hardware
}

// backendFor is a backend of a benchmark.
func backendFor(b *testing.B) *cuda.Backend {
	backend := cuda.New(named())
	b.Cleanup(func() {
		if err := backend.Close(); err != nil {
			b.Error(err)
		}
	})
	return backend
}

// measured are the networks that are timed.
func measured() map[string]policy.Network {
	hidden := func(n int) []int { return []int{least(n, 4), least(n, 4)} }
	return map[string]policy.Network{
		"4-64-64":   policy.MLP{Obs: 4, Actions: 2, Hidden: hidden(64), Activation: policy.Tanh}.Network(),
		"118-128":   policy.MLP{Obs: 118, Actions: 3, Hidden: hidden(128), Activation: policy.Tanh, ShareTrunk: true}.Network(),
		"64-512-sh": policy.MLP{Obs: 64, Actions: 8, Hidden: hidden(512), Activation: policy.Tanh}.Network(),
	}
}

// BenchmarkRegister gives an arena of a GiB to the device and takes it back.
func BenchmarkRegister(b *testing.B) {
	d := hardware(b)
	set := arena.NewSet()
	defer set.Close()
	a, err := set.Add(arena.Config{Name: "registered", Blocks: 64, BlockBytes: least(16<<20, 1<<16)})
	if err != nil {
		b.Fatal(err)
	}
	memory := arena.MemoryOf(a)
	clear(memory)
	b.SetBytes(int64(len(memory)))
	for b.Loop() {
		r, err := d.Register(memory)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad is the assembling of all modules; the driver keeps the result unless CUDA_CACHE_DISABLE=1.
func BenchmarkLoad(b *testing.B) {
	d := hardware(b)
	for b.Loop() {
		set, err := kernels.Load(d)
		if err != nil {
			b.Fatal(err)
		}
		if err := set.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAct(b *testing.B) {
	hardware(b)
	for name, n := range measured() {
		for _, rows := range []int{64, 1024, 8192, 32768} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) { acts(b, backendFor(b), n, least(rows, 8)) })
		}
	}
}

// acts times calls of Act.
func acts(b *testing.B, backend *cuda.Backend, n policy.Network, rows int) {
	o := policytest.Options{Network: n, Steps: 1, Envs: rows, Blocks: 1, Seed: 1}
	d := policytest.NewDataset(b, o)
	a, err := policy.NewActor(backend, &n, rows)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: policy.Init(&n, 1)}); err != nil {
		b.Fatal(err)
	}
	requests := policytest.Requests(&n, d, d.Blocks[0], 0, rows)
	act := func() {
		if err := a.Act(requests); err != nil {
			b.Fatal(err)
		}
	}
	act() // the driver loads a kernel when it is first launched
	for b.Loop() {
		act()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkBusyAct is BenchmarkAct next to a learner in the same process that never pauses.
func BenchmarkBusyAct(b *testing.B) {
	hardware(b)
	n := measured()["4-64-64"]
	for _, rows := range []int{64, 1024, 8192} {
		b.Run(fmt.Sprintf("4-64-64/%d", rows), func(b *testing.B) {
			backend := backendFor(b)
			l, d := learner(b, backend, n, least(32768, 64), 1)
			var rest atomic.Bool
			var learns sync.WaitGroup
			learns.Go(func() {
				for !rest.Load() {
					if _, err := l.Update(d, rates); err != nil {
						b.Error(err)
						return
					}
				}
			})
			acts(b, backend, n, least(rows, 8))
			rest.Store(true)
			learns.Wait()
			if err := l.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// learner is one with a dataset, of which an epoch has so many minibatches.
func learner(b *testing.B, backend *cuda.Backend, n policy.Network, rows, parts int) (ppo.Learner, *policy.Dataset) {
	steps := min(64, rows)
	d := policytest.Acted(b, cpu.New(), policy.Init(&n, 1), policytest.Options{Network: n, Steps: steps, Envs: rows / steps, Blocks: 1, Seed: 1})
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, rows/parts
	l, err := ppo.NewLearner(backend, &n, policy.Init(&n, 1), c)
	if err != nil {
		b.Fatal(err)
	}
	return l, d
}

// BenchmarkUpdate is one epoch over a dataset in one minibatch, and in eight. A parameter takes six operations a row, about.
func BenchmarkUpdate(b *testing.B) {
	hardware(b)
	for name, n := range measured() {
		for _, rows := range []int{256, 1024, 8192, 32768} {
			for _, parts := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/%d/%d", name, rows, parts), func(b *testing.B) {
					l, d := learner(b, backendFor(b), n, least(rows, 16), parts)
					defer l.Close()
					update := func() {
						if _, err := l.Update(d, rates); err != nil {
							b.Fatal(err)
						}
					}
					update() // loads kernels, and makes room for the dataset
					for b.Loop() {
						update()
					}
					perSecond := float64(d.Rows()) * float64(b.N) / b.Elapsed().Seconds()
					b.ReportMetric(perSecond, "rows/s")
					b.ReportMetric(6*float64(len(policy.Init(&n, 1)))*perSecond/1e12, "TFLOP/s")
				})
			}
		}
	}
}

// Every benchmark runs over the driver in Go, with sizes that measure nothing.
func TestBenchmarks_CanBeTried(t *testing.T) {
	t.Parallel()
	c := exec.Command(os.Args[0], "-test.run", "XXX", "-test.bench", ".", "-test.benchtime", "1x")
	c.Env = append(os.Environ(), "RLHOST_CUDA_DRIVER=fake")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"Ceiling/fma", "Ceiling/device", "Ceiling/there", "Ceiling/back", "Ceiling/both", "Register", "Load", "RoundTrip/call", "RoundTrip/launch",
		"RoundTrip/wait", "RoundTrip/word", "Act/4-64-64/32768", "BusyAct/4-64-64/1024", "Update/118-128/256/8"} {
		if !regexp.MustCompile(`(?m)^Benchmark` + name + `(-\d+)?\s+1\s`).Match(out) {
			t.Errorf("no figure of %s:\n%s", name, out)
		}
	}
}
