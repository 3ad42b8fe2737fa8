package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
)

// mayRun refuses a trial in the run if there is no environment to try, or if none of the old ones would be left.
func (t *trial) mayRun(component string, parts []part) error {
	if !slices.ContainsFunc(parts, func(p part) bool { return p.env != "" }) {
		return bad("%s has the environments that it had: only others can be tried in the run", component)
	}
	for _, p := range parts {
		c := t.next.Component(p.component)
		if p.env == "" || c == nil || t.rules.trialEnvs < c.Flow.Envs {
			continue
		}
		e := bad("a live trial of %d environments: %s has %d, of which some stay as they are", t.rules.trialEnvs, c.Name, c.Flow.Envs)
		e.Help = fmt.Sprintf("--trial-envs %d or less", c.Flow.Envs-1)
		return e
	}
	return nil
}

// inRun lets new environments play in the run, next to the old ones and with trajectories for the learner, until they
// have played a trial's episodes. They stay; from then on their first fault ends the change.
func (t *trial) inRun(ctx context.Context, parts []part, ended <-chan struct{}) error {
	going, err := t.Pipeline.Prepare(ctx, t.next, pipeline.TransitionOptions{
		Number: t.number, At: t.rules.at, KeepState: t.rules.keepState, TrialEnvs: t.rules.trialEnvs, Probation: true,
		RolledBack: func(_ string, fault error) { t.cancel(t.speaksAgainst(fault)) },
	})
	if err != nil {
		return err
	}
	t.at("trial in the run: waiting for the boundary")
	if _, err := going.Commit(ctx); err != nil {
		return t.failed(err)
	}
	return t.await(ctx, parts, ended)
}

// failed describes why a trial ended before it had begun everywhere: a fault counts against the new version, as a later one does.
func (t *trial) failed(err error) error {
	var change *pipeline.ChangeError
	if errors.As(err, &change) && change.Code == control.CodeRolledBack && change.Err != nil {
		return t.speaksAgainst(change.Err)
	}
	return err
}

// speaksAgainst is the client's error for a fault in the trial.
func (t *trial) speaksAgainst(fault error) *control.Error {
	e := control.Errorf(control.CodeTrial, "the trial in the run speaks against it: %v; the old version runs everywhere", fault)
	e.Help = "correct it and try again; rlhost check finds most such faults"
	if command := t.replays(t.number); command != "" {
		e.Help += "; " + command + " plays the episode that failed"
	}
	e.Exit = int(Check)
	return e
}

// await waits until the environments on trial have played their quota, or as many env steps as they may.
func (t *trial) await(ctx context.Context, parts []part, ended <-chan struct{}) error {
	counts := map[string]trialCount{}
	for _, p := range parts {
		if p.env != "" {
			counts[p.new.Hash] = t.count(p.new.Hash)
		}
	}
	progress := t.progress("trial in the run")
	return t.onMessages(ctx, component.PayloadTrajectory, ended, func() bool {
		least := 1.0
		for hash, began := range counts {
			now := t.count(hash)
			episodes := float64(now.episodes-began.episodes) / float64(quota*t.rules.trialEnvs)
			steps := float64(now.steps-began.steps) / float64(t.rules.trialSteps*t.rules.trialEnvs)
			least = min(least, max(episodes, steps))
		}
		progress(least)
		return least >= 1
	})
}

// trialCount counts one version's episodes and steps so far.
type trialCount struct{ episodes, steps uint64 }

func (t *trial) count(hash string) trialCount {
	prefix := "version/" + hash[:min(len(hash), 8)] + "/"
	stats := t.Pipeline.Stats()
	return trialCount{stats.Counter(prefix + "episodes").Value(), stats.Counter(prefix + "env_steps").Value()}
}
