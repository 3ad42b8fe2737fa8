package shm

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Open maps a segment that another process made, with every page in place. It takes ownership of the file: fd is closed by Close, and by
// Open itself on an error. The file may come from an untrusted process: a file that could be truncated under the mapping is rejected with
// ErrSeal, and so is a ReadWrite access to a segment of CreateReadOnly. If the machine cannot supply missing pages, the error is ErrMemory.
func Open(fd int, access Access) (*Segment, error) {
	s, err := open(fd, access)
	if err != nil {
		_ = unix.Close(fd) // the error that matters is the first
		return nil, fmt.Errorf("segment of file %d: %w", fd, err)
	}
	return s, nil
}

func open(fd int, access Access) (*Segment, error) {
	if access != ReadWrite && access != ReadOnly {
		return nil, fmt.Errorf("access %d is not known", access)
	}
	if err := checkSeals(fd, access); err != nil {
		return nil, err
	}
	// The seals are in place, so fstat's size stays true.
	size, err := checkedSize(fd)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	mem, err := mapShared(fd, size, access)
	if err != nil {
		return nil, err
	}
	return &Segment{name: fmt.Sprintf("file %d", fd), mem: mem, fd: fd}, nil
}

// checkSeals rejects files that can be truncated. Only memory files have seals; of any other the system says EINVAL.
func checkSeals(fd int, access Access) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSeal, err)
	}
	if seals&sizeSeals != sizeSeals {
		return fmt.Errorf("%w: it can shrink or grow", ErrSeal)
	}
	if access == ReadWrite && seals&(unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_WRITE) != 0 {
		return fmt.Errorf("%w: it can only be read", ErrSeal)
	}
	return nil
}

// checkedSize returns the size of the file. Mapping one with holes makes their pages, so a terabyte file that its
// sender never touched must be rejected before.
func checkedSize(fd int) (int, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, fmt.Errorf("fstat: %w", err)
	}
	if stat.Size <= 0 || stat.Size > math.MaxInt {
		return 0, fmt.Errorf("size of %d bytes: must be positive", stat.Size)
	}
	const sector = 512
	present := min(stat.Size, max(stat.Blocks, 0)*sector)
	if present == stat.Size {
		return int(stat.Size), nil // no page is missing that the machine would have to supply
	}
	if err := checkMemory(int(stat.Size - present)); err != nil {
		return 0, fmt.Errorf("size of %d bytes, of which %d exist: %w", stat.Size, present, err)
	}
	return int(stat.Size), nil
}
