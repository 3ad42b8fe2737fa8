package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

// ErrLocked is wrapped where another process writes to the run.
var ErrLocked = errors.New("run is in use")

// lockFile holds the process id of the holder. The file stays when the lock is released: removing it would let
// two processes lock two files of the same name.
const lockFile = "lock"

// Lock claims the run for writing until Close. ErrLocked names the process that holds it.
func (r *Run) Lock() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock != nil {
		return nil
	}
	f, err := files.OpenFile(filepath.Join(r.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("lock run %s: %w", r.ID(), advise(err, r.Dir))
	}
	taken, err := take(f)
	if err == nil && !taken {
		err = r.lockedBy(f)
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("lock run %s: %w", r.ID(), err)
	}
	if err := r.locked(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("lock run %s: %w", r.ID(), advise(err, r.Dir))
	}
	r.lock = f
	return nil
}

// ErrGone is wrapped where the folder of a run was removed, or another lies in its place, while the run was written.
var ErrGone = errors.New("the run's folder was removed")

// Gone reports whether the folder that was locked is no longer in its place. A folder that cannot be looked at for another reason,
// such as a network's, is not gone.
func (r *Run) Gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lock != nil && r.gone()
}

// gone is Gone of a locked run, with mu held.
func (r *Run) gone() bool {
	there, err := os.Stat(filepath.Join(r.Dir, lockFile))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	mine, err := r.lock.Stat()
	return err == nil && !os.SameFile(there, mine)
}

// writable says why nothing can be written to the run; mu is held. A folder that was removed is not made again.
func (r *Run) writable() error {
	switch {
	case r.lock == nil:
		return errReadOnly
	case r.gone():
		return fmt.Errorf("run %s: %w: %s", r.id, ErrGone, r.Dir)
	}
	return nil
}

// afterlife is how long a lock may outlive the process that held it: a process that it was starting when it was killed has the file
// open for a moment, and so has a process that asks for the holder.
const afterlife = 2 * time.Second

// take takes the lock, and reports false if a process that runs holds it.
func take(f *os.File) (taken bool, err error) {
	for end := time.Now().Add(afterlife); ; time.Sleep(afterlife / 200) {
		taken, err = flock(f, false)
		if taken || err != nil || time.Now().After(end) {
			return taken, err
		}
		if pid, err := strconv.Atoi(readText(f)); err != nil || processRuns(pid) {
			return false, nil
		}
	}
}

// locked writes the process id for later processes, removes the previous holder's unfinished files, and reads the finished ones.
func (r *Run) locked(f *os.File) error {
	if err := writeText(f, strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	for _, dir := range []string{r.Dir, filepath.Join(r.Dir, modulesDir)} {
		if err := removeTemps(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := readInfo(r.Dir)
	if errors.Is(err, fs.ErrNotExist) { // the run is being created
		return nil
	}
	if err == nil {
		r.info = info
	}
	return err
}

// lockedBy returns an error that names the lock's holder, as it wrote it into the file.
func (r *Run) lockedBy(f *os.File) error {
	pid, err := strconv.Atoi(readText(f))
	if err != nil {
		return fmt.Errorf("%w by another process: wait until it ends, or start a new run: rlhost train without --resume", ErrLocked)
	}
	return fmt.Errorf("%w by process %d: stop that one (kill -INT %d saves a checkpoint and ends it), or start a new run: rlhost train without --resume",
		ErrLocked, pid, pid)
}

// Holder returns the process that writes to the run, or 0 if none does.
func (r *Run) Holder() (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock != nil {
		return os.Getpid(), nil
	}
	f, err := files.Open(filepath.Join(r.Dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	free, err := flock(f, false) // closing the file releases it
	if free || err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(readText(f))
	if err != nil {
		return 0, fmt.Errorf("run %s is in use, but does not say by which process", r.ID())
	}
	return pid, nil
}

// writeText replaces the content of a small open file.
func writeText(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(text+"\n"), 0)
	return err
}

func readText(f *os.File) string {
	var b [32]byte
	n, _ := f.ReadAt(b[:], 0)
	return strings.TrimSpace(string(b[:n]))
}
