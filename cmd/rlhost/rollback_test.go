package main

import (
	"strings"
	"testing"
)

// A version is rolled back while the run does not go on, and runs once it does. A second rollback undoes the first.
func TestRollback_OfARunThatDoesNotGoOn(t *testing.T) {
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
