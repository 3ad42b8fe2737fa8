package driver

import (
	"fmt"
	"runtime"
)

// Device is a GPU with its primary context, which all of the process shares. It may be used by several goroutines.
type Device struct {
	Name         string
	Major, Minor int // compute capability
	Processors   int // streaming multiprocessors
	SharedMemory int // bytes of shared memory that one block of threads can have at most
	Memory       int // bytes

	table   *Table
	ordinal uint64
	context uint64
}

// Attributes of devices.
const (
	attributeProcessors   = 16
	attributeMajor        = 75
	attributeMinor        = 76
	attributeSharedMemory = 97
)

// Device retains the primary context of a device, counted from 0 among the devices of CUDA_VISIBLE_DEVICES. A number that
// no device has is ErrNoDevice.
func (t *Table) Device(number int) (*Device, error) {
	count, err := t.Devices()
	if err != nil {
		return nil, noDevice(err)
	}
	if number < 0 || number >= count {
		return nil, fmt.Errorf("%w: number %d of %d", ErrNoDevice, number, count)
	}
	d := &Device{table: t}
	c := newCalls(t)
	if err := c.call(cuDeviceGet, c.result(0), uintptr(number)); err != nil {
		return nil, noDevice(err)
	}
	d.ordinal = uint64(uint32(c.results[0]))
	if err := d.describe(c); err != nil {
		return nil, err
	}
	if err := c.call(cuDevicePrimaryCtxRetain, c.result(0), uintptr(d.ordinal)); err != nil {
		return nil, noDevice(err)
	}
	d.context = c.results[0]
	return d, nil
}

// CUDA is the newest version of CUDA that the device's driver knows, such as 12.4.
func (d *Device) CUDA() string { return d.table.Version() }

// describe reads a device's properties.
func (d *Device) describe(c *calls) (err error) {
	if d.Name, err = c.deviceName(d.ordinal); err != nil {
		return err
	}
	for _, a := range []struct {
		attribute uintptr
		to        *int
	}{{attributeMajor, &d.Major}, {attributeMinor, &d.Minor}, {attributeProcessors, &d.Processors}, {attributeSharedMemory, &d.SharedMemory}} {
		if err := c.call(cuDeviceGetAttribute, c.result(0), a.attribute, uintptr(d.ordinal)); err != nil {
			return err
		}
		*a.to = int(int32(c.results[0]))
	}
	err = c.call(cuDeviceTotalMem, c.result(0), uintptr(d.ordinal))
	d.Memory = int(c.results[0])
	return err
}

// Close releases the context. Everything made from the device must be closed before.
func (d *Device) Close() error {
	return newCalls(d.table).call(cuDevicePrimaryCtxRelease, uintptr(d.ordinal))
}

// do runs fn, which makes calls, with the device's context current on its thread.
func (d *Device) do(c *calls, fn func() error) error {
	if err := d.enter(c); err != nil {
		return err
	}
	defer runtime.UnlockOSThread()
	return fn()
}

// enter locks the goroutine to its thread, on which it makes the context current. The caller unlocks it, unless there is an
// error.
func (d *Device) enter(c *calls) error {
	runtime.LockOSThread()
	err := c.call(cuCtxSetCurrent, uintptr(d.context))
	if err != nil {
		runtime.UnlockOSThread()
	}
	return err
}

// call makes one call in the context.
func (d *Device) call(c *calls, s symbol, args ...uintptr) error {
	if err := d.enter(c); err != nil {
		return err
	}
	defer runtime.UnlockOSThread()
	return c.call(s, args...)
}

// Free returns how many bytes of the device's memory are free.
func (d *Device) Free() (int, error) {
	c := newCalls(d.table)
	err := d.call(c, cuMemGetInfo, c.result(0), c.result(1))
	return int(c.results[0]), err
}
