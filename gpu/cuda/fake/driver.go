package fake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// Results of the driver's functions, as cuda.h numbers them.
const (
	success              = 0
	invalidValue         = 1
	outOfMemory          = 2
	noDevice             = 100
	invalidDevice        = 101
	invalidContext       = 201
	invalidPTX           = 218
	unsupportedPTX       = 222
	invalidHandle        = 400
	notFound             = 500
	illegalAddress       = 700
	launchOutOfResources = 701
	launchTimeout        = 702
	alreadyRegistered    = 712
	notRegistered        = 713
	misaligned           = 716
	launchFailed         = 719
	captureUnsupported   = 900
	captureInvalidated   = 901
)

// Options describe the device. The zero value is a device with 80 GiB and CUDA 12.4.
type Options struct {
	// Seed orders the work of streams, and CTAs and warps of kernels.
	Seed uint64
	// Devices is how many there are, all alike; -1: none. 0 is 1.
	Devices int
	// Version is CUDA's, as in 12040. 0 is that.
	Version int
	// Memory is how many bytes a device has. 0 is 80 GiB.
	Memory int
	// Capability is the compute capability, as in 90. 0 is that.
	Capability int
	// Processors are the device's multiprocessors. 0 is 4.
	Processors int
	// Steps bounds kernels, as in ptx.Launch.
	Steps int
	// Launches is how many kernels can be submitted: the next one ends the context, as a device does that is lost. 0: any number.
	Launches int
	// Lazy leaves work undone until something waits for it, or for memory. Otherwise it is soon done.
	Lazy bool
	// Before is called before each function of the driver does anything, on the thread of the call, if it is not nil.
	Before func(name string)
	// Report gets the fault that ends the context, if it is not nil: a *ptx.Fault, or a fault of memory.
	Report func(error)
}

// Driver is a CUDA driver. It may be used from several threads.
type Driver struct {
	options   Options
	functions *functions

	mu       sync.Mutex   // for what follows
	contexts map[int]bool // threads on which the context is current
	fails    map[string]*failure
	made     map[string]int
	memory   *ptx.Memory
	device   map[uint64]int    // bytes of device memory by address
	host     map[uint64]*pages // pinned and registered memory by address
	used     int
	objects  map[uint64]any // modules, functions, streams, events and graphs by handle
	handle   uint64
	sticky   int32 // result of every call since a kernel faulted
	fault    error
	order    *rand.Rand
	launches uint64

	running sync.Mutex  // held by who runs work; taken before mu
	later   *time.Timer // runs work that the host does not wait for
}

// New makes a driver. A process has room for a hundred at a time: Close ends one.
func New(o Options) *Driver {
	if o.Devices == 0 {
		o.Devices = 1
	}
	for p, value := range map[*int]int{&o.Version: 12040, &o.Memory: 80 << 30, &o.Capability: 90, &o.Processors: 4} {
		if *p == 0 {
			*p = value
		}
	}
	d := &Driver{
		options: o, contexts: map[int]bool{}, fails: map[string]*failure{}, made: map[string]int{}, memory: ptx.NewMemory(),
		device: map[uint64]int{}, host: map[uint64]*pages{}, objects: map[uint64]any{}, order: rand.New(rand.NewPCG(o.Seed, 1)),
	}
	d.later = time.AfterFunc(time.Hour, d.runAll)
	d.later.Stop()
	d.functions = assign(d)
	return d
}

// Close ends the driver, which must not be called afterwards, and returns an error for leaks: memory, registrations, streams,
// events, modules and graphs that were not closed, and for the fault if there was one.
func (d *Driver) Close() error {
	d.later.Stop()
	d.running.Lock()
	defer d.running.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.functions.release()
	err := d.fault
	if n := len(d.device); n > 0 {
		err = errors.Join(err, fmt.Errorf("fake: %d allocations of device memory are left", n))
	}
	for address, p := range d.host {
		err = errors.Join(err, fmt.Errorf("fake: %d bytes of host memory at %#x are left", len(p.bytes), address))
		if p.own {
			err = errors.Join(err, syscall.Munmap(p.bytes))
		}
	}
	for _, o := range d.objects {
		if _, function := o.(*function); !function {
			err = errors.Join(err, fmt.Errorf("fake: a %T is left", o))
		}
	}
	return err
}

// Lookup returns the address of a function of cuda.h by its name, for driver.Bind.
func (d *Driver) Lookup(name string) (uintptr, error) {
	if f, ok := d.functions.addresses[name]; ok {
		return f, nil
	}
	return 0, fmt.Errorf("fake: there is no function %s", name)
}

// failure is that of a call that is to come.
type failure struct {
	calls  int // until then, that one included
	result int32
}

// FailOnce makes the next call of a function return a result instead of doing anything. Lookup must know the name.
func (d *Driver) FailOnce(name string, result int) { d.FailLater(name, 1, result) }

// FailLater is FailOnce for the n-th call from now on, counted from 1.
func (d *Driver) FailLater(name string, n, result int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails[name] = &failure{n, int32(result)}
}

// Calls returns how often a function was called.
func (d *Driver) Calls(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made[name]
}

// Fault returns the fault that ended the context, a *ptx.Fault or a fault of memory, or nil.
func (d *Driver) Fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// enter begins a call: it locks the driver and returns the result that the call has before it does anything. The caller
// unlocks.
func (d *Driver) enter(name string) int32 {
	if d.options.Before != nil {
		d.options.Before(name)
	}
	d.mu.Lock()
	d.made[name]++
	f := d.fails[name]
	if f == nil {
		return success
	}
	if f.calls--; f.calls > 0 {
		return success
	}
	delete(d.fails, name)
	return f.result
}

// within is enter for a call that needs the context.
func (d *Driver) within(name string) int32 {
	if r := d.enter(name); r != success {
		return r
	}
	if !d.contexts[syscall.Gettid()] {
		return invalidContext
	}
	return d.sticky
}

// end makes every later call fail. The caller has locked the driver.
func (d *Driver) end(result int32, why error) {
	if d.sticky != success {
		return
	}
	d.sticky, d.fault = result, why
	if d.options.Report != nil {
		d.options.Report(why)
	}
}

// add gives an object a handle. The caller has locked the driver.
func (d *Driver) add(object any) uint64 {
	d.handle += 16
	d.objects[d.handle] = object
	return d.handle
}

// object returns the object of a handle, if it has that type.
func object[T any](d *Driver, handle uint64) (T, bool) {
	o, ok := d.objects[handle].(T)
	return o, ok
}

// drop removes an object of a type.
func drop[T any](d *Driver, handle uint64) int32 {
	if _, ok := object[T](d, handle); !ok {
		return invalidHandle
	}
	delete(d.objects, handle)
	return success
}

// Attributes of devices.
const (
	attributeProcessors   = 16
	attributeMajor        = 75
	attributeMinor        = 76
	attributeSharedMemory = 97
)

// mostShared is an H100's limit: bytes of shared memory of a block that has opted in to more than ptx.MaxShared.
const mostShared = 227 << 10

func (d *Driver) attribute(number int32) int32 {
	switch number {
	case attributeProcessors:
		return int32(d.options.Processors)
	case attributeMajor:
		return int32(d.options.Capability / 10)
	case attributeMinor:
		return int32(d.options.Capability % 10)
	case attributeSharedMemory:
		return mostShared
	}
	return 0
}

// context is the handle of the device's primary context.
const context = 0xc0de

// names of results.
var names = map[int32]string{
	success: "CUDA_SUCCESS", invalidValue: "CUDA_ERROR_INVALID_VALUE", outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY",
	noDevice: "CUDA_ERROR_NO_DEVICE", invalidDevice: "CUDA_ERROR_INVALID_DEVICE", invalidContext: "CUDA_ERROR_INVALID_CONTEXT",
	invalidPTX: "CUDA_ERROR_INVALID_PTX", unsupportedPTX: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", invalidHandle: "CUDA_ERROR_INVALID_HANDLE",
	notFound: "CUDA_ERROR_NOT_FOUND", illegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS",
	launchOutOfResources: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", launchTimeout: "CUDA_ERROR_LAUNCH_TIMEOUT",
	alreadyRegistered: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", notRegistered: "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	misaligned: "CUDA_ERROR_MISALIGNED_ADDRESS", launchFailed: "CUDA_ERROR_LAUNCH_FAILED",
	captureUnsupported: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", captureInvalidated: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 999: "CUDA_ERROR_UNKNOWN", 709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
}
