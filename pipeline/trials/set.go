package trials

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
)

// Sweep is what a set keeps of the search that it is of.
type Sweep struct {
	Config search.Config `json:"config"`
	First  uint64        `json:"first_seed"` // of each trial's runs
	// EvaluationSeed is the seed of the evaluations of the search; the evaluations of its confirmation have the next one.
	EvaluationSeed uint64 `json:"evaluation_seed"`
}

// ErrNoSweep says that a set is one of seeds.
var ErrNoSweep = errors.New("is a set of seeds, and no search")

// New makes the set of a search over a pipeline's file, with overrides of its keys.
func New(dir, name, file string, sets []string, s Sweep) (*runs.Set, error) {
	info := runs.SetInfo{Rlhost: hostabi.Release, Sets: sets}
	var err error
	if info.Pipeline, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if info.SHA256, err = files.SHA256(info.Pipeline); err != nil {
		return nil, err
	}
	if info.Sweep, err = json.Marshal(s); err != nil {
		return nil, err
	}
	return runs.CreateSet(dir, name, info)
}

// Read returns the search that a set is of.
func Read(set *runs.Set) (*Sweep, error) {
	info := set.Info()
	if info.Sweep == nil {
		return nil, fmt.Errorf("%s %w", set.ID(), ErrNoSweep)
	}
	s := &Sweep{}
	if err := json.Unmarshal(info.Sweep, s); err != nil {
		return nil, fmt.Errorf("set.json of %s is damaged: %w", set.ID(), err)
	}
	if err := s.Config.Complete(0); err != nil {
		return nil, fmt.Errorf("set.json of %s is damaged: %w", set.ID(), err)
	}
	return s, nil
}

// History folds the journal of a search.
func History(set *runs.Set, c *search.Config) (*search.History, error) {
	lines, err := set.Journal()
	if err != nil {
		return nil, err
	}
	h := search.NewHistory(c)
	for i, line := range lines {
		r, err := search.ReadRecord(line)
		if err == nil {
			err = h.Add(r)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the journal of %s is damaged: %w", i+1, set.ID(), err)
		}
	}
	return h, nil
}

// Add writes a point that must be tried into the journal of a search that nobody runs.
func Add(set *runs.Set, p search.Point) (err error) {
	s, err := Read(set)
	if err != nil {
		return err
	}
	if err := set.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	h, err := History(set, &s.Config)
	if err != nil {
		return err
	}
	j, err := set.OpenJournal()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return (&ledger{h, j, nil}).add(&search.Record{Point: p})
}
