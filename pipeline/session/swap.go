package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
)

// changer answers the commands that change what runs.
type changer struct{ job *job }

// asked is a change that the client of a request asks for.
func (c changer) asked(ctx context.Context, what, title string, notice control.Notice) *change {
	return &change{job: c.job, work: &work{title: title, say: sayTo(notice)}, what: what, who: askerOf(ctx)}
}

// swap answers VerbSwap.
func (c changer) swap(ctx context.Context, q control.SwapRequest, notice control.Notice) (*control.SwapReply, error) {
	x := c.asked(ctx, whatSwap, fmt.Sprintf("swap of %s to %s", q.Component, filepath.Base(q.File)), notice)
	x.component, x.wrapper, x.wraps = control.SplitWrapper(q.Component)
	var err error
	if x.rules, err = swapRules(c.job.Pipeline.Graph(), &q); err != nil {
		return nil, err
	}
	x.rules.keepState = x.rules.keepState || x.wraps && q.KeepState == nil
	if ctx, err = c.job.begin(ctx, x.work); err != nil {
		return nil, err
	}
	defer c.job.finish(x.work)
	defer x.tellWaits(c.job.Parts.Waits)()
	began := time.Now()
	if err := x.aim(q.File); err != nil {
		return nil, err
	}
	return x.swapReply(x.run(ctx), began)
}

// rollback answers VerbRollback: what ran before is known to work, so it is neither checked nor tried nor watched.
func (c changer) rollback(ctx context.Context, q control.RollbackRequest, notice control.Notice) (*control.SwapReply, error) {
	x := c.asked(ctx, whatRollback, "rollback of "+q.Component, notice)
	x.component, x.wrapper, x.wraps = control.SplitWrapper(q.Component)
	x.rules = rulesOf(c.job.Pipeline.Graph())
	x.rules.keepState = x.rules.keepState || x.wraps
	x.rules.canary, x.rules.probation, x.rules.force = 0, 0, forceAfter(true, q.At)
	if err := x.rules.set(q.At, q.KeepState); err != nil {
		return nil, err
	}
	ctx, err := c.job.begin(ctx, x.work)
	if err != nil {
		return nil, err
	}
	defer c.job.finish(x.work)
	defer x.tellWaits(c.job.Parts.Waits)()
	began := time.Now()
	if err := x.aimBack(); err != nil {
		return nil, err
	}
	return x.swapReply(x.run(ctx), began)
}

// aimBack finds the graph that a rollback leads to.
func (c *change) aimBack() error {
	named, err := c.job.named(c.component)
	if err != nil {
		return err
	}
	g, name := c.job.Pipeline.Graph(), c.component
	env := g.Env(named.Env)
	if c.wraps {
		name = wrapperName(c.component, c.wrapper)
		if env == nil {
			return bad("%s runs no environments", c.component)
		}
		if c.wrapper < 0 || c.wrapper >= len(env.Table.Wrap) {
			return noSuchWrapper(env, c.wrapper)
		}
	}
	before := c.job.history.before(name)
	switch {
	case before == nil:
		e := control.Errorf(control.CodeRefused, "%s has no previous version: it has not been changed in this run", name)
		e.Exit = int(Usage)
		return e
	case !c.wraps:
		return withoutWayBack(c.aimText(before.graph(g)), before)
	case c.job.history.storedWrap(env, true)[c.wrapper].Text() != before.wrap.New:
		e := control.Errorf(control.CodeRefused, "%s is not what its last change made of it: the list of wrappers has changed since", name)
		e.Help = "swap in what it was, " + before.wrap.Old + ", or reload the file as it is to be"
		return e
	}
	return c.aimWrapper(env, before.wrap.Old)
}

// withoutWayBack says what to do where a rollback of policies leads to no pipeline: what it needs has been changed since.
func withoutWayBack(err error, to *previous) error {
	var e *control.Error
	if to.undo != nil && errors.As(err, &e) {
		e.Help = "it goes back as a whole, and what has changed since does not fit: write the pipeline as it is to be (pipeline.toml in the run's folder " +
			"has it as it runs), and rlhost reload that file"
	}
	return err
}

// swapReply tells the client what a change did to the component that it named.
func (c *change) swapReply(err error, began time.Time) (*control.SwapReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		v := c.job.history.version(c.job.Pipeline.Graph(), c.component)
		return &control.SwapReply{Component: c.component, Outcome: control.Unchanged, Old: v, New: v}, nil
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.parts, func(p part) bool { return p.component == c.component })
	if i < 0 && len(c.parts) > 0 {
		i = 0
	}
	p := part{component: c.component}
	if i >= 0 {
		p = c.parts[i]
	}
	r := c.reply(&p)
	if r.Outcome != control.Committed {
		r.Write = nil
	}
	r.Component = c.component
	r.Took = time.Since(began).Seconds()
	return r, nil
}
