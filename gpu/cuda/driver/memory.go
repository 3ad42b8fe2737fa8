package driver

import (
	"errors"
	"fmt"
	"os"
)

// Address is a place that a device can reach: in its own memory, or in the host's.
type Address uint64

// Memory is memory of a device, with undefined contents.
type Memory struct {
	Address
	device *Device
}

// Alloc allocates memory of the device, at least one byte. It is aligned to 256 bytes.
func (d *Device) Alloc(bytes int) (*Memory, error) {
	c := newCalls(d.table)
	if err := d.call(c, cuMemAlloc, c.result(0), uintptr(bytes)); err != nil {
		free, _ := d.Free()
		return nil, fmt.Errorf("%d bytes of device memory, of which %d are free: %w", bytes, free, err)
	}
	return &Memory{Address(c.results[0]), d}, nil
}

// Close frees the memory, which no work under way may use.
func (m *Memory) Close() error {
	return m.device.call(newCalls(m.device.table), cuMemFree, uintptr(m.Address))
}

// Flags of host memory: any context may use it, and a device may read and write it in place.
const (
	hostPortable  = 1
	hostDeviceMap = 2
)

// Pinned is memory of the host that the device reads and writes in place. It is zero at first.
type Pinned struct {
	Bytes   []byte
	Address Address // for the device
	device  *Device
}

// Pinned allocates memory of the host, at least one byte.
func (d *Device) Pinned(bytes int) (*Pinned, error) {
	c := newCalls(d.table)
	if err := d.call(c, cuMemHostAlloc, c.result(0), uintptr(bytes), hostPortable|hostDeviceMap); err != nil {
		return nil, fmt.Errorf("%d bytes of pinned memory: %w", bytes, err)
	}
	p := &Pinned{Bytes: hostBytes(&c.results[0], bytes), device: d}
	clear(p.Bytes)
	var err error
	if p.Address, err = d.reach(c, p.Bytes); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// reach returns where the device finds memory of the host.
func (d *Device) reach(c *calls, b []byte) (Address, error) {
	err := d.call(c, cuMemHostGetDevicePointer, c.result(0), hostAddress(b), 0)
	return Address(c.results[0]), err
}

// Close frees the memory, which no work under way may use.
func (p *Pinned) Close() error {
	return p.device.call(newCalls(p.device.table), cuMemFreeHost, hostAddress(p.Bytes))
}

// Registration is a mapping of the host's that the device reads and writes in place, until Close.
type Registration struct {
	Address Address // of the first byte, for the device
	bytes   []byte
	device  *Device
}

// Register gives a mapping to the device. It begins at a page, is not empty, is no memory of Go's heap and is not unmapped
// before Close.
func (d *Device) Register(b []byte) (*Registration, error) {
	if page := uintptr(os.Getpagesize()); len(b) == 0 || hostAddress(b)%page != 0 {
		return nil, fmt.Errorf("register %d bytes at %#x: want some, from the beginning of a page", len(b), hostAddress(b))
	}
	c := newCalls(d.table)
	if err := d.call(c, cuMemHostRegister, hostAddress(b), uintptr(len(b)), hostPortable|hostDeviceMap); err != nil {
		return nil, fmt.Errorf("register %d bytes: %w", len(b), err)
	}
	r := &Registration{bytes: b, device: d}
	var err error
	if r.Address, err = d.reach(c, b); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close takes the mapping from the device, which no work under way may use.
func (r *Registration) Close() error {
	return r.device.call(newCalls(r.device.table), cuMemHostUnregister, hostAddress(r.bytes))
}
