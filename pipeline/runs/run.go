package runs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

// PipelineFile is the name of the resolved pipeline in a run's folder.
const PipelineFile = "pipeline.toml"

// VideoFolder is the folder in a run's folder with the videos of its policy, each named by the env steps at which it was learned.
const VideoFolder = "videos"

// RecordingFolder is the folder in a run's folder with what its environments were given; see package tape.
const RecordingFolder = "recording"

// TrialsFolder is the folder in a run's folder with recordings of trials that failed, each in a folder named by the number of its change.
const TrialsFolder = "trials"

const checkpointsDir = "checkpoints"

// Run is one run's folder. Its methods may be called from any goroutine.
type Run struct {
	Dir string // its folder

	id   string
	disk disk

	mu     sync.Mutex // guards what follows and serialises writing
	keep   Retention
	info   Info
	lock   *os.File // nil while the run is only read
	failed uint64   // checkpoints that could not be written
}

// Retention says which checkpoints of a run stay.
type Retention struct {
	Newest int    // how many of the newest ones, 1 or more
	Best   bool   // the one with the highest mean return too
	Every  uint64 // the first one of each so many env steps, whatever else is removed; 0 = none so
}

// Retain sets which checkpoints stay from the next Save on.
func (r *Run) Retain(keep Retention) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = keep
}

// errReadOnly is returned for a write to a run that was opened and not locked.
var errReadOnly = errors.New("run was opened for reading: call Lock first")

// Create makes and locks the folder of a new run, dir/name/number. Numbers count up from 0001 and are never
// given twice, also not to two processes at once or after a folder was removed.
func Create(dir, name string) (*Run, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	parent := filepath.Join(dir, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create run: %w", advise(err, dir))
	}
	number, path, err := claimNumber(parent)
	if err != nil {
		return nil, fmt.Errorf("create run: %w", advise(err, dir))
	}
	r := newRun(path, Info{Format: Format, Name: name, Number: number,
		Started: time.Now().UTC().Truncate(time.Millisecond), Host: ThisHost(), State: Running})
	if err := r.Lock(); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("create run: %w", advise(err, dir)), r.Close())
	}
	return r, nil
}

func newRun(path string, i Info) *Run {
	return &Run{Dir: path, keep: Retention{Newest: 3, Best: true}, id: i.ID(), info: i}
}

func (r *Run) prepare() error {
	if err := os.Mkdir(filepath.Join(r.Dir, checkpointsDir), 0o755); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeInfo(r.info)
}

// ID returns name and number as name/0007.
func (r *Run) ID() string { return r.id }

// Info returns the content of run.json. Its maps are shared: do not change them.
func (r *Run) Info() Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info
}

// Update changes run.json. It keeps the run's name, number and format.
func (r *Run) Update(change func(*Info)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.update(change)
}

func (r *Run) update(change func(*Info)) error {
	if err := r.writable(); err != nil {
		return err
	}
	next := r.info
	next.Plugins, next.Policies = maps.Clone(next.Plugins), maps.Clone(next.Policies)
	next.Resumes = slices.Clone(next.Resumes)
	change(&next)
	next.Format, next.Name, next.Number = Format, r.info.Name, r.info.Number
	if err := r.writeInfo(next); err != nil {
		return fmt.Errorf("describe run %s: %w", r.id, advise(err, r.Dir))
	}
	return nil
}

// writeInfo replaces run.json, with mu held.
func (r *Run) writeInfo(i Info) error {
	b, err := encodeJSON(i)
	if err != nil {
		return err
	}
	if err := r.disk.replace(filepath.Join(r.Dir, infoFile), b); err != nil {
		return err
	}
	r.info = i
	return nil
}

// WritePipeline stores the resolved pipeline.
func (r *Run) WritePipeline(source []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.writable(); err != nil {
		return err
	}
	if err := r.disk.replace(filepath.Join(r.Dir, PipelineFile), source); err != nil {
		return fmt.Errorf("store the pipeline of run %s: %w", r.id, advise(err, r.Dir))
	}
	return nil
}

// Pipeline returns the resolved pipeline that the run was started with, as this version writes it.
func (r *Run) Pipeline() ([]byte, error) {
	text, err := files.Read(filepath.Join(r.Dir, PipelineFile), maxDocument)
	return []byte(upgraded(string(text))), err
}

// End marks the run as ended, with the reason.
func (r *Run) End(reason string) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.update(func(i *Info) {
		i.State, i.Reason, i.Ended = Ended, reason, &now
		i.SaveFailures += r.failed
	})
}

// Close releases the lock. It changes nothing else: a run that was not ended stays in state running.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return nil
	}
	err := r.lock.Close()
	r.lock = nil
	return err
}
