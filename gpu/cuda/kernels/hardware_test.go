package kernels

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
	"github.com/rlhost/rlhost/gpu/cuda/ptx"
)

// hardware is a device with the kernels. What they read and write is memory of the host, where tests look at it.
type hardware struct {
	device *driver.Device
	set    *Set
	stream *driver.Stream

	mu     sync.Mutex
	pinned map[Address]*driver.Pinned
}

// opened is the device of the process, if a driver is named: its library, or fake for the one in Go.
var opened = sync.OnceValues(func() (*hardware, error) {
	library := os.Getenv("RLHOST_CUDA_DRIVER")
	if library == "" {
		return nil, nil
	}
	open := func() (*driver.Table, error) { return driver.Open(library) }
	if library == "fake" {
		open = func() (*driver.Table, error) { return driver.Bind(fake.New(fake.Options{Seed: rand.Uint64()}).Lookup) }
	}
	table, err := open()
	if err != nil {
		return nil, err
	}
	d, err := table.Device(0)
	if err != nil {
		return nil, err
	}
	set, err := Load(d)
	if err != nil {
		return nil, err
	}
	s, err := d.Stream(driver.High)
	return &hardware{device: d, set: set, stream: s, pinned: map[Address]*driver.Pinned{}}, err
})

func deviceOf(t testing.TB) *hardware {
	t.Helper()
	h, err := opened()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hardware) alloc(t testing.TB, bytes int) Address {
	t.Helper()
	p, err := h.device.Pinned((bytes + 3) / 4 * 4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(p.Bytes) / 4 {
		binary.NativeEndian.PutUint32(p.Bytes[4*i:], ptx.Poison)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pinned[p.Address] = p
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pinned, p.Address)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.Address
}

// view returns memory within an allocation.
func (h *hardware) view(at Address, n int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	for address, p := range h.pinned {
		if at >= address && at-address+Address(n) <= Address(len(p.Bytes)) {
			return p.Bytes[at-address:][:n:n]
		}
	}
	panic("kernels: no memory of a test")
}

// launch runs a kernel and waits for it.
func launch[T any](h *hardware, k Kernel[T], grid driver.Dim, parameter []byte) error {
	l, args, err := New(h.set, k)
	if err != nil {
		return err
	}
	copy(bytesOf(args), parameter)
	l.Grid = grid
	err = h.stream.Launch(l)
	return errors.Join(err, h.stream.Synchronize(), l.Close())
}
