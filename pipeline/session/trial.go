package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// checkSteps bounds the traces of the checks before a swap: long enough for several episodes of most environments, and
// short enough to wait for.
const checkSteps = 200

// quota is how many episodes each environment of a trial plays.
const quota = 5

// trial holds the new environments of a change against the running ones before it is made.
type trial struct {
	*live
	*work
	rules rules
	next  *graph.Graph

	number uint64 // of the change, and the seed of the trial's episodes
	loaded func(env.Plugin) []byte
	kept   bool // the trial has failed, and its recording is kept
}

// run makes the named checks on the new environment of a part, and lets it play against the running one where the rules say so.
func (t *trial) run(ctx context.Context, p *part, plugin env.Plugin) error {
	if t.rules.brief {
		return t.brief(ctx, p, plugin)
	}
	if err := t.check(ctx, p, plugin); err != nil || t.rules.trialEnvs == 0 {
		return err
	}
	return t.compare(ctx, p, plugin)
}

// briefTime is how long the checks before a brief change may take.
const briefTime = 150 * time.Millisecond

// brief makes the checks of a change that is waited for. A failed one refuses the new environment, unless the running one fails it too.
// To make environments in a process of their own takes longer than the checks may: their probation alone watches these.
func (t *trial) brief(ctx context.Context, p *part, plugin env.Plugin) error {
	if _, module := t.moduleOf(t.next, t.next.Env(p.env)); !module {
		return nil
	}
	began := time.Now()
	failed, cut := envcheck.Brief(ctx, plugin, envcheck.Options{Seed: 1}, briefTime)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed != nil {
		old, err := t.Pipeline.Env(p.env)
		if err == nil {
			if was, _ := envcheck.Brief(ctx, old, envcheck.Options{Seed: 1}, briefTime); was == nil || was.ID != failed.ID {
				return failsCheck(p, failed)
			}
		}
		p.checked = failed.ID + " failed as with the running version"
		return nil
	}
	if p.checked = "A01, M01, M02 ok in "; cut {
		p.checked = "no check came to its end in "
	}
	p.checked += milliseconds(time.Since(began))
	return nil
}

// failsCheck is the error of a version that fails a check.
func failsCheck(p *part, r *envcheck.Result) error {
	e := control.Errorf(control.CodeTrial, "%s fails check %s, %s: %s", p.new.File, r.ID, r.Title, r.Detail)
	e.Help = r.Help + "; see rlhost explain " + r.ID
	e.Exit = int(Check)
	return e
}

// check runs the named checks on a new environment. A failed check refuses it, unless the running version fails it too.
func (t *trial) check(ctx context.Context, p *part, plugin env.Plugin) error {
	counts, worst := map[envcheck.Verdict]int{}, []string{}
	var failed []envcheck.Result
	for _, r := range envcheck.Run(ctx, plugin, envcheck.Options{Steps: checkSteps, Seed: 1}) {
		counts[r.Verdict]++
		if r.Verdict == envcheck.Warning {
			worst = append(worst, r.ID)
		}
		if r.Verdict == envcheck.Failed {
			failed = append(failed, r)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(failed) > 0 {
		if err := t.forgive(ctx, p, failed); err != nil {
			return err
		}
	}
	spec := plugin.Spec()
	p.checked = fmt.Sprintf("abi %s, spaces equal, %d checks ok", strings.TrimSuffix(spec.ABI.String(), ".0"), counts[envcheck.OK])
	if n := counts[envcheck.Warning]; n > 0 {
		p.checked += fmt.Sprintf(", %d warnings (%s)", n, strings.Join(worst, ", "))
	}
	if n := len(failed); n > 0 {
		p.checked += fmt.Sprintf(", %d failed as with the running version", n)
	}
	return nil
}

// forgive refuses a version with failed checks unless the running version fails the same.
func (t *trial) forgive(ctx context.Context, p *part, failed []envcheck.Result) error {
	running := map[string]bool{}
	if old, err := t.Pipeline.Env(p.env); err == nil {
		for _, r := range envcheck.Run(ctx, old, envcheck.Options{Steps: checkSteps, Seed: 1}) {
			running[r.ID] = r.Verdict == envcheck.Failed
		}
	}
	for _, r := range failed {
		if running[r.ID] {
			continue
		}
		return failsCheck(p, &r)
	}
	return nil
}

// compare holds the new environments against the running ones, on the same seeds with the newest weights.
func (t *trial) compare(ctx context.Context, p *part, plugin env.Plugin) error {
	old, err := t.Pipeline.Env(p.env)
	if err != nil {
		return err
	}
	spec := old.Spec()
	name, err := actsIn(t.Pipeline.Graph(), p.env, t.Policy)
	if err != nil {
		return err
	}
	actor, err := t.actor(ctx, name, t.rules.trialEnvs*spec.Agents())
	if err != nil {
		return err
	}
	d, err := t.definition(name)
	if err != nil {
		return errors.Join(err, actor.Close())
	}
	group, err := t.Pipeline.Graph().GroupOf(t.Pipeline.Graph().Policy(name), &spec)
	if err != nil {
		return errors.Join(err, actor.Close())
	}
	o := evaluation.CompareOptions{
		Old: old, New: plugin, Player: evaluation.Player{Actor: actor, Network: &d.Network, Group: group}, Envs: t.rules.trialEnvs, Episodes: quota, Ceiling: uint64(t.rules.trialSteps), Seed: t.number,
		Progress: t.progress("trial"), Tape: t.record(), Loaded: t.loaded(plugin), Change: t.number,
	}
	before, after, err := evaluation.Compare(ctx, o)
	t.keep(o.Tape, err == nil && after.Fault != nil)
	o.Tape = nil
	for more := 1; err == nil && t.tooSlow(&before, &after) && more < timings; more++ { // the machine may have been busy
		var b, a evaluation.Trial
		if b, a, err = evaluation.Compare(ctx, o); err == nil {
			before.PerSecond, after.PerSecond = max(before.PerSecond, b.PerSecond), max(after.PerSecond, a.PerSecond)
		}
	}
	if err = errors.Join(err, actor.Close()); err != nil {
		return err
	}
	c := &control.Trial{Envs: t.rules.trialEnvs, Old: played(&before), New: played(&after), Verdict: "ok"}
	if before.PerSecond > 0 {
		c.Faster = after.PerSecond / before.PerSecond
	}
	p.trial = c
	if after.Fault == nil && t.tooSlow(&before, &after) {
		e := control.Errorf(control.CodeTrial, "the trial speaks against %s: it is %.1f times slower (%.0f env steps/s, old %.0f); %s runs on",
			p.new.File, before.PerSecond/after.PerSecond, after.PerSecond, before.PerSecond, p.old.File)
		e.Help = fmt.Sprintf("rlhost bench measures it; to take it as it is, slower = 0 in [swap] (it is %g), or --trial-envs 0", t.rules.slower)
		e.Exit = int(Check)
		return e
	}
	if after.Fault == nil {
		return nil
	}
	c.Verdict = after.Fault.Error()
	e := control.Errorf(control.CodeTrial, "the trial speaks against %s: %v; %s runs on", p.new.File, after.Fault, p.old.File)
	e.Help = "correct it and try again; rlhost check finds most such faults"
	if t.kept {
		e.Help += "; " + t.replayOf(t.number) + " plays the episode that failed"
	}
	e.Exit = int(Check)
	return e
}

// timings is how often a trial is made before a version is taken for too slow, and measurable the least time that says something.
const (
	timings    = 3
	measurable = 5 * time.Millisecond
)

// tooSlow reports whether the new version is slower than the rules allow. A trial too short to measure is not.
func (t *trial) tooSlow(before, after *evaluation.Trial) bool {
	if t.rules.slower == 0 || after.Fault != nil || after.PerSecond <= 0 {
		return false
	}
	took := time.Duration(float64(after.Steps) / after.PerSecond * float64(time.Second))
	return took >= measurable && before.PerSecond > t.rules.slower*after.PerSecond
}

// played is the client's report of one version.
func played(t *evaluation.Trial) control.TrialVersion {
	c := control.TrialVersion{Episodes: len(t.Returns), Unfinished: t.Unfinished, Steps: t.Steps, PerSecond: t.PerSecond}
	if len(t.Returns) > 0 {
		c.MeanReturn, c.StdReturn, c.MeanLength = t.Mean(), t.Std(), t.MeanLength()
		sum := 0.0
		for _, n := range t.Lengths {
			sum += (float64(n) - c.MeanLength) * (float64(n) - c.MeanLength)
		}
		c.StdLength = math.Sqrt(sum / float64(len(t.Lengths)))
	}
	if t.Fault != nil {
		c.Faults, c.FirstFault = 1, t.Fault.Error()
	}
	for _, x := range []*float64{&c.MeanReturn, &c.StdReturn} {
		if math.IsNaN(*x) || math.IsInf(*x, 0) {
			*x = 0 // JSON has no such number; the fault says what happened
		}
	}
	return c
}

// weightsWait is how long a trial waits for the first weights of a run.
const weightsWait = 10 * time.Second

// actor returns one with the newest weights of a policy.
func (t *trial) actor(ctx context.Context, name string, rows int) (policy.Actor, error) {
	d, err := t.definition(name)
	if err != nil {
		return nil, err
	}
	actor, err := policy.NewActor(d.Backend, &d.Network, rows)
	if err != nil {
		return nil, err
	}
	format := d.Network.Weights()
	load := func(_ *hostabi.Message, block []byte) error {
		weights, err := format.Read(block)
		if err != nil {
			return err
		}
		return actor.Load(weights)
	}
	limited, cancel := context.WithTimeout(ctx, weightsWait)
	defer cancel()
	var missing error
	waited := t.onMessages(limited, component.PayloadWeights, nil, func() bool {
		missing = t.Pipeline.Newest(component.PayloadWeights, name, load)
		return missing == nil
	})
	switch {
	case waited == nil:
		return actor, nil
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), actor.Close())
	}
	return nil, errors.Join(fmt.Errorf("a trial needs weights to act with: %w", missing), actor.Close())
}

// definition returns a policy of the run.
func (t *trial) definition(name string) (*policy.Definition, error) {
	made, err := t.Pipeline.Policy(name)
	if err != nil {
		return nil, err
	}
	return policy.DefinitionOf(name, made)
}

// actsIn names a policy that acts in an environment: the leading one, else the first that is for it, else the leading one of
// the file.
func actsIn(g *graph.Graph, env, leading string) (string, error) {
	if p := g.Policy(leading); p != nil && p.Env == env {
		return leading, nil
	}
	for i := range g.Policies {
		if g.Policies[i].Env == env {
			return g.Policies[i].Name, nil
		}
	}
	p, _, err := learned(g, leading)
	if err != nil {
		return "", err
	}
	return p.Name, nil
}
