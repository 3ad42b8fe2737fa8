package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/runner"
)

// onScreen returns the program with its output on one screen where standard output is a terminal, so that other
// lines are above the live line and not in it.
func (p *program) onScreen(json bool) *program {
	if p.out != os.Stdout || json || !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) ||
		os.Getenv("TERM") == "dumb" {
		return p
	}
	next := *p
	next.screen = runner.NewScreen(&lasting{out: os.Stdout})
	next.out = next.screen
	if p.err == os.Stderr && term.IsTerminal(int(os.Stderr.Fd())) {
		next.err = next.screen
	}
	return &next
}

// output says where and how the runner reports progress: a live line on a terminal, plain lines elsewhere, JSON on
// request.
func (t *training) output() runner.Output {
	return runner.Output{
		Out: t.out, Terminal: t.screen != nil, JSON: t.command.JSON, Metrics: t.command.Metrics, Color: t.colored(), Queues: t.queues, Keys: t.keys,
		Width: func() int {
			width, _ := screenSize()
			return width
		},
	}
}

// screenSize returns the characters of the terminal.
func screenSize() (width, height int) {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// colored reports whether to use colour: as the flag says, else on a terminal, unless NO_COLOR is set.
func (p *program) colored() bool {
	switch p.cli.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return p.screen != nil && os.Getenv("NO_COLOR") == ""
}

// keys returns the keys of the pipeline that runs.
func (t *training) keys() map[string]string { return t.session.Load().Graph().Keys() }

// queues returns how many messages wait on each wire that has any.
func (t *training) queues() []runner.Queue {
	var queues []runner.Queue
	for _, w := range t.session.Load().Pipeline().Wires() {
		if w.Queued+w.Parked > 0 {
			_, to, _ := strings.Cut(w.Wire, " → ")
			queues = append(queues, runner.Queue{Name: to, Queued: w.Queued + w.Parked, Depth: w.Depth})
		}
	}
	return queues
}

// observe prints the events of the training.
func (t *training) observe(e session.Event) {
	switch e := e.(type) {
	case session.Warned:
		t.problems(e.Problems)
	case session.Unfinished:
		t.notice("run %s did not come to its end and was saved at %d env steps; to go on with it: rlhost train --resume %s", e.Run, e.EnvSteps, e.Run)
	case session.Resumed:
		t.resumed(&e)
	case session.Starting:
		t.notice("%s", e.String())
	case session.Started:
		t.startLine(&e)
	case session.Serving:
		close(t.serving)
		if t.command.serves != nil {
			t.command.serves(t.session.Load().Folder())
		}
	case session.Evaluating:
		t.notice("evaluating %s: %d of %d episodes", e.Policy, e.Played, e.Episodes)
	case session.Evaluated:
		t.evaluated(&e)
	case session.Failed:
		run := t.session.Load().Folder()
		t.notice("run %s failed; %s", run.ID(), session.WhatIsSaved(run))
	}
}

// resumed prints where a run continues from.
func (t *training) resumed(e *session.Resumed) {
	how := "exactly: all state was saved"
	if !e.Exact {
		how = "not exactly: " + e.Why
	}
	t.notice("resuming %s at %d env steps, policy version %d, %s", e.Run, e.EnvSteps, e.PolicyVersion, how)
	for i := range e.Swapped {
		x := &e.Swapped[i]
		t.notice("%s runs %s, since the %s at %d env steps", x.Component, text.Version(&x.Version), x.What, x.EnvStep)
	}
	for i := range e.Unproven {
		x := &e.Unproven[i]
		t.notice("%s was still watched when the run ended, so that the version of %s before it runs; rlhost swap brings it in again", text.Version(&x.Version), x.Component)
	}
	c := e.Interrupted
	if c == nil {
		return
	}
	what, which, file := c.What, "the previous version", ""
	if c.Component != "" {
		what += " of " + c.Component
	}
	if e.NewRuns {
		which = "the new version"
	}
	if e.Now != nil {
		file = ", " + filepath.Base(e.Now.File)
	}
	t.notice("the run was killed during a %s: it goes on with %s%s", what, which, file)
}

// startLine prints the run's name, seed, mode, kernels and pipeline.
func (t *training) startLine(e *session.Started) {
	if t.command.JSON {
		_ = t.encode(map[string]any{
			"event": "start", "run": e.Run, "seed": e.Seed, "mode": e.Mode, "kernels": e.Kernels,
			"pipeline": e.Pipeline, "plugins": e.Plugins, "policy": e.Policy, "learned": e.Learned,
		}) // without a reader, the end says so
		return
	}
	fmt.Fprintf(t.out, "%s %s\n", time.Now().Format(time.TimeOnly), printable(e.String()))
}

// evaluated prints how a policy did during the run.
func (t *training) evaluated(e *session.Evaluated) {
	if t.command.JSON {
		_ = t.encode(map[string]any{"event": "evaluation", "policy": e.Policy, "env_steps": e.EnvSteps, "policy_version": e.PolicyVersion, "mean_return": e.Return,
			"std_return": e.Std, "mean_length": e.Length, "unfinished": e.Unfinished, "judged": players.Way(e.Greedy), "eval_elo": number(e.Ratings.Elo())})
		return
	}
	fmt.Fprintf(t.out, "%s %s\n", time.Now().Format(time.TimeOnly), printable(e.String()))
}
