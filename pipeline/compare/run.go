package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/names"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Run is one run of a folder.
type Run struct {
	Dir  string
	Info runs.Info

	keys map[string]string // of its pipeline; nil before they are asked for
}

// Columns are the names that Field knows for every run, without the keys of its pipeline.
func Columns() []string {
	return []string{"run", "state", "reason", "env", "seed", "mode", "env_steps", "eval_return", "train_return", "seconds", "started"}
}

// killed is the state of a run that no process writes to though it has not ended.
const killed = "killed"

// Field returns a column or a key of the run's pipeline as text; "" if the run has none.
func (r *Run) Field(name string) (string, error) {
	i, o := &r.Info, r.Info.Outcome
	if o == nil {
		o = &runs.Outcome{}
	}
	switch name {
	case "run":
		return i.ID(), nil
	case "state":
		return r.state()
	case "reason":
		return i.Reason, nil
	case "env":
		return i.Env, nil
	case "seed":
		return strconv.FormatUint(i.Seed, 10), nil
	case "mode":
		return i.Mode, nil
	case "started":
		return i.Started.Local().Format("2006-01-02 15:04:05"), nil
	case "env_steps":
		return known(i.Outcome != nil, strconv.FormatUint(o.EnvSteps, 10)), nil
	case "seconds":
		return known(i.Outcome != nil, strconv.FormatFloat(o.WallSeconds, 'f', 2, 64)), nil
	case "eval_return":
		return number(o.Return), nil
	case "train_return":
		return number(o.MeanReturn), nil
	}
	if now, ok := names.Column(name); ok {
		return "", formerColumn(name, now)
	}
	keys, err := r.Keys()
	return keys[name], err
}

func known(yes bool, text string) string {
	if !yes {
		return ""
	}
	return text
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// state distinguishes a running run from a killed one.
func (r *Run) state() (string, error) {
	if r.Info.State != runs.Running {
		return r.Info.State, nil
	}
	run, err := runs.Open("", r.Dir)
	if err != nil {
		return "", err
	}
	if pid, err := run.Holder(); err != nil || pid != 0 {
		return runs.Running, err
	}
	return killed, nil
}

// Score is the return that the run is judged by: that of its final evaluation. It is false if there was none.
func (r *Run) Score() (float64, bool) {
	if o := r.Info.Outcome; o != nil && o.Return != nil {
		return *o.Return, true
	}
	return 0, false
}

// Keys returns the values of the run's pipeline by their keys; see graph.Keys.
func (r *Run) Keys() (map[string]string, error) {
	if r.keys != nil {
		return r.keys, nil
	}
	path := filepath.Join(r.Dir, runs.PipelineFile)
	src, err := files.Read(path, graph.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it was killed before it wrote one
	}
	if err != nil {
		return nil, err
	}
	if r.keys, err = graph.Keys(runs.Upgraded(path, src)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.keys, nil
}

// List returns the runs in a folder and in its sets of seeds, in the order of their starts.
func List(dir string) ([]*Run, error) {
	infos, err := runs.List(dir)
	if err != nil {
		return nil, err
	}
	list := make([]*Run, len(infos))
	for i := range infos {
		list[i] = &Run{Dir: filepath.Join(dir, filepath.FromSlash(infos[i].ID())), Info: infos[i]}
	}
	return list, nil
}

// OfSet returns the newest run of each seed of a set that has one: of a search, of each trial and seed.
func OfSet(set *runs.Set) ([]*Run, error) {
	dirs, err := set.RunDirs()
	if err != nil {
		return nil, err
	}
	var list []*Run
	for _, dir := range dirs {
		run, err := runs.Open(dir, runs.Latest)
		if errors.Is(err, runs.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, &Run{Dir: run.Dir, Info: run.Info()})
	}
	return list, nil
}

// Find returns the runs that a word names: a set's, or one run.
func Find(dir, which string) ([]*Run, error) {
	set, err := runs.OpenSet(dir, which)
	if err == nil {
		return OfSet(set)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	run, err := runs.Open(dir, which)
	if err != nil {
		return nil, err
	}
	return []*Run{{Dir: run.Dir, Info: run.Info()}}, nil
}
