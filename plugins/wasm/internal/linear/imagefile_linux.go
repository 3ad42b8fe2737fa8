package linear

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// imageFile is a memory file that is sealed against changes.
type imageFile struct {
	fd      int
	content []byte // mapped for reading
	sum     [sha256.Size]byte
}

// newImageFile makes a file with that content. Pages of zeros take no memory.
func newImageFile(content []byte) (*imageFile, error) {
	fd, err := unix.MemfdCreate("rlhost-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := &imageFile{fd: fd, sum: sha256.Sum256(content)}
	if err := f.fill(content); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return f, nil
}

func (f *imageFile) fill(content []byte) error {
	if err := unix.Ftruncate(f.fd, int64(len(content))); err != nil {
		return err
	}
	for _, p := range changedPages(content, nil, nil) {
		if n, err := unix.Pwrite(f.fd, p.Data, int64(p.Number)*HostPage); err != nil || n != len(p.Data) {
			return fmt.Errorf("write page %d: %d bytes: %w", p.Number, n, err)
		}
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_ADD_SEALS, seals); err != nil {
		return err
	}
	var err error
	f.content, err = unix.Mmap(f.fd, 0, len(content), unix.PROT_READ, unix.MAP_SHARED)
	return err
}

func (f *imageFile) close() {
	_ = unix.Munmap(f.content) // mapped above: it can only succeed
	_ = unix.Close(f.fd)
}

// Sealed reports whether a file can never become shorter than end bytes. A window onto a file that can is a
// window through which the process can be killed.
func Sealed(fd int, end int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Size < end {
		return fmt.Errorf("the file has %d bytes, the block ends at %d", st.Size, end)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return err
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return errors.New("the file is not sealed against shrinking")
	}
	return nil
}

// Segment distinguishes segments. A descriptor does not: it can be reused once it is closed. While a segment is
// mapped its number is unique.
type Segment struct{ device, inode uint64 }

// SegmentOf returns the segment of a descriptor.
func SegmentOf(fd int) (Segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Segment{}, err
	}
	return Segment{st.Dev, st.Ino}, nil
}
