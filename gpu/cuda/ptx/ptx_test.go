package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// rig is a module with memory.
type rig struct {
	testing.TB
	text   string
	module *Module
	memory *Memory
}

// load reads a module that nvcc wrote from testdata.
func load(t testing.TB, name string) *rig {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text))
}

func read(t testing.TB, text string) *rig {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, text, m, NewMemory()}
}

// put allocates values of 4 or 8 bytes.
func put[T any](r *rig, values []T) uint64 {
	n := binary.Size(values)
	address := r.memory.Alloc(n)
	b, err := r.memory.View(address, n)
	if err == nil {
		_, err = binary.Encode(b, binary.LittleEndian, values)
	}
	if err != nil {
		r.Fatal(err)
	}
	return address
}

// get reads n values.
func get[T any](r *rig, address uint64, n int) []T {
	values := make([]T, n)
	b, err := r.memory.View(address, binary.Size(values))
	if err == nil {
		_, err = binary.Decode(b, binary.LittleEndian, values)
	}
	if err != nil {
		r.Fatal(err)
	}
	return values
}

// launch runs an entry with blocks of the threads and the bytes of shared memory that l says.
func (r *rig) launch(name string, l Launch, args ...any) error {
	r.Helper()
	e := r.module.Entry(name)
	if e == nil {
		r.Fatalf("no entry %s", name)
	}
	packed, err := e.Args(args...)
	if err != nil {
		r.Fatal(err)
	}
	l.Args = packed
	for i := range 3 {
		l.Grid[i], l.Block[i] = max(l.Grid[i], 1), max(l.Block[i], 1)
	}
	return e.Launch(r.memory, &l)
}

// must is launch without a fault.
func (r *rig) must(name string, l Launch, args ...any) {
	r.Helper()
	if err := r.launch(name, l, args...); err != nil {
		r.Fatal(err)
	}
}

func line(grid, block int) Launch { return Launch{Grid: [3]int{grid}, Block: [3]int{block}} }

func randoms(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			}
		}
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
}

func TestLaunch_ScalesARaggedVector(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	x := []float32{1, 2, 3, 4, 5, 6, 7}
	address := put(r, x)
	r.must("scale", line(2, 4), address, float32(3), int32(6))
	equal(t, "x", get[float32](r, address, 7), []float32{3, 6, 9, 12, 15, 18, 7})
}

// fma is the reference: exact products and sums in 300 bits would give the same, as TestFusedMultiplyAdd_RoundsOnce holds.
func fma(x, y, z float32) float32 { return fused32(x, y, z) }

func TestLaunch_DenseLayerHasTheBitsOfItsChains(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range [][3]int{{1, 1, 1}, {16, 16, 16}, {17, 33, 40}, {50, 5, 7}} {
		m, n, k := size[0], size[1], size[2]
		r := load(t, "kernels.ptx")
		a, w, bias := randoms(random, m*k), randoms(random, n*k), randoms(random, n)
		want := make([]float32, m*n)
		for i := range want {
			sum := bias[i%n]
			for j := range k {
				sum = fma(a[i/n*k+j], w[i%n*k+j], sum)
			}
			want[i] = max(sum, 0)
		}
		c := r.memory.Alloc(4 * m * n)
		l := Launch{Grid: [3]int{(n + 15) / 16, (m + 15) / 16}, Block: [3]int{16, 16}, Seed: uint64(m)}
		r.must("dense", l, put(r, a), put(r, w), put(r, bias), c, int32(m), int32(n), int32(k))
		equal(t, fmt.Sprint(size), get[float32](r, c, m*n), want)
	}
}

func TestLaunch_VectorsFromDynamicSharedMemory(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	random := rand.New(rand.NewPCG(1, 2))
	const k = 32
	a, b := randoms(random, 64*k), randoms(random, 64*k)
	want := make([]float32, 64*64)
	for i := range want {
		for j := range k {
			want[i] = fma(a[i/64*k+j], b[i%64*k+j], want[i])
		}
	}
	c := r.memory.Alloc(4 * 64 * 64)
	l := line(1, 256)
	l.Shared = 4 * 2 * 64 * k
	r.must("registers", l, put(r, a), put(r, b), c, int32(k), int32(1))
	equal(t, "c", get[float32](r, c, 64*64), want)
}

// Whatever the order of CTAs and warps, and however many run at a time, the sum and the word for the host are the same.
func TestLaunch_LastCTAAddsAndTellsTheHost(t *testing.T) {
	t.Parallel()
	const n, ctas = 10007, 7
	x := randoms(rand.New(rand.NewPCG(1, 3)), n)
	var want float32
	for seed := range uint64(20) {
		r := load(t, "kernels.ptx")
		host := make([]byte, 8)
		done, err := r.memory.Register(host)
		if err != nil {
			t.Fatal(err)
		}
		sum, count := r.memory.Alloc(4), put(r, []uint32{0})
		l := line(ctas, 128)
		l.Seed, l.Workers = seed, int(seed%4)
		r.must("squares", l, put(r, x), int32(n), r.memory.Alloc(4*ctas), sum, count, done, 40+seed)
		if got := binary.LittleEndian.Uint64(host); got != 40+seed {
			t.Fatalf("seed %d: the host was told %d", seed, got)
		}
		got := get[float32](r, sum, 1)[0]
		if seed == 0 {
			want = got
		}
		if got != want || math.Abs(float64(got)-n) > 0.1*n {
			t.Fatalf("seed %d: sum %v, with seed 0 %v", seed, got, want)
		}
	}
}

func TestLaunch_DivergentLoopsMeetAgain(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	start := make([]uint32, 300)
	want, longest, zeros := make([]uint32, len(start)), uint32(0), uint32(0)
	for i := range start {
		start[i] = uint32(i * 37 % 1000)
		want[i] = ^uint32(0)
		if start[i] == 0 {
			zeros++
			continue
		}
		want[i] = 0
		for x := uint64(start[i]); x != 1; want[i]++ {
			if x&1 == 1 {
				x = 3*x + 1
			} else {
				x /= 2
			}
		}
		longest = max(longest, want[i])
	}
	steps := put(r, slices.Repeat([]uint32{^uint32(0)}, len(start)))
	most := put(r, []uint32{0, 0})
	r.must("collatz", line(4, 96), put(r, start), steps, most, int32(len(start)))
	equal(t, "steps", get[uint32](r, steps, len(start)), want)
	equal(t, "longest, zeros", get[uint32](r, most, 2), []uint32{longest, zeros})
}

func TestLaunch_SwitchOfTenWays(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	which, want := make([]int32, 64), make([]int32, 66)
	for i := range which {
		which[i] = int32(i % 11)
		x := int32(i)
		switch which[i] {
		case 0:
			x = x*7 + 1
		case 1:
			x ^= 0x55
			want[64]++
		case 2:
			x /= 3
		case 3:
			for j := range int32(i) {
				x += j * x
			}
		case 4:
			x = int32(bits.OnesCount32(uint32(x)))
		case 5:
			x = int32(bits.Reverse32(uint32(x)))
		case 6:
			x = int32(bits.LeadingZeros32(uint32(x)))
			want[65] = int32(i)
		case 7:
			x = -x
		case 8:
			x %= 5
		default:
			x = 99
		}
		want[i] = x
	}
	out := put(r, make([]int32, 66))
	r.must("ways", line(1, 64), put(r, which), out)
	equal(t, "out", get[int32](r, out, 66), want)
}

func TestLaunch_LanesReadEachOther(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	x, want := make([]int32, 64), make([]uint32, 64)
	for i := range x {
		x[i] = int32(i * i % 7)
	}
	for i := range want {
		w, lane := x[i/32*32:i/32*32+32], i%32
		up, down := lane, lane
		if lane >= 3 {
			up = lane - 3
		}
		if lane%8+5 < 8 {
			down = lane + 5
		}
		want[i] = uint32(w[up]) | uint32(w[down])<<8 | uint32(w[lane&^15|(lane+1)&15])<<16
	}
	out := r.memory.Alloc(4 * len(want))
	r.must("shuffled", line(1, 64), put(r, x), out)
	equal(t, "out", get[uint32](r, out, len(want)), want)
}

func TestLaunch_LocalArraysAreTheThreadsOwn(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	random := rand.New(rand.NewPCG(1, 4))
	x, want := make([]int32, 40*8), make([]int32, 40)
	for i := range want {
		own := x[i*8 : i*8+8]
		for j := range own {
			own[j] = int32(random.IntN(1000) - 500)
		}
		want[i] = slices.Sorted(slices.Values(own))[own[0]&7]
	}
	out := r.memory.Alloc(4 * 40)
	r.must("sorted", line(1, 40), put(r, x), out)
	equal(t, "out", get[int32](r, out, 40), want)
}

func TestLaunch_VariablesOfTheModuleStay(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	x, out := put(r, []int32{0, 1, 2, 3, 4, 0, 1, 2}), r.memory.Alloc(4*33)
	for i := range 3 {
		r.must("variables", line(1, 8), x, out)
		equal(t, "table", get[float32](r, out, 8), []float32{1, -2, 3.5, 0.25, 1e-3, 1, -2, 3.5})
		equal(t, "counter", get[float32](r, out+4*32, 1), []float32{7 + 2*float32(i)})
	}
}

func TestLaunch_MatrixInstruction(t *testing.T) {
	t.Parallel()
	r := load(t, "kernels.ptx")
	random := rand.New(rand.NewPCG(1, 5))
	a, b, want := make([]uint16, 256), make([]uint16, 128), make([]float32, 128)
	for _, m := range [][]uint16{a, b} {
		for i := range m {
			m[i] = uint16(bfloat(float32(random.IntN(17) - 8))) // products and sums are exact
		}
	}
	for i := range want {
		for k := range 16 {
			want[i] += f32(uint32(a[i/8*16+k])<<16) * f32(uint32(b[i%8*16+k])<<16)
		}
	}
	d := r.memory.Alloc(4 * 128)
	r.must("tensor", line(1, 32), put(r, a), put(r, b), d)
	equal(t, "d", get[float32](r, d, 128), want)
}

// nvcc leaves a barrier in its place, also before the end.
func TestLaunch_EndsAfterABarrier(t *testing.T) {
	r := read(t, ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry wait()\n{\n\tbar.sync 0;\n\tret;\n}\n")
	for seed := range uint64(20) {
		if err := r.launch("wait", Launch{Grid: [3]int{3, 1, 1}, Block: [3]int{200, 1, 1}, Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModule_NamesEntriesAndParameters(t *testing.T) {
	t.Parallel()
	m := load(t, "kernels.ptx").module
	if m.Version != "7.8" || m.Target != "sm_80" || len(m.Entries()) != 10 {
		t.Errorf("version %s, target %s, %d entries", m.Version, m.Target, len(m.Entries()))
	}
	e := m.Entry("squares")
	want := []Param{
		{"squares_param_0", 0, 8, 8}, {"squares_param_1", 8, 4, 4}, {"squares_param_2", 16, 8, 8}, {"squares_param_3", 24, 8, 8},
		{"squares_param_4", 32, 8, 8}, {"squares_param_5", 40, 8, 8}, {"squares_param_6", 48, 8, 8},
	}
	equal(t, "parameters", e.Params, want)
	if e.ParamBytes != 56 || e.Shared != 129 || e.Dynamic || e.Local != 0 {
		t.Errorf("%d bytes of parameters, %d of shared, %d of local memory, dynamic %v", e.ParamBytes, e.Shared, e.Local, e.Dynamic)
	}
	if e = m.Entry("registers"); e.Shared != 0 || !e.Dynamic {
		t.Errorf("registers: %d bytes of shared memory, dynamic %v", e.Shared, e.Dynamic)
	}
	if m.Entry("none") != nil {
		t.Error("an entry that is not there")
	}
}

// BenchmarkFMA is the speed of one thread at fused multiply-adds, of which shared memory gives the operands.
func BenchmarkFMA(b *testing.B) {
	const k, rounds = 32, 4
	r := load(b, "kernels.ptx")
	random := rand.New(rand.NewPCG(1, 6))
	x, y, c := put(r, randoms(random, 64*k)), put(r, randoms(random, 64*k)), r.memory.Alloc(4*64*64)
	l := line(1, 256)
	l.Shared, l.Workers = 4*2*64*k, 1
	for b.Loop() {
		r.must("registers", l, x, y, c, int32(k), int32(rounds))
	}
	b.ReportMetric(float64(b.N)*64*64*k*rounds/b.Elapsed().Seconds()/1e6, "MFMA/s")
}

const tickets = header + `
.visible .entry e(.param .u64 count, .param .u64 most, .param .u64 out) {
	.reg .b32 %r<6>; .reg .b64 %rd<6>;
	ld.param.u64 %rd1, [count];
	ld.param.u64 %rd2, [most];
	ld.param.u64 %rd3, [out];
	mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
	mad.lo.s32 %r1, %r2, %r3, %r1;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd3, %rd3, %rd4;
	red.global.max.u32 [%rd2], %r1;
	atom.global.add.u32 %r4, [%rd1], 1;
	st.global.u32 [%rd3], %r4;
}`

// CTAs that run at a time lose no atomic operation of each other.
func TestLaunch_AtomicsOfManyCTAs(t *testing.T) {
	t.Parallel()
	const ctas, threads = 64, 256
	r := read(t, tickets)
	count, most, out := put(r, []uint32{0}), put(r, []uint32{0}), r.memory.Alloc(4*ctas*threads)
	l := line(ctas, threads)
	l.Workers = 8
	r.must("e", l, count, most, out)
	if n, last := get[uint32](r, count, 1)[0], get[uint32](r, most, 1)[0]; n != ctas*threads || last != ctas*threads-1 {
		t.Errorf("%d threads, the last one %d, want %d", n, last, ctas*threads)
	}
	drawn := get[uint32](r, out, ctas*threads)
	slices.Sort(drawn)
	for i, n := range drawn {
		if int(n) != i {
			t.Fatalf("number %d was drawn in place of %d", n, i)
		}
	}
}

// One CTA at a time comes in an order that the seed alone says.
func TestLaunch_SeedOrdersCTAsAndWarps(t *testing.T) {
	t.Parallel()
	orders := map[string]bool{}
	for seed := range uint64(6) {
		var first []uint32
		for range 2 {
			r := read(t, tickets)
			out := r.memory.Alloc(4 * 4 * 128)
			l := line(4, 128)
			l.Workers, l.Seed = 1, seed
			r.must("e", l, put(r, []uint32{0}), put(r, []uint32{0}), out)
			got := get[uint32](r, out, 4*128)
			if first == nil {
				first = got
			}
			equal(t, fmt.Sprint("again with seed ", seed), got, first)
		}
		orders[fmt.Sprint(first)] = true
	}
	if len(orders) < 5 {
		t.Errorf("six seeds make %d orders", len(orders))
	}
}
