package trials

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Runner makes runs as processes.
type Runner struct {
	seeds.Process
	Set   *runs.Set
	Sweep *Sweep
}

// Train makes the run of a task: it resumes where a former rung ended or a killed search left it, if that gives what an uninterrupted run
// gives, and else begins.
func (r *Runner) Train(ctx context.Context, t search.Task) (search.Outcome, error) {
	o := search.Outcome{Trial: t.Trial, Rung: t.Rung, Confirm: t.Confirm, Seed: t.Seed}
	dir := r.Set.TrialDir(t.Trial, t.Seed, t.Confirm)
	from, err := runs.Open(dir, runs.Latest)
	if err != nil && !errors.Is(err, runs.ErrNotFound) {
		return o, err
	}
	if err == nil && ended(from, t.Until) {
		info := from.Info()
		r.judge(&o, from.Dir, seeds.End{EnvSteps: info.Outcome.EnvSteps, WallSeconds: info.Outcome.WallSeconds, Return: info.Outcome.Return,
			ParamsHash: info.Outcome.ParamsHash, Reason: info.Reason})
		return o, nil
	}
	args, err := r.arguments(t, dir, from)
	if err != nil {
		return o, err
	}
	end, err := r.Process.Train(ctx, args, func(seeds.Progress) {})
	o.EnvSteps, o.Seconds = end.EnvSteps, end.WallSeconds
	if err != nil {
		o.Failed(err)
		return o, nil
	}
	r.judge(&o, filepath.Join(dir, filepath.FromSlash(end.Run)), end)
	return o, nil
}

// ended reports whether a run has come to its end behind so many env steps.
func ended(run *runs.Run, until uint64) bool {
	info := run.Info()
	return info.State == runs.Ended && info.Outcome != nil && info.Outcome.EnvSteps >= until
}

// arguments begin a training, or resume the given run.
func (r *Runner) arguments(t search.Task, dir string, from *runs.Run) ([]string, error) {
	stop := fmt.Sprintf("run.stop={ env_steps = %d }", t.Until)
	if from != nil && resumable(from, t.Until) {
		return []string{"train", "--json", "--resume", from.Dir, "--set", stop}, nil
	}
	info, c := r.Set.Info(), &r.Sweep.Config
	if sum, err := files.SHA256(info.Pipeline); err != nil {
		return nil, err
	} else if sum != info.SHA256 {
		return nil, fmt.Errorf("%s is not the file that the search was begun with: begin a new one, or bring that file back", info.Pipeline)
	}
	sets := slices.Concat(info.Sets, t.Set.Sets(), []string{stop, "run.seed=" + strconv.FormatUint(t.Seed, 10), "run.dir=" + strconv.Quote(dir)})
	if c.Episodes > 0 {
		sets = append(sets, fmt.Sprintf("run.evaluation.episodes=%d", c.Episodes))
	}
	if t.Confirm {
		sets = append(sets, fmt.Sprintf("run.evaluation.seed=%d", r.Sweep.EvaluationSeed+1))
	}
	args := []string{"train", info.Pipeline, "--json"}
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	return args, nil
}

// resumable reports whether a run can be trained up to so many env steps and be as if it had not been interrupted.
func resumable(run *runs.Run, until uint64) bool {
	c, err := run.Load(runs.Latest)
	return err == nil && c.EnvSteps < until && (c.Exact || run.Info().Mode != "sync")
}

// judge gives an outcome the value of a run that has ended.
func (r *Runner) judge(o *search.Outcome, dir string, end seeds.End) {
	o.EnvSteps, o.Seconds, o.Hash = end.EnvSteps, end.WallSeconds, end.ParamsHash
	if r.Sweep.Config.Objective != search.EvalReturn {
		value, err := lastMetric(filepath.Join(dir, "metrics.jsonl"), r.Sweep.Config.Objective)
		if err != nil {
			o.Failed(err)
			return
		}
		o.Judged(value)
		return
	}
	if end.Return == nil {
		o.Failed(fmt.Errorf("it ended (%s) without an evaluation", end.Reason))
		return
	}
	o.Judged(*end.Return)
}

// maxMetricLine bounds a line of metrics.
const maxMetricLine = 1 << 20

// lastMetric returns the newest value of a metric in a file of them. The error about a metric that no line has names all that there are.
func lastMetric(path, name string) (float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var last *float64
	known := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxMetricLine)
	for lines.Scan() {
		var row map[string]*float64
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &row) != nil {
			continue
		}
		for key, v := range row {
			if v != nil {
				known[key] = true
			}
		}
		if v := row[name]; v != nil {
			last = v
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if last == nil {
		return 0, fmt.Errorf("no line of metrics.jsonl has the objective %q: take %s, or one of %s", name, search.EvalReturn,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return *last, nil
}
