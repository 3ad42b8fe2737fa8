package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
)

// changesFile has one line for each step of each change of the running job.
const changesFile = "events.jsonl"

// maxChanges bounds it where it is read whole: half a million changes.
const maxChanges = 1 << 30

// Steps of a change, as in a line.
const (
	StepBegin     = "begin"       // the change may have been made: pipeline.toml shows whether it was
	StepCommitted = "committed"   // it was
	StepRefused   = "refused"     // it was not; nothing has changed
	StepBack      = "rolled_back" // the previous version runs again, because the new one failed
	StepSettled   = "settled"     // the new version has passed its probation
	StepResumed   = "resumed"     // the run was resumed in another process, with pipeline.toml
	StepNoted     = "noted"       // another request to the job: pause, checkpoint, stop
)

// Change is one line of events.jsonl: a change of a running job, its author and its outcome.
type Change struct {
	Time          time.Time          `json:"time"`
	Step          string             `json:"event"`
	Number        uint64             `json:"change"` // the lines of one change have the same number
	What          string             `json:"what"`   // swap, rollback, reload, scale, fallback
	Component     string             `json:"component,omitempty"`
	Old           *Version           `json:"old,omitempty"`
	New           *Version           `json:"new,omitempty"`
	Before        string             `json:"pipeline_before,omitempty"` // hash of the graph
	After         string             `json:"pipeline_after,omitempty"`
	Differences   []string           `json:"differences,omitempty"` // of the two graphs, for people
	Back          []string           `json:"back,omitempty"`        // key=value overrides that turn the next graph back into the previous one
	Undo          []Table            `json:"undo,omitempty"`        // the previous graph's tables that differ, where overrides cannot say it
	Wraps         []Wrap             `json:"wraps,omitempty"`       // the wrappers around the component's environments that it changed
	EnvStep       uint64             `json:"env_step"`
	PolicyVersion uint64             `json:"policy_version"`
	At            string             `json:"at,omitempty"`      // boundary
	Outcome       *control.SwapReply `json:"outcome,omitempty"` // the client's reply
	Reason        string             `json:"reason,omitempty"`  // why it was refused or rolled back
	UID           int                `json:"uid"`               // of the requester
	Command       []string           `json:"command,omitempty"` // of the requester, with its arguments
}

// Table is one table of a pipeline; see graph.Section.
type Table struct {
	Name   string `json:"name"`
	Text   string `json:"text,omitempty"`
	Behind string `json:"behind,omitempty"`
}

// Wrap is a change of one wrapper around environments, by its place in the list: its table before and after, as TOML.
type Wrap struct {
	Place int    `json:"place"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// Version is a file that a component or its environments were made from.
type Version struct {
	File string `json:"file"`
	Hash string `json:"hash"` // SHA-256, hexadecimal
}

// Note appends a line to the run's events.jsonl and flushes it to the disk. An error is counted and says what to do;
// the run can continue without the line.
func (r *Run) Note(c Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return errReadOnly
	}
	if c.Time.IsZero() {
		c.Time = time.Now().UTC()
	}
	line, err := json.Marshal(c)
	if err == nil {
		err = r.appendLine(filepath.Join(r.Dir, changesFile), append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s of run %s lacks a line: %w", changesFile, r.id, advise(err, r.Dir))
	}
	return nil
}

// appendLine adds a whole line to a file. A partial line left by a killed process or a full disk is cut off
// first, so that lines never run together.
func (r *Run) appendLine(path string, line []byte) error {
	if err := r.disk.check("open", path); err != nil {
		return err
	}
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	end, err := wholeLines(f)
	if err == nil {
		err = r.extend(f, end, line)
	}
	if err = errors.Join(err, f.Close()); err != nil || !made {
		return err
	}
	return r.disk.sync(r.Dir)
}

// extend writes a line at an offset, all of it or, after an error, none.
func (r *Run) extend(f *os.File, end int64, line []byte) error {
	if err := f.Truncate(end); err != nil {
		return err
	}
	err := r.disk.check("write", f.Name())
	if err != nil {
		_, _ = f.WriteAt(line[:len(line)/2], end) // a full disk takes a part
	} else if _, err = f.WriteAt(line, end); err == nil {
		if err = r.disk.check("flush", f.Name()); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(end))
	}
	return err
}

// wholeLines returns where the last newline of a file ends.
func wholeLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	var chunk [4096]byte
	for size > 0 {
		n := min(size, int64(len(chunk)))
		if _, err := f.ReadAt(chunk[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// Changes returns the lines of events.jsonl, oldest first; a run that was never changed has none. A partial last
// line, left by a killed writer, is skipped.
func (r *Run) Changes() ([]Change, error) {
	path := filepath.Join(r.Dir, changesFile)
	data, err := files.Read(path, maxChanges)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Change
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return list, nil
		}
		data = rest
		var c Change
		if err := json.Unmarshal(line, &c); err != nil {
			return list, fmt.Errorf("%s line %d is %w: %w", path, n, ErrCorrupt, err)
		}
		list = append(list, c)
	}
}
