package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
)

func TestCommands_SwapsDuringStatusAndTaps(t *testing.T) {
	r := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, q := range []func() error{
		func() error {
			return r.do(ctx, control.VerbStatus, control.StatusRequest{}, &control.StatusReply{}, nil)
		},
		func() error {
			return r.do(ctx, control.VerbTap, control.TapRequest{Pattern: "rollout.trajectories", Columns: []string{"reward", "obs"}, Limit: 3}, &control.TapReply{}, nil)
		},
		func() error {
			return r.do(ctx, control.VerbTap, control.TapRequest{Pattern: "*.*", Limit: 50}, nil, nil)
		},
		func() error { return r.do(ctx, control.VerbLogs, control.LogsRequest{}, nil, nil) },
	} {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := q(); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	r.learns()
	keep := true
	for i, language := range []string{"rust", "c", "rust", "c"} {
		var reply control.SwapReply
		r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, language), At: "step", KeepState: &keep}, &reply)
		if reply.Outcome != control.Committed || reply.Envs != 8 || reply.Kept != 8 || reply.Dropped != 0 {
			t.Errorf("swap %d: %+v", i, reply)
		}
	}
	cancel()
	all.Wait()
	var status control.StatusReply
	r.mustDo(control.VerbStatus, control.StatusRequest{Wait: true}, &status)
	if n := r.pipeline.Stats().Gauge("swap/committed").Value(); n != 4 {
		t.Errorf("metrics have %v changes, want 4", n)
	}
	late := status.Steps.Reasons["policy_lag"] // of a busy machine
	if status.Swaps.Committed != 4 || status.Steps.Dropped != late || status.State != control.Running {
		t.Errorf("%+v", status)
	}
	if v := status.Components[0].Version; v == nil || v.File != module(t, "c") {
		t.Errorf("rollout runs %+v", v)
	}
	r.end()
	list, err := r.run.Changes()
	if err != nil || len(list) != 8 {
		t.Errorf("%d lines of events, %v; want 8", len(list), err)
	}
	var before runs.Change
	for _, c := range list {
		if c.EnvStep == 0 || c.PolicyVersion == 0 || c.EnvStep < before.EnvStep || c.PolicyVersion < before.PolicyVersion {
			t.Errorf("change %d: %s at env step %d, policy version %d, after %s at %d, %d", c.Number, c.Step, c.EnvStep, c.PolicyVersion,
				before.Step, before.EnvStep, before.PolicyVersion)
		}
		before = c
	}
}

func TestCommands_AChangeGoesWithItsClientBeforeItIsMade(t *testing.T) {
	r := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	envs, steps := 512, 1<<30
	err := r.do(ctx, control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), TrialEnvs: &envs, TrialSteps: &steps}, nil,
		func(text string) {
			if strings.HasPrefix(text, "trial") {
				cancel()
			}
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("swap: %v", err)
	}
	var status control.StatusReply
	r.mustDo(control.VerbStatus, control.StatusRequest{Wait: true}, &status)
	if status.Swaps != (control.SwapCounts{Refused: 1}) || status.Transition != "" {
		t.Errorf("%+v, %q", status.Swaps, status.Transition)
	}
	stored, err := os.ReadDir(filepath.Join(r.run.Dir, "plugins"))
	if err != nil || len(stored) != 1 {
		t.Errorf("%d modules in the folder, %v; want that of the beginning alone", len(stored), err)
	}
	list, err := r.run.Changes()
	if err != nil || len(list) != 1 || list[0].Step != runs.StepRefused || !strings.Contains(list[0].Reason, "the client has gone") {
		t.Errorf("events %+v, %v", list, err)
	}
}

func TestCommands_StatusWaitsUntilTheRunHasBegun(t *testing.T) {
	r := prepare(t)
	asked, stop := context.WithCancel(t.Context())
	stop()
	if err := (statusReader{r.commands.job}).quiet(asked); !errors.Is(err, context.Canceled) {
		t.Errorf("before the run: %v, want one who waits", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- statusReader{r.commands.job}.quiet(t.Context()) }()
	r.start()
	if err := <-waited; err != nil || r.pipeline.Status().State == control.Ready {
		t.Errorf("%v, and the run is %s", err, r.pipeline.Status().State)
	}
}

func TestCommands_EndsWhileRequestsAreUnderWay(t *testing.T) {
	before := runtime.NumGoroutine()
	r := begin(t)
	var all sync.WaitGroup
	under := make(chan struct{}, 3)
	for _, q := range []func() error{
		func() error {
			envs, steps := 512, 1<<30
			return r.do(t.Context(), control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust"), TrialEnvs: &envs, TrialSteps: &steps}, nil,
				func(text string) {
					if strings.HasPrefix(text, "trial") {
						select {
						case under <- struct{}{}:
						default:
						}
					}
				})
		},
		func() error {
			return r.do(t.Context(), control.VerbTap, control.TapRequest{Pattern: "learner.stats"}, nil, nil)
		},
		func() error { return r.do(t.Context(), control.VerbLogs, control.LogsRequest{Follow: true}, nil, nil) },
		func() error {
			return r.do(t.Context(), control.VerbStatus, control.StatusRequest{Wait: true}, nil, nil)
		},
	} {
		all.Go(func() {
			if err := q(); err != nil && code(err) != control.CodeEnded {
				t.Errorf("got %v, want the end of the run", err)
			}
		})
	}
	<-under
	var reply control.StopReply
	r.mustDo(control.VerbStop, control.StopRequest{}, &reply)
	for _, verb := range []control.Verb{control.VerbSwap, control.VerbStop, control.VerbPause, control.VerbCheckpoint} {
		if err := r.do(t.Context(), verb, map[string]any{"component": "rollout", "file": module(t, "rust")}, nil, nil); code(err) != control.CodeEnded && code(err) != control.CodeBad {
			t.Errorf("%s after the end: %v", verb, err)
		}
	}
	r.end()
	all.Wait()
	testkit.Until(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

func TestCommands_RefusesNonsense(t *testing.T) {
	r := begin(t)
	minus, zero, huge := -1, 0, 1<<20
	negative := -1.0
	for name, q := range map[string]control.SwapRequest{
		"no file":            {Component: "rollout"},
		"a boundary":         {Component: "rollout", File: "x.wasm", At: "noon"},
		"a negative trial":   {Component: "rollout", File: "x.wasm", TrialEnvs: &minus},
		"a large trial":      {Component: "rollout", File: "x.wasm", TrialEnvs: &huge},
		"no steps":           {Component: "rollout", File: "x.wasm", TrialSteps: &zero},
		"training without":   {Component: "rollout", File: "x.wasm", TrialLive: true},
		"a probation":        {Component: "rollout", File: "x.wasm", Probation: &negative},
		"no such component":  {Component: "walker", File: "x.wasm"},
		"a folder":           {Component: "learner", File: "/"},
		"an instance":        {Component: "rollout[0]", File: "x.wasm"},
		"a text as a module": {Component: "rollout", File: "commands_test.go"},
	} {
		err := r.do(t.Context(), control.VerbSwap, q, nil, nil)
		if c := code(err); c != control.CodeBad && c != control.CodeUnknown && c != "E012" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for verb, q := range map[control.Verb]any{
		control.VerbReload: control.ReloadRequest{File: "relative.toml"}, control.VerbScale: control.ScaleRequest{},
		control.VerbPause: control.GroupRequest{Deadline: -1}, control.VerbLogs: control.LogsRequest{Component: "a b"},
		control.VerbTap: control.TapRequest{Pattern: "rollout.*", Columns: []string{"colour"}},
	} {
		if err := r.do(t.Context(), verb, q, nil, nil); code(err) != control.CodeBad {
			t.Errorf("%s: %v, want %s", verb, err, control.CodeBad)
		}
	}
	var status control.StatusReply
	r.mustDo(control.VerbStatus, control.StatusRequest{}, &status)
	if status.State != control.Running && status.State != control.Ready || status.Swaps.Committed != 0 {
		t.Errorf("%+v", status) // it may not have begun yet
	}
}

func TestCommands_RemembersTheWayBackAcrossProcesses(t *testing.T) {
	r := begin(t)
	r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout", File: module(t, "rust")}, nil)
	r.end()
	run, err := runs.Open("", r.run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(&live{commandOptions: commandOptions{Run: run}})
	if err := h.recall(); err != nil {
		t.Fatal(err)
	}
	p := h.previous["rollout"]
	if p == nil || p.version.File != module(t, "c") || h.counts.Committed != 1 || h.last != 1 {
		t.Fatalf("%+v, %+v, %d", p, h.counts, h.last)
	}
	if want := fmt.Sprintf("env.cartpole.use = %q", run.ModulePath(p.version.Hash)); !slices.Contains(p.back, want) {
		t.Errorf("the way back is %q, want %q in it", p.back, want)
	}
}

func TestWithoutKey_TakesOneKeyOfOneTable(t *testing.T) {
	text := "\n[a]\nplugin = \"x\"\nb = 1\n\n[b]\nplugin = \"y\"\n"
	for table, want := range map[string]string{
		"a": "\n[a]\nb = 1\n\n[b]\nplugin = \"y\"\n", "b": "\n[a]\nplugin = \"x\"\nb = 1\n\n[b]\n", "c": text,
	} {
		if got := withoutKey(text, table, "plugin"); got != want {
			t.Errorf("without plugin of %s: %q, want %q", table, got, want)
		}
	}
}

func TestOfComponent_MatchesRecordsByTheirComponent(t *testing.T) {
	record := []byte(`{"level":"INFO","msg":"hello","component":"rollout[2]"}`)
	for pattern, want := range map[string]bool{"": true, "rollout": true, "rollout[2]": true, "rollout[1]": false, "r*": true, "learner": false, "a b": false} {
		if got := OfComponent(pattern, record); got != want {
			t.Errorf("%q: %t, want %t", pattern, got, want)
		}
	}
	if OfComponent("rollout", []byte("no JSON")) || !OfComponent("", []byte("no JSON")) {
		t.Error("a record that is no JSON is of no component")
	}
}
