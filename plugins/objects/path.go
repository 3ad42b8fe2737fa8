package objects

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rlhost/rlhost/core/shm"
)

// ErrServed: another process serves objects at that path.
var ErrServed = errors.New("objects are served there already")

// place is a path that this process serves at: the socket, and a lock that says whose it is. The system drops the
// lock when its owner dies, so a socket that a killed server left behind can be told from one in use.
type place struct {
	listener *shm.Listener
	lock     *os.File
}

// listen makes the socket, in a folder that nobody else may enter.
func listen(path string) (*place, error) {
	if err := shm.PrivateFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path, lock)
	if err != nil {
		_ = lock.Close() // the error that matters is the first
		return nil, err
	}
	return &place{l, lock}, nil
}

func listenLocked(path string, lock *os.File) (*shm.Listener, error) {
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrServed)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("%s exists and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := shm.Listen(path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (p *place) close() error { return errors.Join(p.listener.Close(), p.lock.Close()) }
