package results

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// DefaultPipeline is the file that commands read unless they get another.
const DefaultPipeline = "pipeline.toml"

// Folder is the flag that says where runs lie that are given by name.
type Folder struct {
	Runs string `name:"runs" placeholder:"DIR" help:"Folder to look for runs in; default run.dir of ./pipeline.toml, else runs."`
}

// Find opens a run.
func (f *Folder) Find(which string) (*runs.Run, error) {
	run, err := runs.Open(f.Dir(), which)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, usage(err)
	}
	return run, err
}

// Load finds a run and reads one of its checkpoints; the best is that of a policy, or of the leading one.
func (f *Folder) Load(which, checkpoint, policy string) (*runs.Run, runs.Checkpoint, error) {
	run, err := f.Find(which)
	if err != nil {
		return nil, runs.Checkpoint{}, err
	}
	if checkpoint == runs.Best {
		checkpoint = run.BestOf(policy)
	}
	c, err := run.Load(checkpoint)
	if errors.Is(err, runs.ErrNotFound) {
		if len(run.Checkpoints()) == 0 {
			err = f.withoutCheckpoint(run)
		}
		err = usage(err)
	}
	return run, c, err
}

// withoutCheckpoint is the error of a run that left nothing to load. It names the newest run of its name that did.
func (f *Folder) withoutCheckpoint(run *runs.Run) error {
	what := "has no checkpoint"
	if run.Info().State == runs.Ended {
		what = "ended (" + run.Info().Reason + ") before its first checkpoint"
	}
	list, err := runs.List(f.Dir())
	if err != nil {
		return err
	}
	for _, info := range slices.Backward(list) {
		if info.Name != run.Info().Name {
			continue
		}
		if other, err := runs.Open(f.Dir(), info.ID()); err == nil && len(other.Checkpoints()) > 0 {
			return fmt.Errorf("%s %s\n  help: the newest run of that name with a checkpoint is %s", run.ID(), what, other.ID())
		}
	}
	return fmt.Errorf("%s %s\n  help: no run of that name has one", run.ID(), what)
}

// Dir returns the folder.
func (f *Folder) Dir() string {
	if f.Runs != "" {
		return f.Runs
	}
	if src, err := files.Read(DefaultPipeline, graph.MaxBytes); err == nil {
		if dir, problems := graph.RunDir(DefaultPipeline, src); problems.Err() == nil {
			return dir
		}
	}
	return "runs"
}
