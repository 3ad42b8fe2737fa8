package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

type swapCommand struct {
	Component string `arg:"" help:"Component, such as rollout."`
	File      string `arg:"" help:"Module, name@version, PLUGIN:ENVIRONMENT or a program; builtin or process for the same kind elsewhere."`

	At          string         `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now; default as [swap] of the pipeline says."`
	KeepState   *bool          `negatable:"" help:"Carry running episodes, or the component's state, over to the new version."`
	Canary      *int           `placeholder:"ENVS" help:"Try the new version beside the old one in so many environments first; 0 = do not."`
	Verify      *int           `placeholder:"STEPS" help:"Most env steps of each of them."`
	CanaryTrain bool           `help:"Let the trial's trajectories reach the learner."`
	Probation   *time.Duration `placeholder:"TIME" help:"How long the new version is watched: at its first fault the old one runs again."`
	DryRun      bool           `help:"Check and try it, and change nothing."`
	jobFlags
}

// Help shows how swap is called.
func (c *swapCommand) Help() string {
	return `The new version is loaded, checked and compiled beside the old one, tried, and takes over at a boundary; nothing that runs
waits for that. Exit code 4: the trial speaks against it; 5: it cannot be used here. In both cases nothing has changed.

  rlhost swap rollout ./lander2.wasm --canary 4
  rlhost swap inference process
  rlhost rollback rollout`
}

// Run swaps and says what happened.
func (c *swapCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	file, err := absolute(c.File)
	if err != nil {
		return err
	}
	q := control.SwapRequest{
		Component: c.Component, File: file, At: c.At, KeepState: c.KeepState, Canary: c.Canary, Verify: c.Verify,
		CanaryTrain: c.CanaryTrain, DryRun: c.DryRun,
	}
	if c.Probation != nil {
		s := c.Probation.Seconds()
		q.Probation = &s
	}
	var reply control.SwapReply
	if err := c.asks(p, control.VerbSwap, q, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return swapText(&reply) })
}

// checkBoundary says what is wrong with --at.
func checkBoundary(at string) error {
	if at == "" {
		return nil
	}
	_, err := component.ParseBoundary(at)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("--at: %w", err))
	}
	return nil
}

type rollbackCommand struct {
	Component string `arg:"" help:"Component, such as rollout."`
	At        string `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now."`
	KeepState *bool  `negatable:"" help:"Carry running episodes, or the component's state, over."`
	jobFlags
}

// Run goes back to the previous version.
func (c *rollbackCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	q := control.RollbackRequest{Component: c.Component, At: c.At, KeepState: c.KeepState}
	var reply control.SwapReply
	if err := c.asks(p, control.VerbRollback, q, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return swapText(&reply) })
}

// swapText tells a swap in a few lines: checked, canary, swapped.
func swapText(r *control.SwapReply) string {
	var b strings.Builder
	if r.Outcome == control.Unchanged {
		return fmt.Sprintf("%s runs %s already: nothing has changed\n", r.Component, versionText(&r.New))
	}
	if r.Checked != "" {
		fmt.Fprintf(&b, "checked %s: %s\n", filepath.Base(r.New.File), r.Checked)
	}
	if r.Canary != nil {
		b.WriteString(canaryText(r.Canary))
	}
	switch r.Outcome {
	case control.DryRun:
		fmt.Fprintf(&b, "dry run: nothing has changed; %s would take over from %s %s\n", versionText(&r.New), versionText(&r.Old), boundaryText(r.At))
	default:
		b.WriteString(swappedText(r))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}

// canaryText tells how both versions did in a trial.
func canaryText(c *control.Canary) string {
	unfinished := ""
	if n := c.New.Unfinished; n > 0 {
		unfinished = fmt.Sprintf(", %d unfinished", n)
	}
	return fmt.Sprintf("canary: %s, %s steps: %s, %s%s, mean return %.1f ± %.1f (old %.1f ± %.1f), length %.1f ± %.1f (old %.1f ± %.1f), %.2f× faster\n",
		plural(c.Envs, "env"), thousands(c.New.Steps), plural(c.New.Faults, "trap"), plural(c.New.Episodes, "episode"), unfinished,
		c.New.MeanReturn, c.New.StdReturn, c.Old.MeanReturn, c.Old.StdReturn,
		c.New.MeanLength, c.New.StdLength, c.Old.MeanLength, c.Old.StdLength, c.Faster)
}

// pause writes how long stepping stood still: 0.12 ms, 14 ms.
func pause(ms float64) string {
	switch {
	case ms < 0.1:
		return fmt.Sprintf("%.0f µs", 1000*ms)
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// swappedText tells what a commit did, in one line.
func swappedText(r *control.SwapReply) string {
	what := fmt.Sprintf("%s from %s to %s", r.Component, versionText(&r.Old), versionText(&r.New))
	if r.Envs > 0 {
		what = fmt.Sprintf("%d/%d envs %s", r.Envs, r.Envs, boundaryText(r.At))
	}
	verb := "swapped"
	if r.Outcome == control.RolledBack {
		verb = "rolled back"
	}
	parts := []string{
		fmt.Sprintf("%s %s in %s", verb, what, seconds(r.Took)),
		plural(r.Dropped, "transition") + " dropped",
	}
	if r.Truncated > 0 {
		parts = append(parts, plural(r.Truncated, "episode")+" ended as truncated")
	}
	if r.Kept > 0 {
		parts = append(parts, plural(r.Kept, "episode")+" kept")
	}
	if r.PauseMax > 0 {
		parts = append(parts, "stood still "+pause(r.PauseMax)+" at most")
	}
	if r.Probation > 0 {
		parts = append(parts, fmt.Sprintf("watched for %s", seconds(r.Probation)))
	}
	if r.Outcome == control.RolledBack {
		parts = append(parts, "runs now: "+versionText(&r.New))
	} else {
		parts = append(parts, "previous kept: rlhost rollback "+r.Component)
	}
	return strings.Join(parts, " · ") + "\n"
}
