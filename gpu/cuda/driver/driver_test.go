package driver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ebitengine/purego"
)

func TestOpen_SaysWhatIsMissing(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "libcuda.so.1"))
	if !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "cannot open shared object file") {
		t.Errorf("a file that is not there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(file, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); !errors.Is(err, ErrNoDriver) {
		t.Errorf("a file that is no library: %v", err)
	}
	// A library without the symbols: every program here has loaded it.
	if _, err := Open("libc.so.6"); !errors.Is(err, ErrOldDriver) || !strings.Contains(err.Error(), "cuInit") {
		t.Errorf("a library without cuInit: %v", err)
	}
}

func TestBind_SaysWhatIsTooOld(t *testing.T) {
	s := newStub()
	if _, err := Bind(s.lookup("cuGraphLaunch")); !errors.Is(err, ErrOldDriver) || !strings.Contains(err.Error(), "cuGraphLaunch") {
		t.Errorf("without cuGraphLaunch: %v", err)
	}
	s.version = 11080
	if _, err := Bind(s.lookup("")); !errors.Is(err, ErrOldDriver) || !strings.Contains(err.Error(), "11.8") {
		t.Errorf("version 11080: %v", err)
	}
}

func TestBind_TellsNoDeviceFromFailure(t *testing.T) {
	for code, none := range map[int32]bool{100: true, 803: true, 999: true, 1: false, 2: false} {
		s := newStub()
		s.fails["cuInit"] = code
		_, err := Bind(s.lookup(""))
		var e *Error
		if !errors.As(err, &e) || e.Code != int(code) || e.Call != "cuInit" || errors.Is(err, ErrNoDevice) != none {
			t.Errorf("cuInit returns %d: %v", code, err)
		}
	}
}

func TestDevice_IsDescribed(t *testing.T) {
	s := newStub()
	d := s.device(t)
	got := *d
	if got.Name != "stub 9000" || got.Major != attributeMajor || got.Minor != attributeMinor || got.Processors != attributeProcessors ||
		got.SharedMemory != attributeSharedMemory || got.Memory != 80<<30 || d.table.Version() != "12.4" {
		t.Errorf("device %+v of version %s", got, d.table.Version())
	}
	if free, err := d.Free(); free != 1234 || err != nil {
		t.Errorf("Free() = %d, %v", free, err)
	}
	for _, number := range []int{-1, 1} {
		if _, err := d.table.Device(number); !errors.Is(err, ErrNoDevice) {
			t.Errorf("device %d of 1: %v", number, err)
		}
	}
	if err := d.Close(); err != nil || s.count("cuDevicePrimaryCtxRelease_v2") != 1 {
		t.Errorf("Close() = %v", err)
	}
}

func TestError_IsStickyWhereTheContextIsGone(t *testing.T) {
	for code, want := range map[int]bool{700: true, 716: true, 719: true, 214: true, 226: true, 721: true, 2: false, 600: false,
		701: false, // out of resources: a launch that asks for too much
		712: false, // memory is registered already
		713: false} {
		err := error(&Error{Code: code})
		if got := IsSticky(errors.Join(errors.New("upload"), err)); got != want {
			t.Errorf("%d is sticky: %v", code, got)
		}
	}
	if IsSticky(errors.New("other")) {
		t.Error("an error of another kind is sticky")
	}
}

func TestError_NamesCallAndCode(t *testing.T) {
	s := newStub()
	d := s.device(t)
	s.fails["cuMemAlloc_v2"] = 2
	_, err := d.Alloc(1 << 40)
	want := "1099511627776 bytes of device memory, of which 1234 are free: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	s.fails["cuModuleLoadDataEx"] = 218
	_, err = d.Load([]byte(".version"))
	if want := "cuModuleLoadDataEx: unknown error (218): ptxas fatal: line 3"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Go moves goroutines between threads, and a context belongs to a thread: the stub refuses a call without it.
func TestDevice_CallsWhereItsContextIs(t *testing.T) {
	d := newStub().device(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				m, err := d.Alloc(64)
				if err != nil {
					t.Error(err)
					return
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

type arguments struct {
	X    Address
	Rows int32
	Rate float32
}

func TestLaunch_PassesItsArguments(t *testing.T) {
	s := newStub()
	s.args, s.grid = make([]byte, 16), make([]uint32, 7)
	d := s.device(t)
	m, err := d.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("dense")
	if err != nil {
		t.Fatal(err)
	}
	l, args, err := NewLaunch[arguments](f)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := d.Stream(High)
	if err != nil {
		t.Fatal(err)
	}
	if priority := int64(stream.handle); priority != -5 {
		t.Errorf("priority of a stream that goes first: %d", priority)
	}
	*args = arguments{X: 0x1122334455667788, Rows: -2, Rate: 1.5}
	l.Grid, l.Block, l.Shared = Dim{X: 3}, Dim{X: 16, Y: 2}, 1000
	if err := stream.Launch(l); err != nil {
		t.Fatal(err)
	}
	if want := "\x88\x77\x66\x55\x44\x33\x22\x11\xfe\xff\xff\xff\x00\x00\xc0\x3f"; string(s.args) != want {
		t.Errorf("arguments %q, want %q", s.args, want)
	}
	if want := [7]uint32{3, 1, 1, 16, 2, 1, 1000}; [7]uint32(s.grid) != want {
		t.Errorf("grid, block and shared memory %v, want %v", s.grid, want)
	}
	if err := errors.Join(l.Close(), stream.Close(), m.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}

func TestLaunch_AllocatesNothing(t *testing.T) {
	// Callbacks of Go allocate, so these functions are the C library's: abs of 0 for success.
	libc, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	abs, err := purego.Dlsym(libc, "abs")
	if err != nil {
		t.Fatal(err)
	}
	table := &Table{}
	table.functions[cuCtxSetCurrent], table.functions[cuLaunchKernel] = abs, abs
	d := &Device{table: table}
	s := &Stream{device: d, calls: newCalls(table)}
	l, _, err := NewLaunch[arguments](&Function{device: d})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var failed error
	if n := testing.AllocsPerRun(1000, func() { failed = errors.Join(failed, s.Launch(l)) }); n != 0 || failed != nil {
		t.Errorf("a launch allocates %v times: %v", n, failed)
	}
}

func TestNewLaunch_RefusesWhatIsNoParameter(t *testing.T) {
	f := &Function{}
	for name, make := range map[string]func(){
		"a pointer":  func() { _, _, _ = NewLaunch[struct{ P *int }](f) },
		"a slice":    func() { _, _, _ = NewLaunch[[2]struct{ S []byte }](f) },
		"two pages":  func() { _, _, _ = NewLaunch[[8192]byte](f) },
		"no content": func() { _, _, _ = NewLaunch[struct{}](f) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken for a parameter", name)
				}
			}()
			make()
		}()
	}
}

func TestRegister_TakesWholePages(t *testing.T) {
	s := newStub()
	d := s.device(t)
	b, err := syscall.Mmap(-1, 0, 2*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(b) }()
	for _, wrong := range [][]byte{nil, b[:0], b[64:]} {
		if _, err := d.Register(wrong); err == nil || s.count("cuMemHostRegister_v2") != 0 {
			t.Errorf("%d bytes are registered: %v", len(wrong), err)
		}
	}
	r, err := d.Register(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := Address(hostAddress(b)) + 1<<40; r.Address != want {
		t.Errorf("address %#x, want %#x", r.Address, want)
	}
	if err := r.Close(); err != nil || s.last[0] != hostAddress(b) {
		t.Errorf("Close() = %v of %#x", err, s.last[0])
	}
	s.fails["cuMemHostGetDevicePointer_v2"] = 1
	if _, err := d.Register(b); err == nil || s.count("cuMemHostUnregister") != 2 {
		t.Errorf("memory that the device does not reach stays registered: %v", err)
	}
}

func TestCapture_LeavesNothingBehind(t *testing.T) {
	s := newStub()
	d := s.device(t)
	stream, err := d.Stream(Low)
	if err != nil {
		t.Fatal(err)
	}
	g, err := stream.Capture(func() error { return stream.Fill(1, 2, 3) })
	if err != nil || g.handle != 0xa || s.count("cuGraphDestroy") != 1 {
		t.Errorf("graph %+v, %v", g, err)
	}
	if err := errors.Join(stream.Replay(g), g.Close()); err != nil || s.count("cuGraphLaunch") != 1 || s.count("cuGraphExecDestroy") != 1 {
		t.Errorf("replay: %v", err)
	}
	failed := errors.New("failed")
	if _, err := stream.Capture(func() error { return failed }); !errors.Is(err, failed) || s.count("cuStreamEndCapture") != 2 {
		t.Errorf("a capture that fails: %v", err)
	}
	s.fails["cuGraphInstantiateWithFlags"] = 2
	if _, err := stream.Capture(func() error { return nil }); err == nil || s.count("cuGraphDestroy") != 3 {
		t.Errorf("a graph that cannot be instantiated: %v", err)
	}
}

// On a machine with a GPU, RLHOST_CUDA_DRIVER names its driver.
func TestDriver_OfTheMachine(t *testing.T) {
	library := os.Getenv("RLHOST_CUDA_DRIVER")
	if library == "" || library == "fake" {
		t.Skip("RLHOST_CUDA_DRIVER names no library")
	}
	table, err := Open(library)
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, CUDA %s", *d, table.Version())
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := d.Alloc(1000)
	check(err)
	p, err := d.Pinned(1000)
	check(err)
	s, err := d.Stream(High)
	check(err)
	e, err := d.Event()
	check(err)
	check(s.Fill(m.Address, 7, 1000))
	check(s.Copy(p.Address, m.Address, 1000))
	check(s.Record(e))
	check(s.Wait(e))
	check(s.Synchronize())
	for i, b := range p.Bytes {
		if b != 7 {
			t.Fatalf("byte %d is %d, want 7", i, b)
		}
	}
	check(errors.Join(e.Close(), s.Close(), p.Close(), m.Close(), d.Close()))
}
