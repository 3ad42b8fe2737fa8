package kernels

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// rig runs kernels as they are committed: over the interpreter, or on the device whose driver RLHOST_CUDA_DRIVER names.
type rig struct {
	t      testing.TB
	memory *ptx.Memory
	device *hardware   // nil: the interpreter
	other  *ptx.Module // in place of a kernel's own, if it is not nil
	random *rand.Rand
	made   []allocation
}

// allocation is memory of exactly the size that a kernel may use.
type allocation struct {
	at    Address
	bytes int
	elem  int
}

// TestMain fails where a kernel was not run with faults, if all tests were to run over the interpreter.
func TestMain(m *testing.M) {
	code := m.Run()
	all := true
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		all = all && flag.Lookup(name).Value.String() == ""
	}
	if code == 0 && all && os.Getenv("RLHOST_CUDA_DRIVER") == "" {
		for _, e := range Entries() {
			if _, ok := seeded.Load(e.Name); !ok {
				fmt.Printf("FAIL: no test runs kernel %s with faults\n", e.Name)
				code = 1
			}
		}
	}
	os.Exit(code)
}

func newRig(t testing.TB) *rig {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &rig{t: t, memory: ptx.NewMemory(), device: deviceOf(t), random: rand.New(rand.NewPCG(seed, 0))}
}

// modules are read once for all tests.
var modules sync.Map

func module(t testing.TB, name string) *ptx.Module {
	t.Helper()
	once, _ := modules.LoadOrStore(name, sync.OnceValues(func() (*ptx.Module, error) { return ptx.Parse(string(PTX(name))) }))
	m, err := once.(func() (*ptx.Module, error))()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// alloc makes memory that is not yet written.
func (r *rig) alloc(bytes int) Address {
	if r.device != nil {
		return r.device.alloc(r.t, bytes)
	}
	return Address(r.memory.Alloc(bytes))
}

// bytesAt returns the memory of an address.
func (r *rig) bytesAt(at Address, n int) []byte {
	if r.device != nil {
		return r.device.view(at, n)
	}
	b, err := r.memory.View(uint64(at), n)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// room makes memory of n elements that are not yet written.
func room[E any](r *rig, n int) Address {
	elem := int(unsafe.Sizeof(*new(E)))
	at := r.alloc(max(n*elem, 1))
	r.made = append(r.made, allocation{at, n * elem, elem})
	return at
}

// forget leaves memory that a kernel does not come to out of runShort.
func (r *rig) forget(at Address) {
	r.made = slices.DeleteFunc(r.made, func(a allocation) bool { return a.at == at })
}

// view returns the n elements at an address.
func view[E any](r *rig, at Address, n int) []E {
	r.t.Helper()
	b := r.bytesAt(at, n*int(unsafe.Sizeof(*new(E))))
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// put makes memory with these elements.
func put[E any](r *rig, values ...E) Address {
	r.t.Helper()
	at := room[E](r, len(values))
	if len(values) > 0 {
		copy(view[E](r, at, len(values)), values)
	}
	return at
}

// get copies the n elements at an address.
func get[E any](r *rig, at Address, n int) []E {
	r.t.Helper()
	return slices.Clone(view[E](r, at, n))
}

// floats makes n random numbers, of which some are 0 and -0.
func (r *rig) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch r.random.IntN(16) {
		case 0:
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		default:
			x[i] = float32(r.random.NormFloat64())
		}
	}
	return x
}

// bytesOf is the memory of a value.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// try runs a kernel over a grid and returns its fault.
func try[T any](r *rig, k Kernel[T], grid driver.Dim, parameter []byte) error {
	if r.device != nil {
		return launch(r.device, k, grid, parameter)
	}
	m := r.other
	if m == nil {
		m = module(r.t, k.Module)
	}
	e := m.Entry(k.Name)
	if e == nil {
		return fmt.Errorf("module %s has no kernel %s", k.Module, k.Name)
	}
	args, err := e.Args(parameter)
	if err != nil {
		return err
	}
	return e.Launch(r.memory, &ptx.Launch{Grid: [3]int{grid.X, max(grid.Y, 1), max(grid.Z, 1)}, Block: [3]int{k.Threads, 1, 1},
		Args: args, Seed: r.random.Uint64()})
}

// run runs a kernel that must succeed.
func run[T any](r *rig, k Kernel[T], grid driver.Dim, args T) {
	r.t.Helper()
	if err := try(r, k, grid, bytesOf(&args)); err != nil {
		r.t.Fatalf("%s: %v", k.Name, err)
	}
}

// seeded has the names of the kernels that were run with faults by runShort.
var seeded sync.Map

// runShort runs a kernel for each of the allocations that its parameter names, or that a table it names has: with that allocation one
// element too short, and with an allocation that begins between two elements, each of which must be a fault; with one never
// written, which must be a fault if the kernel reads it, as it reads one of them; and with blocks, and with warps of a block, that all
// take themselves for the first one, of which two then write the same words. The kernels' output stays from the last
// run.
func runShort[T any](r *rig, k Kernel[T], grid driver.Dim, args T, tables ...Address) {
	r.t.Helper()
	if r.device != nil {
		return // a device lets that pass, or ends the context
	}
	seeded.Store(k.Name, true)
	short, unwritten, misaligned := 0, 0, 0
	for _, a := range slices.Clone(r.made) {
		cut := r.alloc(max(a.bytes-a.elem, 1))
		copy(view[byte](r, cut, a.bytes-a.elem), view[byte](r, a.at, a.bytes))
		if parameter, named := instead(r, args, a.at, cut, tables); named {
			short++
			var fault *ptx.Fault
			if err := try(r, k, grid, parameter); !errors.As(err, &fault) || fault.Kind != ptx.BadAddress {
				r.t.Errorf("%s with %d of %d bytes at %#x: %v", k.Name, a.bytes-a.elem, a.bytes, uint64(a.at), err)
			}
		}
		if parameter, named := instead(r, args, a.at, r.alloc(max(a.bytes, 1)), tables); named {
			var fault *ptx.Fault
			if err := try(r, k, grid, parameter); errors.As(err, &fault) && fault.Kind == ptx.Uninitialised {
				unwritten++
			} else if err != nil {
				r.t.Errorf("%s with %d bytes that nobody has written: %v", k.Name, a.bytes, err)
			}
		}
		if a.elem < 4 {
			continue
		}
		crooked := r.alloc(a.bytes+2) + 2
		copy(view[byte](r, crooked, a.bytes), view[byte](r, a.at, a.bytes))
		if parameter, named := instead(r, args, a.at, crooked, tables); named {
			misaligned++
			var fault *ptx.Fault
			if err := try(r, k, grid, parameter); !errors.As(err, &fault) || fault.Kind != ptx.Misaligned {
				r.t.Errorf("%s with %d bytes at half an element: %v", k.Name, a.bytes, err)
			}
		}
	}
	if short == 0 || unwritten == 0 || misaligned == 0 {
		r.t.Errorf("%s: %d allocations were shortened, %d read that nobody had written, %d misaligned", k.Name, short, unwritten, misaligned)
	}
	raced(r, k, grid, bytesOf(&args), "blocks", blockIndex, "0")
	if k.Threads > 32 {
		raced(r, k, grid, bytesOf(&args), "warps", threadIndex, "%laneid")
	} else {
		raced(r, k, grid, bytesOf(&args), "threads", threadIndex, "0")
	}
}

// What reads which block of the grid a thread belongs to, and which of the block's it is.
var (
	blockIndex  = regexp.MustCompile(`%ctaid\.[xyz]`)
	threadIndex = regexp.MustCompile(`%tid\.x`)
)

// raced runs a kernel of which several, blocks, warps or threads, take themselves for the first one: one writes what another has
// written, which must be a fault; where threads of a block leave each other something in shared memory, one of that. All memory is then
// as it was.
func raced[T any](r *rig, k Kernel[T], grid driver.Dim, parameter []byte, several string, index *regexp.Regexp, first string) {
	r.t.Helper()
	text := string(PTX(k.Module))
	begin, end := entryText(text, k.Name)
	changed, err := ptx.Parse(text[:begin] + index.ReplaceAllString(text[begin:end], first) + text[end:])
	if err != nil {
		r.t.Fatal(err)
	}
	defer func(m *ptx.Module) { r.other = m }(r.other)
	r.other = changed
	if several == "blocks" && grid.X*max(grid.Y, 1)*max(grid.Z, 1) == 1 {
		grid.X = 2
	}
	kinds := []ptx.Kind{ptx.GlobalRace}
	if several != "blocks" && changed.Entry(k.Name).Shared > 0 {
		kinds = append(kinds, ptx.SharedRace, ptx.Uninitialised)
	}
	for _, a := range r.made {
		was := get[byte](r, a.at, a.bytes)
		defer func() { copy(view[byte](r, a.at, a.bytes), was) }()
	}
	var fault *ptx.Fault
	if err := try(r, k, grid, parameter); !errors.As(err, &fault) || !slices.Contains(kinds, fault.Kind) {
		r.t.Errorf("%s whose %s do the same work: %v", k.Name, several, err)
	}
}

// entryText returns the place of a kernel in the text of its module.
func entryText(text, name string) (begin, end int) {
	begin = strings.Index(text, ".visible .entry "+name+"(")
	return begin, begin + strings.Index(text[begin:], "\n}")
}

// instead returns a parameter with another address in place of one, and whether it, or one of the tables that it names, had
// that.
func instead[T any](r *rig, args T, at, other Address, tables []Address) (parameter []byte, named bool) {
	parameter = slices.Clone(bytesOf(&args))
	swap := map[uint64]uint64{uint64(at): uint64(other)}
	for _, table := range tables {
		i := slices.IndexFunc(r.made, func(m allocation) bool { return m.at == table })
		changed := r.alloc(r.made[i].bytes)
		copy(view[byte](r, changed, r.made[i].bytes), view[byte](r, table, r.made[i].bytes))
		if table != at && replace(view[byte](r, changed, r.made[i].bytes), map[uint64]uint64{uint64(at): uint64(other)}) {
			swap[uint64(table)] = uint64(changed)
		}
	}
	return parameter, replace(parameter, swap)
}

// replace changes addresses in memory and reports whether there were any.
func replace(b []byte, swap map[uint64]uint64) (changed bool) {
	for i := 0; i+8 <= len(b); i += 8 {
		if to, ok := swap[binary.LittleEndian.Uint64(b[i:])]; ok {
			binary.LittleEndian.PutUint64(b[i:], to)
			changed = true
		}
	}
	return changed
}

// same fails where numbers differ in a bit; a number that is none is like any other.
func same[E float32 | float64](t testing.TB, what string, got, want []E) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	bits := func(x E) uint64 {
		if float32(x) != float32(x) {
			return math.MaxUint64
		}
		return math.Float64bits(float64(x))
	}
	for i := range got {
		if bits(got[i]) != bits(want[i]) {
			t.Fatalf("%s: number %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}

// poison is a number that was never written.
var poison = math.Float32frombits(ptx.Poison)

// filled returns n times x.
func filled[E any](n int, x E) []E { return slices.Repeat([]E{x}, n) }

// fma rounds a·b + c once: in float64 the product is exact, and a sum that is rounded to odd rounds to float32 as the exact one
// does (Boldo and Melquiond 2008).
func fma(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	back := s - p
	if err := (p - (s - back)) + (q - back); err != 0 && math.Float64bits(s)&1 == 0 && !math.IsInf(s, 0) && err == err {
		s = math.Nextafter(s, math.Copysign(math.Inf(1), err))
	}
	return float32(s)
}

// horner evaluates a polynomial with fused operations, highest coefficient first.
func horner(x float32, coefficients ...float32) float32 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = fma(p, x, c)
	}
	return p
}

func tanh(x float32) float32 {
	x = min(max(x, -7.90531110763549805), 7.90531110763549805)
	t := x * x
	p := horner(t, -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
		1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
	return x * p / horner(t, 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
}

func distribution(x float32) float32 {
	x = min(max(x*0.70710678118654752, -4), 4)
	t := x * x
	p := horner(t, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)
	q := horner(t, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02)
	return fma(x*p/q, 0.5, 0.5)
}

func density(x float32) float32 { return exp(x*x*-0.5) * 0.39894228040143268 }

func sigmoid(x float32) float32 { return fma(tanh(0.5*x), 0.5, 0.5) }

func exp(x float32) float32 {
	if x < -87.3 {
		return 0
	}
	x = min(x, 88.3)
	n := float32(math.RoundToEven(float64(x * 1.44269504088896341)))
	x = fma(-n, 0.693359375, x)
	x = fma(-n, -2.12194440e-4, x)
	p := horner(x, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1)
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

func log(x float32) float32 {
	bits := math.Float32bits(x)
	e, m := float32(int32(bits>>23)-127), math.Float32frombits(bits&0x7fffff|0x3f800000)
	if m > 1.41421356 {
		m *= 0.5
		e++
	}
	m--
	z := m * m
	p := horner(m, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	p *= m * z
	p = fma(-2.12194440e-4, e, p)
	p = fma(-0.5, z, p)
	return fma(0.693359375, e, m+p)
}

func activate(e Epilogue, x, h float32) float32 {
	switch e {
	case Tanh:
		return tanh(x)
	case ReLU:
		if x < 0 {
			return 0
		}
	case ELU:
		if !(x > 0) {
			return exp(x) - 1
		}
	case GELU:
		return x * distribution(x)
	case SiLU:
		return x * sigmoid(x)
	case DGELU:
		return x * fma(density(h), h, distribution(h))
	case DSiLU:
		return x * (sigmoid(h) * fma(1-sigmoid(h), h, 1))
	case DTanh:
		return x * fma(-h, h, 1)
	case DReLU:
		if !(h > 0) {
			return 0
		}
	case DELU:
		return x * (min(h, 0) + 1)
	}
	return x
}

func TestParameters_HaveTheSizeThatKernelsRead(t *testing.T) {
	for _, e := range Entries() {
		k := module(t, e.Module).Entry(e.Name)
		if k == nil || len(k.Params) != 1 || k.Params[0].Size != int(e.Parameter.Size()) || k.MaxThreads != e.Threads || k.Local != 0 {
			t.Errorf("%s: %+v, the parameter is %d bytes of %v", e.Name, k, e.Parameter.Size(), e.Parameter)
		}
		if e.Parameter.Kind() != reflect.Struct || e.Parameter.Size()%8 != 0 {
			t.Errorf("%s: %v has %d bytes, want whole words", e.Name, e.Parameter, e.Parameter.Size())
		}
	}
	for _, name := range Modules() {
		for _, k := range module(t, name).Entries() {
			if !slices.ContainsFunc(Entries(), func(e Entry) bool { return e.Name == k.Name && e.Module == name }) {
				t.Errorf("kernel %s of module %s is not listed", k.Name, name)
			}
		}
	}
}
