package fake

import (
	"errors"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// functions are callbacks that belong to one driver at a time. A process can make only so many, and none is ever freed, so the
// functions of closed drivers are used again.
type functions struct {
	d         *Driver
	addresses map[string]uintptr
}

var (
	freeMu sync.Mutex
	free   []*functions
)

// assign gives a driver functions.
func assign(d *Driver) *functions {
	freeMu.Lock()
	defer freeMu.Unlock()
	if n := len(free); n > 0 {
		f := free[n-1]
		free = free[:n-1]
		f.d = d
		return f
	}
	f := &functions{d: d, addresses: map[string]uintptr{}}
	for _, table := range []map[string]any{f.general(), f.memory(), f.modules(), f.streams(), f.graphs()} {
		for name, callback := range table {
			f.addresses[name] = purego.NewCallback(callback)
		}
	}
	return f
}

// release gives the functions to the next driver.
func (f *functions) release() {
	freeMu.Lock()
	defer freeMu.Unlock()
	free = append(free, f)
}

// Callbacks take typed pointers: they are memory of the caller's, valid during the call.

// value makes a function that needs no context and returns a value.
func value[T any](f *functions, name string, get func(d *Driver) (T, int32)) func(to *T) int32 {
	return func(to *T) int32 {
		d := f.d
		defer d.mu.Unlock()
		r := d.enter(name)
		if r == success {
			*to, r = get(d)
		}
		return r
	}
}

// within runs a call that needs the context.
func (f *functions) within(name string, call func(d *Driver) int32) int32 {
	d := f.d
	defer d.mu.Unlock()
	if r := d.within(name); r != success {
		return r
	}
	return call(d)
}

// handle makes a function of one handle.
func (f *functions) handle(name string, call func(d *Driver, handle uint64) int32) func(handle uint64) int32 {
	return func(handle uint64) int32 {
		return f.within(name, func(d *Driver) int32 { return call(d, handle) })
	}
}

// afterWork makes a function of an address that waits until all work is done.
func (f *functions) afterWork(name string, call func(d *Driver, address uint64) int32) func(address uint64) int32 {
	return func(address uint64) int32 {
		f.d.runAll()
		return f.within(name, func(d *Driver) int32 { return call(d, address) })
	}
}

func (f *functions) general() map[string]any {
	return map[string]any{
		"cuInit": func(uint32) int32 {
			d := f.d
			defer d.mu.Unlock()
			if r := d.enter("cuInit"); r != success || d.options.Devices > 0 {
				return r
			}
			return noDevice
		},
		"cuDriverGetVersion": value(f, "cuDriverGetVersion", func(d *Driver) (int32, int32) { return int32(d.options.Version), success }),
		"cuDeviceGetCount":   value(f, "cuDeviceGetCount", func(d *Driver) (int32, int32) { return int32(max(d.options.Devices, 0)), success }),
		"cuGetErrorName": func(code int32, to **byte) int32 {
			name, ok := names[code]
			if !ok {
				return invalidValue
			}
			*to = unsafe.SliceData(append([]byte(name), 0))
			return success
		},
		"cuDeviceGet": func(to *int32, number int32) int32 {
			*to = number
			return f.device("cuDeviceGet", number)
		},
		"cuDeviceGetName": func(to *byte, n, device int32) int32 {
			copy(unsafe.Slice(to, n), "interpreter\x00")
			return f.device("cuDeviceGetName", device)
		},
		"cuDeviceGetAttribute": func(to *int32, attribute, device int32) int32 {
			*to = f.d.attribute(attribute)
			return f.device("cuDeviceGetAttribute", device)
		},
		"cuDeviceTotalMem_v2": func(to *uint64, device int32) int32 {
			*to = uint64(f.d.options.Memory)
			return f.device("cuDeviceTotalMem_v2", device)
		},
		"cuDevicePrimaryCtxRetain": func(to *uint64, device int32) int32 {
			*to = context
			return f.device("cuDevicePrimaryCtxRetain", device)
		},
		"cuDevicePrimaryCtxRelease_v2": func(device int32) int32 { return f.device("cuDevicePrimaryCtxRelease_v2", device) },
		"cuCtxSetCurrent": func(handle uint64) int32 {
			d := f.d
			defer d.mu.Unlock()
			if r := d.enter("cuCtxSetCurrent"); r != success {
				return r
			}
			if handle != 0 && handle != context {
				return invalidContext
			}
			d.contexts[syscall.Gettid()] = handle != 0
			return success
		},
	}
}

// device runs a call about a device.
func (f *functions) device(name string, number int32) int32 {
	defer f.d.mu.Unlock()
	if r := f.d.enter(name); r != success {
		return r
	}
	if int(number) < 0 || int(number) >= f.d.options.Devices {
		return invalidDevice
	}
	return success
}

func (f *functions) memory() map[string]any {
	return map[string]any{
		"cuMemAlloc_v2": func(to *uint64, n uint64) int32 {
			return f.within("cuMemAlloc_v2", func(d *Driver) (r int32) {
				*to, r = d.alloc(int(n))
				return r
			})
		},
		"cuMemFree_v2": f.afterWork("cuMemFree_v2", (*Driver).free),
		"cuMemGetInfo_v2": func(unused, total *uint64) int32 {
			return f.within("cuMemGetInfo_v2", func(d *Driver) int32 {
				*unused, *total = uint64(d.options.Memory-d.used), uint64(d.options.Memory)
				return success
			})
		},
		"cuMemHostAlloc": func(to **byte, n uint64, _ uint32) int32 {
			return f.within("cuMemHostAlloc", func(d *Driver) int32 {
				b, r := d.hostAlloc(int(n))
				*to = unsafe.SliceData(b)
				return r
			})
		},
		"cuMemFreeHost": f.afterWork("cuMemFreeHost", func(d *Driver, address uint64) int32 { return d.unregister(address, true) }),
		"cuMemHostRegister_v2": func(from *byte, n uint64, _ uint32) int32 {
			return f.within("cuMemHostRegister_v2", func(d *Driver) int32 { return d.register(unsafe.Slice(from, n)) })
		},
		"cuMemHostUnregister": func(address uint64) int32 {
			f.d.running.Lock()
			defer f.d.running.Unlock()
			return f.within("cuMemHostUnregister", func(d *Driver) int32 { return d.take(address) })
		},
		"cuMemHostGetDevicePointer_v2": func(to *uint64, from, _ uint64) int32 {
			return f.within("cuMemHostGetDevicePointer_v2", func(d *Driver) int32 {
				*to = from // addresses are the same for host and device
				if d.place(from, 1) == nil {
					return invalidValue
				}
				return success
			})
		},
		"cuMemcpyAsync": func(to, from, n, stream uint64) int32 {
			return f.within("cuMemcpyAsync", func(d *Driver) int32 { return d.copyMemory(to, from, int(n), stream) })
		},
		"cuMemsetD8Async": func(to uint64, b uint8, n, stream uint64) int32 {
			return f.within("cuMemsetD8Async", func(d *Driver) int32 { return d.fill(to, b, int(n), stream) })
		},
	}
}

// Options of cuModuleLoadDataEx.
const (
	optionLog      = 5
	optionLogBytes = 6
)

func (f *functions) modules() map[string]any {
	return map[string]any{
		"cuModuleLoadDataEx": func(to *uint64, text *byte, n uint32, options *uint32, values **byte) int32 {
			return f.within("cuModuleLoadDataEx", func(d *Driver) int32 {
				handle, log, r := d.load(text0(text))
				*to = handle
				writeLog(log, unsafe.Slice(options, n), unsafe.Slice(values, n))
				return r
			})
		},
		"cuModuleUnload": f.afterWork("cuModuleUnload", drop[*module]),
		"cuModuleGetFunction": func(to *uint64, module uint64, name *byte) int32 {
			return f.within("cuModuleGetFunction", func(d *Driver) (r int32) {
				*to, r = d.function(module, text0(name))
				return r
			})
		},
		"cuFuncGetAttribute": func(to *int32, attribute int32, handle uint64) int32 {
			return f.within("cuFuncGetAttribute", func(d *Driver) (r int32) {
				fn, ok := object[*function](d, handle)
				if !ok {
					return invalidHandle
				}
				*to, r = fn.attribute(attribute)
				return r
			})
		},
		"cuLaunchKernel": func(handle uint64, gx, gy, gz, bx, by, bz, bytes uint32, stream uint64, params **byte, _ uint64) int32 {
			return f.within("cuLaunchKernel", func(d *Driver) int32 {
				fn, ok := object[*function](d, handle)
				if !ok {
					return invalidHandle
				}
				args := make([]byte, fn.ParamBytes)
				for i, p := range fn.Params {
					copy(args[p.Offset:p.Offset+p.Size], unsafe.Slice(unsafe.Slice(params, len(fn.Params))[i], p.Size))
				}
				grid, block := [3]int{int(gx), int(gy), int(gz)}, [3]int{int(bx), int(by), int(bz)}
				return d.launch(fn, grid, block, int(bytes), args, stream)
			})
		},
	}
}

// text0 is a text that ends with a zero.
func text0(from *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(from), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(from, n))
}

// writeLog writes to where options of cuModuleLoadDataEx say: a value is a pointer, or a number in place of one.
func writeLog(log string, options []uint32, values []*byte) {
	var to *byte
	n := uintptr(0)
	for i, o := range options {
		switch o {
		case optionLog:
			to = values[i]
		case optionLogBytes:
			n = *(*uintptr)(unsafe.Pointer(&values[i]))
		}
	}
	if to != nil && n > 0 {
		b := unsafe.Slice(to, n)
		b[copy(b[:n-1], log)] = 0
	}
}

func (f *functions) streams() map[string]any {
	return map[string]any{
		"cuCtxGetStreamPriorityRange": func(least, greatest *int32) int32 {
			return f.within("cuCtxGetStreamPriorityRange", func(*Driver) int32 {
				*least, *greatest = 0, -5
				return success
			})
		},
		"cuStreamCreateWithPriority": func(to *uint64, _ uint32, _ int32) int32 {
			return f.within("cuStreamCreateWithPriority", func(d *Driver) int32 {
				*to = d.add(&stream{})
				return success
			})
		},
		"cuStreamDestroy_v2": f.afterWork("cuStreamDestroy_v2", drop[*stream]),
		"cuStreamSynchronize": func(handle uint64) int32 {
			if r := f.within("cuStreamSynchronize", func(*Driver) int32 { return success }); r != success {
				return r
			}
			return f.d.synchronize(handle)
		},
		"cuStreamWaitEvent": func(of, event uint64, _ uint32) int32 {
			return f.within("cuStreamWaitEvent", func(d *Driver) int32 { return d.waitFor(of, event) })
		},
		"cuEventCreate": func(to *uint64, _ uint32) int32 {
			return f.within("cuEventCreate", func(d *Driver) int32 {
				*to = d.add(&event{})
				return success
			})
		},
		"cuEventDestroy_v2": f.handle("cuEventDestroy_v2", drop[*event]),
		"cuEventRecord": func(event, of uint64) int32 {
			return f.within("cuEventRecord", func(d *Driver) int32 { return d.record(event, of) })
		},
	}
}

func (f *functions) graphs() map[string]any {
	return map[string]any{
		"cuStreamBeginCapture_v2": func(stream uint64, _ uint32) int32 {
			return f.within("cuStreamBeginCapture_v2", func(d *Driver) int32 { return d.beginCapture(stream) })
		},
		"cuStreamEndCapture": func(stream uint64, to *uint64) int32 {
			return f.within("cuStreamEndCapture", func(d *Driver) (r int32) {
				*to, r = d.endCapture(stream)
				return r
			})
		},
		"cuGraphInstantiateWithFlags": func(to *uint64, graph, _ uint64) int32 {
			return f.within("cuGraphInstantiateWithFlags", func(d *Driver) (r int32) {
				*to, r = d.instantiate(graph)
				return r
			})
		},
		"cuGraphDestroy":     f.handle("cuGraphDestroy", drop[*graph]),
		"cuGraphExecDestroy": f.handle("cuGraphExecDestroy", drop[*graph]),
		"cuGraphLaunch": func(handle, of uint64) int32 {
			return f.within("cuGraphLaunch", func(d *Driver) int32 {
				g, ok := object[*graph](d, handle)
				if !ok {
					return invalidHandle
				}
				return d.submit(of, g)
			})
		},
	}
}

// mapped reports whether the first and the last page of b are mapped into the process.
func mapped(b []byte) bool {
	page := uintptr(syscall.Getpagesize())
	first := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	var in [1]byte
	for _, at := range []uintptr{first, first + uintptr(len(b)) - 1} {
		_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, at&^(page-1), page, uintptr(unsafe.Pointer(&in[0])))
		if errno != 0 && !errors.Is(errno, syscall.EAGAIN) {
			return false
		}
	}
	return true
}
