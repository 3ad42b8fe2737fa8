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

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// reload answers VerbReload.
func (c changer) reload(ctx context.Context, q control.ReloadRequest, notice control.Notice) (*control.ReloadReply, error) {
	x := c.asked(ctx, whatReload, "reload of "+filepath.Base(q.File), notice)
	x.file, x.sets = q.File, q.Sets
	if !filepath.IsAbs(q.File) {
		return nil, bad("%q is no absolute path", q.File)
	}
	ctx, err := c.job.begin(ctx, x.work)
	if err != nil {
		return nil, err
	}
	defer c.job.finish(x.work)
	defer x.tellWaits(c.job.Parts.Waits)()
	began := time.Now()
	if err := x.aimFileText(&q); err != nil {
		return nil, err
	}
	if x.undone, err = c.job.history.undoneBy(x.next); err != nil {
		return nil, err
	}
	x.undo, x.rules = q.Undo, rulesOf(x.next)
	x.rules.dryRun, x.rules.check = q.DryRun, true
	if err := x.rules.set(q.At, nil); err != nil {
		return nil, err
	}
	x.rules.force = forceAfter(q.Force, q.At)
	return x.reloadReply(x.run(ctx), began)
}

// scale answers VerbScale.
func (c changer) scale(ctx context.Context, q control.ScaleRequest, notice control.Notice) (*control.ReloadReply, error) {
	x := c.asked(ctx, whatScale, "scaling", notice)
	x.rules = rulesOf(c.job.Pipeline.Graph())
	x.rules.dryRun, x.rules.probation = q.DryRun, 0
	if len(q.Components) == 0 {
		return nil, bad("nothing is to be scaled: write COMPONENT=INSTANCES")
	}
	ctx, err := c.job.begin(ctx, x.work)
	if err != nil {
		return nil, err
	}
	defer c.job.finish(x.work)
	defer x.tellWaits(c.job.Parts.Waits)()
	began := time.Now()
	var sets []string
	for _, name := range slices.Sorted(maps.Keys(q.Components)) {
		scaled, err := c.job.named(name)
		if err != nil {
			return nil, err
		}
		if scaled.Swap == graph.SwapNever {
			return nil, forbidden("component", name)
		}
		sets = append(sets, fmt.Sprintf("component.%s.count=%d", name, q.Components[name]))
	}
	if err := x.aimAt(sets...); err != nil {
		return nil, err
	}
	return x.reloadReply(x.run(ctx), began)
}

// aimFileText finds the graph that a file says, with modules that are not the running ones in the run's folder.
func (c *change) aimFileText(q *control.ReloadRequest) error {
	parse := func(sets []string) (*graph.Graph, error) {
		o := graph.ParseOptions{Sets: sets, Parts: c.job.Parts, Running: c.job.Pipeline.Graph()}
		g, err := graph.Parse(q.File, []byte(q.Source), o)
		if err != nil {
			return nil, fileError(q.File, graph.ProblemsOf(err))
		}
		return g, nil
	}
	g, err := parse(q.Sets)
	if err != nil {
		return err
	}
	sets := slices.Clone(q.Sets)
	for i := range g.Envs {
		use, err := c.keep(g, &g.Envs[i])
		if err != nil {
			return err
		}
		if use != "" {
			sets = append(sets, "env."+g.Envs[i].Name+".use="+strconv.Quote(use))
		}
		if len(g.Envs[i].Table.Wrap) > 0 {
			sets = append(sets, "env."+g.Envs[i].Name+".wrap="+c.keepWrap(g, &g.Envs[i]))
		}
	}
	for _, w := range g.Warnings {
		c.say("%s", strings.TrimSuffix(w.String(), "\n"))
	}
	c.next, err = parse(sets)
	return err
}

// keep returns what an environment's use is to be in the next graph: what it is now if that is the same module, else the
// path of the copy in the run's folder. It is empty where the file's own word is right.
func (c *change) keep(g *graph.Graph, e *graph.Env) (use string, err error) {
	path, ok := c.job.moduleOf(g, e)
	if !ok {
		return "", nil
	}
	m, err := c.job.history.store(path)
	if err != nil {
		return "", nil // loading it will say what is wrong, with its place
	}
	c.modules = append(c.modules, m)
	running := c.job.Pipeline.Graph()
	if old := running.Env(e.Name); old != nil && c.job.runsModule(old, m.Hash) {
		now, isModule := c.job.moduleOf(running, old)
		if !isModule { // built in, of the same bytes
			return old.Table.Use, nil
		}
		return now, nil
	}
	return m.Path, nil
}

// keepWrap is keep for the wrappers of an environment, of which it returns the list as TOML.
func (c *change) keepWrap(g *graph.Graph, e *graph.Env) string {
	dir, wraps, hashes := c.job.Pipeline.Graph().Dir, []env.Wrapper(nil), map[int]string(nil)
	if now := c.job.Pipeline.Graph().Env(e.Name); now != nil {
		wraps, hashes = c.job.history.storedWrap(now, false), c.job.history.runningWrap(now)
	}
	return env.WrapText(e.Table.WrapUsing(func(place int, use string) string {
		m, err := c.job.history.store(files.In(g.Dir, use))
		if err != nil {
			return use // loading it will say what is wrong, with its place
		}
		c.modules = append(c.modules, m)
		if hashes[place] != m.Hash {
			return m.Path
		}
		now := wraps[place][env.KeyUse].(string)
		if dir != g.Dir {
			now = files.In(dir, now)
		}
		return now
	}))
}

// reloadReply tells the client what changed.
func (c *change) reloadReply(err error, began time.Time) (*control.ReloadReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		if c.what == whatReload && !c.rules.dryRun {
			c.noted(c.readFile())
		}
		return &control.ReloadReply{Notes: c.notes, Outcome: control.Unchanged, Changes: []control.Change{}}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &control.ReloadReply{Outcome: control.Committed, Changes: c.changes, Undoes: c.undone.lines, EnvStep: c.outcome.EnvStep, Took: time.Since(began).Seconds()}
	if c.rules.dryRun {
		r.Outcome = control.DryRun
	}
	for i := range c.parts {
		if p := &c.parts[i]; p.env != "" || p.old != p.new {
			r.Swaps = append(r.Swaps, *c.reply(p))
		}
	}
	if len(r.Swaps) == 0 {
		r.Notes = c.notes
	}
	return r, nil
}
