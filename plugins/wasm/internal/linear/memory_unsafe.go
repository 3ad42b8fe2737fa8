//go:build linux

package linear

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// Memory is the linear memory of one instance: all address space that it can have is reserved, and made accessible as it
// grows. Its base never moves, so windows stay where they are and host views stay valid.
//
// Compiled code cannot survive a fault: an access to a page that is missing, protected or beyond the end of a file
// kills the process. So these are the rules: pages below Size are always readable and writable, they are replaced and
// never removed, and the reservation is unmapped only by Release, when no call can follow.
//
// Its owner reads the exported fields, and sets the ones that say so. It is used by one goroutine at a time.
type Memory struct {
	Size    uint64 // bytes that the guest sees
	Limit   uint64 // most bytes of its own that the guest may have
	Donated uint64 // bytes of windows, which do not count against Limit; set by the owner
	Refused bool   // a growth was refused; cleared by the owner
	Broken  bool   // a mapping failed and may have left a hole: nothing may run in this memory again

	base     unsafe.Pointer
	reserved uint64 // bytes of address space
	imaged   uint64 // bytes from 0 on that show a private file, but where the guest has written
}

// New reserves address space and makes the first size bytes accessible. The guest may have limit bytes of its own, or size if that is more.
// The number of windows is not known yet, so New reserves all that a module can address; if a limit on address space (ulimit -v) forbids
// that, there is less room for windows.
func New(size, limit uint64) (*Memory, error) {
	reserved := uint64(Addressable)
	base, err := reserve(reserved)
	if err != nil {
		reserved = max(limit, size, HostPage)
		base, err = reserve(reserved)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", reserved, err)
	}
	m := &Memory{base: base, reserved: reserved, Limit: max(limit, size)}
	if m.Reallocate(size) == nil {
		m.Release()
		return nil, fmt.Errorf("make %d bytes of guest memory accessible: %w", size, unix.ENOMEM)
	}
	return m, nil
}

// reserve takes address space without memory.
func reserve(bytes uint64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// Allocate hands wazero the memory that was reserved before; a module has only one.
func (m *Memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate grows the accessible part. It returns nil, which the guest sees as -1 from memory.grow, beyond the
// limit and the windows, or when the kernel refuses.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.Most() {
		m.Refused = true
		return nil
	}
	if size > m.Size {
		// [size, new size) lies within the reservation, which stays mapped until Release.
		tail := unsafe.Slice((*byte)(unsafe.Add(m.base, m.Size)), size-m.Size)
		if err := unix.Mprotect(tail, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			m.Refused = true
			return nil
		}
		m.Size = size
	}
	return m.Bytes()
}

// Free is called by wazero when a module closes, which a guest can cause in the middle of a call. The owner
// calls Release instead.
func (m *Memory) Free() {}

// Bytes returns the guest's memory. Its capacity ends where the accessible part does.
func (m *Memory) Bytes() []byte {
	return unsafe.Slice((*byte)(m.base), m.Size)
}

// Contains reports whether [ptr, ptr+n) lies in the guest's memory.
func (m *Memory) Contains(ptr, n uint64) bool { return ptr <= m.Size && n <= m.Size-ptr }

// MapShared puts pages of a file over guest memory: the guest's stores there are in the file. The file must be sealed
// against shrinking and hold [fileOffset, fileOffset+n); everything is a multiple of a page.
func (m *Memory) MapShared(fd int, fileOffset int64, ptr, n uint64) error {
	return m.mapOver(fd, fileOffset, ptr, n, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// mapImage puts a private copy of a file's pages over guest memory; pages are copied when they are written.
func (m *Memory) mapImage(fd int, ptr, n uint64) error {
	err := m.mapOver(fd, 0, ptr, n, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err == nil && ptr == 0 {
		m.imaged = n
	}
	return err
}

// MapPrivate puts a private view of a part of a file that others write over guest memory: their writes appear there, and only the guest
// sees its own. The pages are present at once. The file is as for MapShared.
func (m *Memory) MapPrivate(fd int, fileOffset int64, ptr, n uint64) error {
	err := m.mapOver(fd, fileOffset, ptr, n, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err == nil {
		_ = unix.Madvise(m.Bytes()[ptr:ptr+n], unix.MADV_POPULATE_READ) // a kernel that cannot does it later
	}
	return err
}

// MapZero puts fresh zero pages over guest memory: whole pages.
func (m *Memory) MapZero(ptr, n uint64) error {
	return m.mapOver(-1, 0, ptr, n, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// mapOver replaces the pages of [ptr, ptr+n), which must be accessible guest memory, atomically: the range is
// never without pages.
func (m *Memory) mapOver(fd int, fileOffset int64, ptr, n uint64, flags int) error {
	if !m.Contains(ptr, n) || ptr%HostPage != 0 || n%HostPage != 0 || fileOffset%HostPage != 0 {
		panic(fmt.Sprintf("wasm: mapping %d bytes at %d of %d bytes of guest memory", n, ptr, m.Size))
	}
	if n == 0 {
		return nil
	}
	_, err := unix.MmapPtr(fd, fileOffset, unsafe.Add(m.base, ptr), uintptr(n),
		unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED)
	m.Broken = m.Broken || err != nil
	m.imaged = min(m.imaged, ptr)
	return err
}

// Entries of /proc/self/pagemap; see the kernel's admin-guide/mm/pagemap.
const (
	pageOfFile  = 1 << 61 // it is in a file, with no copy here
	pageSwapped = 1 << 62
	pagePresent = 1 << 63
)

// pagemap is open as long as the process lives; nil where the system has none.
var pagemap = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return f
})

// untouched reports which pages have not changed since they were mapped: below imaged they show the file, above they are
// zero. Other pages may have been written, mapped otherwise, or only read.
func (m *Memory) untouched() []bool {
	pages := make([]bool, m.Size/HostPage)
	entries := make([]uint64, len(pages))
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entries))), 8*len(entries))
	if f := pagemap(); f == nil {
		return pages
	} else if _, err := f.ReadAt(b, int64(uintptr(m.base)/HostPage*8)); err != nil {
		return pages
	}
	for i, entry := range entries {
		pages[i] = entry&(pagePresent|pageSwapped) == 0 || uint64(i)*HostPage < m.imaged && entry&pageOfFile != 0
	}
	return pages
}

// touchStep is how much touch asks for at once: meanwhile nothing can be mapped.
const touchStep = 1 << 20

// Touch has the kernel make all pages present, so that reading them no longer faults. A kernel that cannot does it
// later.
func (m *Memory) Touch() {
	for mem := m.Bytes(); len(mem) > 0; {
		n := min(len(mem), touchStep)
		if unix.Madvise(mem[:n], unix.MADV_POPULATE_READ) != nil {
			return
		}
		mem = mem[n:]
	}
}

// Most is the largest size that the guest may reach.
func (m *Memory) Most() uint64 { return min(m.Limit+m.Donated, m.reserved) }

// Release unmaps the reservation. No call may be running or follow.
func (m *Memory) Release() {
	if m.base == nil {
		return
	}
	if err := unix.MunmapPtr(m.base, uintptr(m.reserved)); err != nil {
		panic(fmt.Sprintf("wasm: unmap guest memory: %v", err))
	}
	m.base, m.Size, m.reserved = nil, 0, 0
}
