package ipc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrInUse says that another process serves at that path.
var ErrInUse = errors.New("another process serves there")

// lockSuffix is appended to a socket's name for its lock.
const lockSuffix = ".lock"

// lockTries is how often a lock is tried whose owner does not listen.
const lockTries = 50

// lock marks the owner of a path. The system drops it when its owner ends, which distinguishes a socket left by a
// killed process from one in use.
type lock struct{ *os.File }

// take makes the socket, in a folder that no other user may enter.
func take(c Config) (*net.UnixListener, *lock, error) {
	if err := privateFolder(filepath.Dir(c.Path)); err != nil {
		return nil, nil, err
	}
	l, err := takeLock(c.Path + lockSuffix)
	for tries := 0; errors.Is(err, ErrInUse) && !answered(c) && tries < lockTries; tries++ {
		<-time.After(time.Millisecond) // a process that starts sweeps, and has had the lock for that
		l, err = takeLock(c.Path + lockSuffix)
	}
	if err != nil {
		return nil, nil, err
	}
	listener, err := listenLocked(c)
	if err != nil {
		return nil, nil, errors.Join(err, l.remove())
	}
	if c.Sweep != "" {
		sweep(filepath.Join(filepath.Dir(c.Path), c.Sweep))
	}
	return listener, l, nil
}

// answered reports whether a process listens.
func answered(c Config) bool {
	conn, err := net.Dial(c.Network, c.Path)
	if err == nil {
		_ = conn.Close() // dialing it was the whole test
	}
	return err == nil
}

// sweep removes the sockets that killed processes have left, whose lock is free. Its errors are ignored, because a
// socket in use is never touched.
func sweep(pattern string) {
	locks, _ := filepath.Glob(pattern + lockSuffix) // the pattern is well-formed
	for _, path := range locks {
		l, err := takeLock(path)
		if err != nil {
			continue
		}
		_ = os.Remove(strings.TrimSuffix(path, lockSuffix))
		_ = l.remove()
	}
}

func listenLocked(c Config) (*net.UnixListener, error) {
	info, err := os.Lstat(c.Path)
	switch {
	case err == nil && info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is no socket", c.Path)
	case err == nil:
		if err := os.Remove(c.Path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	l, err := net.ListenUnix(c.Network, &net.UnixAddr{Name: c.Path, Net: c.Network})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(c.Path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// takeLock locks the file of that path, which it makes. A process that ends removes its file, perhaps between our open
// and our lock: such a lock means nothing, so only one on the current file counts.
func takeLock(path string) (*lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close() // the error that matters is the first
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("%s: %w", path, ErrInUse)
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		mine, err := f.Stat()
		if there, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(mine, there) {
			return &lock{f}, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// remove releases the lock and removes its file.
func (l *lock) remove() error { return errors.Join(os.Remove(l.Name()), l.Close()) }
