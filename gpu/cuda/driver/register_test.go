package driver

import (
	"os"
	"syscall"
	"testing"
)

// hostReadOnly is the flag of registrations that the device only reads.
const hostReadOnly = 8

// BenchmarkRegisterReadOnly gives a GiB of a mapping that can only be read to the device and takes it back, with the library that
// RLHOST_CUDA_DRIVER names.
func BenchmarkRegisterReadOnly(b *testing.B) {
	library := os.Getenv("RLHOST_CUDA_DRIVER")
	if library == "" {
		b.Skip("RLHOST_CUDA_DRIVER is not set")
	}
	table, err := Open(library)
	if err != nil {
		b.Fatal(err)
	}
	d, err := table.Device(0)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	const bytes = 1 << 30
	memory, err := syscall.Mmap(-1, 0, bytes, syscall.PROT_READ, syscall.MAP_SHARED|syscall.MAP_ANON|syscall.MAP_POPULATE)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Munmap(memory)
	c := newCalls(table)
	b.SetBytes(bytes)
	for b.Loop() {
		if err := d.call(c, cuMemHostRegister, hostAddress(memory), bytes, hostPortable|hostDeviceMap|hostReadOnly); err != nil {
			b.Fatal(err)
		}
		if err := (&Registration{bytes: memory, device: d}).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
