package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
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

// rules say how a change is made: what the request says, else [swap] of the pipeline.
type rules struct {
	at        component.Boundary
	keepState bool
	canary    int // environments of the trial; 0 = none
	verify    int // most env steps of each
	train     bool
	probation time.Duration
	dryRun    bool
	check     bool // new environments
}

// ask is a change that somebody asks for.
type ask struct {
	what      string // swap, rollback, reload, scale, fallback
	title     string
	component string // that was named, or ""
	next      *graph.Graph
	rules     rules
	modules   []runs.Module // stored for it
	who       asker
	file      string // of a reload
	reason    string // of a fallback
}

// made is what became of a change.
type made struct {
	number  uint64
	changes []control.Change
	parts   []part
	outcome pipeline.Outcome
	took    time.Duration
	at      string // boundary
	notes   []string
}

// part is what a change means to one component.
type part struct {
	component string
	env       string // whose version changed; empty if it is the component's own
	old, new  control.Version
	back      []string
	checked   string
	canary    *control.Canary
}

// say tells the client how far a change is. It never fails: a client that has gone is found out by its context.
type say func(format string, args ...any)

func sayTo(notice control.Notice) say {
	return func(format string, args ...any) { _ = notice(fmt.Sprintf(format, args...)) }
}

func saysNothing(string, ...any) {}

// make makes a change: prepare, check, try, commit, watch. On an error nothing has changed, and the run's events say
// that it was refused.
func (j *Commands) make(ctx context.Context, w *work, a *ask, say say) (*made, error) {
	m, err := j.change(ctx, w, a, say)
	if err == nil && !a.rules.dryRun {
		return m, nil
	}
	for _, module := range a.modules {
		if err := j.o.Run.Unstore(module); err != nil {
			j.log.Warn("a module that is not used stays in the run's folder", "module", module.Path, "error", err)
		}
	}
	if err == nil || errors.Is(err, pipeline.ErrNothing) {
		return m, err
	}
	refused := *j.asError(ctx, err)
	var problems graph.Problems
	if a.file != "" && errors.As(err, &problems) {
		refused = *j.fileError(a.file, problems)
	}
	for _, module := range a.modules { // whoever asked knows it by another name
		name := j.name(module.Hash, module.Path)
		refused.Reason = strings.ReplaceAll(refused.Reason, module.Path, name)
		refused.Problems = strings.ReplaceAll(refused.Problems, module.Path, name)
	}
	if m.number == 0 {
		m.number = j.nextNumber()
	}
	j.log.Info(a.title+" is refused: nothing has changed", "code", string(refused.Code), "reason", refused.Reason, "change", m.number)
	j.note(runs.Change{
		Step: runs.StepRefused, Number: m.number, What: a.what, Component: a.component, Reason: refused.Reason,
		Differences: texts(m.changes),
	}, a.who)
	return m, &refused
}

func (j *Commands) change(ctx context.Context, w *work, a *ask, say say) (*made, error) {
	m := &made{at: a.rules.at.String()}
	began := time.Now()
	j.at(w, "checking")
	say("checking")
	t, err := j.prepare(ctx, a, m, 0)
	if err != nil {
		return m, err
	}
	if len(m.parts) == 0 && len(m.changes) == 0 && meaning(j.o.Pipeline.Graph()) == meaning(a.next) {
		return m, errors.Join(pipeline.ErrNothing, t.Close()) // the same by other paths
	}
	if a.rules.train {
		if err := j.mayTryInRun(a, m.parts); err != nil {
			return m, errors.Join(err, t.Close())
		}
	}
	if slices.ContainsFunc(m.parts, func(p part) bool { return p.env != "" }) {
		say("compiled in %s", milliseconds(time.Since(began)))
	} else {
		say("prepared in %s", milliseconds(time.Since(began)))
	}
	if err := j.prove(ctx, w, a, t, m, say); err != nil {
		return m, errors.Join(err, t.Close())
	}
	m.notes = append(m.notes, envNotes(a, m.parts)...)
	if a.rules.dryRun {
		return m, t.Close()
	}
	before := j.o.Pipeline.Graph()
	if a.rules.train {
		return m, j.commitTried(ctx, w, a, t, m, before, say)
	}
	return m, j.commit(ctx, w, a, t, m, before, say)
}

// pathLine is a line of a graph's text that says where something lies.
var pathLine = regexp.MustCompile(`(?m)^(use|sha256) = .*$`)

// meaning is the text of a graph without where its modules lie.
func meaning(g *graph.Graph) string { return pathLine.ReplaceAllString(g.Expanded(), "") }

// prepare makes the transition ready. trial is how many environments of each component go over, 0 = all.
func (j *Commands) prepare(ctx context.Context, a *ask, m *made, trial int) (*pipeline.Transition, error) {
	number := j.nextNumber()
	m.number = number
	t, err := j.o.Pipeline.Prepare(ctx, a.next, pipeline.TransitionOptions{
		At: a.rules.at, KeepState: a.rules.keepState, TrialEnvs: trial,
		Probation: a.rules.probation > 0 || trial > 0,
		Fell:      func(component string, fault error) { j.fell(fall{number: number, component: component, fault: fault}) },
	})
	if err != nil {
		return nil, err
	}
	if changes := t.Changes(); len(changes) > 0 || m.changes == nil { // after a trial in the run there is less to change
		m.changes = changes
	}
	if a.what != whatFallback { // what has failed must not stay
		if err := j.mayChange(m.changes); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if a.what != whatScale && m.parts == nil { // whose instances are what they were
		m.parts = j.partsOf(t, m.changes)
		m.changes = withVersions(m.changes, m.parts)
	}
	return t, nil
}

// prove checks the new environments and tries them.
func (j *Commands) prove(ctx context.Context, w *work, a *ask, t *pipeline.Transition, m *made, say say) error {
	if !a.rules.check {
		return nil
	}
	done := map[string]*part{}
	for i := range m.parts {
		p := &m.parts[i]
		if p.env == "" {
			continue
		}
		if same := done[p.env]; same != nil {
			p.checked, p.canary = same.checked, same.canary
			continue
		}
		done[p.env] = p
		plugin := t.Plugin(p.env)
		if plugin == nil {
			continue
		}
		if err := j.check(ctx, p, plugin); err != nil {
			return err
		}
		if a.rules.canary == 0 {
			continue
		}
		if err := j.canary(ctx, w, a, p, plugin, m.number, say); err != nil {
			return err
		}
	}
	return nil
}

// commit makes the change that was prepared, and what the run's folder says of it. before is the graph that it begins
// from, where a trial has not changed that already.
func (j *Commands) commit(ctx context.Context, w *work, a *ask, t *pipeline.Transition, m *made, before *graph.Graph, say say) error {
	text, err := j.o.Text(t.Graph())
	if err != nil {
		return errors.Join(err, t.Close())
	}
	line := runs.Change{
		Step: runs.StepBegin, Number: m.number, What: a.what, Component: a.component, Before: j.writtenHash(), After: textHash(text),
		Differences: texts(m.changes), At: m.at, Reason: a.reason,
	}
	if len(m.parts) > 0 {
		line.Component = m.parts[0].component
		line.Old, line.New, line.Back = version(m.parts[0].old), version(m.parts[0].new), m.parts[0].back
	}
	m.noted(j.note(line, a.who))
	j.at(w, "waiting for the boundary: %s", m.at)
	say("going over (%s)", m.at)
	j.committing.Lock()
	defer j.committing.Unlock()
	began := time.Now()
	if m.outcome, err = t.Commit(ctx); err != nil {
		return err
	}
	m.took = time.Since(began)
	m.outcome.EnvStep += j.o.StepsBefore
	m.notes = append(m.notes, m.outcome.Notes...)
	if rule := j.o.Pipeline.Stopping(); brings(&before.Run.Stop, &t.Graph().Run.Stop, rule) {
		m.notes = append(m.notes, fmt.Sprintf("the run ends by its new rule: %s", rule))
	}
	// It has been made: the client may go.
	m.written(j.write(text))
	j.noteMade(a, m, line)
	j.describe(m)
	j.committed(a, t, m, before)
	return nil
}

// noteMade adds to the run's events that a change was made: a line for each component. line is the one before.
func (j *Commands) noteMade(a *ask, m *made, line runs.Change) {
	line.Step, line.EnvStep, line.PolicyVersion = runs.StepCommitted, m.outcome.EnvStep, j.o.Pipeline.PolicyVersion()
	if a.what == whatRollback || a.what == whatFallback {
		line.Step = runs.StepBack
	}
	for _, p := range m.lines() {
		line.Component, line.Back, line.Old, line.New = p.component, p.back, version(p.old), version(p.new)
		line.Outcome = p.reply(a, m)
		m.noted(j.note(line, a.who))
		if p.component != "" {
			j.log.With("component", p.component).Info(a.what+": another version runs", "from", p.old.File, "to", p.new.File, "at", m.at,
				"env_step", line.EnvStep, "change", m.number)
		}
	}
}

// describe adds the versions that have come in to the run's description.
func (j *Commands) describe(m *made) {
	err := j.o.Run.Update(func(i *runs.Info) {
		for _, p := range m.parts {
			if p.env == "" || p.new.Hash == "" {
				continue
			}
			if i.Plugins == nil {
				i.Plugins = map[string]string{}
			}
			if use, err := filepath.Rel(j.o.Run.Dir, j.o.Run.ModulePath(p.new.Hash)); err == nil && filepath.IsAbs(p.new.File) {
				i.Plugins[use] = p.new.Hash
				continue
			}
			i.Plugins[p.new.File] = p.new.Hash
		}
	})
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
}

// lines are the parts that the run's events tell, at least one.
func (m *made) lines() []part {
	if len(m.parts) == 0 {
		return []part{{}}
	}
	return m.parts
}

// noted adds what went wrong with a line of the events to what the client is told.
func (m *made) noted(err error) {
	if err != nil {
		m.notes = append(m.notes, err.Error())
	}
}

// written adds what went wrong with pipeline.toml.
func (m *made) written(err error) {
	if err != nil {
		m.notes = append(m.notes, err.Error()+"; until that is done, rlhost train --resume would run the version before")
	}
}

// write replaces pipeline.toml of the run's folder. What cannot be written is tried again later.
func (j *Commands) write(text []byte) error {
	err := j.o.Run.WritePipeline(text)
	j.mu.Lock()
	j.unwritten = err != nil
	j.mu.Unlock()
	if err != nil {
		j.log.Error("pipeline.toml of the run is behind what runs; it will be tried again", "error", err)
	}
	return err
}

// rewrite tries again what write could not do.
func (j *Commands) rewrite() {
	j.mu.Lock()
	behind := j.unwritten && j.current == nil
	j.mu.Unlock()
	if !behind {
		return
	}
	text, err := j.o.Text(j.o.Pipeline.Graph())
	if err != nil {
		return // it worked before: the next time will tell
	}
	if j.o.Run.WritePipeline(text) != nil {
		return
	}
	j.mu.Lock()
	j.unwritten = false
	j.mu.Unlock()
	j.log.Info("pipeline.toml of the run says again what runs")
}

// note adds a line to the run's events: a line that does not say at which env step it stands tells where the run is
// now. An error is told in the log too: the run goes on without the line.
func (j *Commands) note(c runs.Change, who asker) error {
	c.UID, c.Command = who.uid, who.command
	if c.EnvStep == 0 {
		c.EnvStep, c.PolicyVersion = j.envSteps(), j.o.Pipeline.PolicyVersion()
	}
	err := j.o.Run.Note(c)
	if err != nil {
		j.log.Error("the run's events lack a line", "error", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Step != j.lastStep || c.Number != j.lastNumber { // a change with several components has several lines
		j.count(c.Step)
		j.mark()
	}
	j.lastStep, j.lastNumber = c.Step, c.Number
	return err
}

func (j *Commands) nextNumber() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	return j.number
}

// committed remembers what ran before, and begins to watch what runs now.
func (j *Commands) committed(a *ask, t *pipeline.Transition, m *made, before *graph.Graph) {
	var p *probation
	if a.rules.probation > 0 {
		p = &probation{
			number: m.number, parts: m.parts, until: time.Now().Add(a.rules.probation), transition: t, before: before,
			restarts: j.restarts(m.parts), title: a.title,
		}
	}
	j.mu.Lock()
	for _, x := range m.parts {
		if x.component != "" {
			j.previous[x.component] = &previous{version: x.old, back: x.back}
			delete(j.fallen, x.component)
		}
	}
	j.mu.Unlock()
	j.settle(p)
	if p == nil {
		t.Settle()
	}
}

// textHash is the SHA-256 of a pipeline.toml, in hexadecimal.
func textHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// writtenHash is that of the one in the run's folder.
func (j *Commands) writtenHash() string {
	text, err := j.o.Run.Pipeline()
	if err != nil {
		return ""
	}
	return textHash(text)
}

func version(v control.Version) *runs.Version {
	if v == (control.Version{}) {
		return nil
	}
	r := runs.Version(v)
	return &r
}

func texts(list []control.Change) []string {
	var lines []string
	for _, c := range list {
		lines = append(lines, c.What+" "+c.Name+": "+c.Text)
	}
	return lines
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
