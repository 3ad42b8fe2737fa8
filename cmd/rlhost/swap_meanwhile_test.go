package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// held is an operation on the disk that waits.
type held struct {
	reached chan struct{}
	goOn    func()
}

// hold makes the next operation that begins so wait.
func (j *subject) hold(operation string) *held {
	h := &held{reached: make(chan struct{})}
	gone, once := make(chan struct{}), sync.Once{}
	h.goOn = sync.OnceFunc(func() { close(gone) })
	j.t.Cleanup(h.goOn)
	j.gate.on(func(_ int, now string) {
		if !strings.HasPrefix(now, operation) {
			return
		}
		first := false
		once.Do(func() { first = true })
		if first {
			close(h.reached)
			<-gone
		}
	})
	return h
}

// wait waits until the operation is reached.
func (h *held) wait(t *testing.T) {
	t.Helper()
	select {
	case <-h.reached:
	case <-time.After(longestWait):
		t.Fatal("the operation does not come")
	}
}

// asks makes a request on a new connection, in the background.
func (j *subject) asks(ctx context.Context, verb control.Verb, request, reply any, notice func(text string)) (answered <-chan error) {
	j.t.Helper()
	client, done := j.dial(), make(chan error, 1)
	go func() {
		done <- client.Do(ctx, verb, request, reply, func(raw json.RawMessage) {
			var text string
			if json.Unmarshal(raw, &text) == nil && notice != nil {
				notice(text)
			}
		})
	}()
	return done
}

// answer waits for one.
func (j *subject) answer(answered <-chan error) error {
	j.t.Helper()
	select {
	case err := <-answered:
		return err
	case <-time.After(longestWait):
		j.t.Fatalf("no answer:\n%s", j.output)
		return nil
	}
}

// A process that dies after it was started and before it has taken over costs the swap, or is started again; the run
// does not notice.
func TestSwapFault_AProcessDiesWhileItTakesOver(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	for _, name := range []string{"inference", "batcher", "learner"} {
		before := j.processes()
		h := j.hold("pwrite 0001/events.jsonl")
		q := control.SwapRequest{Component: name, File: "process"}
		var r control.SwapReply
		answered := j.asks(t.Context(), control.VerbSwap, q, &r, nil)
		h.wait(t)
		started := slices.DeleteFunc(j.processes(), func(pid int) bool { return slices.Contains(before, pid) })
		for _, pid := range started {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			j.awaitDeath(pid)
		}
		h.goOn()
		err := j.answer(answered)
		s := j.quiet()
		got := instance(&s, name)
		t.Logf("%s: killed %v: %v %s; it runs in %s (%s)", name, started, err, r.Outcome, got.Runtime, got.Host)
		if len(started) == 0 { // one, and its successor
			t.Errorf("%s: no process was started for it", name)
		}
		want := "builtin"
		if err == nil {
			want = "process"
		} else {
			j.refusal(err, control.CodeFailed, name+": the new version does not take the state of the old one, which runs on: .*killed by signal 9")
		}
		if got.Runtime != want || strings.Contains(j.text(), "[component."+name+"]\nkind = \""+name+"\"\nruntime = \"process\"") != (err == nil) {
			t.Errorf("%s runs in %s, want %s; pipeline.toml says\n%s", name, got.Runtime, want, j.text())
		}
		j.goesOn()
		j.addsUp("fault")
	}
	j.stop()
}

// awaitDeath waits until a process is dead, whether or not its parent knows already.
func (j *subject) awaitDeath(pid int) {
	j.t.Helper()
	testkit.Until(j.t, "the process is dead", func() bool { return !testkit.ProcessRuns(pid) })
}

// A swap while the run is paused is made, and the run is paused as before.
func TestSwapMeanwhile_Paused(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("cartpole.toml")
	for _, patterns := range [][]string{nil, {"rollout"}} {
		j.do(control.VerbPause, control.GroupRequest{Patterns: patterns}, nil)
		for _, at := range []string{"step", "trajectory", "episode", "now"} {
			for _, file := range []string{newVersion, oldVersion} {
				q := w.swapTo(file)
				q.At = at
				var r control.SwapReply
				j.do(control.VerbSwap, q, &r)
				if r.Outcome != control.Committed || r.Envs != 16 || at != "now" && r.Dropped != 0 {
					t.Errorf("at %s: %+v", at, r)
				}
				j.runsFile(file)
			}
		}
		j.swap(control.SwapRequest{Component: "inference", File: "process"})
		j.do(control.VerbRollback, control.RollbackRequest{Component: "inference"}, nil)
		s := j.status()
		if got := instance(&s, "rollout").State; got != control.Paused || s.State != control.Paused {
			t.Errorf("after swaps the rollout is %s, the run %s, want both paused", got, s.State)
		}
		j.addsUp("swap")
		j.do(control.VerbUnpause, control.GroupRequest{}, nil)
		j.goesOn()
	}
	j.stop()
}

// A swap while a checkpoint is being written: both are made.
func TestSwapMeanwhile_Checkpointing(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	for _, c := range []struct {
		what string
		q    control.SwapRequest
	}{
		{"environments", w.swapTo(newVersion)},
		{"a component", control.SwapRequest{Component: "inference", File: "process"}},
	} {
		h := j.hold("rename checkpoints/")
		var saved control.CheckpointReply
		checkpoint := j.asks(t.Context(), control.VerbCheckpoint, control.CheckpointRequest{}, &saved, nil)
		h.wait(t)
		var r control.SwapReply
		swap := j.asks(t.Context(), control.VerbSwap, c.q, &r, nil)
		j.until("the swap is under way", func(s *control.StatusReply) bool { return strings.HasPrefix(s.Transition, "swap of ") })
		h.goOn()
		if err := errors.Join(j.answer(checkpoint), j.answer(swap)); err != nil || saved.EnvSteps == 0 || r.Outcome != control.Committed {
			t.Errorf("%s: %v %+v %+v", c.what, err, saved, r)
		}
		j.goesOn()
		j.addsUp()
	}
	j.runsFile(newVersion)
	j.stop()
}

// A swap while the run ends is made or refused because it ended; either way the folder names the running version.
func TestSwapMeanwhile_Stopping(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	h := j.hold("rename checkpoints/")
	var stopped control.StopReply
	stop := j.asks(t.Context(), control.VerbStop, control.StopRequest{}, &stopped, nil)
	h.wait(t)
	var r control.SwapReply
	swap := j.asks(t.Context(), control.VerbSwap, w.swapTo(newVersion), &r, nil)
	j.until("the swap is under way", func(s *control.StatusReply) bool { return strings.HasPrefix(s.Transition, "swap of ") })
	h.goOn()
	err := j.answer(swap)
	if err != nil {
		j.refusal(err, control.CodeEnded, "the run (has )?ended")
	}
	t.Logf("a swap while the run ends: %v %s", err, r.Outcome)
	if err := j.answer(stop); err != nil || stopped.Checkpoint == nil {
		t.Errorf("stop: %v %+v", err, stopped)
	}
	j.ends(exitOK)
	j.nothingLeft()
	want := oldVersion
	if err == nil {
		want = newVersion
	}
	again := w.host("--resume", "job")
	again.runsFile(want)
	again.goesOn()
	again.stop()
}

// A client that disconnects before the change is made cancels it; afterwards the change stays.
func TestSwapMeanwhile_TheClientGoes(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	for _, stage := range []string{"checking", "compiled", "trial"} {
		ctx, leave := context.WithCancel(t.Context())
		q := w.swapTo(newVersion)
		longTrial(&q)
		err := j.answer(j.asks(ctx, control.VerbSwap, q, nil, func(text string) {
			if strings.HasPrefix(text, stage) {
				leave()
			}
		}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("at %q: %v", stage, err)
		}
		j.quiet()
		j.runsFile(oldVersion)
		j.goesOn()
	}
	for _, c := range []struct{ operation, runs string }{
		{"pwrite 0001/events.jsonl", oldVersion}, // "begin": the commit has not begun
		{"rename 0001/pipeline.toml", newVersion},
	} {
		h := j.hold(c.operation)
		ctx, leave := context.WithCancel(t.Context())
		answered := j.asks(ctx, control.VerbSwap, w.swapTo(newVersion), nil, nil)
		h.wait(t)
		leave()
		j.answer(answered)
		h.goOn()
		s := j.quiet()
		t.Logf("gone before %s: %+v", c.operation, s.Swaps)
		if c.runs == newVersion {
			j.runsFile(newVersion)
			if s.Swaps.Committed == 0 {
				t.Errorf("changes %+v", s.Swaps)
			}
		}
		j.saysWhatRuns()
		j.goesOn()
		j.addsUp()
		j.do(control.VerbSwap, w.swapTo(oldVersion), nil)
	}
	j.wrote("refused", "swap", "given up: the client has gone; nothing has changed")
	j.stop()
}

// saysWhatRuns checks that pipeline.toml names the running versions.
func (j *subject) saysWhatRuns() {
	j.t.Helper()
	s := j.status()
	v := instance(&s, "rollout").Version
	if text := j.text(); v == nil || !strings.Contains(text, v.Hash+".wasm") && !strings.Contains(text, v.File) {
		j.t.Errorf("%+v runs, pipeline.toml says\n%s", v, text)
	}
}

// The running version that traps in the trial is compared with the new one, and no reason not to swap.
func TestSwapFault_TheOldVersionTrapsInTheTrial(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	// Environment 20 is there in the trial alone: the run has 16.
	j := w.host("walk.toml", "--set", "env.walk.args={fault=1,env=20,step=8}")
	r := j.reload("walk.toml", "swap.trial_envs=24")
	if len(r.Swaps) != 1 || r.Swaps[0].Trial == nil {
		t.Fatalf("%s", asJSON(r))
	}
	c := r.Swaps[0].Trial
	if c.Old.Faults != 1 || !strings.Contains(c.Old.FirstFault, "env 20: trap in rl_step at step 8") || c.New.Faults != 0 || c.Verdict != "ok" {
		t.Errorf("%s", asJSON(c))
	}
	j.goesOn()
	j.addsUp()
	j.stop()
}

// Environments of a process that dies before they have taken over, or on probation, are replaced by the previous
// ones; without probation they are started again.
func TestSwapFault_WorkersDieWhileTheyTakeOver(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	before := j.processes()
	isolated := func(probation string) control.ReloadRequest {
		return w.reloadWith("cartpole.toml", `env.cartpole.runtime="process"`, `swap.probation="`+probation+`"`)
	}
	kill := func() (n int) {
		for _, pid := range j.processes() {
			if !slices.Contains(before, pid) {
				n++
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may be about to end by itself
				j.awaitDeath(pid)
			}
		}
		return n
	}
	for _, c := range []struct {
		what, probation string
		late            bool
	}{
		{"before the commit, probation", "60s", false}, {"on probation", "60s", true},
		{"before the commit, no probation", "0s", false}, {"after it", "0s", true},
	} {
		h := j.hold("pwrite 0001/events.jsonl")
		var r control.ReloadReply
		answered := j.asks(t.Context(), control.VerbReload, isolated(c.probation), &r, nil)
		h.wait(t)
		killed := 0
		if !c.late {
			killed = kill()
		}
		h.goOn()
		err := j.answer(answered)
		if c.late {
			killed = kill()
		}
		s := j.quiet()
		got := instance(&s, "rollout")
		t.Logf("%s: killed %d: %v %s; rollout runs in %s: %s", c.what, killed, err, r.Outcome, got.Runtime, got.Note)
		if killed == 0 || c.late && err != nil {
			t.Errorf("%s: %d workers were killed, %v", c.what, killed, err)
		}
		want := "process"
		if err != nil || c.probation != "0s" {
			want = "wasm"
		}
		j.goesOn()
		s = j.status()
		if got := instance(&s, "rollout"); got.Runtime != want || strings.Contains(j.text(), `runtime = "process"`) != (want == "process") {
			t.Errorf("%s: rollout runs in %s, want %s; pipeline.toml says\n%s", c.what, got.Runtime, want, j.text())
		}
		j.addsUp("fault")
		j.reload("cartpole.toml")
	}
	j.stop()
}

// A process is killed and the run paused at once, whatever it held then: all env steps are accounted for while nothing moves, and no
// more are lost with a process than its blocks hold.
func TestSwapMeanwhile_KilledAndPaused(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"async", "sync"} {
		w := newWorkshop(t)
		w.write("live.toml", endless(mode))
		j := w.host("live.toml", "--set", "component.rollout.runtime=process", "--set", "component.learner.runtime=process",
			"--set", "component.learner.epochs=1")
		seed := time.Now().UnixNano()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		for _, name := range []string{"rollout", "learner", "rollout", "rollout"} {
			<-time.After(time.Duration(random.IntN(30)) * time.Millisecond) // at any point of its work
			j.signalTo(name, syscall.SIGKILL)
			var paused control.GroupReply
			j.do(control.VerbPause, control.GroupRequest{Deadline: longestWait.Seconds()}, &paused)
			for _, a := range paused.Answers {
				if a.State != control.Paused {
					t.Errorf("%s killed: %+v", name, a)
				}
			}
			after := j.until("env steps add up", func(s *control.StatusReply) bool {
				return s.Steps.Made == s.Steps.Trained+s.Steps.Dropped+s.Steps.UnderWay
			})
			again := j.status()
			if again.Steps.Made != after.Steps.Made || again.Steps.Dropped != after.Steps.Dropped {
				t.Errorf("%s killed: paused with %+v, later %+v", name, after.Steps, again.Steps)
			}
			j.do(control.VerbUnpause, control.GroupRequest{}, nil)
			j.goesOn()
		}
		j.stop()
	}
}
