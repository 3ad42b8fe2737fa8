package fake

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// arguments are the parameter of the kernels of testdata.
type arguments struct {
	x, y, done driver.Address
	sequence   uint64
	n          int32
	a          float32
}

// rig is a device of a fake driver with a module and a stream.
type rig struct {
	*testing.T
	fake   *Driver
	device *driver.Device
	module *driver.Module
	stream *driver.Stream
	close  []func() error
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{T: t, fake: New(o)}
	table, err := driver.Bind(r.fake.Lookup)
	r.check(err)
	r.device, err = table.Device(0)
	r.check(err)
	text, err := os.ReadFile("testdata/kernels.ptx")
	r.check(err)
	r.module, err = r.device.Load(text)
	r.check(err)
	r.later(r.module.Close)
	r.stream = r.newStream()
	return r
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// later has something closed by end.
func (r *rig) later(fn func() error) { r.close = append(r.close, fn) }

// end closes everything and holds that nothing is left.
func (r *rig) end() {
	r.Helper()
	for i := len(r.close) - 1; i >= 0; i-- {
		r.check(r.close[i]())
	}
	r.check(r.device.Close())
	r.check(r.fake.Close())
}

func (r *rig) newStream() *driver.Stream {
	s, err := r.device.Stream(driver.High)
	r.check(err)
	r.later(s.Close)
	return s
}

func (r *rig) event() *driver.Event {
	e, err := r.device.Event()
	r.check(err)
	r.later(e.Close)
	return e
}

func (r *rig) alloc(n int) driver.Address {
	m, err := r.device.Alloc(n)
	r.check(err)
	r.later(m.Close)
	return m.Address
}

func (r *rig) pinned(n int) *driver.Pinned {
	p, err := r.device.Pinned(n)
	r.check(err)
	r.later(p.Close)
	return p
}

func (r *rig) launch(name string) (*driver.Launch, *arguments) {
	f, err := r.module.Function(name)
	r.check(err)
	l, args, err := driver.NewLaunch[arguments](f)
	r.check(err)
	r.later(l.Close)
	l.Grid, l.Block = driver.Dim{X: 2}, driver.Dim{X: 64}
	return l, args
}

// mapping is memory of the host that is no memory of Go's.
func mapping(t *testing.T, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }

func TestDriver_KernelsAndCopiesReachAllMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Seed: 1})
	if r.device.Name != "interpreter" || r.device.Major != 9 || r.device.Minor != 0 || r.device.Processors != 4 || r.device.SharedMemory != mostShared || r.device.Memory != 80<<30 {
		t.Errorf("device %+v", r.device)
	}
	arena := mapping(t, 4096)
	registered, err := r.device.Register(arena)
	r.check(err)
	x, out := floats(arena), r.pinned(400)
	for i := range 100 {
		x[i] = float32(i)
	}
	y := r.alloc(400)
	r.check(r.stream.Fill(y, 0, 400))
	l, args := r.launch("add")
	*args = arguments{x: registered.Address, y: y, n: 100, a: 2}
	r.check(r.stream.Launch(l))
	args.a = 1 // the work under way has its own copy
	r.check(r.stream.Launch(l))
	r.check(r.stream.Copy(out.Address, y, 400))
	r.check(r.stream.Synchronize())
	for i, got := range floats(out.Bytes) {
		if got != 3*float32(i) {
			t.Fatalf("element %d is %v, want %d", i, got, 3*i)
		}
	}
	if free, err := r.device.Free(); err != nil || free != 80<<30-400 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	r.check(registered.Close())
	r.check(syscall.Munmap(arena))
	r.end()
}

// No one calls the driver while the kernel writes the word that the host waits for.
func TestDriver_HostIsToldWithoutAsking(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	host := r.pinned(16 + 400)
	l, args := r.launch("tell")
	l.Grid.X = 1
	*args = arguments{x: host.Address + 16, y: r.alloc(400), done: host.Address, sequence: 7, n: 100, a: 1}
	r.check(r.stream.Launch(l))
	done := (*uint64)(unsafe.Pointer(&host.Bytes[0]))
	for atomic.LoadUint64(done) != 7 {
	}
	r.end()
}

// Work of two streams comes in any order unless an event holds it back.
func TestStreams_AMissingEventShows(t *testing.T) {
	t.Parallel()
	orders := map[float32]int{}
	for seed := range uint64(20) {
		for _, held := range []bool{false, true} {
			r := newRig(t, Options{Seed: seed})
			one, two, e := r.newStream(), r.newStream(), r.event()
			host := r.pinned(8)
			values := floats(host.Bytes)
			values[0] = 5
			l, args := r.launch("add")
			*args = arguments{x: host.Address, y: host.Address + 4, n: 1, a: 1}
			r.check(one.Launch(l))
			r.check(one.Record(e))
			if held {
				r.check(two.Wait(e))
			}
			r.check(two.Fill(host.Address, 0, 4))
			r.check(two.Synchronize())
			r.check(one.Synchronize())
			if held && values[1] != 5 {
				t.Fatalf("seed %d: the stream did not wait for the event", seed)
			} else if !held {
				orders[values[1]]++
			}
			r.end()
		}
	}
	if orders[0] == 0 || orders[5] == 0 {
		t.Errorf("without an event every seed has the same order: %v", orders)
	}
}

func TestStreams_GraphsAreSubmittedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Seed: 3})
	other, e, back := r.newStream(), r.event(), r.event()
	host := r.pinned(8)
	values := floats(host.Bytes)
	values[0] = 1
	l, args := r.launch("add")
	*args = arguments{x: host.Address, y: host.Address + 4, n: 1, a: 1}
	g, err := r.stream.Capture(func() error {
		return errors.Join(r.stream.Launch(l), r.stream.Record(e), other.Wait(e), other.Launch(l), other.Record(back), r.stream.Wait(back))
	})
	r.check(err)
	r.later(g.Close)
	r.check(r.stream.Synchronize())
	if values[1] != 0 {
		t.Errorf("captured work was done: %v", values[1])
	}
	args.a = 10
	r.check(r.stream.Replay(g))
	r.check(r.stream.Replay(g))
	r.check(r.stream.Synchronize())
	if values[1] != 4 {
		t.Errorf("two launches submitted twice made %v", values[1])
	}
	if _, err := r.stream.Capture(r.stream.Synchronize); err == nil {
		t.Error("waiting within a capture is taken")
	}
	r.end()
}

func TestDriver_AFaultEndsTheContext(t *testing.T) {
	t.Parallel()
	var reported error
	r := newRig(t, Options{Report: func(err error) { reported = err }})
	l, args := r.launch("add")
	x := r.alloc(400)
	r.check(r.stream.Fill(x, 0, 400))
	*args = arguments{x: x, y: r.alloc(8), n: 2}
	r.check(r.stream.Launch(l))
	for range 2 {
		var e *driver.Error
		if err := r.stream.Synchronize(); !errors.As(err, &e) || e.Code != 719 || !e.Sticky() || e.Name != "CUDA_ERROR_LAUNCH_FAILED" {
			t.Errorf("%v, want 719", err)
		}
	}
	var fault *ptx.Fault
	if !errors.As(r.fake.Fault(), &fault) || fault.Kind != ptx.Uninitialised || !errors.Is(reported, r.fake.Fault()) {
		t.Errorf("fault %v, reported %v", r.fake.Fault(), reported)
	}
	if _, err := r.device.Alloc(1); !driver.IsSticky(err) {
		t.Errorf("memory after a fault: %v", err)
	}
	if err := r.fake.Close(); !errors.As(err, &fault) || !strings.Contains(err.Error(), "*fake.stream is left") {
		t.Errorf("closed with %v", err)
	}
}

func TestDriver_FaultsHaveTheResultsOfTheHardware(t *testing.T) {
	t.Parallel()
	for code, address := range map[int]driver.Address{700: 64, 716: 2} {
		r := newRig(t, Options{})
		x := r.alloc(400)
		r.check(r.stream.Fill(x, 0, 400))
		l, args := r.launch("add")
		*args = arguments{x: x, y: address, n: 2}
		r.check(r.stream.Launch(l))
		var e *driver.Error
		if err := r.stream.Synchronize(); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%v, want %d", err, code)
		}
		if r.fake.Close() == nil {
			t.Error("closed without a word of the fault")
		}
	}
}

func TestDriver_RefusesLaunches(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	f, err := r.module.Function("large")
	r.check(err)
	l, args, err := driver.NewLaunch[arguments](f)
	r.check(err)
	r.later(l.Close)
	y := r.alloc(400)
	l.Grid, l.Block, l.Shared = driver.Dim{X: 1}, driver.Dim{X: 32}, ptx.MaxShared
	*args = arguments{y: y, n: ptx.MaxShared/4 - 32, a: 3}
	r.check(r.stream.Launch(l))
	r.check(r.stream.Synchronize())
	l.Shared++
	if r.stream.Launch(l) == nil {
		t.Error("more shared memory than there is")
	}
	l.Shared = ptx.MaxShared
	for _, block := range []int{0, 1025} {
		l.Block.X = block
		if r.stream.Launch(l) == nil {
			t.Errorf("a block of %d threads", block)
		}
	}
	if _, err := r.module.Function("none"); err == nil {
		t.Error("a kernel that is not there")
	}
	r.end()
}

func TestDriver_RefusesModules(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Version: 12000, Capability: 80})
	for text, want := range map[string]string{
		".version 9.0\n.target sm_80\n":                          "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): PTX .version 9.0; current version is 8.0",
		".version 7.8\n.target sm_90\n":                          "CUDA_ERROR_INVALID_PTX (218): PTX .target sm_90",
		".version 7.8\n.target sm_80\n.entry e() {\n\twrong;\n}": "line 4: wrong: ",
	} {
		if _, err := r.device.Load([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	r.end()
}

func TestDriver_HoldsMemoryToItsRules(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Memory: 1 << 20})
	if _, err := r.device.Alloc(1<<20 + 1); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("more memory than there is: %v", err)
	}
	y := r.alloc(256)
	host := r.pinned(256)
	r.check(r.stream.Copy(host.Address, y, 256))
	r.check(r.stream.Synchronize())
	if got := binary.LittleEndian.Uint32(host.Bytes); got != ptx.Poison || !math.IsNaN(float64(math.Float32frombits(got))) {
		t.Errorf("fresh memory is %#x", got)
	}
	arena := mapping(t, 8192)
	for name, c := range map[string]struct{ to, from driver.Address }{
		"beyond":       {host.Address, y + 1},
		"unregistered": {driver.Address(uintptr(unsafe.Pointer(&arena[0]))), y},
	} {
		if r.stream.Copy(c.to, c.from, 256) == nil {
			t.Errorf("a copy %s", name)
		}
	}
	one, err := r.device.Register(arena)
	r.check(err)
	if _, err := r.device.Register(arena[4096:]); err == nil || !strings.Contains(err.Error(), "(712)") {
		t.Errorf("registered twice: %v", err)
	}
	r.check(one.Close())
	if one.Close() == nil {
		t.Error("unregistered twice")
	}
	r.check(syscall.Munmap(arena))
	if _, err := r.device.Register(arena); err == nil {
		t.Error("memory is registered that is not mapped")
	}
	r.fake.FailOnce("cuMemAlloc_v2", 2)
	if _, err := r.device.Alloc(1); err == nil {
		t.Error("a call did not fail that was told to")
	}
	r.alloc(1)
	if got := r.fake.Calls("cuMemAlloc_v2"); got != 4 {
		t.Errorf("%d allocations, want 4", got)
	}
	r.end()
}

// It is not parallel: another test could map memory at the address that it leaves.
func TestDriver_TellsOfMemoryUnmappedTooSoon(t *testing.T) {
	r := newRig(t, Options{})
	arena := mapping(t, 4096)
	_, err := r.device.Register(arena)
	r.check(err)
	r.check(syscall.Munmap(arena))
	if err := r.stream.Synchronize(); !driver.IsSticky(err) || r.fake.Fault() == nil || !strings.Contains(r.fake.Fault().Error(), "unmapped") {
		t.Errorf("%v, fault %v", err, r.fake.Fault())
	}
	if r.fake.Close() == nil {
		t.Error("closed without a word")
	}
}

func TestDriver_ContextsBelongToThreads(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	f, err := d.Lookup("cuMemAlloc_v2")
	if err != nil {
		t.Fatal(err)
	}
	result := new(uint64)
	if r, _, _ := purego.SyscallN(f, uintptr(unsafe.Pointer(result)), 8); r != 201 {
		t.Errorf("without a context: %d, want 201", r)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.Lookup("cuNothing"); err == nil {
		t.Error("a function that is not there")
	}
}

func TestDriver_WithoutADevice(t *testing.T) {
	t.Parallel()
	d := New(Options{Devices: -1})
	if _, err := driver.Bind(d.Lookup); !errors.Is(err, driver.ErrNoDevice) {
		t.Errorf("no device: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	d = New(Options{Version: 11080})
	if _, err := driver.Bind(d.Lookup); !errors.Is(err, driver.ErrOldDriver) {
		t.Errorf("an old driver: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Functions of drivers that were closed serve the next ones: a process can only make so many.
func TestDriver_AsManyAsOneLikes(t *testing.T) {
	t.Parallel()
	for range 200 {
		d := New(Options{})
		if _, err := driver.Bind(d.Lookup); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
