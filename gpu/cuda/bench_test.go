package cuda_test

import (
	"fmt"
	"os"
	"sync"
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

// measured are the networks that are timed.
func measured() map[string]policy.Network {
	return map[string]policy.Network{
		"4-64-64":   policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network(),
		"118-128":   policy.MLP{Obs: 118, Actions: 3, Hidden: []int{128, 128}, Activation: policy.Tanh, ShareTrunk: true}.Network(),
		"64-512-sh": policy.MLP{Obs: 64, Actions: 8, Hidden: []int{512, 512}, Activation: policy.Tanh}.Network(),
	}
}

// BenchmarkRoundTrip is a launch of a kernel with next to nothing to do, and its end.
func BenchmarkRoundTrip(b *testing.B) {
	d := hardware(b)
	set, err := kernels.Load(d)
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	s, err := d.Stream(driver.High)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, _, err := kernels.New(set, kernels.PackKernel)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	l.Grid = kernels.Blocks(1)
	for b.Loop() {
		if err := s.Launch(l); err != nil {
			b.Fatal(err)
		}
		if err := s.Synchronize(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCopy is the way over the bus, there and back.
func BenchmarkCopy(b *testing.B) {
	d := hardware(b)
	const bytes = 64 << 20
	host, err := d.Pinned(bytes)
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	memory, err := d.Alloc(bytes)
	if err != nil {
		b.Fatal(err)
	}
	defer memory.Close()
	s, err := d.Stream(driver.High)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for name, way := range map[string][2]driver.Address{"there": {memory.Address, host.Address}, "back": {host.Address, memory.Address}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				if err := s.Copy(way[0], way[1], bytes); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRegister gives an arena of a GiB to the device and takes it back.
func BenchmarkRegister(b *testing.B) {
	d := hardware(b)
	set := arena.NewSet()
	defer set.Close()
	a, err := set.Add(arena.Config{Name: "registered", Blocks: 64, BlockBytes: 16 << 20})
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
		for _, rows := range []int{64, 1024, 8192} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				o := policytest.Options{Network: n, Steps: 1, Envs: rows, Blocks: 1, Seed: 1}
				d := policytest.NewDataset(b, o)
				a, err := policy.NewActor(cuda.New(named()), &n, rows)
				if err != nil {
					b.Fatal(err)
				}
				defer a.Close()
				if err := a.Load(policy.Weights{Params: policy.Init(&n, 1)}); err != nil {
					b.Fatal(err)
				}
				requests := policytest.Requests(&n, d, d.Blocks[0], 0, rows)
				for b.Loop() {
					if err := a.Act(requests); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkUpdate is one epoch over a dataset in one minibatch, and in eight.
func BenchmarkUpdate(b *testing.B) {
	hardware(b)
	for name, n := range measured() {
		for _, rows := range []int{1024, 8192, 32768} {
			for _, parts := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/%d/%d", name, rows, parts), func(b *testing.B) {
					d := policytest.Acted(b, cpu.New(), policy.Init(&n, 1), policytest.Options{Network: n, Steps: 64, Envs: rows / 64, Blocks: 1, Seed: 1})
					c := ppo.Defaults()
					c.Epochs, c.Minibatch = 1, rows/parts
					l, err := ppo.NewLearner(cuda.New(named()), &n, policy.Init(&n, 1), c)
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					for b.Loop() {
						if _, err := l.Update(d, rates); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				})
			}
		}
	}
}
