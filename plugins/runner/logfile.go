package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// logFile is a file of lines that only grows. A line is there whole or not at all, also on a full disk.
type logFile struct {
	path   string
	header string // first line of a new file, with its newline
	f      *os.File
	size   int64
}

// append writes whole lines. After an error nothing of them is in the file, and a later call tries again.
func (l *logFile) append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	n, err := l.f.Write(lines)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	err = errors.Join(err, l.f.Truncate(l.size), l.f.Close())
	l.f = nil
	return err
}

// open opens or makes the file. A last line that a dead process left unfinished is ended.
func (l *logFile) open() error {
	if l.f != nil {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	stat, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.f, l.size = f, stat.Size()
	start := ""
	if l.size == 0 {
		start = l.header
	} else if !endsLine(f, l.size) {
		start = "\n"
	}
	return l.append([]byte(start))
}

// length returns the size of the file, 0 if it is not there.
func (l *logFile) length() int64 {
	if l.f != nil {
		return l.size
	}
	stat, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return stat.Size()
}

// endsLine reports whether a line ends right before the offset.
func endsLine(f *os.File, offset int64) bool {
	var b [1]byte
	_, err := f.ReadAt(b[:], offset-1)
	return err == nil && b[0] == '\n'
}

// rewind takes the file back to the size that it had at a checkpoint. The lines after it belong to an abandoned future;
// they move to a file of their own.
func (l *logFile) rewind(size int64) error {
	if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	if size >= l.size || size < 0 || size > 0 && !endsLine(l.f, size) {
		return nil // another run's file, or nothing behind it
	}
	other, err := os.OpenFile(l.path+".abandoned", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(other, io.NewSectionReader(l.f, size, l.size-size))
	if err = errors.Join(err, other.Close()); err != nil {
		return fmt.Errorf("keep the end of %s: %w", l.path, err)
	}
	if err := l.f.Truncate(size); err != nil {
		return err
	}
	l.size = size
	return nil
}

func (l *logFile) close() error {
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}
