package shm

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxName is memfd_create's limit.
const maxName = 249

// populateStep is how much memory one fallocate call asks for. The kernel undoes a call that a signal
// interrupts, so a single call for a large segment might never come to its end.
const populateStep = 4 << 20

// Create returns a segment of at least the given number of bytes in a memory file that cannot shrink or grow, with
// every page in place. The name shows up in /proc/*/maps. It blocks while the kernel clears the pages (about a
// second for 2 GiB). Core dumps leave the memory out. Errors: ErrMemory, ErrUnsupported, or the system's.
func Create(name string, bytes int) (*Segment, error) {
	return createSealed(name, bytes, sizeSeals|unix.F_SEAL_SEAL)
}

// CreateReadOnly is Create for memory that no other process may write: the returned segment's mapping is the last
// writable one, and every later one of the file is read-only or refused by the system with EPERM. So the file may
// be given to an untrusted process. Kernels before 5.1 do not support it: ErrUnsupported.
func CreateReadOnly(name string, bytes int) (*Segment, error) {
	return createSealed(name, bytes, sizeSeals|unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
}

// sizeSeals keep a file at its size: without them a peer could truncate it, and the next access would be a SIGBUS.
const sizeSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

func createSealed(name string, bytes, seals int) (*Segment, error) {
	size, err := roundUp(bytes)
	if err != nil {
		return nil, fmt.Errorf("segment %q: %w", name, err)
	}
	if len(name) > maxName {
		return nil, fmt.Errorf("segment %.20q…: the name has %d bytes, %d are allowed", name, len(name), maxName)
	}
	if err := cmp.Or(checkFileSize(size), checkMemory(size)); err != nil {
		return nil, fmt.Errorf("segment %q of %d bytes: %w", name, size, err)
	}
	fd, err := memfd(name)
	if err != nil {
		return nil, fmt.Errorf("segment %q: memfd_create: %w", name, explain(err))
	}
	mem, err := mapSealed(fd, size, seals)
	if err != nil {
		_ = unix.Close(fd) // the error that matters is the first
		return nil, fmt.Errorf("segment %q of %d bytes: %w", name, size, err)
	}
	return &Segment{name: name, mem: mem, fd: fd}, nil
}

// memfd opens a memory file that can be sealed and not executed. Kernels before 6.3 do not know the second
// flag; with the setting vm.memfd_noexec=2 newer ones require it.
func memfd(name string) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		return unix.MemfdCreate(name, flags)
	}
	return fd, err
}

// mapSealed gives the file its size, all its pages, its mapping and its seals. The size is sealed before anything is
// mapped; the seal against writing spares only mappings that exist.
func mapSealed(fd, size, seals int) ([]byte, error) {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, fmt.Errorf("ftruncate: %w", explain(err))
	}
	if err := allocate(fd, size); err != nil {
		return nil, fmt.Errorf("fallocate: %w", explain(err))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, sizeSeals); err != nil {
		return nil, fmt.Errorf("seal: %w", explain(err))
	}
	mem, err := mapShared(fd, size, ReadWrite)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		_ = unix.Munmap(mem) // the error that matters is the first
		if errors.Is(err, unix.EINVAL) {
			return nil, fmt.Errorf("seal: %w: kernel older than 5.1: %w", ErrUnsupported, err)
		}
		return nil, fmt.Errorf("seal: %w", explain(err))
	}
	return mem, nil
}

// mapShared maps the first size bytes of a file with all their pages. Core dumps must not contain environments
// and weights, and large segments would make a dump useless.
func mapShared(fd, size int, access Access) ([]byte, error) {
	prot := unix.PROT_READ
	if access == ReadWrite {
		prot |= unix.PROT_WRITE
	}
	mem, err := unix.Mmap(fd, 0, size, prot, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", explain(err))
	}
	if err := unix.Madvise(mem, unix.MADV_DONTDUMP); err != nil {
		_ = unix.Munmap(mem) // the error that matters is the first
		return nil, fmt.Errorf("madvise: %w", explain(err))
	}
	return mem, nil
}

// allocate makes every page of the file exist. MAP_POPULATE alone does not report that memory ran out: the
// missing pages would fault at their first use.
func allocate(fd, size int) error {
	for off := 0; off < size; {
		n := min(size-off, populateStep)
		err := unix.Fallocate(fd, 0, int64(off), int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		off += n
	}
	return nil
}

func (s *Segment) discardPages(from int) error {
	if err := unix.Madvise(s.mem[from:], unix.MADV_REMOVE); err != nil {
		return fmt.Errorf("segment %q: discard: %w", s.name, err)
	}
	return nil
}

func (s *Segment) unmap() error {
	if err := errors.Join(unix.Munmap(s.mem), unix.Close(s.fd)); err != nil {
		return fmt.Errorf("segment %q: close: %w", s.name, err)
	}
	return nil
}

// explain adds the remedy to an errno.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w (kernel older than 3.17, or a sandbox forbids the call): %w", ErrUnsupported, err)
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w (free some, lower the number of blocks, or raise ulimit -v): %w", ErrMemory, err)
	case errors.Is(err, unix.EFBIG):
		return fmt.Errorf("%w (raise ulimit -f): %w", ErrMemory, err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("too many open files in this process (raise ulimit -n): %w", err)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("too many open files on this machine (raise fs.file-max): %w", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("a sandbox or security policy forbids memory files: %w", err)
	}
	return err
}
