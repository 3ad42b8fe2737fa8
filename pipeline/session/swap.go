package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// What a change is, as the run's events tell it.
const (
	whatSwap     = "swap"
	whatRollback = "rollback"
	whatReload   = "reload"
	whatScale    = "scale"
	whatFallback = "fallback"
)

// maxTrial bounds the environments of a trial.
const maxTrial = 4096

// swap answers VerbSwap.
func (j *Commands) swap(ctx context.Context, q control.SwapRequest, notice control.Notice) (*control.SwapReply, error) {
	a := &ask{what: whatSwap, component: q.Component, who: askerOf(ctx)}
	a.title = fmt.Sprintf("swap of %s to %s", q.Component, filepath.Base(q.File))
	var err error
	if a.rules, err = j.swapRules(&q); err != nil {
		return nil, err
	}
	ctx, w, err := j.begin(ctx, a.title)
	if err != nil {
		return nil, err
	}
	defer j.finish(w)
	began := time.Now()
	if err := j.aim(a, q.File); err != nil {
		return nil, err
	}
	m, err := j.make(ctx, w, a, sayTo(notice))
	return j.swapReply(a, m, err, began)
}

// swapRules are those of a request, with the pipeline's where it says nothing.
func (j *Commands) swapRules(q *control.SwapRequest) (rules, error) {
	r := j.defaults()
	r.dryRun, r.train, r.check = q.DryRun, q.CanaryTrain, true
	if err := r.set(q.At, q.KeepState); err != nil {
		return r, err
	}
	if q.Canary != nil {
		r.canary = *q.Canary
	}
	if q.Verify != nil {
		r.verify = *q.Verify
	}
	if q.Probation != nil {
		if !(*q.Probation >= 0 && *q.Probation < math.MaxInt32) {
			return r, bad("a probation of %g s: want 0 or more", *q.Probation)
		}
		r.probation = time.Duration(*q.Probation * float64(time.Second))
	}
	switch {
	case r.canary < 0 || r.canary > maxTrial:
		return r, bad("a canary of %d environments: want 0 to %d", r.canary, maxTrial)
	case r.verify < 1:
		return r, bad("a canary of %d env steps: want 1 or more", r.verify)
	case r.train && r.canary == 0:
		return r, bad("a canary that trains needs environments: --canary N")
	}
	return r, nil
}

// defaults are the rules of the running pipeline's [swap].
func (j *Commands) defaults() rules { return rulesOf(j.o.Pipeline.Graph()) }

func rulesOf(g *graph.Graph) rules {
	s := g.Swap
	return rules{at: s.At, keepState: s.KeepState, canary: s.Canary, verify: s.Verify, probation: s.Probation}
}

func (r *rules) set(at string, keepState *bool) error {
	if at != "" {
		b, err := component.ParseBoundary(at)
		if err != nil {
			return bad("%v", err)
		}
		r.at = b
	}
	if keepState != nil {
		r.keepState = *keepState
	}
	return nil
}

// swapReply tells the client what a change did to the component that it named.
func (j *Commands) swapReply(a *ask, m *made, err error, began time.Time) (*control.SwapReply, error) {
	if errors.Is(err, pipeline.ErrNothing) {
		v := j.version(j.o.Pipeline.Graph(), a.component)
		return &control.SwapReply{Component: a.component, Outcome: control.Unchanged, Old: v, New: v}, nil
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.parts, func(p part) bool { return p.component == a.component })
	if i < 0 && len(m.parts) > 0 {
		i = 0
	}
	p := part{component: a.component}
	if i >= 0 {
		p = m.parts[i]
	}
	r := p.reply(a, m)
	r.Component = a.component
	r.Took = time.Since(began).Seconds()
	return r, nil
}

// reply tells what a change did to one component.
func (p *part) reply(a *ask, m *made) *control.SwapReply {
	o := &m.outcome
	r := &control.SwapReply{
		Component: p.component, Outcome: control.Committed, Old: p.old, New: p.new, Checked: p.checked, Canary: p.canary, At: m.at,
		Envs: o.Envs, Kept: o.Kept, Truncated: o.Truncated, Dropped: o.Dropped, EnvStep: o.EnvStep, Took: m.took.Seconds(),
		Probation: a.rules.probation.Seconds(), Notes: m.notes,
	}
	switch {
	case a.rules.dryRun:
		r.Outcome = control.DryRun
	case a.what == whatRollback, a.what == whatFallback:
		r.Outcome = control.RolledBack
	}
	if n := len(o.PauseNS); n > 0 {
		pauses := slices.Sorted(slices.Values(o.PauseNS))
		r.PauseP50, r.PauseMax = float64(pauses[n/2])/1e6, float64(pauses[n-1])/1e6
	}
	return r
}

// rollback answers VerbRollback: what ran before is known to work, so it is neither checked nor tried nor watched.
func (j *Commands) rollback(ctx context.Context, q control.RollbackRequest, notice control.Notice) (*control.SwapReply, error) {
	a := &ask{what: whatRollback, component: q.Component, who: askerOf(ctx), title: "rollback of " + q.Component, rules: j.defaults()}
	a.rules.canary, a.rules.probation = 0, 0
	if err := a.rules.set(q.At, q.KeepState); err != nil {
		return nil, err
	}
	ctx, w, err := j.begin(ctx, a.title)
	if err != nil {
		return nil, err
	}
	defer j.finish(w)
	began := time.Now()
	if _, err := j.named(q.Component); err != nil {
		return nil, err
	}
	j.mu.Lock()
	before := j.previous[q.Component]
	j.mu.Unlock()
	if before == nil {
		e := control.Errorf(control.CodeRefused, "%s has no previous version: it has not been changed in this run", q.Component)
		e.Exit = int(Usage)
		return nil, e
	}
	if err := j.aimAt(a, needed(j.o.Pipeline.Graph(), before.back)...); err != nil {
		return nil, err
	}
	m, err := j.make(ctx, w, a, sayTo(notice))
	return j.swapReply(a, m, err, began)
}

// named returns a component of the running graph.
func (j *Commands) named(name string) (*graph.Component, error) {
	g := j.o.Pipeline.Graph()
	if c := g.Component(name); c != nil {
		return c, nil
	}
	e := control.Errorf(control.CodeUnknown, "there is no component %q", name)
	if whole := g.Component(componentOf(name)); whole != nil {
		e.Help = "its instances go together: rlhost swap " + whole.Name
		return nil, e
	}
	var names []string
	for i := range g.Components {
		names = append(names, g.Components[i].Name)
	}
	e.Help = "there are " + strings.Join(names, ", ")
	return nil, e
}
