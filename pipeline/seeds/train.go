package seeds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/component"
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

// Progress is a training's report while it runs.
type Progress struct {
	EnvSteps    uint64   `json:"env_steps"`
	PerSecond   float64  `json:"env_steps_per_s_10"`
	MeanReturn  *float64 `json:"train_return"` // over the window of training episodes
	WallSeconds float64  `json:"wall_seconds"`
}

// maxLine bounds a line that a training prints, and maxComplaint the part of its errors that is kept.
const (
	maxLine      = 1 << 20
	maxComplaint = 16 << 10
)

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
			runtime.LockOSThread() // whose end would kill the training: see Pdeathsig
			defer runtime.UnlockOSThread()
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

// end is the last line of a training.
type end struct {
	Event       string   `json:"event"`
	Reason      string   `json:"reason"`
	Error       string   `json:"error"`
	EnvSteps    uint64   `json:"env_steps"`
	WallSeconds float64  `json:"wall_seconds"`
	Return      *float64 `json:"eval_return"`
	Judged      string   `json:"eval_judged"`
	Greedy      *played  `json:"eval_greedy"`
	Sampled     *played  `json:"eval_sampled"`
	ParamsHash  string   `json:"params_hash"`
	Run         string   `json:"run"`
}

type played struct {
	Return float64 `json:"mean_return"`
}

func (p *played) mean() *float64 {
	if p == nil {
		return nil
	}
	return &p.Return
}

// process runs one training and fills in the result from its last line.
func (t *Trainer) process(ctx context.Context, args []string, r *runs.SeedRun, note func(runs.SeedRun, Progress)) error {
	cmd := exec.CommandContext(ctx, t.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it saves its state
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // Ctrl-C is for this process, which asks the trainings to end
		Pdeathsig: syscall.SIGKILL, // so that nothing holds their runs when the set continues
	}
	if t.Threads > 0 {
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(t.Threads))
	}
	complaints := &tail{}
	cmd.Stderr = complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	last := follow(out, func(p Progress) { note(*r, p) })
	err = cmd.Wait()
	if last.Run != "" {
		r.Run = filepath.Join(filepath.Base(t.Set.SeedDir(r.Seed)), last.Run)
	}
	if err != nil {
		return errors.New(firstOf(last.Error, complaints.String(), err.Error()))
	}
	if last.Event != "end" {
		return errors.New("the training said nothing of its end")
	}
	if last.Reason == string(component.StopInterrupted) { // by rlhost stop, which is no failure of the training
		return errors.New("it was stopped before its end")
	}
	r.State, r.Reason, r.EnvSteps, r.WallSeconds = runs.Ended, last.Reason, last.EnvSteps, last.WallSeconds
	r.Return, r.Judged, r.ParamsHash = last.Return, last.Judged, last.ParamsHash
	r.Greedy, r.Sampled = last.Greedy.mean(), last.Sampled.mean()
	return nil
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

// follow reads the lines of a training until they end, and returns the last one.
func follow(out io.Reader, progress func(Progress)) (last end) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e end
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		var p Progress
		if e.Event == "progress" && json.Unmarshal(lines.Bytes(), &p) == nil {
			progress(p)
			continue
		}
		if e.Event == "end" || e.Event == "start" {
			last = e
		}
	}
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	return last
}

// tail keeps the end of its input.
type tail struct{ b bytes.Buffer }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - maxComplaint; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

// String returns the kept end.
func (t *tail) String() string { return t.b.String() }

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
