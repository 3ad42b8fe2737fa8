package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// reload answers VerbReload.
func (j *Commands) reload(ctx context.Context, q control.ReloadRequest, notice control.Notice) (*control.ReloadReply, error) {
	a := &ask{what: whatReload, file: q.File, who: askerOf(ctx), title: "reload of " + filepath.Base(q.File)}
	if !filepath.IsAbs(q.File) {
		return nil, bad("%q is no absolute path", q.File)
	}
	ctx, w, err := j.begin(ctx, a.title)
	if err != nil {
		return nil, err
	}
	defer j.finish(w)
	began := time.Now()
	say := sayTo(notice)
	if err := j.aimText(a, &q, say); err != nil {
		return nil, err
	}
	a.rules = rulesOf(a.next)
	a.rules.dryRun, a.rules.check = q.DryRun, true
	if err := a.rules.set(q.At, nil); err != nil {
		return nil, err
	}
	m, err := j.make(ctx, w, a, say)
	return reloadReply(a, m, err, began)
}

// aimText finds the graph that a file says, with modules that are not the running ones in the run's folder.
func (j *Commands) aimText(a *ask, q *control.ReloadRequest, say say) error {
	parse := func(sets []string) (*graph.Graph, graph.Problems, error) {
		o := graph.ParseOptions{Sets: sets, Parts: j.o.Parts, Running: j.o.Pipeline.Graph()}
		g, problems := graph.Parse(q.File, []byte(q.Source), o)
		if g == nil {
			return nil, nil, j.fileError(q.File, problems)
		}
		return g, problems, nil
	}
	g, warnings, err := parse(q.Sets)
	if err != nil {
		return err
	}
	sets := slices.Clone(q.Sets)
	for i := range g.Envs {
		use, err := j.keep(a, g, &g.Envs[i])
		if err != nil {
			return err
		}
		if use != "" {
			sets = append(sets, "env."+g.Envs[i].Name+".use="+strconv.Quote(use))
		}
	}
	for _, w := range warnings {
		say("%s", strings.TrimSuffix(w.String(), "\n"))
	}
	a.next, _, err = parse(sets)
	return err
}

// keep returns what an environment's use is to be in the next graph: what it is now if that is the same module, else the
// path of the copy in the run's folder. It is empty where the file's own word is right.
func (j *Commands) keep(a *ask, g *graph.Graph, e *graph.Env) (use string, err error) {
	path, ok := j.moduleOf(g, e)
	if !ok {
		return "", nil
	}
	m, err := j.o.Run.Store(path)
	if err != nil {
		return "", nil // loading it will say what is wrong, with its place
	}
	a.modules = append(a.modules, m)
	j.mu.Lock()
	j.names[m.Hash] = path
	j.mu.Unlock()
	running := j.o.Pipeline.Graph()
	if old := running.Env(e.Name); old != nil && j.runsModule(old, m.Hash) {
		now, _ := old.Table.Locate(running.Dir, j.o.Parts.Builtins)
		return filepath.Abs(now)
	}
	return m.Path, nil
}

// fileError is what the client is told of a file with mistakes: all of them.
func (j *Commands) fileError(file string, list graph.Problems) *control.Error {
	n := 0
	for _, p := range list {
		if p.Severity == graph.Error {
			n++
		}
	}
	mistakes := "1 mistake"
	if n != 1 {
		mistakes = fmt.Sprintf("%d mistakes", n)
	}
	e := control.Errorf(control.CodeBad, "%s has %s; nothing has changed", filepath.Base(file), mistakes)
	e.Problems, e.Exit = list.String(), int(KindOf(list))
	return e
}

// scale answers VerbScale.
func (j *Commands) scale(ctx context.Context, q control.ScaleRequest, notice control.Notice) (*control.ReloadReply, error) {
	a := &ask{what: whatScale, who: askerOf(ctx), title: "scaling", rules: j.defaults()}
	a.rules.dryRun, a.rules.probation = q.DryRun, 0
	if len(q.Components) == 0 {
		return nil, bad("nothing is to be scaled: write COMPONENT=INSTANCES")
	}
	ctx, w, err := j.begin(ctx, a.title)
	if err != nil {
		return nil, err
	}
	defer j.finish(w)
	began := time.Now()
	var sets []string
	for _, name := range slices.Sorted(maps.Keys(q.Components)) {
		c, err := j.named(name)
		if err != nil {
			return nil, err
		}
		if c.Swap == graph.SwapNever {
			return nil, forbidden("component", name)
		}
		sets = append(sets, fmt.Sprintf("component.%s.count=%d", name, q.Components[name]))
	}
	if err := j.aimAt(a, sets...); err != nil {
		return nil, err
	}
	m, err := j.make(ctx, w, a, sayTo(notice))
	return reloadReply(a, m, err, began)
}

// brings reports whether a run that goes from one rule to another ends sooner for the reason given.
func brings(was, is *component.StopRule, reason component.StopReason) bool {
	switch reason {
	case component.StopReturn:
		return is.HasReturn && (!was.HasReturn || is.Return < was.Return || is.Window != was.Window)
	case component.StopEnvSteps:
		return is.EnvSteps > 0 && (was.EnvSteps == 0 || is.EnvSteps < was.EnvSteps)
	case component.StopWall:
		return is.Wall > 0 && (was.Wall == 0 || is.Wall < was.Wall)
	}
	return false
}

// reloadReply tells the client what changed.
func reloadReply(a *ask, m *made, err error, began time.Time) (*control.ReloadReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		return &control.ReloadReply{Outcome: control.Unchanged, Changes: []control.Change{}}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &control.ReloadReply{Outcome: control.Committed, Changes: m.changes, EnvStep: m.outcome.EnvStep, Took: time.Since(began).Seconds()}
	if a.rules.dryRun {
		r.Outcome = control.DryRun
	}
	for i := range m.parts {
		if p := &m.parts[i]; p.env != "" || p.old != p.new {
			r.Swaps = append(r.Swaps, *p.reply(a, m))
		}
	}
	if len(r.Swaps) == 0 {
		r.Notes = m.notes
	}
	return r, nil
}
