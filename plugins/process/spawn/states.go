package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/hostabi/native"
)

// maxStates is how many states may wait to be asked for.
const maxStates = 4

// stateLimit is how long a state may be on its way after the plugin has spoken of it.
const stateLimit = 10 * time.Second

// States are saved states that have come on a plugin's wire, until they are asked for. Any goroutine.
type States struct {
	limit int64

	mu    sync.Mutex
	files map[uint64]*os.File // by call; nil once closed
	came  chan struct{}       // closed, and replaced, when one comes
}

// NewStates returns a place for states of at most limit bytes.
func NewStates(limit int64) *States {
	return &States{limit: limit, files: map[uint64]*os.File{}, came: make(chan struct{})}
}

// Put keeps the file of a state until it is asked for, and owns it.
func (s *States) Put(size native.StateSize, f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || s.files[size.Call] != nil || len(s.files) == maxStates {
		return errors.Join(fmt.Errorf("number %d on its wire is a state that nobody has asked for", size.Call), f.Close())
	}
	s.files[size.Call] = f
	close(s.came)
	s.came = make(chan struct{})
	return nil
}

// Take waits for a state that the plugin has spoken of, and reads it: frames and answers take different ways. died is the
// process's.
func (s *States) Take(size native.StateSize, died <-chan struct{}) ([]byte, error) {
	end := time.NewTimer(stateLimit)
	defer end.Stop()
	for gone := false; ; {
		s.mu.Lock()
		f, came := s.files[size.Call], s.came
		delete(s.files, size.Call)
		s.mu.Unlock()
		switch {
		case f != nil:
			state, err := readState(f, size.Bytes, s.limit)
			return state, errors.Join(err, f.Close())
		case gone:
			return nil, fmt.Errorf("state %d: %w", size.Call, ErrDied)
		}
		select {
		case <-came:
		case <-died:
			gone = true // messages before the end count
		case <-end.C:
			return nil, fmt.Errorf("state %d: the plugin speaks of it, but does not send it", size.Call)
		}
	}
}

// Close forgets the states that are left, and takes no more.
func (s *States) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		_ = f.Close() // it will not be asked for
	}
	s.files = nil
}

// readState copies a memory file of another process into memory of our own. It is never mapped, since its
// owner could cut it, and no other kind of file is accepted, since reading might never end.
func readState(f *os.File, bytes, limit int64) ([]byte, error) {
	if bytes < 0 || bytes > limit {
		return nil, fmt.Errorf("a state of %d bytes, at most %d", bytes, limit)
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

// SendState sends a state, with its announcement, as a memory file that cannot be cut or changed.
func (w *Wire) SendState(size native.StateSize, b []byte) error {
	f, err := writeState(b)
	if err != nil {
		return err
	}
	return errors.Join(w.Send(native.Frame{State: &size}, int(f.Fd())), f.Close())
}

func writeState(b []byte) (*os.File, error) {
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
