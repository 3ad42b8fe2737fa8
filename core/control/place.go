package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// ErrInUse: another process serves at that path.
var ErrInUse = errors.New("a job listens there already")

// Names of sockets and of their locks.
const (
	jobPrefix  = "job-"
	jobSuffix  = ".sock"
	lockSuffix = ".lock"
)

// maxPath is the longest path of a Unix socket on all systems.
const maxPath = 103

// SocketPath returns where the job with that run folder listens: in the user's runtime folder, else in a folder of the
// user's own in /tmp. It is short, whatever the run folder is called, and the same for all paths of one folder.
func SocketPath(runDir string) string {
	if abs, err := filepath.Abs(runDir); err == nil {
		runDir = abs
	}
	if real, err := filepath.EvalSymlinks(runDir); err == nil {
		runDir = real
	}
	sum := sha256.Sum256([]byte(runDir))
	name := jobPrefix + hex.EncodeToString(sum[:8]) + jobSuffix
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if path := filepath.Join(dir, "rlhost", name); len(path) <= maxPath {
			return path
		}
	}
	return filepath.Join("/tmp", "rlhost-"+strconv.Itoa(os.Geteuid()), name)
}

// place is a path that this process serves at: the socket, and a lock that says whose it is. The system drops the lock
// when its owner dies, so a socket that a killed job left behind can be told from one in use.
type place struct {
	listener *net.UnixListener
	lock     *os.File
}

// take makes the socket, in a folder that nobody else may enter.
func take(path string) (*place, error) {
	if err := shm.PrivateFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := takeLock(path + lockSuffix)
	for tries := 0; errors.Is(err, ErrInUse) && !answered(path) && tries < sweepTries; tries++ {
		<-time.After(time.Millisecond) // a job that starts sweeps, and has had the lock for that
		lock, err = takeLock(path + lockSuffix)
	}
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path)
	if err != nil {
		return nil, errors.Join(err, giveLock(lock))
	}
	sweep(filepath.Dir(path))
	return &place{l, lock}, nil
}

// sweepTries is how often a lock is tried that somebody has who does not listen.
const sweepTries = 50

// answered reports whether somebody listens at path.
func answered(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // it has told all there is to know
	}
	return err == nil
}

// sweep removes the sockets that killed jobs have left in a folder: those whose lock nobody has. Its errors are nobody's
// business, for a socket of a job that runs is never touched.
func sweep(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, jobPrefix+"*"+jobSuffix+lockSuffix)) // the pattern is well-formed
	for _, path := range locks {
		lock, err := takeLock(path)
		if err != nil {
			continue
		}
		_ = os.Remove(strings.TrimSuffix(path, lockSuffix))
		_ = giveLock(lock)
	}
}

func listenLocked(path string) (*net.UnixListener, error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is no socket", path)
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// takeLock locks the file of that path, which it makes. A job that ends removes its file, perhaps between our open and
// our lock: such a lock says nothing, so only one of the file that is there counts.
func takeLock(path string) (*os.File, error) {
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
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

func giveLock(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

// close removes the socket and whatever shows that there was one.
func (p *place) close() error { return errors.Join(p.listener.Close(), giveLock(p.lock)) }
