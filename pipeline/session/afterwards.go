package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// afterwards begins all checks of the modules of a brief change, beside the run. They end with the probation, or with the commands.
func (w *watcher) afterwards(p *probation) {
	if !p.brief || w.checked[p.number] {
		return
	}
	if w.checked == nil {
		w.checked = map[uint64]bool{}
	}
	w.checked[p.number] = true
	w.checking.Go(func() {
		ctx, cancel := context.WithCancel(w.life)
		defer cancel()
		done := map[string]bool{}
		for i := range p.parts {
			part := &p.parts[i]
			if part.env == "" || done[part.env] {
				continue
			}
			done[part.env] = true
			text, err := w.checkAll(ctx, cancel, p, part)
			if err != nil && ctx.Err() == nil {
				w.job.failed(failure{number: p.number, component: part.component, fault: err})
				return
			}
			w.job.checked(p.number, part.env, text)
		}
	})
}

// checkAll makes all checks of a part's new environment. The error is the first check that fails and does not fail with the version
// before. It stops where nobody watches the version any more.
func (w *watcher) checkAll(ctx context.Context, stop func(), p *probation, part *part) (text string, err error) {
	results, err := w.results(ctx, stop, p.number, p.after, part, part.new.Hash)
	if err != nil || results == nil {
		return "", nil // it runs: what keeps it from being loaded again is no fault of its own
	}
	failed := slices.DeleteFunc(slices.Clone(results), func(r envcheck.Result) bool { return r.Verdict != envcheck.Failed })
	text = fmt.Sprintf("%d checks ok", len(results)-len(failed))
	if len(failed) == 0 {
		return text, nil
	}
	before, err := w.results(ctx, stop, p.number, p.before, part, part.old.Hash)
	if err != nil {
		return "", nil // without it nobody can say that this is new
	}
	for _, r := range failed {
		same := func(b envcheck.Result) bool { return b.ID == r.ID && b.Verdict == envcheck.Failed }
		if !slices.ContainsFunc(before, same) {
			return "", errors.New("check " + r.ID + " fails, " + r.Title + ": " + r.Detail)
		}
	}
	return fmt.Sprintf("%s, %d failed as before", text, len(failed)), nil
}

// results makes all checks of the copy of an environment's module; nil if it has none.
func (w *watcher) results(ctx context.Context, stop func(), number uint64, g *graph.Graph, part *part, hash string) ([]envcheck.Result, error) {
	e := g.Env(part.env)
	if e == nil {
		return nil, nil
	}
	if _, module := w.job.moduleOf(g, e); !module {
		return nil, nil
	}
	table := e.Table
	if m, err := w.job.Run.Stored(hash); err == nil {
		table.Use = m.Path // its file may be the next version by now
	}
	plugin, err := w.job.Parts.Load(ctx, e.Name, table, g.Dir)
	if err != nil {
		return nil, err
	}
	results := envcheck.Run(ctx, plugin, envcheck.Options{Steps: checkSteps, Seed: 1, Done: func(envcheck.Result) {
		if w.job.find(number) == nil {
			stop()
		}
	}})
	return results, errors.Join(context.Cause(ctx), plugin.Close())
}
