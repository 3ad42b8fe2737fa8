package job

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
)

// endsBy reports whether the run is about to end by a rule that the next graph brings, and which one that is.
func (j *Job) endsBy(before, next *pipeline.Graph) (rule component.StopReason, ends bool) {
	rule = j.o.Pipeline.Stopping()
	return rule, brings(&before.Run.Stop, &next.Run.Stop, rule)
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

// ends is for a change that brings a rule which has ended the run: it counts as made, for what was asked for is what
// happens. whole is whether all else of it runs as well: it comes too late where the rule was fulfilled at once.
func (j *Job) ends(a *ask, t *pipeline.Transition, m *made, rule component.StopReason, whole bool) {
	note := fmt.Sprintf("the run ends by its new rule: %s", rule)
	if !whole {
		m.outcome.EnvStep = j.envSteps()
		a.rules.probation = 0
		if slices.ContainsFunc(m.changes, func(c control.Change) bool { return !isRule(c) }) {
			note += "; what else was changed comes too late, and runs from rlhost train --resume on"
		}
	}
	m.notes = append(m.notes, note)
	j.log.Info(note, "change", m.number, "env_step", m.outcome.EnvStep)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rule = &t.Graph().Run.Stop
}

// isRule reports whether a change is one of how the run ends, or what follows from that.
func isRule(c control.Change) bool {
	return c.What == "run" || c.What == changeComponent && c.Text == "rules of run.stop"
}

// Rule is what ended the run, if a change brought it that came to nothing else: the graph that runs does not say. nil
// means that it does. Call it after End.
func (j *Job) Rule() *component.StopRule {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rule
}
