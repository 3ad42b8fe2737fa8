package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// cartPoleFile trains the cartpole in C, which tests swap for the one in Rust.
const cartPoleFile = `rlhost = 1
[run]
name = "job"
stop = { env_steps = 500_000_000, wall = "5m" }
checkpoint = { every = "1h" }
evaluation = { episodes = 3 }
[env.cartpole]
use = "./c.wasm"
[train]
preset = "fast"
env = "cartpole"
[policy.main]
net = { hidden = [8] }
[component.rollout]
envs = 16
splits = 1
[component.learner]
epochs = 1
`

// walkFile trains the walk of testdata/guests/faulty.c, which goes wrong where its arguments say.
const walkFile = `rlhost = 1
[run]
name = "job"
stop = { env_steps = 500_000_000, wall = "5m" }
checkpoint = { every = "1h" }
evaluation = { episodes = 3 }
[env.walk]
use = "./walk.wasm"
[train]
preset = "fast"
env = "walk"
[swap]
canary = 0
probation = "0s"
[policy.main]
net = { hidden = [4] }
[component.rollout]
envs = 16
splits = 1
[component.learner]
epochs = 1
`

// newSwapShop is a workshop with both pipelines and the modules that they and their swaps need.
func newSwapShop(t *testing.T) *workshop {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("looks at processes as Linux shows them")
	}
	w := newWorkshop(t)
	w.write("cartpole.toml", cartPoleFile)
	w.write("walk.toml", walkFile)
	for name, from := range map[string]string{
		"c.wasm": "../../examples/plugins/cartpole-c/cartpole.wasm", "rust.wasm": "../../examples/plugins/cartpole-rust/cartpole.wasm",
		"walk.wasm": faultyGuests + "/faulty.wasm",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		w.write(name, string(data))
	}
	return w
}

func (w *workshop) path(name string) string { return filepath.Join(w.dir, name) }

// subject is a training that goes on in the background.
type subject struct {
	t      *testing.T
	w      *workshop
	cmd    *exec.Cmd
	gate   *gate // or nil
	dir    string
	stderr *testkit.Buffer
	client *control.Client
	ended  chan struct{} // closed when the process has ended
	code   int           // then
}

// starting says how a job is started besides its arguments.
type starting struct {
	gated bool
	runs  string // folder of runs; default runs
}

// host starts a training and waits until it answers and makes env steps.
func (w *workshop) host(o starting, args ...string) *subject {
	t := w.t.(*testing.T)
	t.Helper()
	dir := o.runs
	if dir == "" {
		dir = filepath.Join(w.dir, "runs")
	}
	j := &subject{t: t, w: w, stderr: &testkit.Buffer{}, ended: make(chan struct{}), dir: filepath.Join(dir, "job", "0001")}
	j.cmd = exec.Command(w.program, append([]string{"train"}, args...)...)
	j.cmd.Dir, j.cmd.Env, j.cmd.Stdout, j.cmd.Stderr = w.dir, w.environ(), j.stderr, j.stderr
	var open func() *gate
	if o.gated {
		open = gated(t, w, j.cmd)
	}
	err := j.cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	if open != nil {
		j.gate = open()
	}
	go func() {
		_ = j.cmd.Wait() // its code says how it ended
		j.code = j.cmd.ProcessState.ExitCode()
		close(j.ended)
	}()
	t.Cleanup(j.kill)
	j.client = j.dial()
	j.goesOn()
	return j
}

// dial connects to the job as soon as it listens.
func (j *subject) dial() *control.Client {
	j.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longestWait); ; <-tick.C {
		client, err := control.Dial(j.t.Context(), control.SocketPath(j.dir))
		if err == nil {
			j.t.Cleanup(func() { _ = client.Close() })
			return client
		}
		select {
		case <-j.ended:
			j.t.Fatalf("the run ended with %d before it answered:\n%s", j.code, j.stderr)
		default:
		}
		if time.Now().After(deadline) {
			j.t.Fatalf("nobody answers: %v\n%s", err, j.stderr)
		}
	}
}

// do makes a request that has to succeed.
func (j *subject) do(verb control.Verb, request, reply any) {
	j.t.Helper()
	if err := j.client.Do(j.t.Context(), verb, request, reply, nil); err != nil {
		j.t.Fatalf("%s %+v: %v\n%s", verb, request, err, j.stderr)
	}
}

// fails makes a request that has to fail with a code and a reason.
func (j *subject) fails(verb control.Verb, request any, code control.Code, reason string) {
	j.t.Helper()
	err := j.client.Do(j.t.Context(), verb, request, nil, nil)
	j.refusal(err, code, reason)
}

// refusal checks what a request failed with.
func (j *subject) refusal(err error, code control.Code, reason string) {
	j.t.Helper()
	var e *control.Error
	if !errors.As(err, &e) || e.Code != code || !regexp.MustCompile(reason).MatchString(e.Reason+"\n"+e.Problems) {
		j.t.Errorf("got %v (%+v), want %s %s", err, e, code, reason)
	}
}

func (j *subject) status() (s control.StatusReply) {
	j.t.Helper()
	j.do(control.VerbStatus, control.StatusRequest{}, &s)
	return s
}

// quiet is the status once nothing is in transition.
func (j *subject) quiet() (s control.StatusReply) {
	j.t.Helper()
	j.do(control.VerbStatus, control.StatusRequest{Wait: true}, &s)
	return s
}

// until looks at the status until it is as wanted.
func (j *subject) until(what string, wanted func(*control.StatusReply) bool) control.StatusReply {
	j.t.Helper()
	var s control.StatusReply
	testkit.Until(j.t, what, func() bool {
		s = j.status()
		return wanted(&s)
	}, &s, j.stderr)
	return s
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// goesOn checks that env steps are made and learned from.
func (j *subject) goesOn() {
	j.t.Helper()
	before := j.status()
	j.until("the run goes on", func(s *control.StatusReply) bool {
		return s.Steps.Made > before.Steps.Made && s.Steps.Trained > before.Steps.Trained
	})
}

// addsUp checks that no env step is missing, and that none were dropped but for the reasons named, or because a busy
// machine starved what learns from them for too long.
func (j *subject) addsUp(reasons ...string) control.StepCounts {
	j.t.Helper()
	s := j.until("env steps add up", func(s *control.StatusReply) bool {
		return s.Steps.Made == s.Steps.Trained+s.Steps.Dropped+s.Steps.UnderWay
	}).Steps
	allowed := s.Reasons["policy_lag"]
	for _, r := range reasons {
		allowed += s.Reasons[r]
	}
	if s.Dropped != allowed {
		j.t.Errorf("%d env steps were dropped: %v, want only those for %v", s.Dropped, s.Reasons, reasons)
	}
	return s
}

// swapTo is a request for other environments, without a trial and without probation.
func (w *workshop) swapTo(file string) control.SwapRequest {
	if strings.HasSuffix(file, ".wasm") {
		file = w.path(file)
	}
	return control.SwapRequest{Component: "rollout", File: file, Canary: new(0), Probation: new(0.0)}
}

// reloadWith is a request for a pipeline of the workshop with overrides.
func (w *workshop) reloadWith(file string, sets ...string) control.ReloadRequest {
	w.t.Helper()
	text, err := os.ReadFile(w.path(file))
	if err != nil {
		w.t.Fatal(err)
	}
	return control.ReloadRequest{File: w.path(file), Source: string(text), Sets: sets}
}

// runsFile checks which file the environments of the rollout are made from.
func (j *subject) runsFile(file string) {
	j.t.Helper()
	s := j.status()
	if v := instance(&s, "rollout").Version; v == nil || filepath.Base(v.File) != file {
		j.t.Errorf("rollout runs %+v, want %s", v, file)
	}
}

// instance returns the status of one.
func instance(s *control.StatusReply, name string) *control.ComponentStatus {
	for i := range s.Components {
		if s.Components[i].Name == name {
			return &s.Components[i]
		}
	}
	return &control.ComponentStatus{}
}

// changes returns what the run's folder says was changed.
func (j *subject) changes() []runs.Change {
	j.t.Helper()
	r, err := runs.Open("", j.dir)
	if err != nil {
		j.t.Fatal(err)
	}
	list, err := r.Changes()
	if err != nil {
		j.t.Error(err)
	}
	return list
}

// wrote checks that a change's step is in the run's folder.
func (j *subject) wrote(step, what, reason string) {
	j.t.Helper()
	for _, c := range j.changes() {
		if c.Step == step && c.What == what && regexp.MustCompile(reason).MatchString(c.Reason) {
			return
		}
	}
	j.t.Errorf("events.jsonl has no %s of a %s for %q: %s", step, what, reason, asJSON(j.changes()))
}

// stop ends the run and checks that nothing of it is left.
func (j *subject) stop() {
	j.t.Helper()
	j.do(control.VerbStop, control.StopRequest{}, nil)
	j.ends(exitInterrupted)
	j.nothingLeft()
}

// ends waits for the end of the process.
func (j *subject) ends(code int) {
	j.t.Helper()
	select {
	case <-j.ended:
		if j.code != code {
			j.t.Errorf("the run ended with %d, want %d:\n%s", j.code, code, j.stderr)
		}
	case <-time.After(longestWait):
		j.t.Fatalf("the run goes on and on:\n%s", j.stderr)
	}
}

// kill kills the process and waits for its end.
func (j *subject) kill() {
	_ = j.cmd.Process.Kill() // it may have ended
	<-j.ended
}

// says checks what the process has said, now or soon.
func (j *subject) says(text string) {
	j.t.Helper()
	want := regexp.MustCompile(text)
	j.soon("it says "+text, func() bool { return want.MatchString(j.stderr.String()) })
}

// nothingLeft checks that a process that has ended left no other process, nothing unfinished, and nobody at the socket.
func (j *subject) nothingLeft() {
	j.t.Helper()
	if client, err := control.Dial(j.t.Context(), control.SocketPath(j.dir)); err == nil {
		_ = client.Close()
		j.t.Error("somebody listens at the socket")
	}
	j.soon("no process is left", func() bool { return len(j.processes()) == 0 })
	shared, err := filepath.Glob("/dev/shm/*rlhost*")
	if err != nil || len(shared) > 0 {
		j.t.Errorf("shared memory is left: %v %v", shared, err)
	}
}

// soon waits until something is so.
func (j *subject) soon(what string, so func() bool) {
	j.t.Helper()
	testkit.Until(j.t, what, so, j.stderr)
}

// nothingUnfinished checks that the run's folder has no temporary file.
func (j *subject) nothingUnfinished() {
	j.t.Helper()
	err := filepath.WalkDir(j.dir, func(path string, d os.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), ".tmp-") {
			j.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		j.t.Error(err)
	}
}

// processes returns those that the workshop's program runs in, or had as their parent.
func (j *subject) processes() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		j.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && strings.HasPrefix(program, j.w.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// moduleHash is the SHA-256 of a file, in hexadecimal.
func moduleHash(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
