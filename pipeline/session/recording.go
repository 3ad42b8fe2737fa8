package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// recordingOf begins the recording that the run's pipeline asks for; nil if it asks for none.
func recordingOf(s *Session) (*tape.Ring, error) {
	limit := s.graph.Run.Record
	if limit == 0 {
		return nil, nil
	}
	dir := filepath.Join(s.run.Dir, runs.RecordingFolder)
	r, err := tape.Create(dir, tape.Options{Limit: limit, Ended: s.o.Ended, Fails: func(err error) {
		s.log.Warn("the run goes on, and is not recorded any more", "folder", dir, "error", err)
	}})
	if err != nil {
		return nil, fmt.Errorf("run.record: %w", err)
	}
	return r, nil
}

// trialBytes bounds the recording of a trial, and keptTrials how many of them a run keeps: the newest.
const (
	trialBytes = 64 << 20
	keptTrials = 8
)

// replayOf is the command that plays the episode with which the environments of a change failed.
func (l *live) replayOf(number uint64) string {
	return fmt.Sprintf("rlhost replay %s --trial %d", l.Run.ID(), number)
}

// replays is replayOf for environments that failed in the run; empty where it records nothing.
func (l *live) replays(number uint64) string {
	if l.Pipeline.Graph().Run.Record == 0 {
		return ""
	}
	return l.replayOf(number)
}

// record begins the recording of a trial; nil where that is not possible: the trial is made all the same.
func (t *trial) record() *tape.Ring {
	r, err := tape.Create(t.folder(), tape.Options{Limit: trialBytes})
	if err != nil {
		t.log.Warn("a trial is not recorded", "error", err)
		return nil
	}
	return r
}

// folder is that of the trial's recording.
func (t *trial) folder() string {
	return filepath.Join(t.Run.Dir, runs.TrialsFolder, strconv.FormatUint(t.number, 10))
}

// keep ends the recording of a trial, and keeps it if the trial has failed.
func (t *trial) keep(r *tape.Ring, failed bool) {
	if r == nil {
		return
	}
	err := r.Close()
	if t.kept = failed && err == nil; t.kept {
		err = t.forget()
	} else {
		err = errors.Join(err, os.RemoveAll(t.folder()))
		_ = os.Remove(filepath.Dir(t.folder())) // unless others are there
	}
	if err != nil {
		t.log.Warn("the recording of a trial", "folder", t.folder(), "error", err)
	}
}

// forget removes the oldest recordings of trials.
func (t *trial) forget() error {
	dir := filepath.Dir(t.folder())
	entries, err := os.ReadDir(dir)
	var numbers []uint64
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers[:max(0, len(numbers)-keptTrials)] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, strconv.FormatUint(n, 10))))
	}
	return err
}
