package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// asked is a training whose rewards a component is asked about; passed one whose trajectories go through one. Both change nothing, and
// go wrong where their keys say: see testdata/guests.
func asked(mode, component string) string {
	return throughTest(mode, component, "shaped_rewards = true\n", askedWires)
}

func passed(mode, component string) string { return throughTest(mode, component, "", passedWires) }

func throughTest(mode, component, rollout, wires string) string {
	text, _, _ := strings.Cut(endless(mode), "[plugin.own]")
	text = strings.Replace(text, `probation = "0s"`, `probation = "1h"`, 1)
	return text + "[component.rollout]\n" + rollout + component + wires
}

const askedWires = `
[[wire]]
signal = "rollout.rewards"
slot = "between.on_rewards"
mode = "queue"
depth = 64
on_full = "block"
write = ["shaped_reward"]
[[wire]]
signal = "between.shaped"
slot = "rollout.on_shaped"
mode = "reply"
depth = 64
on_full = "block"
`

const passedWires = `
[[wire]]
signal = "rollout.trajectories"
slot = "between.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "between.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// inModule is the table of a component of testdata/guests.
func inModule(name string) string {
	return "[component.between]\nruntime = \"wasm\"\nuse = \"./" + name + "\"\nmax_restarts = 1000\n"
}

// inPython is the table of a component in Python.
func inPython(script, kind, python string) string {
	return fmt.Sprintf("[plugin.script]\npath = %q\ninterpreter = [%q]\n[component.between]\nplugin = \"script\"\nkind = %q\n", script, python, kind)
}

// wrongPy is asked.c and passes.c in Python: it raises, or dies, or hangs, or holds blocks up, or sends them on twice.
const wrongPy = `
import dataclasses, os, time
import rlhost

@dataclasses.dataclass
class Config:
    fault: int = 0
    at: int = 0
    every: int = 0

class Wrong:
    def configure(self, config):
        self.config, self.came = rlhost.decode(config, Config), 0

    def goes_wrong(self, m):
        self.came += 1
        c = self.config
        if not (self.came == c.at or c.every and self.came % c.every == 0):
            return False
        if c.fault == 1:
            raise ValueError("at message %d" % self.came)
        if c.fault == 2:
            os.kill(os.getpid(), 9)
        if c.fault == 5:
            time.sleep(1e9)
        if c.fault == 4:
            for _ in range(2):
                self.host.forward("trajectories", m)
        return True

class Asked(Wrong, rlhost.Component):
    kind = "asked"
    signals = [rlhost.Signal("shaped", "shaped_rewards", on_loan=True)]
    slots = [rlhost.Slot("on_rewards", "reward_request")]

    def on_rewards(self, m):
        if not self.goes_wrong(m):
            self.host.forward("shaped", m)

class Passes(Wrong, rlhost.Component):
    kind = "passes"
    signals = [rlhost.Signal("trajectories", "trajectory")]
    slots = [rlhost.Slot("on_trajectories", "trajectory")]

    def on_trajectories(self, m):
        if not self.goes_wrong(m):
            self.host.forward("trajectories", m)

if __name__ == "__main__":
    rlhost.serve(Asked, Passes)
`

// newWrongShop returns a workshop with these components, and their tables by name.
func newWrongShop(t *testing.T) (w *workshop, tables map[string]string) {
	t.Helper()
	w = newWorkshop(t)
	w.copy("asked.wasm", faultyGuests+"/asked.wasm")
	w.copy("passes.wasm", faultyGuests+"/passes.wasm")
	w.write("wrong.py", wrongPy)
	return w, map[string]string{
		"asked.wasm": inModule("asked.wasm"), "passes.wasm": inModule("passes.wasm"),
		"asked.py": inPython("./wrong.py", "asked", w.python()), "passes.py": inPython("./wrong.py", "passes", w.python()),
	}
}

// someOf runs the first parts of a test, and all with RLHOST_LONG=1.
func someOf(t *testing.T, part, first int) {
	if part >= first && os.Getenv("RLHOST_LONG") == "" {
		t.Skip("takes its time: RLHOST_LONG=1")
	}
}

// fellBack waits until a version on probation has given way to the previous one.
func (j *subject) fellBack(times uint64) {
	j.t.Helper()
	j.until("the previous version runs again", func(s *control.StatusReply) bool {
		return s.Swaps.RolledBack == times && len(s.Probation) == 0 && s.Transition == ""
	})
}

// A version of a component that others ask fails on probation: the previous version gets its pending requests again. The run continues,
// and a synchronous one learns the same to the last bit.
func TestCounts_AFallbackAsksThePreviousVersionAgain(t *testing.T) {
	t.Parallel()
	w, tables := newWrongShop(t)
	w.write("plain.toml", strings.Split(endless("sync"), "[plugin.own]")[0])
	for i, c := range []struct{ name, table, mode, fault string }{
		{"a trap", "asked.wasm", "sync", "1"}, {"an exception", "asked.py", "sync", "1"}, {"a loop without end", "asked.wasm", "sync", "2"},
		{"a trap, asynchronously", "asked.wasm", "async", "1"}, {"an exception, asynchronously", "asked.py", "async", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			someOf(t, i, 2)
			w, file := w.of(t), strings.ReplaceAll(c.name, " ", "-")+".toml"
			w.write(file, asked(c.mode, tables[c.table]))
			j := w.host(file, "--json")
			for n, at := range []string{"200", "300"} { // after the change itself, also on a busy machine
				j.reload(file, "component.between.fault="+c.fault, "component.between.at="+at)
				j.fellBack(uint64(n + 1))
				j.goesOn()
			}
			j.addsUp()
			j.stop()
			if c.mode == "sync" {
				j.learnedWhat("plain.toml")
			}
		})
	}
}

// Trajectories that a component took and never sent on are dropped by that component, whatever the reason: a fault on probation or after
// it, the death of its process, or its own decision. A block that is sent on twice is learned from once.
func TestCounts_AComponentsLossesAreItsOwn(t *testing.T) {
	t.Parallel()
	w, tables := newWrongShop(t)
	// A fault comes after the change itself, also on a busy machine: at message 200.
	for i, c := range []struct {
		name, table, mode string
		sets              []string
		fallsBack, loses  bool
	}{
		{"traps on probation", "passes.wasm", "sync", []string{"fault=1", "every=200"}, true, true},
		{"raises on probation", "passes.py", "async", []string{"fault=1", "every=200"}, true, false},
		{"drops in a module", "passes.wasm", "sync", []string{"fault=3", "every=4"}, false, true},
		{"sends twice in a module", "passes.wasm", "async", []string{"fault=4", "every=200"}, true, false},
		{"loops on probation", "passes.wasm", "async", []string{"fault=2", "every=200"}, true, true},
		{"drops in a process", "passes.py", "async", []string{"fault=3", "every=4"}, false, true},
		{"sends twice in a process", "passes.py", "sync", []string{"fault=4", "every=200"}, true, false},
		{"raises on probation, synchronously", "passes.py", "sync", []string{"fault=1", "every=200"}, true, false},
		{"dies on probation", "passes.py", "async", []string{"fault=2", "every=200"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			someOf(t, i, 4)
			w, file := w.of(t), strings.ReplaceAll(c.name, " ", "-")+".toml"
			w.write(file, passed(c.mode, tables[c.table]))
			j := w.host(file, "--json")
			for i := range c.sets {
				c.sets[i] = "component.between." + c.sets[i]
			}
			j.reload(file, c.sets...)
			if c.fallsBack {
				j.fellBack(1)
			}
			j.goesOn()
			lost := j.addsUp("component.between").Reasons["component.between"]
			if (lost > 0) != c.loses {
				t.Errorf("between has dropped %d env steps", lost)
			}
			j.stop()
		})
	}
}

// A version with which the whole run stalls is rolled back automatically, by force where it hangs, and the losses are counted.
func TestCounts_AVersionThatStallsTheRunIsRolledBack(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ name, table, mode, fault, reason string }{
		{"lets nothing through", "passes.wasm", "async", "fault=3", "the run stands still: between has taken [0-9]+ trajectories"},
		{"lets nothing through, synchronously", "passes.wasm", "sync", "fault=3", "the run stands still: "},
		{"hangs", "passes.py", "async", "fault=5", "has taken nothing|has not finished"},
		{"hangs, synchronously", "passes.py", "sync", "fault=5", "has taken nothing|has not finished"},
		{"answers nothing, synchronously", "asked.py", "sync", "fault=3", "the run stands still: between owes rollout an answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			someOf(t, i, 0)
			t.Parallel()
			w, tables := newWrongShop(t)
			through := passed
			if c.table == "asked.py" {
				through = asked
			}
			w.write("live.toml", through(c.mode, tables[c.table]))
			j := w.host("live.toml", "--json")
			j.reload("live.toml", "component.between."+c.fault, "component.between.every=1")
			j.fellBack(1)
			j.wrote(runs.StepBack, "fallback", c.reason)
			j.goesOn()
			j.addsUp("component.between", "wire", "fault")
			j.stop()
		})
	}
}

// A module that keeps trapping after its probation is restarted; each block that it had is its loss.
func TestCounts_AModuleThatTrapsAgainAndAgain(t *testing.T) {
	t.Parallel()
	w, tables := newWrongShop(t)
	w.write("traps.toml", passed("async", tables["passes.wasm"]))
	j := w.host("traps.toml", "--set", "component.between.fault=1", "--set", "component.between.every=100")
	j.until("faults", func(s *control.StatusReply) bool { return s.Steps.Reasons["component.between"] > 0 })
	j.addsUp("component.between")
	j.kill() // it traps at each message of the state that it goes back to
}

// A learner's learning since the state that it continues from is lost, when its process dies and when it falls back on probation: these
// env steps count as dropped by the learner, and the trained ones are the learner's own count.
func TestCounts_LostLearningIsNotTrained(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	for i, c := range []struct{ mode, probation string }{{"async", "0s"}, {"sync", "1h"}, {"sync", "0s"}, {"async", "1h"}} {
		t.Run(c.mode+" with probation of "+c.probation, func(t *testing.T) {
			someOf(t, i, 2)
			w, file := w.of(t), c.mode+c.probation+".toml"
			w.write(file, strings.NewReplacer("[plugin.own]", "[plugin.own]\nsnapshot = \"1h\"", `probation = "0s"`, `probation = "`+c.probation+`"`).Replace(endless(c.mode)))
			j := w.host(file, "--json")
			j.reload(file, "component.learner.plugin=own")
			j.goesOn()
			j.killsLearner()
			if c.probation != "0s" {
				j.fellBack(1) // while it does, nothing can be paused
			}
			j.goesOn()
			if j.addsUp("component.learner").Reasons["component.learner"] == 0 {
				t.Error("a learner that was killed has lost nothing")
			}
			j.trainedIsLearned()
			j.swap(control.SwapRequest{Component: "learner", File: "process"}) // with the state that it has
			j.trainedIsLearned()
			j.stop()
		})
	}
}

// A batcher that is killed has the rest of a block, whose first part has been learned from: datasets of 512 rows are cut out of blocks of 320.
// That part counts as trained, the rest as dropped, and the next batcher begins with whole blocks.
func TestCounts_ABatcherThatDiesWithTheRestOfABlock(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("cut.toml", strings.Split(endless("async"), "[plugin.own]")[0]+`
[component.rollout]
envs = 20
splits = 2
horizon = 32
[component.batcher]
runtime = "process"
dataset_rows = 512
`)
	const block = 320
	j := w.host("cut.toml", "--json")
	for kill := range uint64(3) {
		j.goesOn()
		var before control.StepCounts
		var held uint64
		j.until("a batcher at rest has the rest of a block", func(*control.StatusReply) bool {
			j.do(control.VerbPause, control.GroupRequest{}, nil)
			s := j.status()
			waits := slices.IndexFunc(s.Wires, func(w control.WireStatus) bool { return w.Wire == "rollout.trajectories → batcher.on_trajectories" })
			before, held = s.Steps, s.Steps.UnderWay-block*uint64(s.Wires[waits].Queued) // a block on its wire is not the batcher's yet
			if held%block != 0 {
				return true
			}
			j.do(control.VerbUnpause, control.GroupRequest{}, nil)
			return false
		})
		j.awaitDeath(j.signalTo("batcher", syscall.SIGKILL))
		after := j.until("what the batcher had is counted", func(s *control.StatusReply) bool { return s.Steps.UnderWay != before.UnderWay }).Steps
		if lost := after.Reasons["component.batcher"] - before.Reasons["component.batcher"]; lost != held || after.Trained != before.Trained {
			t.Errorf("kill %d: %d env steps of the batcher's are dropped and %d learned from, want the %d that it had and none",
				kill, lost, after.Trained-before.Trained, held)
		}
		j.do(control.VerbUnpause, control.GroupRequest{}, nil)
		j.goesOn()
		j.addsUp("component.batcher")
	}
	j.trainedIsLearned()
	j.stop()
}

// killsLearner kills the process of the learner.
func (j *subject) killsLearner() {
	j.t.Helper()
	j.awaitDeath(j.signalTo("learner", syscall.SIGKILL))
}

// trainedIsLearned checks in a paused run that the count of trained env steps equals the learner's own.
func (j *subject) trainedIsLearned() {
	j.t.Helper()
	var paused control.GroupReply
	j.do(control.VerbPause, control.GroupRequest{}, &paused)
	for _, a := range paused.Answers {
		if a.State != control.Paused {
			j.t.Errorf("%s is %s: %v", a.Name, a.State, a.Error)
		}
	}
	var r control.CheckpointReply
	j.do(control.VerbCheckpoint, control.CheckpointRequest{}, &r)
	if trained := j.status().Steps.Trained; trained != r.EnvSteps {
		j.t.Errorf("%d env steps count as trained, the learner has learned from %d", trained, r.EnvSteps)
	}
	j.do(control.VerbUnpause, control.GroupRequest{}, nil)
}

// A rollout in a process asks for rewards as one in the host does.
func TestShaped_ARolloutInAProcessAsksToo(t *testing.T) {
	t.Parallel()
	w, tables := newWrongShop(t)
	w.write("asked.toml", asked("sync", tables["asked.wasm"]))
	train := func(runtime string) lastEvent {
		return w.train("asked.toml", "--set", "run.stop.env_steps=8192", "--set", "component.rollout.runtime="+runtime)
	}
	if here, there := train("builtin"), train("process"); here.ParamsHash != there.ParamsHash {
		t.Errorf("in the host parameters %.12s, in a process %.12s", here.ParamsHash, there.ParamsHash)
	}
}

// A learner in a process learns no more once its last state is saved: the end reports the saved state.
func TestCounts_TheEndReportsTheSavedState(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("plain.toml", plain)
	for range 4 {
		end := w.train("plain.toml", "--set", "train.mode=async", "--set", "component.learner.runtime=process", "--set", "run.evaluation.episodes=1")
		if saved := w.saved("cartpole"); saved.EnvSteps != end.EnvSteps {
			t.Errorf("%d env steps are saved, the end tells of %d", saved.EnvSteps, end.EnvSteps)
		}
	}
}
