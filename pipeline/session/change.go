package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// What a change is, as the run's events tell it.
const (
	whatSwap     = "swap"
	whatRollback = "rollback"
	whatReload   = "reload"
	whatScale    = "scale"
	whatFallback = "fallback"
)

// change is one swap, reload, scaling, rollback or fallback, from being asked for to its end:
//
//	asked ──▶ prepared ──▶ tried ──▶ committing ──▶ committed, on probation ──▶ confirmed
//	  │           │           │           │                     │
//	  └───────────┴───────────┴───────────┘                     └──▶ rolled back, by a change of its own
//	                    ▼
//	  refused: nothing has changed, and the run's events say why
//
// A dry run ends where it has been tried, a change that changes nothing where it has been prepared. Without a probation
// what is committed is confirmed. A trial in the run changes some environments before the change is committed; they go
// back where it is refused. What comes after the commit is the watcher's.
type change struct {
	job *job
	*work

	// What is asked for.
	what      string
	component string // that was named, or ""
	wrapper   int    // the place of the wrapper of its environments that was named
	wraps     bool   // one was
	next      *graph.Graph
	rules     rules
	modules   []runs.Module // stored for it
	who       asker
	file      string // of a reload
	sets      []string
	undo      bool   // it may take back versions
	reason    string // of a fallback

	// What becomes of it.
	number  uint64
	changes []control.Change
	parts   []part
	outcome pipeline.Outcome
	undone  undone   // of a reload
	toWrite []string // of a swap: what a file has to say for it; see control.SwapReply
	took    time.Duration
	notes   []string
}

// run makes the change. On an error nothing has changed, and the run's events say that it was refused.
func (c *change) run(ctx context.Context) error {
	err := c.make(ctx)
	if err == nil && !c.rules.dryRun {
		return nil
	}
	if err != nil && !errors.Is(err, pipeline.ErrNothing) && (c.job.over() || c.job.Pipeline.Stopping() != "") {
		err = control.Errorf(control.CodeEnded, "the run ended meanwhile") // what fails while it is taken down is no fault of a version
	}
	for _, module := range c.modules {
		if err := c.job.Run.Unstore(module); err != nil {
			c.job.log.Warn("a module that is not used stays in the run's folder", "module", module.Path, "error", err)
		}
	}
	if err == nil || errors.Is(err, pipeline.ErrNothing) {
		return err
	}
	return c.refuse(ctx, err)
}

// refuse notes why nothing has changed, and returns it as the client is told.
func (c *change) refuse(ctx context.Context, err error) error {
	refused := *c.job.asError(ctx, err)
	var problems graph.Problems
	if c.file != "" && errors.As(err, &problems) {
		refused = *fileError(c.file, problems)
	}
	for _, module := range c.modules { // the caller knows it by another name
		name := c.job.history.name(module.Hash, module.Path)
		refused.Reason = strings.ReplaceAll(refused.Reason, module.Path, name)
		refused.Problems = strings.ReplaceAll(refused.Problems, module.Path, name)
	}
	if c.number == 0 {
		c.number = c.job.history.nextNumber()
	}
	c.job.log.Info(c.title+" is refused: nothing has changed", "code", string(refused.Code), "reason", refused.Reason, "change", c.number)
	c.job.history.note(runs.Change{
		Step: runs.StepRefused, Number: c.number, What: c.what, Component: c.component, Reason: refused.Reason,
		Differences: texts(c.changes),
	}, c.who)
	return &refused
}

// make takes the change from one stage to the next, as far as it is to go.
func (c *change) make(ctx context.Context) error {
	began := time.Now()
	c.at("checking")
	c.say("checking")
	if err := c.trainable(); err != nil {
		return err
	}
	t, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	if len(c.parts) == 0 && len(c.changes) == 0 && meaning(c.job.Pipeline.Graph()) == meaning(c.next) {
		return errors.Join(pipeline.ErrNothing, t.Close()) // the same by other paths
	}
	trial := &trial{live: c.job.history.live, work: c.work, rules: c.rules, next: c.next, seed: c.number}
	if c.rules.train {
		if err := trial.mayRun(c.component, c.parts); err != nil {
			return errors.Join(err, t.Close())
		}
	}
	if slices.ContainsFunc(c.parts, func(p part) bool { return p.env != "" }) {
		c.say("compiled in %s", milliseconds(time.Since(began)))
	} else {
		c.say("prepared in %s", milliseconds(time.Since(began)))
	}
	if err := c.try(ctx, trial, t); err != nil {
		return errors.Join(err, t.Close())
	}
	c.notes = append(c.notes, c.envNotes()...)
	before := c.job.Pipeline.Graph()
	if c.rules.dryRun {
		if rule := c.fulfilled(&c.next.Run.Stop); brings(&before.Run.Stop, &c.next.Run.Stop, rule) {
			c.notes = append(c.notes, fmt.Sprintf("it would end the run by its new rule: %s", rule))
		}
		return t.Close()
	}
	if c.rules.train {
		return c.commitTried(ctx, trial, t, before)
	}
	return c.commit(ctx, t, before)
}

// trainable refuses a change to a pipeline that no training would begin with, and one after which another policy would lead: what
// the run has saved and judged is about that.
func (c *change) trainable() error {
	if err := c.next.Computable(c.job.Parts, graph.CodeDevice).Err(); err != nil {
		return err
	}
	if c.job.Policy == "" {
		return nil
	}
	p, _, err := learned(c.next, cmp.Or(c.next.Run.Policy, c.job.Policy))
	if err != nil || p.Name == c.job.Policy {
		return err
	}
	e := bad("policy %q leads this run, and `policy` in [run] would make it %q", c.job.Policy, p.Name)
	e.Help = fmt.Sprintf("leave that out, or add --set run.policy=%s; for the other one stop the run, and go on with it: "+
		"rlhost train --resume %s --policy %s", c.job.Policy, c.job.Run.ID(), p.Name)
	return e
}

// pathLine is what says in a graph's text where something lies.
var pathLine = regexp.MustCompile(`(?m)^(use|sha256) = .*$|\buse = "[^"]*"`)

// meaning is the text of a graph without where its modules lie.
func meaning(g *graph.Graph) string { return pathLine.ReplaceAllString(g.Expanded(), "") }

// prepare makes the transition ready.
func (c *change) prepare(ctx context.Context) (*pipeline.Transition, error) {
	number := c.job.history.nextNumber()
	c.number = number
	t, err := c.job.Pipeline.Prepare(ctx, c.next, pipeline.TransitionOptions{
		At: c.rules.at, KeepState: c.rules.keepState, Probation: c.rules.probation > 0,
		Force: c.rules.force,
		RolledBack: func(component string, fault error) {
			c.job.failed(failure{number: number, component: component, fault: fault})
		},
	})
	if err != nil {
		return nil, err
	}
	if changes := t.Changes(); len(changes) > 0 || c.changes == nil { // after a trial in the run there is less to change
		c.changes = changes
	}
	if c.what != whatScale && c.parts == nil { // whose instances are what they were
		c.parts = c.job.history.partsOf(t, c.changes)
		c.changes = withVersions(c.changes, c.parts)
	}
	if c.what != whatFallback { // what has failed must not stay
		if err := c.job.mayChange(c.changes); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if c.what == whatReload {
		if err := c.mayUndo(&c.undone); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		c.undone.mark(c.changes)
	}
	return t, nil
}

// try checks the new environments and tries them beside the old ones.
func (c *change) try(ctx context.Context, trial *trial, t *pipeline.Transition) error {
	if !c.rules.check {
		return nil
	}
	done := map[string]*part{}
	for i := range c.parts {
		p := &c.parts[i]
		if p.env == "" {
			continue
		}
		if same := done[p.env]; same != nil {
			p.checked, p.canary = same.checked, same.canary
			continue
		}
		done[p.env] = p
		if plugin := t.Plugin(p.env); plugin != nil {
			if err := trial.run(ctx, p, plugin); err != nil {
				return err
			}
		}
	}
	return nil
}

// commitTried makes the change once a few of the new environments have taken part in the run. On an error the old ones
// run everywhere again.
func (c *change) commitTried(ctx context.Context, trial *trial, t *pipeline.Transition, before *graph.Graph) error {
	if err := t.Close(); err != nil { // one transition at a time
		return err
	}
	err := trial.inRun(ctx, c.parts, c.job.ended)
	if err == nil {
		t, err = c.prepare(ctx)
	}
	if errors.Is(err, pipeline.ErrNothing) {
		err = control.Errorf(control.CodeRefused, "%s cannot run environments of two versions: nothing has changed", c.component)
	}
	if err == nil {
		err = c.commit(ctx, t, before)
	}
	if err == nil {
		return nil
	}
	if back := c.goBack(ctx, before); back != nil {
		c.job.log.Error("environments on trial in the run could not be taken back", "change", c.number, "error", back)
		err = errors.Join(err, back)
	}
	return err
}

// longestWayBack bounds how long the way back may take, once what was under way before it has ended.
const longestWayBack = 2 * time.Minute

// goBack makes all environments go back to a graph. The client may have gone.
func (c *change) goBack(ctx context.Context, before *graph.Graph) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestWayBack)
	defer cancel()
	t, err := c.job.Pipeline.Prepare(ctx, before, pipeline.TransitionOptions{At: component.AtStep})
	if errors.Is(err, pipeline.ErrNothing) || errors.Is(err, pipeline.ErrEnded) {
		return nil
	}
	if err == nil {
		_, err = t.Commit(ctx)
	}
	if err == nil {
		t.Settle()
	}
	return err
}

// commit makes the change that was prepared, and what the run's folder says of it. before is the graph that it begins
// from, where a trial has not changed that already.
func (c *change) commit(ctx context.Context, t *pipeline.Transition, before *graph.Graph) error {
	text, err := c.job.Text(t.Graph())
	if err != nil {
		return errors.Join(err, t.Close())
	}
	at := c.rules.at.String()
	line := runs.Change{
		Step: runs.StepBegin, Number: c.number, What: c.what, Component: c.component, Before: c.job.history.writtenHash(), After: textHash(text),
		Differences: texts(c.changes), At: at, Reason: c.reason,
	}
	if len(c.parts) > 0 {
		line.Component = c.parts[0].component
		line.Old, line.New, line.Back, line.Undo = version(c.parts[0].old), version(c.parts[0].new), c.parts[0].back, c.parts[0].undo
		line.Wraps = c.parts[0].wraps
	}
	c.noted(c.job.history.note(line, c.who))
	c.at("waiting for the boundary: %s", at)
	c.say("going over (%s)", at)
	c.job.committing.Lock()
	defer c.job.committing.Unlock()
	stood := c.job.Pipeline.Stalled() != ""
	began := time.Now()
	if c.outcome, err = t.Commit(ctx); err != nil {
		return err
	}
	c.took = time.Since(began)
	c.outcome.EnvStep += c.job.StepsBefore
	c.notes = append(c.notes, c.outcome.Notes...)
	c.supersede()
	if rule := c.job.Pipeline.Stopping(); brings(&before.Run.Stop, &t.Graph().Run.Stop, rule) {
		c.notes = append(c.notes, fmt.Sprintf("the run ends by its new rule: %s", rule))
	}
	// It has been made: the client may go.
	if err := c.job.history.write(text); err != nil {
		c.notes = append(c.notes, err.Error()+"; until that is done, rlhost train --resume would run the previous version")
	}
	if c.what == whatReload {
		c.noted(c.readFile())
	}
	c.noteMade(line)
	c.noted(c.job.history.describe(c.parts))
	c.committed(t, before, stood)
	return nil
}

// noteMade adds to the run's events that a change was made: a line for each component. line is the one before.
func (c *change) noteMade(line runs.Change) {
	line.Step, line.EnvStep, line.PolicyVersion = runs.StepCommitted, c.outcome.EnvStep, c.job.Pipeline.PolicyVersion()
	if c.what == whatRollback || c.what == whatFallback {
		line.Step = runs.StepBack
	}
	parts := c.parts
	if len(parts) == 0 {
		parts = []part{{}} // a line at least
	}
	for _, p := range parts {
		line.Component, line.Back, line.Undo, line.Old, line.New = p.component, p.back, p.undo, version(p.old), version(p.new)
		line.Wraps = p.wraps
		line.Outcome = c.reply(&p)
		c.noted(c.job.history.note(line, c.who))
		if p.component != "" {
			c.job.log.With("component", p.component).Info(c.what+": another version runs", "from", p.old.File, "to", p.new.File, "at", line.At,
				"env_step", line.EnvStep, "change", c.number)
		}
	}
}

// noted adds what went wrong with the run's folder to what the client is told.
func (c *change) noted(err error) {
	if err != nil {
		c.notes = append(c.notes, err.Error())
	}
}

// committed remembers what ran before, and begins to watch what runs now. stood tells that the run stood still.
func (c *change) committed(t *pipeline.Transition, before *graph.Graph, stood bool) {
	var p *probation
	if c.rules.probation > 0 {
		p = &probation{
			number: c.number, title: c.title, parts: c.parts, transition: t, before: before, after: t.Graph(), restarts: c.job.restarts(c.parts),
			stood: stood, trained: c.job.Pipeline.Steps().Trained, left: c.rules.probation, idle: c.idle(),
		}
		for _, s := range before.Undo(t.Graph()) {
			p.undo = append(p.undo, runs.Table(s))
		}
	}
	if c.what != whatFallback {
		c.job.history.remember(c.parts)
	}
	if p == nil {
		t.Settle()
		return
	}
	c.job.begins(p)
}

// idle returns what the components that a change has changed have done so far, where anything comes to them.
func (c *change) idle() map[string]uint64 {
	g, done := c.job.Pipeline.Graph(), c.job.Pipeline.Done()
	idle := map[string]uint64{}
	for _, p := range c.parts {
		x := g.Component(p.component)
		if x == nil {
			continue
		}
		if x.Flow.Envs > 0 || slices.ContainsFunc(g.Wires, func(w graph.Wire) bool { return w.To == x.Name }) {
			idle[x.Name] = done[x.Name]
		}
	}
	return idle
}

// supersede ends the probations of which a change has left nothing, or, where all goes back together, not everything.
func (c *change) supersede() {
	g := c.job.Pipeline.Graph()
	for _, w := range c.job.superseded(func(p part) bool {
		return g.Component(p.component) == nil || slices.ContainsFunc(c.parts, func(x part) bool { return x.component == p.component })
	}) {
		w.transition.Settle()
		if c.what != whatRollback && c.what != whatFallback {
			c.notes = append(c.notes, fmt.Sprintf("the probation of the %s has ended, %s early: what it brought has been changed again",
				w.title, max(0, w.left).Round(time.Second)))
		}
	}
}

// reply tells what a change did to one component.
func (c *change) reply(p *part) *control.SwapReply {
	o := &c.outcome
	r := &control.SwapReply{
		Component: p.component, Outcome: control.Committed, Old: p.old, New: p.new, Checked: p.checked, Canary: p.canary, At: c.rules.at.String(),
		Envs: o.Envs, Kept: o.Kept, Truncated: o.Truncated, Dropped: o.Dropped, EnvStep: o.EnvStep, Took: c.took.Seconds(),
		Probation: c.rules.probation.Seconds(), Notes: c.notes, Write: c.toWrite,
	}
	switch {
	case c.rules.dryRun:
		r.Outcome = control.DryRun
	case c.what == whatRollback, c.what == whatFallback:
		r.Outcome = control.RolledBack
	}
	if n := len(o.PauseNS); n > 0 {
		pauses := slices.Sorted(slices.Values(o.PauseNS))
		r.PauseP50, r.PauseMax = float64(pauses[n/2])/1e6, float64(pauses[n-1])/1e6
	}
	return r
}

// envNotes say what another version of the environments means for what has been learned and counted so far.
func (c *change) envNotes() []string {
	for i := range c.parts {
		p := &c.parts[i]
		if p.env == "" || c.what == whatRollback && p.canary == nil && p.old == p.new {
			continue
		}
		window := "the window of the mean return counts episodes of the new version alone from here on"
		if c.rules.keepState {
			window = "episodes that were running go on, so the window of the mean return has some of both versions"
		}
		notes := []string{window}
		if t := p.canary; t != nil && differ(t) {
			notes = append(notes, fmt.Sprintf("on the same seeds and actions the returns differ (%.1f, old %.1f): the critic has learned the old ones and "+
				"follows within some datasets, and so does what a wrapper of the environment normalises returns by; the observation normaliser goes on",
				t.New.MeanReturn, t.Old.MeanReturn))
		}
		return notes
	}
	return nil
}

// differ reports whether a trial came to other returns than the version that runs.
func differ(c *control.Canary) bool {
	return math.Abs(c.New.MeanReturn-c.Old.MeanReturn) > 1e-6*math.Max(1, math.Abs(c.Old.MeanReturn))
}

// brings reports whether a run that goes from one rule to another ends sooner for the reason given.
func brings(was, is *component.StopRule, reason component.StopReason) bool {
	lower := func(a, b *float64) bool { return b != nil && (a == nil || *b < *a || was.Window != is.Window) }
	earlier := func(a, b uint64) bool { return b > 0 && (a == 0 || b < a) }
	sooner := func(a, b component.PolicyRule) bool {
		return reason == component.StopReturn && lower(a.Return, b.Return) || reason == component.StopEnvSteps && earlier(a.EnvSteps, b.EnvSteps)
	}
	for name, rule := range is.Policies {
		if sooner(was.Policies[name], rule) {
			return true
		}
	}
	return sooner(component.PolicyRule{Return: was.Return, EnvSteps: was.EnvSteps}, component.PolicyRule{Return: is.Return, EnvSteps: is.EnvSteps}) ||
		reason == component.StopWall && is.Wall > 0 && (was.Wall == 0 || is.Wall < was.Wall)
}

// fulfilled returns which rule the run fulfils now, or nothing.
func (c *change) fulfilled(rule *component.StopRule) component.StopReason {
	learners := c.job.Pipeline.Learners()
	if len(learners) == 0 {
		learners = []control.LearnerStatus{{Policy: c.job.Policy, Leads: true, EnvSteps: c.job.Pipeline.Steps().Trained}}
	}
	for _, l := range learners {
		own, window := rule.Policies[l.Policy], component.GaugeMeanReturn
		wanted := []component.PolicyRule{own}
		if l.Leads {
			wanted = append(wanted, component.PolicyRule{Return: rule.Return, EnvSteps: rule.EnvSteps})
			l.EnvSteps += c.job.StepsBefore
		} else {
			window = component.OfPolicy(l.Policy, window)
		}
		for _, w := range wanted {
			if mean := c.job.gauge(window); w.Return != nil && mean != nil && *mean >= *w.Return {
				return component.StopReturn
			}
			if w.EnvSteps > 0 && l.EnvSteps >= w.EnvSteps {
				return component.StopEnvSteps
			}
		}
	}
	if rule.Wall > 0 && time.Since(c.job.started) >= rule.Wall {
		return component.StopWall
	}
	return ""
}

// milliseconds writes a short time: 0.42 ms, 12 ms, 1.3 s.
func milliseconds(d time.Duration) string {
	switch ms := float64(d) / 1e6; {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
