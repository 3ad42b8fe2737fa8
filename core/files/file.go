package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Errors about the file itself. Each comes in an *fs.PathError, which names the path; a file that is not there is
// fs.ErrNotExist as usual.
var (
	// ErrNotRegular: the path leads to a folder, a pipe, a device or a socket.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge: the file has more bytes than the caller allows.
	ErrTooLarge = errors.New("file is too large")
)

// Open opens a regular file for reading. It follows links and never waits, not even for a pipe without a writer:
// anything but a regular file is ErrNotRegular.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for a file that others may have replaced by something else: see Open.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, perm)
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but a %s", ErrNotRegular, kind(info.Mode()))}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Read returns the content of a regular file of at most limit bytes; a longer one is ErrTooLarge. It reads no more than
// limit+1 bytes whatever size the file claims or grows to.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := readAll(f, limit+1)
	if err == nil && int64(len(content)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)}
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// largeRead bounds the allocation that trusts a file's size.
const largeRead = 1 << 20

// readAll reads a file to its end or to limit, in one call where the reported size is right.
func readAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, min(info.Size(), limit, largeRead)+bytes.MinRead))
	_, err = content.ReadFrom(io.LimitReader(f, limit))
	return content.Bytes(), err
}

// SHA256 returns the sum of a regular file of any size, in hexadecimal.
func SHA256(path string) (string, error) {
	f, err := Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// In returns a path that is absolute, or else relative to dir, as one to open.
func In(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Relative returns how a file in dir would name a path.
func Relative(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// Replace writes new content of a file as a whole or not at all. The file keeps its permissions.
func Replace(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return Write(path, data, info.Mode().Perm())
}

// Write writes a file, which may be there, as a whole or not at all. Its folder must be there.
func Write(path string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".rlhost-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// TryLock takes the lock of an open file or folder: alone, or shared with others that share it. It ends when f is closed, or with the process. taken is
// false where another lock excludes it.
func TryLock(f *os.File, shared bool) (taken bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}
