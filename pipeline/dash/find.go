package dash

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/pipeline/compare"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Bounds on what is kept of runs that nobody looks at.
const (
	listFor = time.Second // how long a list of runs is good
	maxLogs = 32          // runs whose metrics are in memory
)

// group is what one word names: a run, or the runs of a set.
type group struct {
	Word string
	Set  bool
	Runs []*run
}

// finder knows which runs there are. Their keys are what addresses name them by: no address is ever a path.
type finder struct {
	dir   string
	words []string

	mu     sync.Mutex
	runs   map[string]*run // by their keys
	groups []group         // newest first
	at     time.Time       // when they were listed
}

// list returns what there is now, newest first.
func (f *finder) list() ([]group, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.at) < listFor {
		return f.groups, nil
	}
	groups, err := f.named()
	if err != nil {
		return nil, err
	}
	f.groups, f.at = groups, time.Now()
	return groups, nil
}

// named lists what the words name, or without words all of the folder. A word that names nothing yet has no runs.
func (f *finder) named() (groups []group, err error) {
	if len(f.words) == 0 {
		return f.all()
	}
	for _, word := range f.words {
		list, err := compare.Find(f.dir, word)
		if errors.Is(err, runs.ErrNotFound) {
			err = nil // it may begin later
		}
		if err != nil {
			return nil, err
		}
		_, notSet := runs.OpenSet(f.dir, word)
		groups = append(groups, group{Word: word, Set: notSet == nil, Runs: f.known(list)})
	}
	return groups, nil
}

func (f *finder) all() (groups []group, err error) {
	list, err := compare.List(f.dir)
	if err != nil {
		return nil, err
	}
	for _, r := range f.known(list) {
		groups = append(groups, group{Word: r.key, Runs: []*run{r}})
	}
	sets, err := runs.Sets(f.dir)
	if err != nil {
		return nil, err
	}
	for i := range sets {
		set, err := runs.OpenSet(f.dir, sets[i].ID())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := compare.OfSet(set)
		if err != nil {
			return nil, err
		}
		groups = append(groups, group{Word: sets[i].ID(), Set: true, Runs: f.known(list)})
	}
	slices.SortStableFunc(groups, func(a, b group) int { return b.started().Compare(a.started()) })
	return groups, nil
}

// started is when the newest run of a group began.
func (g *group) started() (at time.Time) {
	for _, r := range g.Runs {
		if r.began.After(at) {
			at = r.began
		}
	}
	return at
}

// known returns the runs of a list, the same as before where they were known. The caller holds mu.
func (f *finder) known(list []*compare.Run) (known []*run) {
	for _, r := range list {
		key := filepath.ToSlash(r.Dir)
		if inside, err := filepath.Rel(f.dir, r.Dir); err == nil && filepath.IsLocal(inside) {
			key = filepath.ToSlash(inside)
		}
		one := f.runs[key]
		if one == nil {
			one = newRun(key, r.Dir)
			f.runs[key] = one
		}
		one.began = r.Info.Started
		known = append(known, one)
	}
	return known
}

// group returns what a key or a word names.
func (f *finder) group(word string) (g group, ok bool, err error) {
	groups, err := f.list()
	if err != nil {
		return g, false, err
	}
	for _, g := range groups {
		if g.Word == word {
			return g, true, nil
		}
	}
	r, err := f.run(word)
	return group{Word: word, Runs: []*run{r}}, r != nil, err
}

// run returns the run with a key, or nil.
func (f *finder) run(key string) (*run, error) {
	if _, err := f.list(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[key], nil
}

// tidy forgets the metrics of the runs that were looked at least recently, beyond what is kept.
func (f *finder) tidy() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*run
	for _, r := range f.runs {
		if r.looked.Load() != 0 {
			kept = append(kept, r)
		}
	}
	slices.SortFunc(kept, func(a, b *run) int { return cmp.Compare(b.looked.Load(), a.looked.Load()) })
	for _, r := range kept[min(maxLogs, len(kept)):] {
		r.forget()
	}
}
