package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A shaper in Python rewrites rewards in place: one that shapes nothing changes nothing that is learned, to the last bit, and
// half the reward gives the same parameters as the shaper in Go.
func TestPlugins_RewardsAreShapedInPython(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	script, err := filepath.Abs("../../examples/plugins/process-python/shaper.py")
	if err != nil {
		t.Fatal(err)
	}
	w.write("plain.toml", plain)
	w.write("go.toml", between)
	w.write("python.toml", strings.Replace(between, `path = "./between"`, fmt.Sprintf("path = %q\ninterpreter = [%q]", script, python), 1))
	w.example("Go", "between")
	half := "component.between.scale=0.5"
	if got, want := w.train("python.toml").ParamsHash, w.train("plain.toml").ParamsHash; got != want {
		t.Errorf("with a shaper that shapes nothing: parameters %.12s, want %.12s", got, want)
	}
	if got, want := w.train("python.toml", "--set", half).ParamsHash, w.train("go.toml", "--set", half).ParamsHash; got != want {
		t.Errorf("half the reward: parameters %.12s, want those with the shaper in Go, %.12s", got, want)
	}
}

// A component that writes what no wire grants it ends the run, in either language with the same words.
func TestPlugins_RewardsAreWrittenOnlyWhereAWireGrantsIt(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	script, err := filepath.Abs("../../examples/plugins/process-python/shaper.py")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(between, "write = [\"reward\"]\n", "", 1)
	w.write("python.toml", strings.Replace(text, `path = "./between"`, fmt.Sprintf("path = %q\ninterpreter = [%q]", script, w.python()), 1))
	w.write("go.toml", text)
	w.example("Go", "between")
	for _, file := range []string{"python.toml", "go.toml"} {
		c := exec.Command(w.program, "train", file)
		c.Dir, c.Env = w.dir, w.environ()
		out, err := c.CombinedOutput()
		want := `E038 slot between.on_trajectories: may not write reward: no wire grants it; ` +
			`add write = ["reward"] to each [[wire]] with slot = "between.on_trajectories"`
		if err == nil || !strings.Contains(string(out), "error[E068]") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want E068 with %s:\n%s", file, err, want, out)
		}
	}
}

// bandit is a complete learner in Python that learns nothing: its inputs and its metrics go by name.
const bandit = `import numpy
import rlhost

class Bandit(rlhost.Learner):
    def begin_learning(self, policy):
        assert (policy.obs, policy.actions, policy.hidden, policy.activation) == (4, 2, (64, 64), "tanh"), policy
        assert list(policy.tensors())[:3] == ["actor.0.weight", "actor.0.bias", "actor.1.weight"], policy.tensors()
        self.net = {name: numpy.zeros(shape, "f4") for name, shape in policy.tensors().items()}

    def parameters(self):
        return self.net

    def learn(self, dataset):
        reward, obs = dataset["reward"], dataset["obs"]
        for block in dataset:
            assert block.obs.strides[0] > 0 and not block.reward.flags.writeable
        assert obs.shape == (reward.shape[0] + 1, reward.shape[1], 4), (obs.shape, reward.shape)
        self.optimizer_steps += 1
        return {"losses/reward": reward.mean()}

    def learner_state(self):
        return rlhost.State({"own": self.optimizer_steps})

    def set_learner_state(self, state):
        assert state.meta["own"] == 10, state.meta

rlhost.serve(Bandit)
`

func TestPlugins_ALearnerOfOnesOwnHasNamesForEverything(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("learner.py", bandit)
	w.write("own.toml", fmt.Sprintf("%s[plugin.own]\npath = \"./learner.py\"\ninterpreter = [%q]\n[component.learner]\nplugin = \"own\"\n",
		plain, w.python()))
	if end := w.train("own.toml"); end.EnvSteps != 20480 || end.Reason != "env_steps" {
		t.Errorf("ended by %s after %d env steps", end.Reason, end.EnvSteps)
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "runs/cartpole/0001/metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var last map[string]float64
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last["losses/reward"] != 1 || last["global_step"] != 20480 || last["lag/max"] != 0 || last["learner/optimizer_steps"] != float64(len(lines)) {
		t.Errorf("metrics %v", last)
	}
	if end := w.train("--resume", "latest", "--set", "run.stop.env_steps=40960"); end.EnvSteps != 40960 {
		t.Errorf("resumed, ended after %d env steps", end.EnvSteps)
	}
}

// What a component in Python raises ends the run with a code, the method and the line.
func TestPlugins_ExceptionsOfComponentsHaveACode(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	w.write("between.toml", strings.Replace(between, `path = "./between"`, fmt.Sprintf("path = \"./between\"\ninterpreter = [%q]", python), 1))
	w.write("between", `import rlhost

class Between(rlhost.Component):
    signals = [rlhost.Signal("trajectories", "trajectory")]
    slots = [rlhost.Slot("on_trajectories", "trajectory")]

    def on_trajectories(self, m):
        raise ValueError("not today")

rlhost.serve(Between)
`)
	c := exec.Command(w.program, "train", "between.toml")
	c.Dir = w.dir
	out, err := c.CombinedOutput()
	if want := "error[E068]"; err == nil || !strings.Contains(string(out), want) ||
		!strings.Contains(string(out), "on_trajectories: ValueError: not today (between:8)") {
		t.Errorf("%v, want %s and the place:\n%s", err, want, out)
	}
}

// countless is a learner in Python that publishes the same weights again and again, and tells of no env step. keep is how
// many leases it keeps before it goes on without a message.
const countless = `import struct
import rlhost

class Learner(rlhost.Component):
    kind = "learner"
    signals = [rlhost.Signal("weights", "weights"), rlhost.Signal("stats", "learner_stats")]
    slots = [rlhost.Slot("on_dataset", "dataset")]

    def configure(self, config):
        self.keep = config.get("epochs") == 9

    def start(self, host):
        self.floats = 2 * (4 * 64 + 64 + 64 * 64 + 64) + 64 * 2 + 2 + 64 + 1
        self.weights = host.add_arena("weights", 2 + host.readers.get("weights", 1), 64 + 4 * self.floats)
        self.version, self.published = 0, 0

    def restore(self, state):
        self.state, self.version = state, state.meta["policy_version"]

    def snapshot(self):
        self.state.meta["policy_version"] = self.version
        return self.state

    def begin(self):
        with self.weights.loan() as loan:
            struct.pack_into("<QII", loan.array, 0, self.version, self.floats, 0)
            loan.array[16:] = 0
            handle = loan.commit()
        if self.published:
            self.weights.release(self.published)
        self.published = handle
        self.host.emit("weights", handle, policy_version=self.version)

    def on_dataset(self, m):
        with self.host.lease(m.handle) as block:
            _, count, _ = struct.unpack_from("<QII", block.array)
            handles = struct.unpack_from(f"<{count}Q", block.array, 16)
        leases = [self.host.lease(h) for h in handles]
        if not self.keep:
            for lease in leases:
                lease.release()
        self.version += 1
        self.begin()
        self.host.boundary()

rlhost.serve(Learner)
`

// background starts a training that has no end of its own, and returns what asks commands of it.
func (w *workshop) background(args ...string) (ask func(args ...string) (string, error)) {
	w.t.Helper()
	job := exec.Command(w.program, append([]string{"train"}, args...)...)
	var out bytes.Buffer
	job.Dir, job.Env, job.Stdout, job.Stderr = w.dir, w.environ(), &out, &out
	if err := job.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = job.Process.Kill()
		_ = job.Wait()
		if w.t.Failed() {
			w.t.Logf("the job says\n%s", out.Bytes())
		}
	})
	return func(args ...string) (string, error) {
		c := exec.Command(w.program, args...)
		c.Dir, c.Env = w.dir, w.environ()
		text, err := c.CombinedOutput()
		return string(text), err
	}
}

// statusThat asks for the status until it matches.
func statusThat(t *testing.T, ask func(args ...string) (string, error), pattern string) (text string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(longestWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if text, err = ask("status"); err == nil && want.MatchString(text) {
			return text
		}
	}
	t.Fatalf("status does not say %s but\n%s", pattern, text)
	return ""
}

// addUp checks the env steps of a status, and returns those that were trained on.
func addUp(t *testing.T, status string) (trained uint64) {
	t.Helper()
	var made, dropped, underway uint64
	line := regexp.MustCompile(`env steps: .*`).FindString(status)
	if _, err := fmt.Sscanf(strings.ReplaceAll(line, ",", ""), "env steps: %d made = %d trained + %d dropped + %d under way",
		&made, &trained, &dropped, &underway); err != nil {
		t.Fatalf("%v in %s", err, status)
	}
	if trained < made/2 || made != trained+dropped+underway {
		t.Error(line)
	}
	return trained
}

// own writes a pipeline with a learner in Python, which is that of the beginning or only declared.
func (w *workshop) own(script string, begins bool) {
	w.t.Helper()
	python := w.python()
	w.write("learner.py", script)
	text := fmt.Sprintf("%s[plugin.own]\npath = \"./learner.py\"\ninterpreter = [%q]\n", strings.Replace(plain, "20480", "500_000_000", 1), python)
	if begins {
		text += "[component.learner]\nplugin = \"own\"\n"
	}
	w.write("own.toml", text)
}

// Env steps add up with any learner, also after it was replaced.
func TestPlugins_WhatALearnerOfOnesOwnTrainsIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.own(countless, false)
	ask := w.background("own.toml")
	before := addUp(t, statusThat(t, ask, `policy version [0-9]{2,}`))
	for _, next := range []string{"own", "builtin"} {
		if out, err := ask("swap", "learner", next, "--probation", "0s"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text := statusThat(t, ask, `env steps`)
		for addUp(t, text) <= before+10_000 && !t.Failed() {
			text = statusThat(t, ask, `env steps`)
		}
		before = addUp(t, text)
	}
}

// A component that keeps its leases stops the run: status names it, its blocks and their age.
func TestPlugins_WhoKeepsItsLeasesIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.own(countless, true)
	text := statusThat(t, w.background("own.toml", "--set", "component.learner.epochs=9"),
		`(?m)^cause: learner holds [0-9]+ blocks? of rollout.trajectories, the oldest for [0-9]+ s, and`)
	for _, want := range []string{`(?m)^learner +pid [0-9]+ +STALLED .* holds [0-9]+ block`, `^cartpole/0001  stalled `} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("status does not say %s but\n%s", want, text)
		}
	}
}
