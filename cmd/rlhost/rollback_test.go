package main

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A version is rolled back while the run is not running, and runs once it is resumed. A second rollback undoes the first.
func TestRollback_OfAnEndedRun(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("cartpole.toml")
	j.swap(w.swapTo(newVersion))
	j.stop()
	w.fails(exitUsage, []string{"rollback", "batcher", "--run", "job"}, "batcher has no previous version")
	for _, want := range []string{oldVersion, newVersion, oldVersion} {
		out, err := w.command("rollback", "rollout", "--run", "job").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "rollout goes back to "+want) {
			t.Fatalf("rollback to %s: %v\n%s", want, err, out)
		}
	}
	again := w.host("--resume", "job")
	again.runsFile(oldVersion)
	again.addsUp()
	again.stop()
}

// A wrapper goes back alone, by its place.
func TestRollback_OfAWrapperOfAnEndedRun(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("cartpole.toml", "--set", "env.cartpole.wrap=[{ time_limit = 400 }, { reward_scale = 0.5 }]")
	j.swap(control.SwapRequest{Component: "rollout.wrap[0]", File: "{ time_limit = 300 }"})
	j.swap(control.SwapRequest{Component: "rollout.wrap[1]", File: "{ reward_scale = 0.25 }"})
	j.stop()
	w.fails(exitUsage, []string{"rollback", "rollout.wrap[7]", "--run", "job"}, "rollout.wrap[7] has no previous version")
	out, err := w.command("rollback", "rollout.wrap[0]", "--run", "job").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "rollout.wrap[0] goes back to { time_limit = 400 }") {
		t.Fatalf("%v\n%s", err, out)
	}
	again := w.host("--resume", "job")
	for _, limit := range []string{"400", "300"} {
		if text := again.text(); !strings.Contains(text, "[{ time_limit = "+limit+" }, { reward_scale = 0.25 }]") {
			t.Errorf("the pipeline lacks a limit of %s:\n%s", limit, text)
		}
		again.do(control.VerbRollback, control.RollbackRequest{Component: "rollout.wrap[0]"}, nil)
	}
	again.stop()
}
