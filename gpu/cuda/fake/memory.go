package fake

import (
	"fmt"
	"slices"
	"syscall"
)

// pages is host memory that the device can reach.
type pages struct {
	bytes []byte
	own   bool // made by hostAlloc
}

func (d *Driver) alloc(n int) (uint64, int32) {
	if n <= 0 {
		return 0, invalidValue
	}
	if n > d.options.Memory-d.used {
		return 0, outOfMemory
	}
	address := d.memory.Alloc(n)
	d.device[address] = n
	d.used += n
	return address, success
}

func (d *Driver) free(address uint64) int32 {
	n, ok := d.device[address]
	if !ok || d.memory.Free(address) != nil {
		return invalidValue
	}
	delete(d.device, address)
	d.used -= n
	return success
}

// hostAlloc makes pinned memory.
func (d *Driver) hostAlloc(n int) ([]byte, int32) {
	if n <= 0 {
		return nil, invalidValue
	}
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, outOfMemory
	}
	address, err := d.memory.Register(b)
	if err != nil {
		return nil, alreadyRegistered
	}
	d.host[address] = &pages{b, true}
	return b, success
}

// register makes a mapping reachable for the device.
func (d *Driver) register(b []byte) int32 {
	if len(b) == 0 || !mapped(b) {
		return invalidValue
	}
	address, err := d.memory.Register(b)
	if err != nil {
		return alreadyRegistered
	}
	d.host[address] = &pages{b, false}
	return success
}

// unregister ends what register (or, with own, hostAlloc) began.
func (d *Driver) unregister(address uint64, own bool) int32 {
	p, ok := d.host[address]
	if !ok || p.own != own {
		return notRegistered
	}
	d.checkMapped()
	if d.memory.Unregister(address) != nil {
		return notRegistered
	}
	delete(d.host, address)
	if own && syscall.Munmap(p.bytes) != nil {
		return invalidValue
	}
	return d.sticky
}

// take is unregister without waiting for work: a copy that is still to be made would be one of memory that the device does not have.
func (d *Driver) take(address uint64) int32 {
	for _, o := range d.objects {
		s, ok := o.(*stream)
		if !ok {
			continue
		}
		for _, w := range s.queue {
			if c, ok := w.(*copied); ok && d.copies(c, address) {
				d.end(illegalAddress, fmt.Errorf("fake: host memory at %#x is unregistered before a copy of it is made", address))
			}
		}
	}
	return d.unregister(address, false)
}

// copies reports whether a copy is one from or to the host memory at an address.
func (d *Driver) copies(c *copied, address uint64) bool {
	p := d.host[address]
	return p != nil && slices.ContainsFunc(c.at[:], func(at uint64) bool { return at >= address && at-address < uint64(len(p.bytes)) })
}

// checkMapped ends the context if registered memory has been unmapped: a device would still write to its pages, and the
// next mapping at that address could not be registered.
func (d *Driver) checkMapped() {
	for address, p := range d.host {
		if !mapped(p.bytes) {
			d.end(illegalAddress, fmt.Errorf("fake: %d bytes of host memory at %#x were unmapped while they were registered", len(p.bytes), address))
		}
	}
}
