package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// maxStateBytes bounds a state from outside.
const maxStateBytes = 8 << 30

// maxStates is how many states may lie around that nobody has asked for.
const maxStates = 4

// states are those that have come on the wire and that nobody has asked for yet.
type states struct {
	mu    sync.Mutex
	files map[uint64]*os.File // by call
	came  chan struct{}       // closed, and replaced, when one comes
}

func newStates() *states { return &states{files: map[uint64]*os.File{}, came: make(chan struct{})} }

// put keeps a state until it is asked for.
func (s *states) put(size *native.StateSize, f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.files[size.Call]; old != nil || len(s.files) == maxStates {
		_ = f.Close()
		return fmt.Errorf("state %d on its wire, with %d that nobody asked for", size.Call, len(s.files))
	}
	s.files[size.Call] = f
	close(s.came)
	s.came = make(chan struct{})
	return nil
}

// await returns the file of a state: frames and answers take different ways.
func (s *states) await(ctx context.Context, call uint64, died <-chan struct{}) (*os.File, error) {
	for {
		s.mu.Lock()
		f, came := s.files[call], s.came
		delete(s.files, call)
		s.mu.Unlock()
		if f != nil {
			return f, nil
		}
		select {
		case <-came:
		case <-died:
			return nil, fmt.Errorf("state %d: %w", call, spawn.ErrDied)
		case <-ctx.Done():
			return nil, fmt.Errorf("state %d: the plugin speaks of it, but does not send it", call)
		}
	}
}

// close forgets those that are left.
func (s *states) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for call, f := range s.files {
		_ = f.Close()
		delete(s.files, call)
	}
}

// readMemoryFile copies a memory file of another process into memory of our own. It is never mapped, since its
// owner could cut it, and no other kind of file is accepted, since reading might never end.
func readMemoryFile(f *os.File, bytes int64) ([]byte, error) {
	if bytes < 0 || bytes > maxStateBytes {
		return nil, fmt.Errorf("a state of %d bytes, at most %d", bytes, int64(maxStateBytes))
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return nil, errors.New("its state is not a memory file")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() < bytes {
		return nil, fmt.Errorf("its state has %d bytes, announced were %d", info.Size(), bytes)
	}
	b := make([]byte, bytes)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, bytes), b); err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	return b, nil
}

// writeMemoryFile returns a memory file that cannot be cut or changed.
func writeMemoryFile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("rlhost: state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("state: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "state")
	if _, err := f.Write(b); err != nil {
		return nil, errors.Join(fmt.Errorf("state: %w", err), f.Close())
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("state: seal: %w", err), f.Close())
	}
	return f, nil
}
