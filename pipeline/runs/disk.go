package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// tempPrefix starts the names of unfinished files. The holder of the run's lock may remove them.
const tempPrefix = ".tmp-"

// disk makes files durable. fail is for tests: it is called before each step that could fail, and its error
// takes the step's place.
type disk struct {
	fail func(step, path string) error
}

func (d *disk) check(step, path string) error {
	if d.fail == nil {
		return nil
	}
	return d.fail(step, path)
}

// replace makes data the content of path: all of it or, after an error, none.
func (d *disk) replace(path string, data []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	if err := d.write(temp, data); err != nil {
		_ = os.Remove(temp)
		return err
	}
	if err := d.rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return d.sync(filepath.Dir(path))
}

// write creates a file and flushes it to the disk. After an error a part of it may be there.
func (d *disk) write(path string, data []byte) error {
	if err := d.check("create", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := d.fill(f, data); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func (d *disk) fill(f *os.File, data []byte) error {
	if err := d.check("write", f.Name()); err != nil {
		// A disk that is full takes a part.
		_, _ = f.Write(data[:len(data)/2])
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := d.check("flush", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

func (d *disk) rename(from, to string) error {
	if err := d.check("rename", to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// sync makes the names in a folder durable. Errors of file systems that cannot are ignored.
func (d *disk) sync(dir string) error {
	if err := d.check("sync", dir); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// advise adds help to an error of the operating system.
func advise(err error, dir string) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: free some space there, or keep runs on another disk with run.dir", err)
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: raise the limit on the size of a file (ulimit -f)", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: make %s writable, or choose another folder with run.dir", err, dir)
	}
	return err
}

// removeTemps removes the unfinished files of a killed process in dir.
func removeTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if len(e.Name()) > len(tempPrefix) && e.Name()[:len(tempPrefix)] == tempPrefix {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Free returns how many bytes there is room for in a folder, or where it will be made; 0 where nobody knows.
func Free(dir string) int64 {
	dir, err := filepath.Abs(dir)
	for ; err == nil; dir = filepath.Dir(dir) {
		var free int64
		if free, err = freeAt(dir); err == nil {
			return free
		}
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			err = nil // it will be made
		}
	}
	return 0
}
