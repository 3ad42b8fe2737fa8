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
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Kinds of changes, in the run's events.
const (
	whatSwap     = "swap"
	whatRollback = "rollback"
	whatReload   = "reload"
	whatScale    = "scale"
	whatRewire   = "rewire"
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
// a committed change is confirmed. A trial in the run changes some environments before the change is committed; they go
// back if it is refused. The watcher does everything after the commit.
type change struct {
	job *job
	*work

	// The request.
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

	// Its progress.
	number  uint64
	changes []control.Change
	parts   []part
	outcome pipeline.Outcome
	undone  undone   // of a reload
	toWrite []string // of a swap: the keys that a file needs for it; see control.SwapReply
	took    time.Duration
	notes   []string
	kept    bool // a recording of its trial is kept, which needs the modules
}

// run makes the change. On an error nothing has changed, and the run's events say that it was refused.
func (ch *change) run(ctx context.Context) error {
	err := ch.make(ctx)
	if err == nil && !ch.rules.dryRun {
		return nil
	}
	if err != nil && !errors.Is(err, pipeline.ErrNothing) && (ch.job.over() || ch.job.Pipeline.Stopping() != "") {
		err = control.Errorf(control.CodeEnded, "the run ended meanwhile") // a failure during the end is no fault of a version
	}
	for _, module := range ch.modules {
		if ch.kept {
			break
		}
		if err := ch.job.Run.Unstore(module); err != nil {
			ch.job.log.Warn("a module that is not used stays in the run's folder", "module", module.Path, "error", err)
		}
	}
	if err == nil || errors.Is(err, pipeline.ErrNothing) {
		return err
	}
	return ch.refuse(ctx, err)
}

// refuse notes why nothing has changed, and returns the client's error.
func (ch *change) refuse(ctx context.Context, err error) error {
	refused := *ch.job.asError(ctx, err)
	var problems graph.Problems
	if ch.file != "" && errors.As(err, &problems) {
		refused = *fileError(ch.file, problems)
	}
	for _, module := range ch.modules { // the caller knows it by another name
		name := ch.job.history.name(module.Hash, module.Path)
		refused.Reason = strings.ReplaceAll(refused.Reason, module.Path, name)
		refused.Problems = strings.ReplaceAll(refused.Problems, module.Path, name)
	}
	if ch.number == 0 {
		ch.number = ch.job.history.nextNumber()
	}
	ch.job.log.Info(ch.title+" is refused: nothing has changed", "code", string(refused.Code), "reason", refused.Reason, "change", ch.number)
	ch.job.history.note(runs.Change{
		Step: runs.StepRefused, Number: ch.number, What: ch.what, Component: ch.component, Reason: refused.Reason,
		Differences: texts(ch.changes),
	}, ch.who)
	return &refused
}

// make takes the change from one stage to the next, as far as requested.
func (ch *change) make(ctx context.Context) error {
	began := time.Now()
	ch.at("checking")
	ch.say("checking")
	if err := ch.trainable(); err != nil {
		return err
	}
	t, err := ch.prepare(ctx)
	if err != nil {
		return err
	}
	if len(ch.parts) == 0 && len(ch.changes) == 0 && meaning(ch.job.Pipeline.Graph()) == meaning(ch.next) {
		return errors.Join(pipeline.ErrNothing, t.Close()) // the same by other paths
	}
	trial := &trial{live: ch.job.history.live, work: ch.work, rules: ch.rules, next: ch.next, number: ch.number, loaded: t.Loaded}
	if ch.rules.train {
		if err := trial.mayRun(ch.component, ch.parts); err != nil {
			return errors.Join(err, t.Close())
		}
	}
	if slices.ContainsFunc(ch.parts, func(p part) bool { return p.env != "" }) {
		ch.say("compiled in %s", milliseconds(time.Since(began)))
	} else {
		ch.say("prepared in %s", milliseconds(time.Since(began)))
	}
	if err := ch.try(ctx, trial, t); err != nil {
		ch.kept = trial.kept
		return errors.Join(err, t.Close())
	}
	ch.notes = append(ch.notes, ch.envNotes()...)
	before := ch.job.Pipeline.Graph()
	if ch.rules.dryRun {
		if rule := ch.fulfilled(&ch.next.Run.Stop); brings(&before.Run.Stop, &ch.next.Run.Stop, rule) {
			ch.notes = append(ch.notes, fmt.Sprintf("it would end the run by its new rule: %s", rule))
		}
		return t.Close()
	}
	if ch.rules.train {
		return ch.commitTried(ctx, trial, t, before)
	}
	return ch.commit(ctx, t, before)
}

// trainable refuses a change to a pipeline that no training would begin with, and a change after which another policy would lead:
// the run's checkpoints and judgements are about the present one.
func (ch *change) trainable() error {
	if err := ch.next.Unplaceable(ch.job.Parts).Err(); err != nil {
		return err
	}
	if ch.job.Policy == "" {
		if Learns(ch.next) && !Learns(ch.job.Pipeline.Graph()) {
			return bad("nothing is learned in this run, and a learner needs one that begins with it: rlhost stop, and rlhost train")
		}
		return nil
	}
	p, _, err := learned(ch.next, cmp.Or(ch.next.Run.Policy, ch.job.Policy))
	if err != nil || p.Name == ch.job.Policy {
		return err
	}
	e := bad("policy %q leads this run, and `policy` in [run] would make it %q", ch.job.Policy, p.Name)
	e.Help = fmt.Sprintf("leave that out, or add --set run.policy=%s; for the other one stop the run, and go on with it: "+
		"rlhost train --resume %s --policy %s", ch.job.Policy, ch.job.Run.ID(), p.Name)
	return e
}

// pathLine matches the paths in a graph's text.
var pathLine = regexp.MustCompile(`(?m)^(use|data|sha256) = .*$`)

// meaning is the text of a graph without where its modules lie.
func meaning(g *graph.Graph) string {
	return env.WithoutWrapPaths(pathLine.ReplaceAllString(g.Expanded(), ""))
}

// prepare makes the transition ready.
func (ch *change) prepare(ctx context.Context) (*pipeline.Transition, error) {
	number := ch.job.history.nextNumber()
	ch.number = number
	t, err := ch.job.Pipeline.Prepare(ctx, ch.next, pipeline.TransitionOptions{
		Number: number, At: ch.rules.at, KeepState: ch.rules.keepState, Probation: ch.rules.probation > 0,
		Force: ch.rules.force, Made: func() { ch.job.Made(number) },
		RolledBack: func(component string, fault error) {
			ch.job.failed(failure{number: number, component: component, fault: fault})
		},
	})
	if err != nil {
		return nil, err
	}
	if changes := t.Changes(); len(changes) > 0 || ch.changes == nil { // after a trial in the run there is less to change
		ch.changes = changes
	}
	if ch.what != whatScale && ch.parts == nil { // whose instances have not changed
		ch.parts = ch.job.history.partsOf(t, ch.changes)
		ch.changes = withVersions(ch.changes, ch.parts)
	}
	if ch.what != whatFallback { // a failed version must not stay
		if err := ch.job.mayChange(ch.changes); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if ch.what == whatReload {
		if err := ch.mayUndo(&ch.undone); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		ch.undone.mark(ch.changes)
	}
	return t, nil
}

// try checks the new environments and tries them against the old ones.
func (ch *change) try(ctx context.Context, trial *trial, t *pipeline.Transition) error {
	if !ch.rules.check {
		return nil
	}
	done := map[string]*part{}
	for i := range ch.parts {
		p := &ch.parts[i]
		if p.env == "" {
			continue
		}
		if same := done[p.env]; same != nil {
			p.checked, p.trial = same.checked, same.trial
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
func (ch *change) commitTried(ctx context.Context, trial *trial, t *pipeline.Transition, before *graph.Graph) error {
	if err := t.Close(); err != nil { // one transition at a time
		return err
	}
	err := trial.inRun(ctx, ch.parts, ch.job.ended)
	if err == nil {
		t, err = ch.prepare(ctx)
	}
	if errors.Is(err, pipeline.ErrNothing) {
		err = control.Errorf(control.CodeRefused, "%s cannot run environments of two versions: nothing has changed", ch.component)
	}
	if err == nil {
		err = ch.commit(ctx, t, before)
	}
	if err == nil {
		return nil
	}
	if back := ch.goBack(ctx, before); back != nil {
		ch.job.log.Error("environments on trial in the run could not be taken back", "change", ch.number, "error", back)
		err = errors.Join(err, back)
	}
	return err
}

// longestWayBack bounds how long the way back may take, once earlier changes under way have ended.
const longestWayBack = 2 * time.Minute

// goBack makes all environments go back to a graph. The client may have gone.
func (ch *change) goBack(ctx context.Context, before *graph.Graph) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestWayBack)
	defer cancel()
	return pipeline.GoBack(ctx, ch.job.Pipeline, before)
}

// commit makes the prepared change, and its records in the run's folder. before is the graph that it begins from,
// where a trial has not changed that already.
func (ch *change) commit(ctx context.Context, t *pipeline.Transition, before *graph.Graph) error {
	text, err := ch.job.Text(t.Graph())
	if err != nil {
		return errors.Join(err, t.Close())
	}
	at := ch.rules.at.String()
	line := runs.Change{
		Step: runs.StepBegin, Number: ch.number, What: ch.what, Component: ch.component, Before: ch.job.history.writtenHash(), After: textHash(text),
		Differences: texts(ch.changes), At: at, Reason: ch.reason,
	}
	if len(ch.parts) > 0 {
		line.Component = ch.parts[0].component
		line.Old, line.New, line.Back, line.Undo = version(ch.parts[0].old), version(ch.parts[0].new), ch.parts[0].back, ch.parts[0].undo
		line.Wraps = ch.parts[0].wraps
	}
	ch.noted(ch.job.history.note(line, ch.who))
	ch.at("waiting for the boundary: %s", at)
	ch.say("going over (%s)", at)
	ch.job.committing.Lock()
	defer ch.job.committing.Unlock()
	stood := ch.job.Pipeline.Stalled() != ""
	began := time.Now()
	if ch.outcome, err = t.Commit(ctx); err != nil {
		return err
	}
	ch.took = time.Since(began)
	ch.outcome.EnvStep += ch.job.StepsBefore
	ch.notes = append(ch.notes, ch.outcome.Notes...)
	ch.supersede()
	if rule := ch.job.Pipeline.Stopping(); brings(&before.Run.Stop, &t.Graph().Run.Stop, rule) {
		ch.notes = append(ch.notes, fmt.Sprintf("the run ends by its new rule: %s", rule))
	}
	// It has been made: the client may go.
	if err := ch.job.history.write(text); err != nil {
		ch.notes = append(ch.notes, err.Error()+"; until that is done, rlhost train --resume would run the previous version")
	}
	if ch.what == whatReload {
		ch.noted(ch.readFile())
	}
	ch.noteMade(line)
	ch.noted(ch.job.history.describe(ch.parts))
	ch.committed(t, before, stood)
	return nil
}

// noteMade adds to the run's events that a change was made: a line for each component. line is the one before.
func (ch *change) noteMade(line runs.Change) {
	line.Step, line.EnvStep, line.PolicyVersion = runs.StepCommitted, ch.outcome.EnvStep, ch.job.Pipeline.PolicyVersion()
	if ch.what == whatRollback || ch.what == whatFallback {
		line.Step = runs.StepBack
	}
	parts := ch.parts
	if len(parts) == 0 {
		parts = []part{{}} // a line at least
	}
	for _, p := range parts {
		line.Component, line.Back, line.Undo, line.Old, line.New = p.component, p.back, p.undo, version(p.old), version(p.new)
		line.Wraps = p.wraps
		line.Outcome = ch.reply(&p)
		ch.noted(ch.job.history.note(line, ch.who))
		if p.component != "" {
			ch.job.log.With("component", p.component).Info(ch.what+": another version runs", "from", p.old.File, "to", p.new.File, "at", line.At,
				"env_step", line.EnvStep, "change", ch.number)
		}
	}
}

// noted adds a fault of the run's folder to the client's reply.
func (ch *change) noted(err error) {
	if err != nil {
		ch.notes = append(ch.notes, err.Error())
	}
}

// committed remembers the previous version and begins to watch the new one. stood means that the run had stalled.
func (ch *change) committed(t *pipeline.Transition, before *graph.Graph, stood bool) {
	var p *probation
	if ch.rules.probation > 0 {
		p = &probation{
			number: ch.number, title: ch.title, parts: ch.parts, transition: t, before: before, after: t.Graph(), restarts: ch.job.restarts(ch.parts),
			stood: stood, trained: ch.job.Pipeline.Steps().Trained, left: ch.rules.probation, idle: ch.idle(),
			brief: ch.rules.brief,
		}
		for _, s := range before.Undo(t.Graph()) {
			p.undo = append(p.undo, runs.Table(s))
		}
	}
	if ch.what != whatFallback {
		ch.job.history.remember(ch.parts)
	}
	if p == nil {
		t.Settle()
		return
	}
	ch.job.begins(p)
}

// idle returns how much the changed components have done so far, where they get any messages.
func (ch *change) idle() map[string]uint64 {
	g, done := ch.job.Pipeline.Graph(), ch.job.Pipeline.Done()
	idle := map[string]uint64{}
	for _, p := range ch.parts {
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

// supersede ends the probations whose parts a change has all replaced, or, where all parts go back together, some of them.
func (ch *change) supersede() {
	g := ch.job.Pipeline.Graph()
	for _, w := range ch.job.superseded(func(p part) bool {
		return g.Component(p.component) == nil || slices.ContainsFunc(ch.parts, func(x part) bool { return x.component == p.component })
	}) {
		w.transition.Settle()
		if ch.what != whatRollback && ch.what != whatFallback {
			ch.notes = append(ch.notes, fmt.Sprintf("the probation of the %s has ended, %s early: what it brought has been changed again",
				w.title, max(0, w.left).Round(time.Second)))
		}
	}
}

// reply describes the effect of a change on one component.
func (ch *change) reply(p *part) *control.SwapReply {
	o := &ch.outcome
	r := &control.SwapReply{
		Component: p.component, Outcome: control.Committed, Old: p.old, New: p.new, Checked: p.checked, Trial: p.trial, At: ch.rules.at.String(),
		Envs: o.Envs, Kept: o.Kept, Truncated: o.Truncated, Dropped: o.Dropped, EnvStep: o.EnvStep, Took: ch.took.Seconds(),
		Probation: ch.rules.probation.Seconds(), Notes: ch.notes, Write: ch.toWrite,
	}
	switch {
	case ch.rules.dryRun:
		r.Outcome = control.DryRun
	case ch.what == whatRollback, ch.what == whatFallback:
		r.Outcome = control.RolledBack
	}
	if n := len(o.PauseNS); n > 0 {
		pauses := slices.Sorted(slices.Values(o.PauseNS))
		r.PauseP50, r.PauseMax = float64(pauses[n/2])/1e6, float64(pauses[n-1])/1e6
	}
	return r
}

// envNotes say what another version of the environments means for earlier learning and counts.
func (ch *change) envNotes() []string {
	for i := range ch.parts {
		p := &ch.parts[i]
		if p.env == "" || ch.what == whatRollback && p.trial == nil && p.old == p.new {
			continue
		}
		window := "the window of the mean return counts episodes of the new version alone from here on"
		if ch.rules.keepState {
			window = "episodes that were running go on, so the window of the mean return has some of both versions"
		}
		notes := []string{window}
		if t := p.trial; t != nil && differ(t) {
			notes = append(notes, fmt.Sprintf("on the same seeds and actions the returns differ (%.1f, old %.1f): the critic has learned the old ones and "+
				"follows within some datasets, and so does what a wrapper of the environment normalises returns by; the observation normaliser goes on",
				t.New.MeanReturn, t.Old.MeanReturn))
		}
		return notes
	}
	return nil
}

// differ reports whether a trial had other returns than the running version.
func differ(c *control.Trial) bool {
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
		reason == component.StopWallTime && is.WallTime > 0 && (was.WallTime == 0 || is.WallTime < was.WallTime)
}

// fulfilled returns which rule the run fulfils now, or nothing.
func (ch *change) fulfilled(rule *component.StopRule) component.StopReason {
	learners := ch.job.Pipeline.Learners()
	if len(learners) == 0 {
		learners = []control.LearnerStatus{{Policy: ch.job.Policy, Leads: true, EnvSteps: ch.job.Pipeline.Steps().Trained}}
	}
	for _, l := range learners {
		own, window := rule.Policies[l.Policy], component.GaugeMeanReturn
		wanted := []component.PolicyRule{own}
		if l.Leads {
			wanted = append(wanted, component.PolicyRule{Return: rule.Return, EnvSteps: rule.EnvSteps})
			l.EnvSteps += ch.job.StepsBefore
		} else {
			window = component.OfPolicy(l.Policy, window)
		}
		for _, w := range wanted {
			if mean := ch.job.gauge(window); w.Return != nil && mean != nil && *mean >= *w.Return {
				return component.StopReturn
			}
			if w.EnvSteps > 0 && l.EnvSteps >= w.EnvSteps {
				return component.StopEnvSteps
			}
		}
	}
	if rule.WallTime > 0 && time.Since(ch.job.started) >= rule.WallTime {
		return component.StopWallTime
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
