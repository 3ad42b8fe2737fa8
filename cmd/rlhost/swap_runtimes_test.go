package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/rlhost/rlhost/pipeline/runs"
)

// movedJob is a job that a test asks things of while it trains.
type movedJob struct {
	w      *workshop
	t      testing.TB
	cmd    *exec.Cmd
	client *control.Client
	out    bytes.Buffer
	err    bytes.Buffer
	done   chan struct{} // closed when it has ended
	result error         // read after done
}

// begin starts a training in the folder and waits until it listens.
func (w *workshop) begin(args ...string) *movedJob {
	w.t.Helper()
	j := &movedJob{w: w, t: w.t, done: make(chan struct{})}
	j.cmd = exec.Command(w.program, append([]string{"train", "--json"}, args...)...)
	j.cmd.Dir, j.cmd.Stdout, j.cmd.Stderr = w.dir, &j.out, &j.err
	if err := j.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		j.result = j.cmd.Wait()
		close(j.done)
	}()
	w.t.Cleanup(func() {
		_ = j.cmd.Process.Kill() // it has ended, unless the test failed
		<-j.done
	})
	j.until("the job listens", func() bool {
		live, err := runs.Live(filepath.Join(w.dir, "runs"))
		if err != nil || len(live) != 1 || live[0].Info().Socket == "" {
			return false
		}
		j.client, err = control.Dial(context.Background(), live[0].Info().Socket)
		return err == nil
	})
	w.t.Cleanup(func() { _ = j.client.Close() })
	return j
}

// until waits for something that happens by itself.
func (j *movedJob) until(what string, cond func() bool) {
	j.t.Helper()
	for end := time.Now().Add(longestWait); !cond(); {
		select {
		case <-j.done:
			j.t.Fatalf("%s: the job has ended: %v\n%s", what, j.result, j.err.Bytes())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			j.t.Fatalf("%s: does not happen; %+v", what, j.status())
		}
	}
}

func (j *movedJob) ask(verb control.Verb, request, reply any) error {
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	defer cancel()
	return j.client.Do(ctx, verb, request, reply, nil)
}

func (j *movedJob) status() (reply control.StatusReply) {
	j.t.Helper()
	if err := j.ask(control.VerbStatus, control.StatusRequest{}, &reply); err != nil {
		j.t.Fatal(err)
	}
	return reply
}

// swap replaces a component without a canary and without a probation.
func (j *movedJob) swap(component, file string) control.SwapReply {
	j.t.Helper()
	none, at := 0, 0.0
	var reply control.SwapReply
	q := control.SwapRequest{Component: component, File: file, Canary: &none, Probation: &at}
	if err := j.ask(control.VerbSwap, q, &reply); err != nil {
		j.t.Fatalf("swap %s %s: %v%s", component, file, err, problemsOf(err))
	}
	if reply.Outcome != control.Committed || reply.Dropped != 0 {
		j.t.Errorf("swap %s %s: %+v", component, file, reply)
	}
	return reply
}

func problemsOf(err error) string {
	var e *control.Error
	if errors.As(err, &e) && e.Problems != "" {
		return "\n" + e.Problems
	}
	return ""
}

// reload makes the job what a text of the pipeline says, with some keys set.
func (j *movedJob) reload(text string, sets ...string) {
	j.t.Helper()
	q := control.ReloadRequest{File: filepath.Join(j.w.dir, "live.toml"), Source: text, Sets: sets}
	var reply control.ReloadReply
	if err := j.ask(control.VerbReload, q, &reply); err != nil || reply.Outcome != control.Committed {
		j.t.Fatalf("reload: %v%s %+v", err, problemsOf(err), reply)
	}
}

// move brings a component into a process, into one of the program beside this one, or back, and waits until that learns.
func (j *movedJob) move(component, mode, to string) {
	j.t.Helper()
	if to == "own" { // a swap of a rollout is one of its environments
		j.reload(endless(mode), "component."+component+".plugin=own")
	} else {
		j.swap(component, to)
	}
	for _, c := range j.status().Components {
		if c.Name == component && (c.Host == "local") != (to == "builtin") {
			j.t.Errorf("%s runs in %s after it went to %s", component, c.Host, to)
		}
	}
	j.goesOn(component + " to " + to)
}

// goesOn waits until the job has learned from what it made later, and checks that the env steps add up.
func (j *movedJob) goesOn(after string) {
	j.t.Helper()
	before := j.status()
	j.until("learning goes on after "+after, func() bool {
		now := j.status()
		return now.Policy >= before.Policy+3 && now.Steps.Made > before.Steps.Made && now.Steps.Trained > before.Steps.Trained
	})
	s := j.status().Steps
	if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Dropped != 0 {
		j.t.Errorf("after %s: %+v do not add up", after, s)
	}
}

// stop ends the job with a checkpoint and returns its end.
func (j *movedJob) stop() (end lastEvent) {
	j.t.Helper()
	var reply control.StopReply
	if err := j.ask(control.VerbStop, control.StopRequest{}, &reply); err != nil {
		j.t.Fatal(err)
	}
	select {
	case <-j.done:
	case <-time.After(longestWait):
		j.t.Fatal("the job does not stop")
	}
	lines := strings.Split(strings.TrimSpace(j.out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil {
		j.t.Fatalf("%v in %s\n%s", err, lines[len(lines)-1], j.err.Bytes())
	}
	return end
}

// children returns how many processes the job has.
func (j *movedJob) children() int { return len(j.childProcesses()) }

func (j *movedJob) childProcesses() (pids []int) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", j.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		j.t.Error("no list of children: ", err)
	}
	for _, file := range tasks {
		list, err := os.ReadFile(file)
		if err != nil {
			continue // that thread has ended
		}
		for _, word := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// another puts a program that is not this one but does the same into the folder.
func (w *workshop) another(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.dir, name, "rlhost") // by that name the test binary is the program
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, name...), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// endless is a training that goes on until it is stopped, with a program beside it that makes the same components.
func endless(mode string) string {
	return `rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 2_000_000_000 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
mode = "` + mode + `"
[swap]
canary = 0
probation = "0s"
[plugin.own]
path = "./second/rlhost"
args = ["plugin", "serve"]
`
}

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
	needLinux(t)
	w := newWorkshop(t)
	w.another("second")
	w.write("live.toml", endless("sync"))
	for _, component := range swapped {
		t.Run(component, func(t *testing.T) {
			w := &workshop{t: t, dir: w.dir, program: w.program}
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
			}
		})
	}
}

// Environments go from a module in the host to one in a process, to those of a native program, and back.
func TestSwapRuntimes_EnvironmentsGoToProcessesAndBack(t *testing.T) {
	needLinux(t)
	w := newWorkshop(t)
	w.another("second")
	text := endless("async")
	w.write("live.toml", text)
	j := w.begin("live.toml")
	j.goesOn("the start")
	isolated := strings.Replace(text, `use = "cartpole@1"`, "use = \"cartpole@1\"\nisolation = \"process\"", 1)
	for range 2 {
		j.reload(isolated)
		j.goesOn("environments in a process")
		if n := j.children(); n == 0 {
			t.Error("no process for isolated environments")
		}
		j.swap("rollout", "own:cartpole@1")
		j.goesOn("environments of a native program")
		j.reload(text)
		j.goesOn("environments in the host again")
	}
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
		{"Go", "", func(t *testing.T, to string) {
			(&workshop{t: t, dir: w.dir}).build(to, "go", "./examples/plugins/process-go")
		}},
		{"C", "", func(t *testing.T, to string) {
			cc, err := exec.LookPath("cc")
			if err != nil {
				t.Skip("no C compiler: apt-get install gcc libnghttp2-dev")
			}
			sources, err := filepath.Glob("../../sdk/c/native/*.c")
			if err != nil || len(sources) == 0 {
				t.Fatal(sources, err)
			}
			command := []string{cc, "-O2", "-I", "sdk/c/native", "examples/plugins/process-c/return_tap.c"}
			for _, s := range sources {
				command = append(command, strings.TrimPrefix(s, "../../"))
			}
			(&workshop{t: t, dir: w.dir}).build(to, append(command, "-lnghttp2", "-lpthread")...)
		}},
		{"Python", python, func(t *testing.T, to string) {
			if out, err := exec.Command(python, "-c", "import rlhost").CombinedOutput(); err != nil {
				t.Skipf("%s has no package rlhost (%s): make tools", python, out)
			}
			w.write(to, watchPy)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := &workshop{t: t, dir: w.dir, program: w.program}
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
			for _, to := range []string{anew, old, anew} {
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

// Twenty rounds of swaps leave no process, descriptor, mapping, arena or goroutine behind.
func TestSwapRuntimes_NothingIsLeftBehind(t *testing.T) {
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
	for i := range 20 {
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
