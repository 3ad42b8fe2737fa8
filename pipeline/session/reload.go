package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
	x.rules.dryRun, x.rules.check, x.rules.brief = q.DryRun, true, q.Brief
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
		if group := c.job.Pipeline.Graph().Group(name); group != nil {
			if err := c.job.scalable(group); err != nil {
				return nil, err
			}
			sets = append(sets, fmt.Sprintf("group.%s.count=%d", name, q.Components[name]))
			continue
		}
		scaled, err := c.job.named(name)
		if err != nil {
			return nil, err
		}
		if scaled.Swap == graph.SwapNever {
			return nil, forbidden("component", name)
		}
		if group := c.job.Pipeline.Graph().GroupOfComponent(scaled.Name); group != nil && group.Count > 0 {
			e := bad("%s is counted with its group %s", scaled.Name, group.Name)
			e.Help = fmt.Sprintf("rlhost scale %s=%d", group.Name, q.Components[name])
			return nil, e
		}
		sets = append(sets, fmt.Sprintf("component.%s.count=%d", name, q.Components[name]))
	}
	if err := x.aimAt(sets...); err != nil {
		return nil, err
	}
	return x.reloadReply(x.run(ctx), began)
}

// scalable refuses to scale a group that does not count its members, or whose members may not be changed.
func (l *live) scalable(g *graph.Group) error {
	if g.Count == 0 {
		e := bad("group %s does not count its members", g.Name)
		e.Help = "scale them one by one: " + strings.Join(g.Components, ", ")
		return e
	}
	for _, name := range g.Components {
		if l.Pipeline.Graph().Component(name).Swap == graph.SwapNever {
			return forbidden("component", name)
		}
	}
	return nil
}

// aimFileText finds the graph that a file says, with modules that are not the running ones in the run's folder.
func (ch *change) aimFileText(q *control.ReloadRequest) error {
	parse := func(sets []string) (*graph.Graph, error) {
		o := graph.ParseOptions{Sets: sets, Parts: ch.job.Parts, Running: ch.job.Pipeline.Graph()}
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
		use, err := ch.keep(g, &g.Envs[i])
		if err != nil {
			return err
		}
		if use != "" {
			sets = append(sets, "env."+g.Envs[i].Name+".use="+graph.Literal(use))
		}
		if data := ch.keepData(g, &g.Envs[i]); data != "" {
			sets = append(sets, "env."+g.Envs[i].Name+".data="+graph.Literal(data))
		}
		if len(g.Envs[i].Table.Wrap) > 0 {
			sets = append(sets, "env."+g.Envs[i].Name+".wrap="+ch.keepWrap(g, &g.Envs[i]))
		}
	}
	for _, w := range g.Warnings {
		ch.say("%s", strings.TrimSuffix(w.String(), "\n"))
	}
	ch.next, err = parse(sets)
	return err
}

// keep returns an environment's use for the next graph: the present one if that is the same module, else the path of the
// copy in the run's folder. It is empty where the file's value is right.
func (ch *change) keep(g *graph.Graph, e *graph.Env) (use string, err error) {
	path, ok := ch.job.moduleOf(g, e)
	if !ok {
		return "", nil
	}
	m, err := ch.job.history.store(path)
	if err != nil {
		return "", nil // loading it will report the error, with its place
	}
	ch.modules = append(ch.modules, m)
	running := ch.job.Pipeline.Graph()
	if old := running.Env(e.Name); old != nil && ch.job.runsModule(old, m.Hash) {
		now, isModule := ch.job.moduleOf(running, old)
		if !isModule { // built in, of the same bytes
			return old.Table.Use, nil
		}
		return now, nil
	}
	return m.Path, nil
}

// keepData is keep for the folder of data of an environment.
func (ch *change) keepData(g *graph.Graph, e *graph.Env) string {
	if e.Table.Data == "" {
		return ""
	}
	d, err := ch.job.Run.StoreData(e.Table.DataIn(g.Dir))
	if err != nil {
		return "" // loading it will report the error, with its place
	}
	running := ch.job.Pipeline.Graph()
	if now := running.Env(e.Name); now != nil && now.Table.Data != "" {
		if _, digest := ch.job.history.runningData(now); digest == d.Digest {
			return now.Table.Data
		}
	}
	return d.Path
}

// keepWrap is keep for the wrappers of an environment; it returns their list as TOML.
func (ch *change) keepWrap(g *graph.Graph, e *graph.Env) string {
	dir, wraps, hashes := ch.job.Pipeline.Graph().Dir, []env.Wrapper(nil), map[int]string(nil)
	if now := ch.job.Pipeline.Graph().Env(e.Name); now != nil {
		wraps, hashes = ch.job.history.storedWrap(now, false), ch.job.history.runningWrap(now)
	}
	list := e.Table.WrapUsing(func(place int, use string) string {
		m, err := ch.job.history.store(files.In(g.Dir, use))
		if err != nil {
			return use // loading it will report the error, with its place
		}
		ch.modules = append(ch.modules, m)
		if hashes[place] != m.Hash {
			return m.Path
		}
		now := wraps[place][env.KeyUse].(string)
		if dir != g.Dir {
			now = files.In(dir, now)
		}
		return now
	})
	return env.WrapText((&env.Source{Wrap: list}).WrapReading(func(place int, data string) string {
		d, err := ch.job.Run.StoreData(files.In(g.Dir, data))
		if err != nil {
			return data // as above
		}
		for at, now := range (&env.Source{Wrap: wraps}).WrapData() {
			if _, digest := ch.job.history.loadedData(files.In(dir, now)); at != place || digest != d.Digest {
				continue
			}
			if dir != g.Dir {
				now = files.In(dir, now)
			}
			return now
		}
		return d.Path
	}))
}

// reloadReply returns the reply to a reload.
func (ch *change) reloadReply(err error, began time.Time) (*control.ReloadReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		if ch.what == whatReload && !ch.rules.dryRun {
			ch.noted(ch.readFile())
		}
		return &control.ReloadReply{Notes: ch.notes, Outcome: control.Unchanged, Changes: []control.Change{}}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &control.ReloadReply{Outcome: control.Committed, Changes: ch.changes, Undoes: ch.undone.lines, EnvStep: ch.outcome.EnvStep, Took: time.Since(began).Seconds()}
	if ch.rules.dryRun {
		r.Outcome = control.DryRun
	}
	for i := range ch.parts {
		if p := &ch.parts[i]; p.env != "" || p.old != p.new {
			r.Swaps = append(r.Swaps, *ch.reply(p))
		}
	}
	if len(r.Swaps) == 0 {
		r.Notes = ch.notes
	}
	return r, nil
}
