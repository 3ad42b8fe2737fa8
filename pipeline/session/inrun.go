package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// mayTryInRun refuses a trial in the run of what is no environment, or that would leave none of the old ones.
func (j *Commands) mayTryInRun(a *ask, parts []part) error {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.env != "" }) {
		return bad("%s has the environments that it had: only others can be tried in the run", a.component)
	}
	for _, p := range parts {
		c := a.next.Component(p.component)
		if p.env == "" || c == nil || a.rules.canary < c.Flow.Envs {
			continue
		}
		e := bad("a canary of %d environments that trains: %s has %d, of which some stay as they are", a.rules.canary, c.Name, c.Flow.Envs)
		e.Help = fmt.Sprintf("--canary %d or less", c.Flow.Envs-1)
		return e
	}
	return nil
}

// commitTried makes a change once a few of the new environments have taken part in the run, beside the old ones and with
// trajectories that the learner gets. On an error the old ones run everywhere again.
func (j *Commands) commitTried(ctx context.Context, w *work, a *ask, all *pipeline.Transition, m *made, before *graph.Graph, say say) error {
	if err := all.Close(); err != nil { // one transition at a time
		return err
	}
	err := j.tryInRun(ctx, w, a, m, say)
	if err == nil {
		all, err = j.prepare(ctx, a, m, 0)
	}
	if errors.Is(err, pipeline.ErrNothing) {
		err = control.Errorf(control.CodeRefused, "%s cannot run environments of two versions: nothing has changed", a.component)
	}
	if err == nil {
		err = j.commit(ctx, w, a, all, m, before, say)
	}
	if err == nil {
		return nil
	}
	if back := j.backTo(ctx, before); back != nil {
		j.log.Error("environments on trial in the run could not be taken back", "change", m.number, "error", back)
		err = errors.Join(err, back)
	}
	return err
}

// tryInRun lets new environments play in the run until they have played what a trial plays. They stay; a fault of theirs
// ends the change from then on.
func (j *Commands) tryInRun(ctx context.Context, w *work, a *ask, m *made, say say) error {
	t, err := j.o.Pipeline.Prepare(ctx, a.next, pipeline.TransitionOptions{
		At: a.rules.at, KeepState: a.rules.keepState, TrialEnvs: a.rules.canary, Probation: true,
		Fell: func(_ string, fault error) { w.cancel(speaksAgainst(fault)) },
	})
	if err != nil {
		return err
	}
	j.at(w, "trial in the run: waiting for the boundary")
	if _, err := t.Commit(ctx); err != nil {
		return failedTrial(err)
	}
	return j.awaitTrial(ctx, w, a, m, say)
}

// failedTrial tells what ended a trial before it had begun everywhere: a fault speaks against the new version as one
// after that does.
func failedTrial(err error) error {
	var fell *pipeline.ChangeError
	if errors.As(err, &fell) && fell.Code == control.CodeFell && fell.Err != nil {
		return speaksAgainst(fell.Err)
	}
	return err
}

// speaksAgainst is what the client is told of a fault in the trial.
func speaksAgainst(fault error) *control.Error {
	e := control.Errorf(control.CodeCanary, "the trial in the run speaks against it: %v; the old version runs everywhere", fault)
	e.Help = "correct it and try again; rlhost check finds most such faults"
	e.Exit = int(Check)
	return e
}

// awaitTrial waits until the environments on trial have played their quota, or as many env steps as they may.
func (j *Commands) awaitTrial(ctx context.Context, w *work, a *ask, m *made, say say) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	counts := map[string]trialCount{}
	for _, p := range m.parts {
		if p.env != "" {
			counts[p.new.Hash] = j.trialCount(p.new.Hash)
		}
	}
	said := -1
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.ended:
			return pipeline.ErrEnded
		case <-tick.C:
		}
		least := 1.0
		for hash, began := range counts {
			now := j.trialCount(hash)
			episodes := float64(now.episodes-began.episodes) / float64(quota*a.rules.canary)
			steps := float64(now.steps-began.steps) / float64(a.rules.verify*a.rules.canary)
			least = min(least, max(episodes, steps))
		}
		percent := int(100 * least)
		j.at(w, "trial in the run %d %%", percent)
		if percent/10 > said {
			said = percent / 10
			say("trial in the run %d %%", percent)
		}
		if least >= 1 {
			return nil
		}
	}
}

// trialCount is what one version has played so far.
type trialCount struct{ episodes, steps uint64 }

func (j *Commands) trialCount(hash string) trialCount {
	prefix := "version/" + hash[:min(len(hash), 8)] + "/"
	stats := j.o.Pipeline.Stats()
	return trialCount{stats.Counter(prefix + "episodes").Value(), stats.Counter(prefix + "env_steps").Value()}
}

// backTo makes all environments go back to a graph. The client may have gone.
func (j *Commands) backTo(ctx context.Context, before *graph.Graph) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestFallback)
	defer cancel()
	t, err := j.o.Pipeline.Prepare(ctx, before, pipeline.TransitionOptions{At: component.AtStep})
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
