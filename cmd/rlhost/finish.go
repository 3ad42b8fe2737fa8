package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/session"
)

// endEvent is the last line of --json, however the run ends.
type endEvent struct {
	Event          string             `json:"event"`
	Reason         string             `json:"reason"` // return, env_steps, wall_time, component, interrupted, failed; aborted after a second Ctrl-C
	Error          string             `json:"error,omitempty"`
	EnvSteps       uint64             `json:"env_steps"`
	CutEnvSteps    uint64             `json:"cut_env_steps,omitempty"`     // of the dataset that the end came into: they do not count
	PartialSteps   uint64             `json:"partial_env_steps,omitempty"` // of trajectories that were not full when the run was cut
	WallSeconds    float64            `json:"wall_seconds"`                // of the training
	EvalSeconds    float64            `json:"eval_seconds,omitempty"`      // of the evaluations after it
	MeanReturn     *float64           `json:"train_return"`                // over the window; null while that is not full
	ReachedReturn  *float64           `json:"reached_return,omitempty"`    // over the window when it ended the run: some datasets before the last
	ReachedBy      string             `json:"reached_by,omitempty"`        // the policy that does not lead whose rule ended the run
	EvalReturn     *float64           `json:"eval_return"`                 // that is judged; null if there was no evaluation
	EvalStd        *float64           `json:"eval_std"`
	EvalEpisodes   int                `json:"eval_episodes"`
	EpisodeReturns []float64          `json:"episode_returns,omitempty"` // of each episode of the evaluation, of the way that is judged
	EvalJudged     string             `json:"eval_judged,omitempty"`     // which of the two that follow is judged: greedy or sampled
	Greedy         *players.Played    `json:"eval_greedy"`               // null if there was no evaluation
	Sampled        *players.Played    `json:"eval_sampled"`
	Elo            *float64           `json:"eval_elo,omitempty"`     // of the newest version, in a run with a pool of versions
	EvalReturns    map[string]float64 `json:"eval_returns,omitempty"` // of the other policies that were learned, by their names
	Episodes       uint64             `json:"episodes"`
	PolicyVersion  uint64             `json:"policy_version"`
	ParamsHash     string             `json:"params_hash"`             // empty if no dataset was learned from
	ParamsHashes   map[string]string  `json:"params_hashes,omitempty"` // of the other policies that were learned, by their names
	Kernels        string             `json:"kernels"`
	Folder         string             `json:"folder"` // of the run
	Run            string             `json:"run"`
}

// reasonAborted is the reason of an end that no component gives.
const reasonAborted = "aborted"

// verdict is the exit status after a run that came to its end. A state that could not be saved counts first. To be told to
// end, by rlhost stop or SIGTERM, is no failure.
func (t *training) verdict(ctx context.Context, r *session.Result) error {
	if r.SaveErr != nil {
		return fail(exitFailed, fmt.Errorf("the run's last state is lost: %w", r.SaveErr))
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTerminated) {
		return printed(exitInterrupted, errInterrupted)
	}
	if r.Reason != component.StopInterrupted && !r.Learned() && t.learns() {
		return fail(exitNothing, nothingLearned(r))
	}
	if r.Evaluation == nil {
		return t.require.judge(nil, "")
	}
	if t.require != nil && r.Evaluation.Cut() {
		return fail(exitRequire, fmt.Errorf("--require %s: the evaluation was cut by its time; give it more by run.evaluation.wall_time", t.require.text))
	}
	return t.require.judge(&r.Evaluation.Judged().Return, r.Evaluation.Acting())
}

// learns reports whether the run that has begun learns anything.
func (t *training) learns() bool {
	s := t.session.Load()
	return s == nil || session.Learns(s.Graph())
}

// codeNothing is the code of a run that ended with nothing learned.
const codeNothing = "R017"

// nothingLearned is the error of a run that has learned nothing, with the cause if it is known.
func nothingLearned(r *session.Result) error {
	why := "no dataset came to its end"
	if r.StoodStill != "" {
		why = r.StoodStill
	}
	return fmt.Errorf("error[%s]: the run ended (%s) with nothing learned: %s\n  help: rlhost explain %[1]s", codeNothing, r.Reason, why)
}

// endOf returns the end event without a result.
func (t *training) endOf(reason string) endEvent {
	end := endEvent{Event: "end", Reason: reason, WallSeconds: time.Since(t.started).Seconds()}
	if s := t.session.Load(); s != nil {
		p := s.Progress()
		end.Run, end.Kernels, end.EnvSteps, end.PolicyVersion = p.Run, p.Kernels, p.EnvSteps, p.PolicyVersion
		end.Folder = s.Folder().Dir
	}
	return end
}

// endWith returns the end event of a run that came to its end.
func (t *training) endWith(r *session.Result) endEvent {
	end := t.endOf(string(r.Reason))
	end.WallSeconds, end.EvalSeconds = r.Took.Seconds(), r.EvaluationTook.Seconds()
	end.EnvSteps, end.PolicyVersion, end.CutEnvSteps, end.PartialSteps = r.EnvSteps, r.PolicyVersion, r.CutEnvSteps, r.PartialEnvSteps
	end.Episodes, end.ParamsHash, end.ParamsHashes, end.EvalReturns = r.Episodes, r.ParamsHash, r.ParamsHashes, r.Returns()
	end.MeanReturn, end.ReachedReturn, end.ReachedBy = number(r.MeanReturn), number(r.ReachedReturn), r.ReachedBy
	if e := r.Evaluation; e != nil {
		judged := e.Judged()
		end.EvalReturn, end.EvalStd, end.EvalEpisodes, end.EvalJudged = &judged.Return, &judged.Std, len(judged.Returns), players.Way(e.JudgesGreedy)
		end.EpisodeReturns = judged.Returns
		end.Greedy, end.Sampled = &e.Greedy, &e.Sampled
		if e.Ratings != nil {
			end.Elo = &e.Ratings.Newest().Elo
		}
	}
	if r.SaveErr != nil {
		end.Error = message(r.SaveErr)
	}
	return end
}

// endFailed ends the JSON lines of a run that has not reported its end.
func (t *training) endFailed(err error) {
	if err == nil || !t.command.JSON || t.ended.Swap(true) {
		return
	}
	end := t.endOf(string(session.Broken))
	if errors.Is(err, errInterrupted) || errors.Is(err, errTerminated) {
		end.Reason = string(component.StopInterrupted)
	}
	end.Error = message(err)
	_ = t.encode(end) // its reader has gone: there is no one to tell
}

// saving is what a run that learns does when it is asked to end.
const saving = "saving at the next dataset boundary"

// ending says what the run does when it is asked to end.
func (t *training) ending() string {
	if t.learns() {
		return saving
	}
	return "ending"
}

// parting prints the last words before a second Ctrl-C ends the process. It may run concurrently with anything.
func (t *training) parting() {
	if t.screen != nil {
		t.screen.Leave()
	}
	t.engines.Abandon()
	t.tell(slog.LevelWarn, "rlhost: ", "stopped at once; what was saved before is still there")
	if t.command.JSON && !t.ended.Swap(true) {
		_ = t.encode(t.endOf(reasonAborted))
	}
}

// endedBy is the exit status where a request to end came before there was a result. The required return is not reached.
func (t *training) endedBy(cause error) error {
	if !errors.Is(cause, errTerminated) {
		return printed(exitInterrupted, errInterrupted)
	}
	if err := t.require.judge(nil, ""); err != nil {
		return err
	}
	return printed(exitOK, errTerminated)
}

func number(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// report prints how the run ended.
func (t *training) report(s *session.Session, r *session.Result) error {
	end, run := t.endWith(r), s.Folder()
	if t.command.JSON {
		t.ended.Store(true)
		return t.encode(end)
	}
	rule, by := s.Graph().Run.Stop, text.Of(end.ReachedBy)
	if end.ReachedReturn != nil {
		fmt.Fprintf(t.out, "target%s reached: mean return %s over %d episodes (wanted %g) after %d env steps, %.2f s\n",
			by, text.Returns(*end.ReachedReturn), rule.Window, rule.Wanted(s.Progress().Policy, end.ReachedBy, *end.ReachedReturn), end.EnvSteps, end.WallSeconds)
	} else {
		steps := ""
		if len(s.Graph().Envs) > 0 {
			steps = fmt.Sprintf("%d env steps, ", end.EnvSteps)
		}
		fmt.Fprintf(t.out, "ended (%s%s) after %s%.2f s\n", end.Reason, by, steps, end.WallSeconds)
	}
	if r.CutEnvSteps > 0 {
		fmt.Fprintf(t.out, "cut within a dataset: its %d env steps do not count, the optimiser steps made do\n", r.CutEnvSteps)
	}
	if r.PartialEnvSteps > 0 {
		fmt.Fprintf(t.out, "cut within a trajectory: its %d env steps do not count\n", r.PartialEnvSteps)
	}
	fmt.Fprint(t.out, players.Told(r.Evaluation, r.Evaluations))
	switch {
	case r.SaveErr != nil:
	case !t.learns():
		fmt.Fprintf(t.out, "folder %s\n", printable(run.Dir))
	case !r.Saved:
		fmt.Fprintf(t.out, "nothing was saved: no dataset came to its end meanwhile; %s\n", session.WhatIsSaved(run))
	case r.Reason == component.StopInterrupted:
		fmt.Fprintf(t.out, "saved %s  to go on: rlhost train --resume %s\n", printable(run.Dir), printable(run.ID()))
	default:
		fmt.Fprintf(t.out, "saved %s  try: rlhost eval %s\n", printable(run.Dir), printable(run.ID()))
	}
	return nil
}

// requirement is a condition on the final evaluation.
type requirement struct {
	text  string
	least float64
}

// parseRequirement reads eval_return>=NUMBER; the empty condition is nil.
func parseRequirement(s string) (*requirement, error) {
	if s == "" {
		return nil, nil
	}
	value, ok := strings.CutPrefix(strings.ReplaceAll(s, " ", ""), "eval_return>=")
	if !ok {
		return nil, fmt.Errorf("--require %q: write it as 'eval_return>=475'", s)
	}
	least, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return nil, fmt.Errorf("--require %q: %q is not a number", s, value)
	}
	return &requirement{text: s, least: least}, nil
}

// judge returns an error with its exit code unless the evaluation satisfies the condition; acting is how its actions were picked.
func (r *requirement) judge(mean *float64, acting string) error {
	if r == nil || mean != nil && *mean >= r.least {
		return nil
	}
	if mean == nil {
		return fail(exitRequire, fmt.Errorf("--require %s: there was no evaluation", r.text))
	}
	return fail(exitRequire, fmt.Errorf("--require %s: the evaluation came to %s with %s", r.text, text.Returns(*mean), acting))
}
