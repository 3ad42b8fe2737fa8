package runner

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/rlhost/rlhost/core/files"
)

// logFile is a file of records, such as lines, that only grows. A record is there whole or not at all, also on a full disk.
type logFile struct {
	path   string
	header []byte                           // first records of a new file
	whole  func(r io.Reader) (int64, error) // how many of the first bytes are whole records
	f      *os.File
	size   int64
}

// append writes whole records. After an error nothing of them is in the file, and a later call tries again.
func (l *logFile) append(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	n, err := l.f.Write(records)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	err = errors.Join(err, l.f.Truncate(l.size), l.f.Close())
	l.f = nil
	return err
}

// open opens or makes the file. A last record that a dead process left unfinished is cut off.
func (l *logFile) open() error {
	if l.f != nil {
		return nil
	}
	f, err := files.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	size, err := l.whole(f)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.size = f, size
	if size > 0 {
		return nil
	}
	return l.append(l.header)
}

// wholeLines returns where the last line ends.
func wholeLines(r io.Reader) (int64, error) {
	var whole, size int64
	for b := make([]byte, 64<<10); ; {
		n, err := r.Read(b)
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			whole = size + int64(i) + 1
		}
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// firstLine returns the first line of a file, without its end.
func firstLine(path string) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// mark returns the size of the file, 0 if it is not there.
func (l *logFile) mark() int64 {
	if l.f != nil {
		return l.size
	}
	stat, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return stat.Size()
}

// rewind takes the file back to the size that it had at a checkpoint. The records after it belong to an abandoned future;
// they move to a separate file.
func (l *logFile) rewind(size int64) error {
	if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	if size >= l.size || size < 0 {
		return nil
	}
	if whole, err := l.whole(io.NewSectionReader(l.f, 0, size)); err != nil || whole != size {
		return err // another run's file
	}
	other, err := files.OpenFile(l.path+".abandoned", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
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
