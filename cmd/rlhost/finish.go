package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/runner"
)

// endEvent is the last line of --json, however the run ends.
type endEvent struct {
	Event         string   `json:"event"`
	Reason        string   `json:"reason"` // return, env_steps, wall, interrupted, failed; aborted after a second Ctrl-C
	Error         string   `json:"error,omitempty"`
	EnvSteps      uint64   `json:"env_steps"`
	WallSeconds   float64  `json:"wall_seconds"`
	MeanReturn    *float64 `json:"mean_return"`              // over the window; null while that is not full
	ReachedReturn *float64 `json:"reached_return,omitempty"` // over the window when it ended the run: some datasets before the last
	EvalReturn    *float64 `json:"eval_return"`              // that is judged; null if there was no evaluation
	EvalStd       *float64 `json:"eval_std"`
	EvalEpisodes  int      `json:"eval_episodes"`
	EvalGreedy    bool     `json:"eval_deterministic"` // which of the two that follow is judged
	Greedy        *played  `json:"eval_greedy"`        // null if there was no evaluation
	Sampled       *played  `json:"eval_sampled"`
	Episodes      uint64   `json:"episodes"`
	PolicyVersion uint64   `json:"policy_version"`
	ParamsHash    string   `json:"params_hash"` // empty if no dataset was learned from
	Kernels       string   `json:"kernels"`
	Run           string   `json:"run"`
}

// Reasons of an end that no component gives.
const (
	reasonFailed  = "failed"
	reasonAborted = "aborted"
)

// finish evaluates what the run ended with, reports, and judges --require.
func (t *training) finish(ctx context.Context, reason component.StopReason) error {
	end := t.endOf(string(reason))
	end.Episodes = t.count("runner/episodes")
	end.MeanReturn = number(t.at.MeanReturn)
	if reason == component.StopReturn {
		end.ReachedReturn = number(t.gauge(runner.ReachedReturn))
	}
	var result *evaluated
	if t.last != nil {
		_, weights, err := learner.Weights(t.last[learnerName(t.running())])
		if err != nil {
			return t.failed(err)
		}
		end.ParamsHash = runs.ParamsHash(weights.Params)
		if reason != component.StopInterrupted {
			if result, err = t.evaluate(ctx, weights); err != nil && ctx.Err() == nil {
				return t.failed(err)
			}
		}
	}
	if result != nil {
		judged := result.judged()
		end.EvalReturn, end.EvalStd, end.EvalEpisodes, end.EvalGreedy = &judged.Return, &judged.Std, len(judged.Returns), result.deterministic
		end.Greedy, end.Sampled = &result.greedy, &result.sampled
	}
	if t.saveErr != nil {
		end.Error = message(t.saveErr)
	}
	endErr := t.run.End(string(reason))
	end.WallSeconds = time.Since(t.started).Seconds()
	if err := t.report(&end, result); err != nil {
		return t.also(err, endErr)
	}
	return t.also(t.verdict(ctx, reason, &end), endErr)
}

// verdict is what the program exits with after a run that came to its end. What could not be saved is lost with
// the process, so that counts first.
func (t *training) verdict(ctx context.Context, reason component.StopReason, end *endEvent) error {
	if t.saveErr != nil {
		return fail(exitFailed, fmt.Errorf("the run's last state is lost: %w", t.saveErr))
	}
	if reason == component.StopInterrupted || ctx.Err() != nil {
		return said(exitInterrupted, errInterrupted)
	}
	return t.require.judge(end.EvalReturn)
}

// endOf returns the end event with what is known without the pipeline.
func (t *training) endOf(reason string) endEvent {
	end := endEvent{Event: "end", Reason: reason, WallSeconds: time.Since(t.started).Seconds()}
	if k := t.known.Load(); k != nil {
		end.Run, end.Kernels, end.EnvSteps, end.PolicyVersion = k.run, k.kernels, k.envSteps, k.policyVersion
	}
	return end
}

// endFailed ends the JSON lines of a run that has not reported its end.
func (t *training) endFailed(err error) {
	if err == nil || !t.command.JSON || t.ended.Swap(true) {
		return
	}
	end := t.endOf(reasonFailed)
	if errors.Is(err, errInterrupted) {
		end.Reason = string(component.StopInterrupted)
	}
	end.Error = message(err)
	_ = json.NewEncoder(t.out).Encode(end) // who reads it has gone: there is nobody to tell
}

// parting is what is said before a second Ctrl-C ends the process. It may run beside anything else.
func (t *training) parting() {
	if t.screen != nil {
		t.screen.Leave()
	}
	t.engines.Abandon()
	t.tell(slog.LevelWarn, "rlhost: ", "stopped at once; what was saved before is still there")
	if t.command.JSON && !t.ended.Swap(true) {
		_ = json.NewEncoder(t.out).Encode(t.endOf(reasonAborted))
	}
}

func number(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// policyEnv is the environment that the learner's policy is for.
func (t *training) policyEnv() string { return t.graph.Policies[0].Env }

func (t *training) definition() *policy.Definition {
	made, err := t.pipeline.Policy(t.graph.Policies[0].Name)
	if err != nil {
		panic(fmt.Sprintf("rlhost: a built pipeline lost its policy: %v", err))
	}
	return made.(*policy.Definition)
}

// count returns a counter of the run.
func (t *training) count(name string) uint64 { return t.pipeline.Stats().Counter(name).Value() }

// report prints how the run ended.
func (t *training) report(end *endEvent, result *evaluated) error {
	if t.command.JSON {
		t.ended.Store(true)
		return json.NewEncoder(t.out).Encode(end)
	}
	rule := t.running().Run.Stop
	if component.StopReason(end.Reason) == component.StopReturn && end.ReachedReturn != nil {
		fmt.Fprintf(t.out, "target reached: mean return %s over %d episodes (wanted %g) after %d env steps, %.2f s\n",
			returnText(*end.ReachedReturn), rule.Window, rule.Return, end.EnvSteps, end.WallSeconds)
	} else {
		fmt.Fprintf(t.out, "ended (%s) after %d env steps, %.2f s\n", end.Reason, end.EnvSteps, end.WallSeconds)
	}
	if result != nil {
		fmt.Fprintf(t.out, "evaluation: return %v\n", result)
	}
	switch {
	case t.saveErr != nil:
	case t.last == nil:
		fmt.Fprintf(t.out, "nothing was saved: no dataset came to its end meanwhile; %s\n", t.whatIsSaved())
	case component.StopReason(end.Reason) == component.StopInterrupted:
		fmt.Fprintf(t.out, "saved %s  to go on: rlhost train --resume %s\n", t.run.Dir, t.run.ID())
	default:
		fmt.Fprintf(t.out, "saved %s  try: rlhost eval %s\n", t.run.Dir, t.run.ID())
	}
	return nil
}

// requirement is a condition on the final evaluation.
type requirement struct {
	text  string
	least float64
}

// parseRequirement reads return>=NUMBER; the empty condition is nil.
func parseRequirement(s string) (*requirement, error) {
	if s == "" {
		return nil, nil
	}
	value, ok := strings.CutPrefix(strings.ReplaceAll(s, " ", ""), "return>=")
	if !ok {
		return nil, fmt.Errorf("--require %q: write it as 'return>=475'", s)
	}
	least, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return nil, fmt.Errorf("--require %q: %q is not a number", s, value)
	}
	return &requirement{text: s, least: least}, nil
}

// judge returns an error with its exit code unless the evaluation satisfies the condition.
func (r *requirement) judge(mean *float64) error {
	if r == nil || mean != nil && *mean >= r.least {
		return nil
	}
	if mean == nil {
		return fail(exitRequire, fmt.Errorf("--require %s: there was no evaluation", r.text))
	}
	return fail(exitRequire, fmt.Errorf("--require %s: the evaluation came to %s", r.text, returnText(*mean)))
}

// returnText writes a mean return, and its deviation if there is one, with three digits at least.
func returnText(numbers ...float64) string {
	texts := make([]string, len(numbers))
	for i, x := range numbers {
		texts[i] = strconv.FormatFloat(x, 'f', runner.Decimals(numbers...), 64)
	}
	return strings.Join(texts, " ± ")
}
