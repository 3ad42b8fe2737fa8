package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove deletes the run's folder and all that is in it. ErrLocked says that a process writes to it. Its number is never given
// again.
func (r *Run) Remove() error {
	if err := r.Lock(); err != nil {
		return err
	}
	return errors.Join(remove(r.Dir), r.Close())
}

// Remove deletes the set's folder with the runs of all its seeds, unless they are being trained.
func (s *Set) Remove() error {
	if err := s.Lock(); err != nil {
		return err
	}
	return errors.Join(remove(s.Dir), s.Close())
}

// remove deletes a folder so that it is whole, or no longer a run's.
func remove(dir string) error {
	gone := filepath.Join(filepath.Dir(dir), tempPrefix+filepath.Base(dir))
	if err := os.Rename(dir, gone); err != nil {
		return fmt.Errorf("remove: %w", advise(err, dir))
	}
	return os.RemoveAll(gone)
}

// Bytes returns how much a folder's files take.
func Bytes(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it has gone meanwhile
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// Saved is a checkpoint of a run, without its contents.
type Saved struct {
	PolicyVersion, EnvSteps uint64
	MeanReturn              *float64
	Latest                  bool
	Best                    []string // "best", where it is the leading policy's, "best of rival"
}

// Checkpoints lists the checkpoints of a run, the one saved first first.
func (r *Run) Checkpoints() []Saved {
	root := filepath.Join(r.Dir, checkpointsDir)
	latest, _ := readPointer(root, Latest)
	var list []Saved
	for _, s := range scan(root) {
		list = append([]Saved{{s.m.PolicyVersion, s.m.EnvSteps, s.m.MeanReturn, s.folder == latest.Checkpoint, bestAt(root, s.folder)}}, list...)
	}
	return list
}
