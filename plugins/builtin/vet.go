package builtin

import (
	"context"
	"errors"
	"time"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// vetTime is how long an unchecked module is watched.
const vetTime = time.Second

// vet checks a module's output; see graph.Parts. It runs the module alone, in this process, whatever is around it and wherever it will
// run: room around its tensors can be watched there.
func (e *Engines) vet(ctx context.Context, t graph.EnvTable, dir string) error {
	use, _ := t.Locate(dir, Names())
	if t.Plugin != nil || plugins.Builtins()[use] != nil {
		return nil
	}
	r, err := e.wasm()
	if err != nil {
		return nil // loading says why
	}
	if sum, err := files.SHA256(use); err != nil || r.Checked(sum) {
		return nil // as above
	}
	source := t.Source
	source.Use, source.Wrap = use, nil
	p, err := r.Load(ctx, use, nil, source)
	if err != nil {
		return nil // as above
	}
	failed, done := envcheck.Writes(ctx, p, envcheck.Options{Seed: 1}, vetTime)
	if failed != nil {
		return errors.Join(&table.Error{Code: failed.ID, Reason: "fails the check " + failed.ID + ", " + failed.Title + ": " + failed.Detail,
			Help: failed.Help + "; rlhost check " + t.Use + " makes all checks"}, p.Close())
	}
	if done {
		r.MarkChecked(p.Hash())
	}
	return p.Close()
}

// MarkChecked remembers that a module has passed the checks of its output, M01 and M02: a training does not make them again.
func (e *Engines) MarkChecked(hash string) {
	if r, err := e.wasm(); err == nil {
		r.MarkChecked(hash)
	}
}
