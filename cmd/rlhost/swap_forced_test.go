package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// A process that hangs stops the whole run. A change at once and a rollback remove it as it is within seconds, the run continues, and the
// losses are counted.
func TestSwapForced_AProcessThatHangsIsTakenAway(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ name, mode string }{{"batcher", "async"}, {"batcher", "sync"}, {"inference", "async"}, {"inference", "sync"}} {
		t.Run(c.mode+" "+c.name, func(t *testing.T) {
			someOf(t, i, 0)
			t.Parallel()
			w := newWorkshop(t)
			w.write("live.toml", endless(c.mode))
			j := w.host("live.toml")
			for _, back := range []func(r *control.SwapReply){
				func(r *control.SwapReply) {
					j.do(control.VerbSwap, control.SwapRequest{Component: c.name, File: "builtin", At: "now"}, r)
				},
				func(r *control.SwapReply) {
					j.do(control.VerbRollback, control.RollbackRequest{Component: c.name, At: "now"}, r)
				},
			} {
				j.swap(control.SwapRequest{Component: c.name, File: "process"})
				j.hang(c.name)
				j.stalls()
				var r control.SwapReply
				began := time.Now()
				back(&r)
				if took := time.Since(began); took > 15*time.Second { // its stall limit would come after 30 s
					t.Errorf("it took %v", took)
				}
				if !strings.Contains(strings.Join(r.Notes, "\n"), c.name+" was taken away as it was") {
					t.Errorf("it is not said that it was forced: %s", asJSON(r))
				}
				j.goesOn()
				j.addsUp("component."+c.name, "fault")
			}
			j.stop()
		})
	}
}

// A component in Python that hangs in a slot is killed by its stall limit, says where it was, and the run continues.
func TestSwapForced_AComponentThatHangsIsKilledByItsStallLimit(t *testing.T) {
	t.Parallel()
	for i, mode := range []string{"async", "sync"} {
		t.Run(mode, func(t *testing.T) {
			someOf(t, i, 0)
			t.Parallel()
			w := newWorkshop(t)
			table := inPython("./wrong.py", "passes", w.python())
			w.write("wrong.py", wrongPy)
			w.write("hangs.toml", passed(mode, strings.Replace(table, "[component.", "stall = \"2s\"\n[component.", 1)))
			j := w.host("hangs.toml", "--set", "component.between.fault=5", "--set", "component.between.at=40")
			j.says(`(?s)in goes_wrong.*killed: no sign of life for 2s while`)
			j.goesOn()
			j.addsUp("component.between")
			j.stop()
		})
	}
}

// A run that has stalled is stopped: its learner is idle, so its learning is saved, and resumed.
func TestSwapForced_StopSavesAnIdleLearner(t *testing.T) {
	t.Parallel()
	for i, mode := range []string{"sync", "async"} {
		t.Run(mode, func(t *testing.T) {
			someOf(t, i, 0)
			t.Parallel()
			w := newWorkshop(t)
			w.write("live.toml", endless(mode))
			j := w.host("live.toml")
			j.swap(control.SwapRequest{Component: "batcher", File: "process"})
			j.hang("batcher")
			s := j.stalls()
			j.stop()
			// The boundary at which it may have hung publishes the version that it has learned when it is over.
			if saved := w.saved(j.dir); saved.PolicyVersion != s.Policy && saved.PolicyVersion != s.Policy+1 || saved.Exact {
				t.Errorf("version %d was saved, exact: %t; want %d, and not exact\n%s", saved.PolicyVersion, saved.Exact, s.Policy, j.output)
			}
			again := w.host("--resume", "cartpole")
			again.stop()
		})
	}
}

// hang stops the process of a component.
func (j *subject) hang(name string) { j.signalTo(name, syscall.SIGSTOP) }

// signalTo sends a signal to the process of a component, whose number it returns.
func (j *subject) signalTo(name string, sent syscall.Signal) (pid int) {
	j.t.Helper()
	s := j.status()
	host := instance(&s, name).Host
	if _, err := fmt.Sscanf(host, "pid %d", &pid); err != nil {
		j.t.Fatalf("%s runs in %q: %v", name, host, err)
	}
	if err := syscall.Kill(pid, sent); err != nil {
		j.t.Fatal(err)
	}
	return pid
}

// stalls waits until no env steps are made any more.
func (j *subject) stalls() control.StatusReply {
	j.t.Helper()
	made, same := uint64(0), 0
	return j.until("the run stands still", func(s *control.StatusReply) bool {
		if same++; s.Steps.Made != made {
			made, same = s.Steps.Made, 0
		}
		return same > 5
	})
}
