package seeds

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Trainer trains the seeds of a set that have not ended, each in its own process.
type Trainer struct {
	Program string // rlhost
	Set     *runs.Set
	Jobs    int // processes at a time
	Threads int // processors that each may use: GOMAXPROCS; 0 = all
	// Observe gets each change of a seed, one at a time. Progress is its newest report while it runs.
	Observe func(r runs.SeedRun, p Progress)
}

// New makes the set of a pipeline's file, with overrides of its keys, for these seeds.
func New(dir, name, file string, sets []string, list []uint64) (*runs.Set, error) {
	info := runs.SetInfo{Rlhost: hostabi.Release, Sets: sets}
	var err error
	if info.Pipeline, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	if info.SHA256, err = files.SHA256(info.Pipeline); err != nil {
		return nil, err
	}
	for _, seed := range list {
		info.Seeds = append(info.Seeds, runs.SeedRun{Seed: seed, State: runs.Pending})
	}
	return runs.CreateSet(dir, name, info)
}

// GoOn locks a set for a Trainer and adds the listed seeds that it lacks. The caller closes the set, unless there is an error.
func GoOn(set *runs.Set, list []uint64) error {
	if err := set.Lock(); err != nil {
		return err
	}
	if err := set.Extend(list); err != nil {
		return errors.Join(err, set.Close())
	}
	return nil
}

// Run trains until all seeds have ended or failed, or ctx is done: then the trainings are interrupted, which saves them, and
// their seeds stay as they are. A seed that fails is counted and the others continue. The error is about the set itself.
func (t *Trainer) Run(ctx context.Context) error {
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		errs    []error
		pending = make(chan runs.SeedRun)
	)
	note := func(r runs.SeedRun, p Progress) {
		mu.Lock()
		defer mu.Unlock()
		t.Observe(r, p)
	}
	for range max(t.Jobs, 1) {
		all.Go(func() {
			for r := range pending {
				if err := t.train(ctx, r, note); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, r := range t.Set.Info().Seeds {
		if r.State == runs.Ended || ctx.Err() != nil {
			continue
		}
		select {
		case pending <- r:
		case <-ctx.Done():
		}
	}
	close(pending)
	all.Wait()
	return errors.Join(errs...)
}

// train trains one seed and records the outcome. A seed that had begun continues from its newest checkpoint.
func (t *Trainer) train(ctx context.Context, r runs.SeedRun, note func(runs.SeedRun, Progress)) error {
	args, err := t.arguments(r.Seed)
	if err != nil {
		return err
	}
	r.State, r.Error = runs.Running, ""
	if err := t.Set.Update(r); err != nil {
		return err
	}
	note(r, Progress{})
	err = t.process(ctx, args, &r, note)
	if ctx.Err() != nil {
		r.State = runs.Pending
	} else if err != nil {
		r.State, r.Error = runs.SeedFailed, err.Error()
	}
	if err := t.Set.Update(r); err != nil {
		return err
	}
	note(r, Progress{})
	return nil
}

// arguments returns the arguments of a new or a resumed training.
func (t *Trainer) arguments(seed uint64) ([]string, error) {
	info, dir := t.Set.Info(), t.Set.SeedDir(seed)
	run, err := runs.Open(dir, runs.Latest)
	switch {
	case err == nil && saved(run):
		return []string{"train", "--json", "--resume", run.Dir}, nil
	case err != nil && !errors.Is(err, runs.ErrNotFound):
		return nil, err
	}
	if sum, err := files.SHA256(info.Pipeline); err != nil {
		return nil, err
	} else if sum != info.SHA256 {
		return nil, fmt.Errorf("%s is not the file that the set was begun with: begin a new set, or bring that file back", info.Pipeline)
	}
	args := []string{"train", info.Pipeline, "--json"}
	for _, s := range slices.Concat(info.Sets, []string{"run.seed=" + strconv.FormatUint(seed, 10), "run.dir=" + strconv.Quote(dir)}) {
		args = append(args, "--set", s)
	}
	return args, nil
}

func saved(run *runs.Run) bool {
	_, err := run.Load(runs.Latest)
	return err == nil
}

// process runs one training and fills in the result.
func (t *Trainer) process(ctx context.Context, args []string, r *runs.SeedRun, note func(runs.SeedRun, Progress)) error {
	last, err := (&Process{t.Program, t.Threads}).Train(ctx, args, func(p Progress) { note(*r, p) })
	if last.Run != "" {
		r.Run = filepath.Join(filepath.Base(t.Set.SeedDir(r.Seed)), last.Run)
	}
	if err != nil {
		return err
	}
	r.State, r.Reason, r.EnvSteps, r.WallSeconds = runs.Ended, last.Reason, last.EnvSteps, last.WallSeconds
	r.Return, r.Judged, r.ParamsHash = last.Return, last.Judged, last.ParamsHash
	r.Greedy, r.Sampled = last.Greedy.mean(), last.Sampled.mean()
	return nil
}

// Results returns the scores of the seeds of a set that have ended with an evaluation, and how many have ended and failed.
func Results(s *runs.SetInfo) (scores []float64, ended, failed int) {
	for _, r := range s.Seeds {
		switch r.State {
		case runs.Ended:
			ended++
			if r.Return != nil {
				scores = append(scores, *r.Return)
			}
		case runs.SeedFailed:
			failed++
		}
	}
	return scores, ended, failed
}
