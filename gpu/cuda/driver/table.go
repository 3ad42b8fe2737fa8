package driver

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// Library is the file name of NVIDIA's driver.
const Library = "libcuda.so.1"

// oldest is the version that the driver must have: CUDA 12.0.
const oldest = 12000

// symbol is a function of the driver.
type symbol int

const (
	cuInit symbol = iota
	cuDriverGetVersion
	cuGetErrorName
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetAttribute
	cuDeviceTotalMem
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxSetCurrent
	cuCtxGetStreamPriorityRange
	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemHostAlloc
	cuMemFreeHost
	cuMemHostRegister
	cuMemHostUnregister
	cuMemHostGetDevicePointer
	cuMemcpyAsync
	cuMemsetD8Async
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuLaunchKernel
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamWaitEvent
	cuStreamBeginCapture
	cuStreamEndCapture
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuGraphInstantiateWithFlags
	cuGraphDestroy
	cuGraphExecDestroy
	cuGraphLaunch
	symbols
)

// names are the symbols as the library exports them, in the versions of CUDA 12.
var names = [symbols]string{
	cuInit:                      "cuInit",
	cuDriverGetVersion:          "cuDriverGetVersion",
	cuGetErrorName:              "cuGetErrorName",
	cuDeviceGetCount:            "cuDeviceGetCount",
	cuDeviceGet:                 "cuDeviceGet",
	cuDeviceGetName:             "cuDeviceGetName",
	cuDeviceGetAttribute:        "cuDeviceGetAttribute",
	cuDeviceTotalMem:            "cuDeviceTotalMem_v2",
	cuDevicePrimaryCtxRetain:    "cuDevicePrimaryCtxRetain",
	cuDevicePrimaryCtxRelease:   "cuDevicePrimaryCtxRelease_v2",
	cuCtxSetCurrent:             "cuCtxSetCurrent",
	cuCtxGetStreamPriorityRange: "cuCtxGetStreamPriorityRange",
	cuMemGetInfo:                "cuMemGetInfo_v2",
	cuMemAlloc:                  "cuMemAlloc_v2",
	cuMemFree:                   "cuMemFree_v2",
	cuMemHostAlloc:              "cuMemHostAlloc",
	cuMemFreeHost:               "cuMemFreeHost",
	cuMemHostRegister:           "cuMemHostRegister_v2",
	cuMemHostUnregister:         "cuMemHostUnregister",
	cuMemHostGetDevicePointer:   "cuMemHostGetDevicePointer_v2",
	cuMemcpyAsync:               "cuMemcpyAsync",
	cuMemsetD8Async:             "cuMemsetD8Async",
	cuModuleLoadDataEx:          "cuModuleLoadDataEx",
	cuModuleUnload:              "cuModuleUnload",
	cuModuleGetFunction:         "cuModuleGetFunction",
	cuFuncGetAttribute:          "cuFuncGetAttribute",
	cuLaunchKernel:              "cuLaunchKernel",
	cuStreamCreateWithPriority:  "cuStreamCreateWithPriority",
	cuStreamDestroy:             "cuStreamDestroy_v2",
	cuStreamSynchronize:         "cuStreamSynchronize",
	cuStreamWaitEvent:           "cuStreamWaitEvent",
	cuStreamBeginCapture:        "cuStreamBeginCapture_v2",
	cuStreamEndCapture:          "cuStreamEndCapture",
	cuEventCreate:               "cuEventCreate",
	cuEventDestroy:              "cuEventDestroy_v2",
	cuEventRecord:               "cuEventRecord",
	cuGraphInstantiateWithFlags: "cuGraphInstantiateWithFlags",
	cuGraphDestroy:              "cuGraphDestroy",
	cuGraphExecDestroy:          "cuGraphExecDestroy",
	cuGraphLaunch:               "cuGraphLaunch",
}

func (s symbol) String() string { return names[s] }

// Symbols returns the names that Bind asks for.
func Symbols() []string { return append([]string(nil), names[:]...) }

// Table holds the functions of a driver. It is immutable.
type Table struct {
	functions [symbols]uintptr
	version   int
}

// Open loads a driver from a library: Library, or its path. A library that cannot be loaded is ErrNoDriver, a library that
// lacks a symbol or is older than CUDA 12.0 ErrOldDriver, a driver that finds no device ErrNoDevice. A library stays
// loaded for the rest of the process.
func Open(library string) (*Table, error) {
	runtime.LockOSThread() // the reason of a failure belongs to the thread
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	runtime.UnlockOSThread()
	if err != nil && !strings.Contains(err.Error(), library) {
		err = fmt.Errorf("%s: cannot be loaded: %w", library, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return Bind(func(name string) (uintptr, error) { return purego.Dlsym(handle, name) })
}

// Bind fills a table with functions that lookup finds by their names, Symbols, with the C ABI and the
// arguments of NVIDIA's cuda.h. It initialises the driver. Errors are Open's; an error of lookup is ErrOldDriver.
func Bind(lookup func(name string) (uintptr, error)) (*Table, error) {
	t := &Table{}
	for s, name := range names {
		f, err := lookup(name)
		if err == nil && f == 0 {
			err = errors.New("undefined symbol: " + name)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOldDriver, err)
		}
		t.functions[s] = f
	}
	c := newCalls(t)
	if err := c.call(cuInit, 0); err != nil {
		return nil, noDevice(err)
	}
	if err := c.call(cuDriverGetVersion, c.result(0)); err != nil {
		return nil, err
	}
	if t.version = int(int32(c.results[0])); t.version < oldest {
		return nil, fmt.Errorf("%w: it has CUDA %s, 12.0 or newer is needed", ErrOldDriver, t.Version())
	}
	return t, nil
}

// Version is the newest version of CUDA that the driver knows, such as 12.4.
func (t *Table) Version() string { return fmt.Sprintf("%d.%d", t.version/1000, t.version%1000/10) }

// Devices returns how many devices there are.
func (t *Table) Devices() (int, error) {
	c := newCalls(t)
	err := c.call(cuDeviceGetCount, c.result(0))
	return int(int32(c.results[0])), err
}
