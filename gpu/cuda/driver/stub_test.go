package driver

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// stub is a driver that counts calls, checks their context and fails the calls that a test names.
type stub struct {
	mu      sync.Mutex
	fails   map[string]int32 // result by function
	made    map[string]int
	current map[int]uintptr // context by thread
	version int32
	devices int32
	args    []byte // of the last launch
	grid    []uint32
	last    [4]uintptr

	functions map[string]uintptr
}

const stubContext = 0xc0de

// stubs is the one stub that the callbacks serve, of which a process can make only so many.
var stubs = sync.OnceValue(func() *stub {
	s := &stub{}
	s.functions = s.callbacks()
	return s
})

func newStub() *stub {
	s := stubs()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.made, s.current, s.version, s.devices = map[string]int32{}, map[string]int{}, map[int]uintptr{}, 12040, 1
	return s
}

// enter notes a call and returns its result.
func (s *stub) enter(name string, context bool) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[name]++
	if context && s.current[syscall.Gettid()] != stubContext {
		return 201 // CUDA_ERROR_INVALID_CONTEXT
	}
	return s.fails[name]
}

func (s *stub) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[name]
}

var outOfMemory = []byte("CUDA_ERROR_OUT_OF_MEMORY\x00")

// write writes text and a zero after it.
func write(to *byte, text string) { copy(unsafe.Slice(to, len(text)+1), text) }

// special are the functions that do more than succeed.
func (s *stub) special() map[string]any {
	put := func(name string, value uint64) any {
		return func(to *uint64) int32 {
			if r := s.enter(name, false); r != 0 {
				return r
			}
			*to = value
			return 0
		}
	}
	made := func(name string, value uint64) any { // an object of a context
		return func(to *uint64) int32 {
			if r := s.enter(name, true); r != 0 {
				return r
			}
			*to = value
			return 0
		}
	}
	return map[string]any{
		"cuInit":                       func(uintptr) int32 { return s.enter("cuInit", false) },
		"cuDriverGetVersion":           func(to *int32) int32 { *to = s.version; return s.enter("cuDriverGetVersion", false) },
		"cuDeviceGetCount":             func(to *int32) int32 { *to = s.devices; return s.enter("cuDeviceGetCount", false) },
		"cuDeviceGet":                  func(to *int32, n int32) int32 { *to = n; return s.enter("cuDeviceGet", false) },
		"cuDeviceGetAttribute":         func(to *int32, a int32) int32 { *to = a; return s.enter("cuDeviceGetAttribute", false) },
		"cuDeviceGetName":              func(to *byte) int32 { write(to, "stub 9000"); return s.enter("cuDeviceGetName", false) },
		"cuDeviceTotalMem_v2":          put("cuDeviceTotalMem_v2", 80<<30),
		"cuDevicePrimaryCtxRetain":     put("cuDevicePrimaryCtxRetain", stubContext),
		"cuDevicePrimaryCtxRelease_v2": func(uintptr) int32 { return s.enter("cuDevicePrimaryCtxRelease_v2", false) },
		"cuMemAlloc_v2":                made("cuMemAlloc_v2", 0x7000),
		"cuStreamCreateWithPriority": func(to *uint64, flags, priority int32) int32 {
			*to = uint64(int64(priority))
			return s.enter("cuStreamCreateWithPriority", true)
		},
		"cuEventCreate": made("cuEventCreate", 0xe),
		"cuCtxGetStreamPriorityRange": func(least, greatest *int32) int32 {
			*least, *greatest = 0, -5
			return s.enter("cuCtxGetStreamPriorityRange", true)
		},
		"cuMemGetInfo_v2": func(free, total *uint64) int32 {
			*free, *total = 1234, 80<<30
			return s.enter("cuMemGetInfo_v2", true)
		},
		"cuGetErrorName": func(code int32, to **byte) int32 {
			if code != 2 {
				return 1
			}
			*to = &outOfMemory[0]
			return 0
		},
		"cuCtxSetCurrent": func(context uintptr) int32 {
			s.mu.Lock()
			s.current[syscall.Gettid()] = context
			s.mu.Unlock()
			return s.enter("cuCtxSetCurrent", false)
		},
		"cuModuleLoadDataEx": func(to *uint64, text *byte, n uint32, options *uint32, values *unsafe.Pointer) int32 {
			r := s.enter("cuModuleLoadDataEx", true)
			if r != 0 {
				write((*byte)(*values), "ptxas fatal: line 3")
			}
			return r
		},
		"cuMemHostGetDevicePointer_v2": func(to *uint64, host uintptr) int32 {
			*to = uint64(host) + 1<<40
			return s.enter("cuMemHostGetDevicePointer_v2", true)
		},
		"cuLaunchKernel": func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, params **[16]byte, extra uintptr) int32 {
			copy(s.args, (**params)[:])
			copy(s.grid, []uint32{gx, gy, gz, bx, by, bz, shared})
			return s.enter("cuLaunchKernel", true)
		},
		"cuStreamEndCapture": func(stream uintptr, to *uint64) int32 { *to = 0x9; return s.enter("cuStreamEndCapture", true) },
		"cuGraphInstantiateWithFlags": func(to *uint64, graph uintptr) int32 {
			*to = 0xa
			return s.enter("cuGraphInstantiateWithFlags", true)
		},
	}
}

// callbacks makes C functions of the stub's.
func (s *stub) callbacks() map[string]uintptr {
	functions := map[string]uintptr{}
	for name, f := range s.special() {
		functions[name] = purego.NewCallback(f)
	}
	for _, name := range Symbols() {
		if functions[name] == 0 {
			functions[name] = purego.NewCallback(func(a, b, c, d uintptr) int32 {
				r := s.enter(name, true)
				s.mu.Lock()
				s.last = [4]uintptr{a, b, c, d}
				s.mu.Unlock()
				return r
			})
		}
	}
	return functions
}

// lookup is what Bind finds functions with, all but one.
func (s *stub) lookup(without string) func(name string) (uintptr, error) {
	return func(name string) (uintptr, error) {
		if name == without {
			return 0, nil
		}
		return s.functions[name], nil
	}
}

// device returns the stub's device.
func (s *stub) device(t *testing.T) *Device {
	t.Helper()
	table, err := Bind(s.lookup(""))
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSymbols_AreThoseThatBindAsksFor(t *testing.T) {
	var asked []string
	s := newStub()
	lookup := s.lookup("")
	if _, err := Bind(func(name string) (uintptr, error) { asked = append(asked, name); return lookup(name) }); err != nil {
		t.Fatal(err)
	}
	if want := Symbols(); !slices.Equal(asked, want) || slices.Contains(want, "") {
		t.Errorf("asked for %v, Symbols are %v", asked, want)
	}
}
