package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("processes need Linux")
	}
}

// Each component goes to a process, to a process of another program, and back, while the run goes on and nothing is
// dropped.
func TestSwapRuntimes_EveryComponentGoesToAProcessAndBack(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	w.another("second")
	w.write("live.toml", endless("async"))
	j := w.begin("live.toml")
	j.goesOn("the start")
	for _, component := range swapped {
		for _, to := range []string{"process", "own", "builtin"} {
			j.move(component, "async", to)
		}
	}
	j.until("no process is left", func() bool { return j.children() == 0 }) // one that checks programs stays for a moment
	if end := j.stop(); end.Error != "" {
		t.Errorf("%+v", end)
	}
}

// What a component has learned, drawn and counted goes with it: swaps change no bit of a synchronous run.
func TestSwapRuntimes_SynchronousRunsAreTheSameBitForBit(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	w.another("second")
	w.write("live.toml", endless("sync"))
	for _, component := range swapped {
		t.Run(component, func(t *testing.T) {
			w := w.of(t)
			j := w.begin("live.toml")
			j.goesOn("the start")
			for _, to := range []string{"process", "own", "builtin"} {
				j.move(component, "sync", to)
			}
			swapped := j.stop()
			plain := w.train("live.toml", "--set", "run.stop.env_steps="+strconv.FormatUint(swapped.EnvSteps, 10))
			if plain.EnvSteps != swapped.EnvSteps || plain.ParamsHash != swapped.ParamsHash {
				t.Errorf("without swaps parameters %.12s after %d env steps, with them %.12s after %d",
					plain.ParamsHash, plain.EnvSteps, swapped.ParamsHash, swapped.EnvSteps)
				for i, reply := range j.replies {
					t.Logf("change %d: %+v", i+1, reply)
				}
				t.Logf("the job's log:\n%s", j.err.Bytes())
			}
		})
	}
}

// Environments go from a module in the host to one in a process, to those of a native program, and back.
func TestSwapRuntimes_EnvironmentsGoToProcessesAndBack(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	w.another("second")
	text := endless("async")
	w.write("live.toml", text)
	j := w.begin("live.toml")
	j.goesOn("the start")
	isolated := strings.Replace(text, `use = "cartpole@1"`, "use = \"cartpole@1\"\nisolation = \"process\"", 1)
	j.reload(isolated)
	j.goesOn("environments in a process")
	if n := j.children(); n == 0 {
		t.Error("no process for isolated environments")
	}
	j.swap("rollout", "own:cartpole@1")
	j.goesOn("environments of a native program")
	j.reload(text)
	j.goesOn("environments in the host again")
	j.until("the workers are gone", func() bool { return j.children() == 0 })
	j.stop()
}

// passing is a training whose trajectories pass through a program.
func passing(path, interpreter string) string {
	text := strings.Replace(endless("sync"), "[plugin.own]", "[plugin.between]", 1)
	text = strings.Replace(text, "path = \"./second/rlhost\"\nargs = [\"plugin\", \"serve\"]\n", "path = \""+path+"\"\n", 1)
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

// A program that is built anew takes over from the one that runs, in any language, also where the SDK knows nothing of
// rest; what is learned is the same as without programs and swaps.
func TestSwapRuntimes_ProgramsGiveWayToNewOnes(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, interpreter string
		build             func(t *testing.T, to string)
	}{
		{"Go", "", func(t *testing.T, to string) { w.of(t).example("Go", to) }},
		{"C", "", func(t *testing.T, to string) { w.of(t).example("C", to) }},
		{"Python", python, func(t *testing.T, to string) {
			if out, err := exec.Command(python, "-c", "import rlhost").CombinedOutput(); err != nil {
				t.Skipf("%s has no package rlhost (%s): make tools", python, out)
			}
			w.write(to, watchPy)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := w.of(t)
			old, anew := "between-"+c.name, "anew-"+c.name
			c.build(t, old)
			data, err := os.ReadFile(filepath.Join(w.dir, old))
			if err == nil {
				err = os.WriteFile(filepath.Join(w.dir, anew), append(data, '\n'), 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.write("live.toml", passing("./"+old, c.interpreter))
			j := w.begin("live.toml")
			j.goesOn("the start")
			for _, to := range []string{anew, old} {
				j.swap("between", filepath.Join(w.dir, to))
				j.goesOn("between to " + to)
			}
			end := j.stop()
			w.write("plain.toml", endless("sync"))
			w.another("second")
			plain := w.train("plain.toml", "--set", "run.stop.env_steps="+strconv.FormatUint(end.EnvSteps, 10))
			if plain.ParamsHash != end.ParamsHash {
				t.Errorf("parameters %.12s after %d env steps, without programs and swaps %.12s", end.ParamsHash, end.EnvSteps, plain.ParamsHash)
			}
		})
	}
}

// An inference that takes over while nobody publishes weights acts with the newest ones at once.
func TestSwapRuntimes_ANewInferenceHasTheNewestWeights(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	w.write("live.toml", strings.Split(endless("async"), "[plugin.own]")[0])
	j := w.begin("live.toml")
	j.goesOn("the start")
	for _, to := range []string{"process", "builtin", "process"} {
		if err := j.ask(control.VerbPause, control.GroupRequest{Patterns: []string{"learner"}}, nil); err != nil {
			t.Fatal(err)
		}
		before := j.swap("inference", to).EnvStep
		j.until("steps are made with the weights that there are", func() bool { return j.status().Steps.Made > before })
		if err := j.ask(control.VerbResume, control.GroupRequest{Patterns: []string{"learner"}}, nil); err != nil {
			t.Fatal(err)
		}
		j.goesOn("inference to " + to)
	}
	j.stop()
}

// A process that is killed while it takes over, or while it gives way, costs at most that swap.
func TestSwapRuntimes_ProcessesThatDieMeanwhile(t *testing.T) {
	t.Parallel()
	needLinux(t)
	w := newWorkshop(t)
	w.write("live.toml", strings.Split(endless("async"), "[plugin.own]")[0])
	j := w.begin("live.toml")
	j.goesOn("the start")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, component := range append(swapped, swapped...) {
		if !j.swapWhileOneDies(component, "process", time.Duration(random.IntN(200))*time.Millisecond) {
			j.swap(component, "process")
		}
		if !j.swapWhileOneDies(component, "builtin", time.Duration(random.IntN(20))*time.Millisecond) {
			j.swap(component, "builtin")
		}
		before := j.status()
		j.until("learning goes on", func() bool { return j.status().Policy >= before.Policy+3 })
	}
	j.until("env steps add up", func() bool {
		s := j.status().Steps
		return s.Made == s.Trained+s.Dropped+s.UnderWay
	})
	j.stop()
}

// swapWhileOneDies swaps a component while a process is killed, and reports whether the swap was made. If it was not, the
// reason must be said.
func (j *movedJob) swapWhileOneDies(component, to string, after time.Duration) bool {
	over, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		j.killOne(over, after)
	}()
	none, at := 0, 0.0
	var reply control.SwapReply
	err := j.ask(control.VerbSwap, control.SwapRequest{Component: component, File: to, Canary: &none, Probation: &at}, &reply)
	close(over)
	<-killed
	var refused *control.Error
	if err != nil && (!errors.As(err, &refused) || refused.Reason == "") {
		j.t.Fatalf("swap %s %s: %v", component, to, err)
	}
	if refused != nil && refused.Code == control.CodeEnded {
		<-j.done
		j.t.Fatalf("swap %s %s, a process died after %v: %v: %s\n%s", component, to, after, err, j.out.Bytes(), j.err.Bytes())
	}
	j.t.Logf("%s to %s, a process dies after %v: %v %v", component, to, after, reply.Outcome, err)
	return err == nil
}

// killOne kills a process of the job, once there is one, a while after it has appeared, unless it is over before.
func (j *movedJob) killOne(over <-chan struct{}, after time.Duration) {
	for {
		for _, pid := range j.childProcesses() {
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
	needLinux(t)
	if testing.Short() {
		t.Skip("a minute on a busy machine")
	}
	w := newWorkshop(t)
	w.write("live.toml", endless("async"))
	j := w.begin("live.toml")
	round := func(i int) {
		component := swapped[i%len(swapped)]
		j.swap(component, "process")
		j.swap(component, "builtin")
	}
	held := func() []int {
		r := j.status().Resources
		return []int{r.Descriptors, r.Mappings}
	}
	for i := range swapped { // what is made once is there
		round(i)
	}
	j.goesOn("the first rounds")
	j.until("no process is left", func() bool { return j.children() == 0 })
	before := j.status().Resources
	var least []int
	for i := range 10 {
		round(i)
	}
	j.goesOn("the last round")
	j.until("no process is left", func() bool { return j.children() == 0 })
	// What a change leaves to be tidied is tidied at boundaries; so the least that is seen counts.
	j.until("nothing is left", func() bool {
		now := held()
		if least == nil {
			least = now
		}
		for i := range now {
			least[i] = min(least[i], now[i])
		}
		return least[0] <= before.Descriptors && least[1] <= before.Mappings+8
	})
	if now := j.status().Resources; now.Goroutines > before.Goroutines+4 {
		t.Errorf("%d goroutines, %d before", now.Goroutines, before.Goroutines)
	}
	j.stop()
	if i := slices.IndexFunc(strings.Split(j.err.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "level=ERROR") || strings.Contains(line, "leak")
	}); i >= 0 {
		t.Errorf("the log has\n%s", j.err.Bytes())
	}
}
