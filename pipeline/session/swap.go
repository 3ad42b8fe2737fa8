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

// changer answers the commands that change the run.
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

// rollback answers VerbRollback: the previous version is known to work, so it is neither checked nor tried nor watched.
func (c changer) rollback(ctx context.Context, q control.RollbackRequest, notice control.Notice) (*control.SwapReply, error) {
	x := c.asked(ctx, whatRollback, "rollback of "+q.Component, notice)
	x.component, x.wrapper, x.wraps = control.SplitWrapper(q.Component)
	x.rules = rulesOf(c.job.Pipeline.Graph())
	x.rules.keepState = x.rules.keepState || x.wraps
	x.rules.trialEnvs, x.rules.probation, x.rules.force = 0, 0, forceAfter(true, q.At)
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
func (ch *change) aimBack() error {
	named, err := ch.job.named(ch.component)
	if err != nil {
		return err
	}
	ch.component = named.Name
	g, name := ch.job.Pipeline.Graph(), ch.component
	env := g.Env(named.Env)
	if ch.wraps {
		name = wrapperName(ch.component, ch.wrapper)
		if env == nil {
			return bad("%s runs no environments", ch.component)
		}
		if ch.wrapper < 0 || ch.wrapper >= len(env.Table.Wrap) {
			return noSuchWrapper(env, ch.wrapper)
		}
	}
	before := ch.job.history.before(name)
	switch {
	case before == nil:
		e := control.Errorf(control.CodeRefused, "%s has no previous version: it has not been changed in this run", name)
		e.Exit = int(Usage)
		return e
	case !ch.wraps:
		return withoutWayBack(ch.aimText(before.graph(g)), before)
	case ch.job.history.storedWrap(env, true)[ch.wrapper].Text() != before.wrap.New:
		e := control.Errorf(control.CodeRefused, "%s is not what its last change made of it: the list of wrappers has changed since", name)
		e.Help = "swap in what it was, " + before.wrap.Old + ", or reload the file as it is to be"
		return e
	}
	return ch.aimWrapper(env, before.wrap.Old)
}

// withoutWayBack gives the remedy where a rollback of policies leads to no pipeline, because things that it needs have been changed since.
func withoutWayBack(err error, to *previous) error {
	var e *control.Error
	if to.undo != nil && errors.As(err, &e) {
		e.Help = "it goes back as a whole, and what has changed since does not fit: write the pipeline as it is to be (pipeline.toml in the run's folder " +
			"has it as it runs), and rlhost reload that file"
	}
	return err
}

// swapReply describes the effect of a change on the component that it names.
func (ch *change) swapReply(err error, began time.Time) (*control.SwapReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		v := ch.job.history.version(ch.job.Pipeline.Graph(), ch.component)
		return &control.SwapReply{Component: ch.component, Outcome: control.Unchanged, Old: v, New: v}, nil
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ch.parts, func(p part) bool { return p.component == ch.component })
	if i < 0 && len(ch.parts) > 0 {
		i = 0
	}
	p := part{component: ch.component}
	if i >= 0 {
		p = ch.parts[i]
	}
	r := ch.reply(&p)
	if r.Outcome != control.Committed {
		r.Write = nil
	}
	r.Component = ch.component
	r.Took = time.Since(began).Seconds()
	return r, nil
}
