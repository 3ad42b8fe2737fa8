package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A process that hangs stops the whole run. A change at once and a rollback take it away as it is, the run goes on, and what was
// lost is counted.
func TestSwapForced_AProcessThatHangsIsTakenAway(t *testing.T) {
	t.Parallel()
	const name = "batcher"
	for _, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "sync" && os.Getenv("RLHOST_LONG") == "" {
				t.Skip("RLHOST_LONG is not set")
			}
			w := newWorkshop(t)
			w.write("live.toml", endless(mode))
			j := w.host("live.toml")
			for _, back := range []func(r *control.SwapReply){
				func(r *control.SwapReply) {
					j.do(control.VerbSwap, control.SwapRequest{Component: name, File: "builtin", At: "now"}, r)
				},
				func(r *control.SwapReply) {
					j.do(control.VerbRollback, control.RollbackRequest{Component: name, At: "now"}, r)
				},
			} {
				j.swap(control.SwapRequest{Component: name, File: "process"})
				j.hang(name)
				j.standsStill()
				var r control.SwapReply
				back(&r)
				if !strings.Contains(strings.Join(r.Notes, "\n"), name+" was taken away as it was") {
					t.Errorf("it is not said that it was forced: %s", asJSON(r))
				}
				j.goesOn()
				j.addsUp("component." + name)
			}
			j.kill()
		})
	}
}

// hang stops the process of a component.
func (j *subject) hang(name string) {
	j.t.Helper()
	s := j.status()
	var pid int
	if _, err := fmt.Sscanf(instance(&s, name).Host, "pid %d", &pid); err != nil {
		j.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		j.t.Fatal(err)
	}
}

// standsStill waits until no env steps are made any more.
func (j *subject) standsStill() {
	j.t.Helper()
	made, same := uint64(0), 0
	j.until("the run stands still", func(s *control.StatusReply) bool {
		if same++; s.Steps.Made != made {
			made, same = s.Steps.Made, 0
		}
		return same > 5
	})
}
