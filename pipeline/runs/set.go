package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

const setFile = "set.json"

// SetInfo is the content of set.json: one pipeline trained with several seeds.
type SetInfo struct {
	Format int    `json:"format"`
	Rlhost string `json:"rlhost"` // version of the program
	Name   string `json:"name"`
	Number int    `json:"number"`
	// Pipeline is the absolute path of the file, SHA256 its sum in hexadecimal, and Sets the overrides of the command line.
	Pipeline string    `json:"pipeline"`
	SHA256   string    `json:"sha256"`
	Sets     []string  `json:"sets,omitempty"`
	Started  time.Time `json:"started"`
	Seeds    []SeedRun `json:"seeds"` // in the order asked for
	// Sweep is the search that the set is of, where it is one: its trials are in the journal, and Seeds is empty.
	Sweep json.RawMessage `json:"sweep,omitempty"`
}

// Further states of a seed, after Running and Ended.
const (
	Pending    = "pending"
	SeedFailed = "failed"
)

// What the evaluation of a seed judged; see SeedRun.
const (
	JudgedGreedy  = "greedy"
	JudgedSampled = "sampled"
)

// SeedRun is the training of one seed.
type SeedRun struct {
	Seed  uint64 `json:"seed"`
	State string `json:"state"`         // Pending, Running, Ended or SeedFailed
	Run   string `json:"run,omitempty"` // its run's folder, relative to the set's; empty before there is one
	Error string `json:"error,omitempty"`

	Reason      string  `json:"reason,omitempty"` // why it ended
	EnvSteps    uint64  `json:"env_steps"`
	WallSeconds float64 `json:"wall_seconds"`
	// Return is the mean return of the evaluation that is judged, nil without one; Greedy and Sampled are the mean returns
	// of both ways of picking actions.
	Return     *float64 `json:"return"`
	Judged     string   `json:"judged,omitempty"` // greedy or sampled
	Greedy     *float64 `json:"greedy"`
	Sampled    *float64 `json:"sampled"`
	ParamsHash string   `json:"params_hash,omitempty"`
}

// Set is the folder of several trainings of one pipeline: set.json, and a folder seed-K with the runs of each seed. It is
// numbered among the runs of its name. Its methods may be called from any goroutine.
type Set struct {
	Dir string

	disk disk
	mu   sync.Mutex
	info SetInfo
	lock *os.File // nil while the set is only read
}

// CreateSet makes and locks the folder of a new set, dir/name/number.
func CreateSet(dir, name string, info SetInfo) (*Set, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	parent := filepath.Join(dir, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("create set: %w", advise(err, dir))
	}
	number, path, err := claimNumber(parent)
	if err != nil {
		return nil, fmt.Errorf("create set: %w", advise(err, dir))
	}
	info.Format, info.Name, info.Number = Format, name, number
	info.Started = time.Now().UTC().Truncate(time.Millisecond)
	s := &Set{Dir: path, info: info}
	if err := s.Lock(); err != nil {
		return nil, err
	}
	if err := s.write(info); err != nil {
		return nil, errors.Join(fmt.Errorf("create set: %w", advise(err, dir)), s.Close())
	}
	return s, nil
}

// OpenSet opens a set for reading: by the path of its folder, or as NAME/NUMBER in dir. It is fs.ErrNotExist if that is no
// set.
func OpenSet(dir, which string) (*Set, error) {
	paths := []string{which}
	if name, number, ok := strings.Cut(filepath.ToSlash(which), "/"); ok {
		if n, isNumber := parseNumber(number); isNumber {
			paths = append(paths, filepath.Join(dir, name, numberName(n)))
		}
	}
	for _, path := range paths {
		info, err := readSet(path)
		if err == nil {
			return &Set{Dir: path, info: info}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !isNotDir(path, err) {
			return nil, fmt.Errorf("open set: %w", err)
		}
	}
	return nil, fs.ErrNotExist
}

func readSet(dir string) (SetInfo, error) {
	path := filepath.Join(dir, setFile)
	b, err := files.Read(path, maxDocument)
	if err != nil {
		return SetInfo{}, err
	}
	var i SetInfo
	if err := checkFormat(path, b); err != nil {
		return i, err
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("%s is damaged: %w", path, err)
	}
	upgradeSeeds(b, i.Seeds)
	return i, nil
}

// Sets describes the sets in dir, the one started last at the end. Folders that hold none are left out.
func Sets(dir string) ([]SetInfo, error) {
	infos, err := described(dir, "sets", readSet, func(i *SetInfo, name string, number int) { i.Name, i.Number = name, number })
	slices.SortStableFunc(infos, func(a, b SetInfo) int { return a.Started.Compare(b.Started) })
	return infos, err
}

// Lock claims the set for writing until Close, so that two processes never train its seeds. ErrLocked says that one does.
func (s *Set) Lock() error {
	f, err := files.OpenFile(filepath.Join(s.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("lock set %s: %w", s.ID(), advise(err, s.Dir))
	}
	taken, err := flock(f, false)
	if err == nil && !taken {
		err = fmt.Errorf("%w by process %s: wait until it ends", ErrLocked, readText(f))
	}
	if err == nil {
		err = writeText(f, fmt.Sprint(os.Getpid()))
	}
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("lock set %s: %w", s.ID(), err)
	}
	s.lock = f
	return removeTemps(s.Dir)
}

// ID returns name and number as name/0007.
func (i *SetInfo) ID() string { return fmt.Sprintf("%s/%04d", i.Name, i.Number) }

// ID is that of the set's info.
func (s *Set) ID() string { return s.info.ID() }

// Info returns the content of set.json.
func (s *Set) Info() SetInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.info
	i.Seeds = slices.Clone(i.Seeds)
	return i
}

// Update replaces a seed's entry in set.json.
func (s *Set) Update(r SeedRun) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.info
	next.Seeds = slices.Clone(next.Seeds)
	for i := range next.Seeds {
		if next.Seeds[i].Seed == r.Seed {
			next.Seeds[i] = r
		}
	}
	if err := s.write(next); err != nil {
		return fmt.Errorf("describe set %s: %w", s.ID(), advise(err, s.Dir))
	}
	return nil
}

// Extend adds the seeds that the set lacks, as pending ones. The results of the others stay.
func (s *Set) Extend(seeds []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.info
	next.Seeds = slices.Clone(next.Seeds)
	for _, seed := range seeds {
		if !slices.ContainsFunc(next.Seeds, func(r SeedRun) bool { return r.Seed == seed }) {
			next.Seeds = append(next.Seeds, SeedRun{Seed: seed, State: Pending})
		}
	}
	if len(next.Seeds) == len(s.info.Seeds) {
		return nil
	}
	if err := s.write(next); err != nil {
		return fmt.Errorf("extend set %s: %w", s.ID(), advise(err, s.Dir))
	}
	return nil
}

func (s *Set) write(i SetInfo) error {
	if s.lock == nil {
		return errReadOnly
	}
	b, err := encodeJSON(i)
	if err != nil {
		return err
	}
	if err := s.disk.replace(filepath.Join(s.Dir, setFile), b); err != nil {
		return err
	}
	s.info = i
	return nil
}

// SeedDir returns the folder that the runs of a seed are made in.
func (s *Set) SeedDir(seed uint64) string { return filepath.Join(s.Dir, fmt.Sprintf("seed-%d", seed)) }

// Close releases the lock.
func (s *Set) Close() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}
