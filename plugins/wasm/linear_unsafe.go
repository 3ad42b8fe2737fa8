//go:build linux

package wasm

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// linear is the linear memory of one instance: all address space that it can have is reserved, and made accessible as it
// grows. Its base never moves, so windows stay where they are and host views stay valid.
//
// Compiled code cannot survive a fault: an access to a page that is missing, protected or beyond the end of a
// file kills the process. Hence the rules: pages below size are always readable and writable, they are replaced
// and never removed, and the reservation is unmapped only by release, when no call can follow.
type linear struct {
	base     unsafe.Pointer
	reserved uint64 // bytes of address space
	limit    uint64 // most bytes of its own that the guest may have
	donated  uint64 // bytes of windows, which do not count against limit
	size     uint64 // bytes that the guest sees
	imaged   uint64 // bytes from 0 on that show a private file, but where the guest has written
	refused  bool   // a growth was refused
	broken   bool   // a mapping failed and may have left a hole: nothing may run in this memory again
}

// newLinear reserves address space and makes the first size bytes accessible. How many windows there will be is not known yet, so
// it is all that a module can address; where a limit on address space (ulimit -v) forbids that, there is less room for them.
func newLinear(size, limit uint64) (*linear, error) {
	reserved := uint64(addressable)
	base, err := reserve(reserved)
	if err != nil {
		reserved = max(limit, size, hostPage)
		base, err = reserve(reserved)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", reserved, err)
	}
	l := &linear{base: base, reserved: reserved, limit: max(limit, size)}
	if l.Reallocate(size) == nil {
		l.release()
		return nil, fmt.Errorf("make %d bytes of guest memory accessible: %w", size, unix.ENOMEM)
	}
	return l, nil
}

// reserve takes address space without memory.
func reserve(bytes uint64) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(bytes), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// Allocate hands wazero the memory that was reserved before; a module has only one.
func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate grows the accessible part. It returns nil, which the guest sees as -1 from memory.grow, beyond the
// limit and the windows, or when the kernel refuses.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.most() {
		l.refused = true
		return nil
	}
	if size > l.size {
		// [size, new size) lies within the reservation, which stays mapped until release.
		tail := unsafe.Slice((*byte)(unsafe.Add(l.base, l.size)), size-l.size)
		if err := unix.Mprotect(tail, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			l.refused = true
			return nil
		}
		l.size = size
	}
	return l.bytes()
}

// Free is called by wazero when a module closes, which a guest can cause in the middle of a call. The owner
// calls release instead.
func (l *linear) Free() {}

// bytes returns the guest's memory. Its capacity ends where the accessible part does.
func (l *linear) bytes() []byte {
	return unsafe.Slice((*byte)(l.base), l.size)
}

// contains reports whether [ptr, ptr+n) lies in the guest's memory.
func (l *linear) contains(ptr, n uint64) bool { return ptr <= l.size && n <= l.size-ptr }

// mapShared puts pages of a file over guest memory: what the guest stores there is in the file. The file must be
// sealed against shrinking and hold [fileOffset, fileOffset+n); everything is a multiple of a page.
func (l *linear) mapShared(fd int, fileOffset int64, ptr, n uint64) error {
	return l.mapOver(fd, fileOffset, ptr, n, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// mapPrivate puts a private copy of a file's pages over guest memory; pages are copied when they are written.
func (l *linear) mapPrivate(fd int, ptr, n uint64) error {
	err := l.mapOver(fd, 0, ptr, n, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err == nil && ptr == 0 {
		l.imaged = n
	}
	return err
}

// mapPrivateView is mapPrivate of a part of a file that others write: its pages are present at once, and none is copied.
func (l *linear) mapPrivateView(fd int, fileOffset int64, ptr, n uint64) error {
	err := l.mapOver(fd, fileOffset, ptr, n, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err == nil {
		_ = unix.Madvise(l.bytes()[ptr:ptr+n], unix.MADV_POPULATE_READ) // a kernel that cannot does it later
	}
	return err
}

// mapZero puts fresh zero pages over guest memory.
func (l *linear) mapZero(ptr, n uint64) error {
	return l.mapOver(-1, 0, ptr, n, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

// mapOver replaces the pages of [ptr, ptr+n), which must be accessible guest memory, atomically: the range is
// never without pages.
func (l *linear) mapOver(fd int, fileOffset int64, ptr, n uint64, flags int) error {
	if !l.contains(ptr, n) || ptr%hostPage != 0 || n%hostPage != 0 || fileOffset%hostPage != 0 {
		panic(fmt.Sprintf("wasm: mapping %d bytes at %d of %d bytes of guest memory", n, ptr, l.size))
	}
	if n == 0 {
		return nil
	}
	_, err := unix.MmapPtr(fd, fileOffset, unsafe.Add(l.base, ptr), uintptr(n),
		unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED)
	l.broken = l.broken || err != nil
	l.imaged = min(l.imaged, ptr)
	return err
}

// Entries of /proc/self/pagemap; see the kernel's admin-guide/mm/pagemap.
const (
	pageOfFile  = 1 << 61 // it lies in a file, and no copy of it here
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

// untouched reports which pages are as they were mapped: those below imaged show the file, those above are zero. Of others
// nothing is known: they may have been written, mapped otherwise, or only read.
func (l *linear) untouched() []bool {
	pages := make([]bool, l.size/hostPage)
	entries := make([]uint64, len(pages))
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(entries))), 8*len(entries))
	if f := pagemap(); f == nil {
		return pages
	} else if _, err := f.ReadAt(b, int64(uintptr(l.base)/hostPage*8)); err != nil {
		return pages
	}
	for i, entry := range entries {
		pages[i] = entry&(pagePresent|pageSwapped) == 0 || uint64(i)*hostPage < l.imaged && entry&pageOfFile != 0
	}
	return pages
}

// touchStep is how much touch asks for at once: meanwhile nothing can be mapped.
const touchStep = 1 << 20

// touch has the kernel make all pages present, so that reading them no longer faults. A kernel that cannot does it
// later.
func (l *linear) touch() {
	for mem := l.bytes(); len(mem) > 0; {
		n := min(len(mem), touchStep)
		if unix.Madvise(mem[:n], unix.MADV_POPULATE_READ) != nil {
			return
		}
		mem = mem[n:]
	}
}

// most is the largest size that the guest may reach.
func (l *linear) most() uint64 { return min(l.limit+l.donated, l.reserved) }

// release unmaps the reservation. No call may be running or follow.
func (l *linear) release() {
	if l.base == nil {
		return
	}
	if err := unix.MunmapPtr(l.base, uintptr(l.reserved)); err != nil {
		panic(fmt.Sprintf("wasm: unmap guest memory: %v", err))
	}
	l.base, l.size, l.reserved = nil, 0, 0
}
