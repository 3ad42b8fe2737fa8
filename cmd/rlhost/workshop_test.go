package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plain is a short synchronous training.
const plain = `rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 20480 }
evaluation = { episodes = 4 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
mode = "sync"
`

// jobFile is a training that lasts until it is stopped, without trials and probation.
const jobFile = `rlhost = 1
[run]
name = "job"
stop = { env_steps = 500_000_000, wall_time = "5m" }
checkpoint = { every = "1h" }
evaluation = { episodes = 3 }
[env.ENV]
use = "./MODULE"
[train]
preset = "fast"
env = "ENV"
[swap]
trial_envs = 0
probation = "0s"
[policy.main]
net = { hidden = [4] }
[component.rollout]
envs = 16
splits = 1
[component.learner]
epochs = 1
`

// jobOf is that file for a module.
func jobOf(env, module string) string {
	return strings.NewReplacer("ENV", env, "MODULE", module).Replace(jobFile)
}

// workshop is a folder with the program and a test's builds.
type workshop struct {
	t       *testing.T
	dir     string
	program string
	env     []string // of the program, in addition to the test's
}

// newWorkshop puts the program into a new folder, as a user would start it: it starts itself again there for components in processes.
func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{t: t, dir: t.TempDir()}
	w.program = w.path("rlhost")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, w.program) != nil { // on another file system
		w.copy("rlhost", self)
	}
	return w
}

// newSwapShop is a workshop with two pipelines and the modules that they and their swaps need: cartpole.toml trains the
// CartPole in C, which tests swap for the one in Rust, walk.toml the walk of testdata/guests/faulty.c, which goes wrong where
// its arguments say.
func newSwapShop(t *testing.T) *workshop {
	t.Helper()
	w := newWorkshop(t)
	w.write("cartpole.toml", jobOf("cartpole", oldVersion))
	w.write("walk.toml", jobOf("walk", "walk.wasm"))
	w.copy(oldVersion, "../../examples/plugins/cartpole-c/cartpole.wasm")
	w.copy(newVersion, "../../examples/plugins/cartpole-rust/cartpole.wasm")
	w.copy("walk.wasm", faultyGuests+"/faulty.wasm")
	return w
}

// of is the same workshop in a part of a test.
func (w *workshop) of(t *testing.T) *workshop {
	part := *w
	part.t = t
	return &part
}

func (w *workshop) path(name string) string { return filepath.Join(w.dir, name) }

func (w *workshop) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// copy puts a file into the folder, executable, with more after it.
func (w *workshop) copy(name, from string, more ...byte) {
	w.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(w.path(name)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(w.path(name), append(data, more...), 0o755)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// python lets the program use the Python environment of the tools, and modules in the folder. It returns the Python.
func (w *workshop) python() string {
	w.t.Helper()
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := exec.Command(python, "-c", "import rlhost.gymnasium").Run(); err != nil {
		w.t.Skipf("%s has no package rlhost (%v): make tools", python, err)
	}
	w.env = []string{"RLHOST_PYTHON=" + python, "PYTHONPATH=" + w.dir}
	return python
}

// command is one of the program in the folder.
func (w *workshop) command(args ...string) *exec.Cmd {
	c := exec.Command(w.program, args...)
	c.Dir, c.Env = w.dir, append(os.Environ(), w.env...)
	return c
}

// fails runs a command that has to exit with a code and to say several things.
func (w *workshop) fails(code int, args []string, says ...string) {
	w.t.Helper()
	c := w.command(args...)
	out, err := c.CombinedOutput()
	for _, text := range says {
		if c.ProcessState.ExitCode() != code || !strings.Contains(string(out), text) {
			w.t.Errorf("rlhost %v: %v, want code %d and %s:\n%s", args, err, code, text, out)
		}
	}
}

// lastLine runs a command and returns its exit code and the last line that it printed.
func (w *workshop) lastLine(args ...string) (code int, last []byte) {
	w.t.Helper()
	c := w.command(args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	w.t.Logf("rlhost %v: %v\n%s", args, err, stderr.Bytes())
	if found := finalLine.FindSubmatch(out); found != nil {
		last = found[1]
	}
	return c.ProcessState.ExitCode(), last
}

// lastEvent is the end event of a training.
type lastEvent struct {
	Reason     string  `json:"reason"`
	EnvSteps   uint64  `json:"env_steps"`
	MeanReturn float64 `json:"train_return"`
	EvalReturn float64 `json:"eval_return"`
	EvalElo    float64 `json:"eval_elo"`
	ParamsHash string  `json:"params_hash"`
	Kernels    string  `json:"kernels"`
	Error      string  `json:"error"`
	// ParamsHashes are the hashes of the other policies' parameters.
	ParamsHashes map[string]string `json:"params_hashes"`
}

// train runs a training in the folder and returns its end.
func (w *workshop) train(args ...string) (end lastEvent) {
	w.t.Helper()
	code, last := w.lastLine(append([]string{"train", "--json"}, args...)...)
	if err := json.Unmarshal(last, &end); err != nil || code != exitOK {
		w.t.Fatalf("train %v exits with %d: %v in %s", args, code, err, last)
	}
	return end
}
