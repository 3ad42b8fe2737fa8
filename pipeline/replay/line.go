package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Codes of errors about episodes that cannot be played again.
const (
	CodeNoEpisode = "E162" // there is no such episode
	CodeGone      = "E164" // too little is kept of it
	CodeDiffers   = "E165" // the environment does not repeat itself
)

// episodesFile is the runner's file of episodes.
const episodesFile = "episodes.csv"

// Line is a line of episodes.csv.
type Line struct {
	Key
	Number int // of the line, from 1; Key.Number counts the agent's episodes in its environment
	tape.Episode
	EnvStep uint64
	Policy  string
	// Before is how many bytes of the file there were while the agent's previous episode was running, -1 if it had none in that life.
	Before int64
}

// Which chooses an episode.
type Which struct {
	Episode int // the number of its line, from 1; with Env, its number among the agent's episodes there, from 0
	Env     int // -1: any
	Agent   int
}

// Read returns the line of an episode of a run.
func Read(run *runs.Run, w Which) (Line, error) {
	f, err := files.Open(filepath.Join(run.Dir, episodesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Line{}, none(run, "the run has no "+episodesFile, "`log` of the component runner has \"jsonl\" where episodes are listed")
	}
	if err != nil {
		return Line{}, err
	}
	defer f.Close()
	return read(run, bufio.NewReaderSize(f, 1<<16), w)
}

// Gone is the error of an episode of which too little is kept. It wraps another one, which may be nil.
func Gone(run *runs.Run, l Line, why string, err error) error {
	return &table.Error{Code: CodeGone, Place: fmt.Sprintf("episode %d of %s", l.Number, run.ID()), Reason: why, Err: err,
		Help: `run.record = "1GiB" keeps the newest episodes of a run, whatever happens to it`}
}

func none(run *runs.Run, reason, help string) error {
	return &table.Error{Code: CodeNoEpisode, Place: run.ID(), Reason: reason, Help: help}
}

func read(run *runs.Run, in *bufio.Reader, w Which) (found Line, err error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return found, none(run, episodesFile+" is empty", "wait for an episode to end")
	}
	columns := map[string]int{}
	for i, name := range strings.Split(strings.TrimSpace(head), ",") {
		columns[name] = i
	}
	for _, name := range []string{"env", "return", "length", "terminated", "agent", "policy_version", "life", "number"} {
		if _, ok := columns[name]; !ok {
			return found, none(run, fmt.Sprintf("%s has no column %q: an earlier version of rlhost began it", episodesFile, name), "begin a new run; one that continues keeps the columns of its file")
		}
	}
	at, last, ok := int64(len(head)), map[Key]int64{}, false
	for number := 1; ; number++ {
		text, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return found, err
		}
		l, err := parse(strings.Split(strings.TrimSpace(text), ","), columns)
		if err != nil {
			return found, fmt.Errorf("line %d of %s: %w", number+1, episodesFile, err)
		}
		l.Number = number
		of := Key{Env: l.Key.Env, Agent: l.Key.Agent, Life: l.Life}
		if l.Before = -1; l.Key.Number > 0 {
			l.Before = last[of]
		}
		last[of] = at
		at += int64(len(text))
		if w.is(&l) { // of several lives the newest
			found, ok = l, true
			if w.Env < 0 {
				break
			}
		}
	}
	if !ok {
		return found, none(run, w.missing(), "rlhost runs episodes "+run.ID()+" lists the run's episodes")
	}
	return found, nil
}

// is reports whether a line is the wanted one.
func (w *Which) is(l *Line) bool {
	if w.Env < 0 {
		return l.Number == w.Episode
	}
	return int(l.Key.Env) == w.Env && int(l.Key.Agent) == w.Agent && int(l.Key.Number) == w.Episode
}

func (w *Which) missing() string {
	if w.Env < 0 {
		return fmt.Sprintf("there is no episode %d", w.Episode)
	}
	return fmt.Sprintf("there is no episode %d of agent %d of environment %d", w.Episode, w.Agent, w.Env)
}

func parse(cells []string, columns map[string]int) (l Line, err error) {
	whole := func(name string, bits int) uint64 {
		i, known := columns[name]
		if err != nil || !known {
			return 0
		}
		var v uint64
		if i >= len(cells) {
			err = fmt.Errorf("it has no %s", name)
		} else if v, err = strconv.ParseUint(cells[i], 10, bits); err != nil {
			err = fmt.Errorf("%s is %q", name, cells[i])
		}
		return v
	}
	l.Key = Key{Env: uint32(whole("env", 32)), Agent: uint16(whole("agent", 16)), Life: uint32(whole("life", 32)), Number: uint32(whole("number", 32))}
	l.Episode = tape.Episode{Env: l.Key.Env, Agent: l.Key.Agent, Number: l.Key.Number, Length: uint32(whole("length", 32)), PolicyVersion: whole("policy_version", 64)}
	l.EnvStep = whole("env_step", 64)
	if err != nil {
		return l, err
	}
	value, err := strconv.ParseFloat(cells[columns["return"]], 32)
	l.Return, l.Terminated = float32(value), cells[columns["terminated"]] == "true"
	if i, known := columns["policy"]; known && i < len(cells) {
		l.Policy = cells[i]
	}
	return l, err
}
