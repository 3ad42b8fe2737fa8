package cuda_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// Numbers of the kernel that multiplies and adds: chains of a thread, which do not wait for one another, and operations of each a round.
const (
	chains = 16
	links  = 8
)

// ceilings is the text of two kernels: the first only multiplies and adds, the second tells the host that it is done.
func ceilings() []byte {
	var w strings.Builder
	w.WriteString(`.version 7.8
.target sm_80
.address_size 64
.visible .entry word(.param .align 8 .b8 p[16])
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [p+8];
	cvta.to.global.u64 %rd2, %rd1;
	membar.sys;
	st.global.u32 [%rd2], %r1;
	ret;
}
.visible .entry fma(.param .align 8 .b8 p[16])
{
	.reg .pred %p<2>;
	.reg .f32 %f<32>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [p];
	ld.param.u32 %r1, [p+8];
	ld.param.f32 %f30, [p+12];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
`)
	for c := range chains {
		fmt.Fprintf(&w, "\tmov.f32 %%f%d, 0f%08x;\n", c, 0x3f800000+c)
	}
	w.WriteString("$more:\n")
	for range links {
		for c := range chains {
			fmt.Fprintf(&w, "\tfma.rn.f32 %%f%d, %%f%d, %%f30, %%f30;\n", c, c)
		}
	}
	w.WriteString("\tadd.s32 %r1, %r1, -1;\n\tsetp.gt.s32 %p1, %r1, 0;\n\t@%p1 bra $more;\n")
	for c := 1; c < chains; c++ {
		fmt.Fprintf(&w, "\tadd.rn.f32 %%f0, %%f0, %%f%d;\n", c)
	}
	w.WriteString(`	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.s32 %rd3, %r5, 4;
	add.s64 %rd4, %rd2, %rd3;
	st.global.f32 [%rd4], %f0;
	ret;
}
`)
	return []byte(w.String())
}

// measuring is a stream with a benchmark's resources, which are closed with it.
type measuring struct {
	*testing.B
	device *driver.Device
	stream *driver.Stream
}

func measure(b *testing.B) *measuring {
	b.Helper()
	m := &measuring{B: b, device: hardware(b)}
	m.stream = m.another()
	return m
}

func (m *measuring) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// later closes something.
func (m *measuring) later(close func() error) {
	m.Cleanup(func() {
		if err := close(); err != nil {
			m.Error(err)
		}
	})
}

// another is one more stream.
func (m *measuring) another() *driver.Stream {
	m.Helper()
	s, err := m.device.Stream(driver.High)
	m.check(err)
	m.later(s.Close)
	return s
}

func (m *measuring) memory(bytes int) *driver.Memory {
	m.Helper()
	memory, err := m.device.Alloc(bytes)
	m.check(err)
	m.later(memory.Close)
	return memory
}

func (m *measuring) pinned(bytes int) *driver.Pinned {
	m.Helper()
	host, err := m.device.Pinned(bytes)
	m.check(err)
	m.later(host.Close)
	return host
}

// given are the arguments of both kernels.
type given struct {
	to     driver.Address
	number uint32 // of rounds, or the number to write
	factor float32
}

// kernel prepares one.
func (m *measuring) kernel(name string) (*driver.Launch, *given) {
	m.Helper()
	module, err := m.device.Load(ceilings())
	m.check(err)
	m.later(module.Close)
	f, err := module.Function(name)
	m.check(err)
	l, args, err := driver.NewLaunch[given](f)
	m.check(err)
	m.later(l.Close)
	l.Grid, l.Block = driver.Dim{X: 1}, driver.Dim{X: 1}
	return l, args
}

// quantiles times each of the benchmark's calls but the first, for which the driver loads the function.
func (m *measuring) quantiles(call func(i int)) {
	call(1)
	m.check(m.stream.Synchronize())
	var took []time.Duration
	for i := 2; m.Loop(); i++ {
		begin := time.Now()
		call(i)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	m.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	m.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}

// BenchmarkRoundTrip is a call of the driver, a launch as it is submitted, a kernel with next to nothing to do until the stream has been
// waited for, and the same until the host sees the word that it writes.
func BenchmarkRoundTrip(b *testing.B) {
	begin := func(b *testing.B) (m *measuring, launch func(i int), host *driver.Pinned) {
		m = measure(b)
		host = m.pinned(4)
		l, args := m.kernel("word")
		args.to = host.Address
		return m, func(i int) {
			args.number = uint32(i)
			m.check(m.stream.Launch(l))
		}, host
	}
	b.Run("call", func(b *testing.B) {
		m, _, _ := begin(b)
		nothing, err := m.device.Event()
		m.check(err)
		m.later(nothing.Close)
		m.quantiles(func(int) { m.check(m.stream.Wait(nothing)) })
	})
	b.Run("launch", func(b *testing.B) {
		m, launch, _ := begin(b)
		m.quantiles(launch)
		m.check(m.stream.Synchronize())
	})
	b.Run("wait", func(b *testing.B) {
		m, launch, _ := begin(b)
		m.quantiles(func(i int) {
			launch(i)
			m.check(m.stream.Synchronize())
		})
	})
	b.Run("word", func(b *testing.B) {
		m, launch, host := begin(b)
		m.quantiles(func(i int) {
			launch(i)
			for binary.NativeEndian.Uint32(host.Bytes) != uint32(i) {
				runtime.Gosched()
			}
		})
		m.check(m.stream.Synchronize())
	})
}

// BenchmarkCeiling is the most that the device does: fused multiply-adds, copies of its memory, and over the bus there, back and both at
// once.
func BenchmarkCeiling(b *testing.B) {
	b.Run("fma", func(b *testing.B) {
		m := measure(b)
		l, args := m.kernel("fma")
		l.Grid, l.Block = driver.Dim{X: least(8*m.device.Processors, 1)}, driver.Dim{X: 256}
		threads, rounds := l.Grid.X*l.Block.X, least(4096, 2)
		*args = given{m.memory(4 * threads).Address, uint32(rounds), 0.5}
		run := func() {
			m.check(m.stream.Launch(l))
			m.check(m.stream.Synchronize())
		}
		run() // the driver loads the kernel
		for m.Loop() {
			run()
		}
		m.ReportMetric(2*chains*links*float64(rounds)*float64(threads)*float64(m.N)/m.Elapsed().Seconds()/1e12, "TFLOP/s")
	})
	bytes := least(256<<20, 1<<16)
	for name, ways := range map[string]func(m *measuring) [][2]driver.Address{
		"device": func(m *measuring) [][2]driver.Address {
			return [][2]driver.Address{{m.memory(bytes).Address, m.memory(bytes).Address}}
		},
		"there": func(m *measuring) [][2]driver.Address {
			return [][2]driver.Address{{m.memory(bytes).Address, m.pinned(bytes).Address}}
		},
		"back": func(m *measuring) [][2]driver.Address {
			return [][2]driver.Address{{m.pinned(bytes).Address, m.memory(bytes).Address}}
		},
		"both": func(m *measuring) [][2]driver.Address {
			return [][2]driver.Address{{m.memory(bytes).Address, m.pinned(bytes).Address}, {m.pinned(bytes).Address, m.memory(bytes).Address}}
		},
	} {
		b.Run(name, func(b *testing.B) {
			m := measure(b)
			of := ways(m)
			streams := []*driver.Stream{m.stream, m.another()}[:len(of)]
			m.SetBytes(int64(bytes * len(of)))
			for m.Loop() {
				for i, way := range of {
					m.check(streams[i].Copy(way[0], way[1], bytes))
				}
				for _, s := range streams {
					m.check(s.Synchronize())
				}
			}
		})
	}
}
