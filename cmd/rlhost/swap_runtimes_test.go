package main

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// swapped are the components that can be anywhere.
var swapped = []string{"rollout", "inference", "batcher", "learner", "runner"}

// endless is a training that lasts until it is stopped, with a second program that makes the same components.
func endless(mode string) string {
	return strings.NewReplacer("20480", "2_000_000_000", "episodes = 4", "episodes = 1", `"sync"`, strconv.Quote(mode)).Replace(plain) + `
[component.learner]
lr_anneal_env_steps = 500_000
[swap]
trial_envs = 0
probation = "0s"
[plugin.own]
path = "./second/rlhost"
args = ["plugin", "serve"]
`
}

// another puts a program that is not this one but does the same into the folder. By that name the test binary is the program.
func (w *workshop) another() {
	w.t.Helper()
	w.copy("second/rlhost", w.program, []byte("second")...)
}

// move brings a component into a process of this program or of the second one, or back, and waits until the run learns with it.
func (j *subject) move(component, to, file string) {
	j.t.Helper()
	if to == "own" { // a swap of a rollout is one of its environments
		j.reload(file, "component."+component+".plugin=own")
	} else {
		j.swap(control.SwapRequest{Component: component, File: to})
	}
	s := j.status()
	if host := instance(&s, component).Host; (host == "local") != (to == "builtin") {
		j.t.Errorf("%s runs in %s after it went to %s", component, host, to)
	}
	j.goesOn()
	j.addsUp()
}

// alone waits until no process is left but the host: a process that checks programs stays for a moment.
func (j *subject) alone() {
	j.t.Helper()
	j.within("no process is left but the host", func() bool { return len(j.processes()) == 1 })
}

// Each component moves to a process, to a process of another program, and back, during the run, and nothing is dropped.
func TestSwapRuntimes_EveryComponentGoesToAProcessAndBack(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	w.write("live.toml", endless("async"))
	j := w.host("live.toml")
	for _, component := range swapped {
		for _, to := range []string{"process", "own", "builtin"} {
			j.move(component, to, "live.toml")
		}
	}
	j.alone()
	j.stop()
}

// A component's learning, draws and counts move with it: swaps change no bit of a synchronous run.
func TestSwapRuntimes_SynchronousRunsAreTheSameBitForBit(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	w.write("live.toml", endless("sync"))
	w.write("box.toml", strings.NewReplacer("\"cartpole@1\"", "\"pendulum@1\"\nwrap = [{ reward_scale = 0.1 }, { reward_clip = 1.0 }]",
		"lr_anneal_env_steps = 500_000", "lr_anneal_env_steps = 0\nadaptive_kl = 0.01\nnormalize_returns = true").Replace(endless("sync")))
	for _, component := range swapped {
		for _, file := range []string{"live.toml", "box.toml"} {
			t.Run(component+" of "+file, func(t *testing.T) {
				j := w.of(t).host(file, "--json")
				for _, to := range []string{"process", "own", "builtin"} {
					j.move(component, to, file)
				}
				j.stop()
				j.learnedWhat(file)
			})
		}
	}
}

// learnedWhat checks that a run of a pipeline without swaps learns the same, bit for bit.
func (j *subject) learnedWhat(file string) {
	j.t.Helper()
	end := j.end()
	plain := j.w.train(file, "--set", "run.stop.env_steps="+strconv.FormatUint(end.EnvSteps, 10))
	if plain.EnvSteps != end.EnvSteps || plain.ParamsHash != end.ParamsHash {
		j.t.Errorf("without swaps parameters %.12s after %d env steps, with them %.12s after %d\n%s\n%s",
			plain.ParamsHash, plain.EnvSteps, end.ParamsHash, end.EnvSteps, asJSON(j.changes()), j.output)
	}
}

// Environments move from a module in the host to a module in a process, to a native program, and back.
func TestSwapRuntimes_EnvironmentsGoToProcessesAndBack(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	w.write("live.toml", endless("async"))
	j := w.host("live.toml")
	for _, change := range []func(){
		func() { j.reload("live.toml", `env.cartpole.runtime="process"`) },
		func() { j.swap(w.swapTo("own:cartpole@1")) },
	} {
		change()
		j.goesOn()
		j.addsUp()
		if len(j.processes()) == 1 {
			t.Error("no process for the environments")
		}
	}
	j.reload("live.toml")
	j.goesOn()
	j.addsUp()
	j.alone()
	j.stop()
}

// A resumed run names programs and modules relative to its own folder, and the file relative to its own: they are the same.
func TestSwapRuntimes_ReloadAfterAResumeReplacesNothing(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	w.copy(oldVersion, "../../examples/plugins/cartpole-c/cartpole.wasm")
	for _, env := range []string{"own:cartpole@1", "./" + oldVersion} {
		w.write("live.toml", strings.Replace(endless("sync"), `use = "cartpole@1"`, "use = \""+env+"\"", 1))
		w.host("live.toml", "--set", "component.batcher.plugin=own").stop()
		j := w.host("--resume", "cartpole")
		if r := j.reload("live.toml", "component.batcher.plugin=own"); len(r.Changes)+len(r.Swaps) > 0 {
			t.Errorf("with %s the same file changes %s", env, asJSON(r))
		}
		j.stop()
	}
}

// passing is a training whose trajectories pass through a program.
func passing(path, interpreter string) string {
	text, _, _ := strings.Cut(endless("sync"), "[plugin.own]")
	text += "[plugin.between]\npath = \"" + path + "\"\n"
	if interpreter != "" {
		text += "interpreter = [\"" + interpreter + "\"]\n"
	}
	_, wires, _ := strings.Cut(between, "path = \"./between\"\n")
	return text + wires
}

// watchPy is a component in Python that trajectories pass through.
const watchPy = `
import rlhost

class Watch(rlhost.Component):
    """Looks at the rewards of every trajectory that passes."""
    kind = "watch_rewards"
    signals = [rlhost.Signal("trajectories", "trajectory")]
    slots = [rlhost.Slot("on_trajectories", "trajectory")]

    def on_trajectories(self, m):
        with self.host.lease(m.handle) as block:
            float(abs(block.trajectory.reward).max())
        self.host.forward("trajectories", m)

if __name__ == "__main__":
    rlhost.serve(Watch)
`

// A rebuilt program takes over from the running one, in any language, also where the SDK cannot pause; the learning is
// the same as without programs and swaps.
func TestSwapRuntimes_ProgramsAreReplacedByNewOnes(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("plain.toml", strings.Split(endless("sync"), "[plugin.own]")[0])
	for _, language := range []string{"Go", "C", "Python"} {
		t.Run(language, func(t *testing.T) {
			w := w.of(t)
			interpreter, old, anew := "", "between-"+language, "anew-"+language
			if language == "Python" {
				interpreter = w.python()
				w.write(old, watchPy)
			} else {
				w.example(language, old)
			}
			w.copy(anew, w.path(old), '\n')
			w.write("live.toml", passing("./"+old, interpreter))
			j := w.host("live.toml", "--json")
			for _, to := range []string{anew, old} {
				j.swap(control.SwapRequest{Component: "between", File: w.path(to)})
				j.goesOn()
				j.addsUp()
			}
			j.stop()
			j.learnedWhat("plain.toml")
		})
	}
}

// An inference that takes over while no weights are published acts with the newest ones at once.
func TestSwapRuntimes_ANewInferenceHasTheNewestWeights(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("live.toml", endless("async"))
	j := w.host("live.toml")
	for _, to := range []string{"process", "builtin", "process"} {
		j.do(control.VerbPause, control.GroupRequest{Patterns: []string{"learner"}}, nil)
		before := j.swap(control.SwapRequest{Component: "inference", File: to}).EnvStep
		j.until("steps are made with the weights that there are", func(s *control.StatusReply) bool { return s.Steps.Made > before })
		j.do(control.VerbUnpause, control.GroupRequest{Patterns: []string{"learner"}}, nil)
		j.goesOn()
		j.addsUp()
	}
	j.stop()
}

// A process that is killed while it takes over, or while it is replaced, costs at most that swap.
func TestSwapRuntimes_ProcessesThatDieMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("live.toml", endless("async"))
	j := w.host("live.toml")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, component := range append(swapped, swapped...) {
		for to, most := range map[string]int{"process": 200, "builtin": 20} {
			q := control.SwapRequest{Component: component, File: to}
			if !j.swapWhileOneDies(q, time.Duration(random.IntN(most))*time.Millisecond) {
				j.do(control.VerbSwap, q, nil)
			}
		}
		j.goesOn()
	}
	j.until("env steps add up", func(s *control.StatusReply) bool {
		return s.Steps.Made == s.Steps.Trained+s.Steps.Dropped+s.Steps.UnderWay
	})
	j.stop()
}

// swapWhileOneDies makes a swap while a process is killed, and reports whether it was made. If it was not, the reason must
// be said.
func (j *subject) swapWhileOneDies(q control.SwapRequest, after time.Duration) bool {
	over, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		j.killOne(over, after)
	}()
	var reply control.SwapReply
	err := j.client.Do(j.t.Context(), control.VerbSwap, q, &reply, nil)
	close(over)
	<-killed
	var refused *control.Error
	if err != nil && (!errors.As(err, &refused) || refused.Reason == "" || refused.Code == control.CodeEnded) {
		j.t.Fatalf("swap %s %s, a process died after %v: %v\n%s", q.Component, q.File, after, err, j.output)
	}
	j.t.Logf("%s to %s, a process dies after %v: %v %v", q.Component, q.File, after, reply.Outcome, err)
	return err == nil
}

// killOne kills a process of the job, once there is one, a while after it has appeared, unless it is over before.
func (j *subject) killOne(over <-chan struct{}, after time.Duration) {
	for {
		for _, pid := range j.processes() {
			if pid == j.cmd.Process.Pid {
				continue
			}
			select {
			case <-over:
				return
			case <-time.After(after):
			}
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				return
			}
		}
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Ten rounds of swaps leave no process, descriptor, mapping, arena or goroutine behind.
func TestSwapRuntimes_NothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a minute on a busy machine")
	}
	w := newWorkshop(t)
	w.write("live.toml", endless("async"))
	j := w.host("live.toml")
	round := func(i int) {
		for _, to := range []string{"process", "builtin"} {
			j.swap(control.SwapRequest{Component: swapped[i%len(swapped)], File: to})
		}
	}
	for i := range swapped { // everything made once is there
		round(i)
	}
	j.goesOn()
	j.alone()
	before := j.status().Resources
	for i := range 10 {
		round(i)
	}
	j.goesOn()
	j.alone()
	// Changes are cleaned up at boundaries, so the minimum counts.
	least := control.Resources{Descriptors: 1 << 30, Mappings: 1 << 30, Goroutines: 1 << 30}
	j.until("nothing is left", func(s *control.StatusReply) bool {
		least.Descriptors = min(least.Descriptors, s.Resources.Descriptors)
		least.Mappings = min(least.Mappings, s.Resources.Mappings)
		least.Goroutines = min(least.Goroutines, s.Resources.Goroutines)
		return least.Descriptors <= before.Descriptors && least.Mappings <= before.Mappings+8 && least.Goroutines <= before.Goroutines+4
	})
	j.stop()
	if slices.ContainsFunc(strings.Split(j.output.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "error") || strings.Contains(line, "leak")
	}) {
		t.Errorf("the log has\n%s", j.output)
	}
}

// A dataset has one layout of observations. Where environments that prefer another layout have taken over, instances that are added or
// begin in processes use the running instances' layout.
func TestSwapRuntimes_InstancesLayObservationsOutAlike(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.copy(newVersion, "../../examples/plugins/cartpole-rust/cartpole.wasm")
	w.write("live.toml", endless("sync"))
	j := w.host("live.toml")
	j.swap(w.swapTo(newVersion))
	j.do(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": 2}}, nil)
	j.goesOn()
	j.swap(control.SwapRequest{Component: "rollout", File: "process"})
	j.goesOn()
	j.addsUp()
	j.stop()
}

// A run that is killed while a version is on probation continues with the previous one, though that is a program which the pipeline's
// file names relative to its own folder.
func TestSwapRuntimes_AKilledRunFindsThePreviousProgram(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.another()
	w.write("live.toml", strings.Replace(endless("async"), `probation = "0s"`, `probation = "1h"`, 1))
	j := w.host("live.toml")
	for _, sets := range [][]string{{"component.batcher.plugin=own"}, nil} {
		j.reload("live.toml", sets...)
		j.goesOn()
	}
	j.do(control.VerbCheckpoint, control.CheckpointRequest{}, nil)
	j.kill()
	j.nothingLeft()
	j = w.host("--resume", "cartpole")
	j.addsUp()
	j.stop()
}
