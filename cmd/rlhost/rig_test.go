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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// subject is a training that runs in the background.
type subject struct {
	t      *testing.T
	w      *workshop
	cmd    *exec.Cmd
	gate   *gate           // or nil
	dir    string          // of the run, once it has begun
	output *testkit.Buffer // and errors
	client *control.Client
	ended  chan struct{} // closed when the process has ended
	code   int           // then
}

// host starts a training and waits until it answers and makes env steps.
func (w *workshop) host(args ...string) *subject {
	w.t.Helper()
	j := w.begin(false, args...)
	j.goesOn()
	return j
}

// gated is host behind a gate.
func (w *workshop) gated(args ...string) *subject {
	w.t.Helper()
	canGate(w.t)
	j := w.begin(true, args...)
	j.goesOn()
	return j
}

// begin starts a training and waits until it answers.
func (w *workshop) begin(behind bool, args ...string) *subject {
	w.t.Helper()
	return w.beginWith("train", behind, args...)
}

// beginWith is begin with another command than train.
func (w *workshop) beginWith(command string, behind bool, args ...string) *subject {
	w.t.Helper()
	j := &subject{t: w.t, w: w, output: &testkit.Buffer{}, ended: make(chan struct{})}
	j.cmd = w.command(append([]string{command}, args...)...)
	j.cmd.Stdout, j.cmd.Stderr = j.output, j.output
	open := func() *gate { return nil }
	if behind {
		open = gated(w.t, w, j.cmd)
	}
	if err := j.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	j.gate = open()
	go func() {
		_ = j.cmd.Wait() // its code says how it ended
		j.code = j.cmd.ProcessState.ExitCode()
		close(j.ended)
	}()
	w.t.Cleanup(j.kill)
	j.within("it has begun", func() bool {
		j.look()
		return j.dir != "" || j.over()
	})
	j.client = j.dial()
	return j
}

// look notes which run is live. A run that begins has the previous run's lock for a moment, so the first look may be wrong.
func (j *subject) look() {
	if live, err := runs.Live(j.w.path("runs")); err == nil && len(live) == 1 {
		j.dir = live[0].Dir
	}
}

// over reports whether the process has ended.
func (j *subject) over() bool {
	select {
	case <-j.ended:
		return true
	default:
		return false
	}
}

// dial connects to the job as soon as it listens.
func (j *subject) dial() (client *control.Client) {
	j.t.Helper()
	var err error
	j.within("it answers", func() bool {
		j.look()
		client, err = control.Dial(j.t.Context(), control.SocketPath(j.dir))
		return err == nil || j.over()
	})
	if err != nil {
		j.t.Fatalf("the run ended with %d before it answered:\n%s", j.code, j.output)
	}
	j.t.Cleanup(func() { _ = client.Close() })
	return client
}

// do makes a request that has to succeed.
func (j *subject) do(verb control.Verb, request, reply any) {
	j.t.Helper()
	if err := j.client.Do(j.t.Context(), verb, request, reply, nil); err != nil {
		j.t.Fatalf("%s %+v: %+v\n%s", verb, request, asJSON(err), j.output)
	}
}

// swap makes a swap that has to be committed and to drop nothing.
func (j *subject) swap(q control.SwapRequest) (r control.SwapReply) {
	j.t.Helper()
	j.do(control.VerbSwap, q, &r)
	if r.Outcome != control.Committed || r.Dropped != 0 {
		j.t.Errorf("swap %s: %s", asJSON(q), asJSON(r))
	}
	return r
}

// reload makes the job follow a pipeline of the workshop, with overrides.
func (j *subject) reload(file string, sets ...string) (r control.ReloadReply) {
	j.t.Helper()
	j.do(control.VerbReload, j.w.reloadWith(file, sets...), &r)
	return r
}

// end returns the last event of a training with --json that has ended.
func (j *subject) end() (end lastEvent) {
	j.t.Helper()
	_, last, _ := strings.Cut(j.output.String(), `{"event":"end"`)
	last, _, _ = strings.Cut(`{"event":"end"`+last, "\n")
	if err := json.Unmarshal([]byte(last), &end); err != nil {
		j.t.Fatalf("%v in\n%s", err, j.output)
	}
	return end
}

// fails makes a request that has to fail with a code and a reason.
func (j *subject) fails(verb control.Verb, request any, code control.Code, reason string) {
	j.t.Helper()
	err := j.client.Do(j.t.Context(), verb, request, nil, nil)
	j.refusal(err, code, reason)
}

// refusal checks the error of a request.
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
	}, &s, j.output)
	return s
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// goesOn checks that env steps are made and learned from, and that new versions are published.
func (j *subject) goesOn() {
	j.t.Helper()
	before := j.status()
	j.until("the run goes on", func(s *control.StatusReply) bool {
		return s.Steps.Made > before.Steps.Made && s.Steps.Trained > before.Steps.Trained && s.Policy >= before.Policy+3
	})
}

// addsUp checks that no env step is missing, and that none were dropped but for the reasons named, or because a busy
// machine starved their learner for too long.
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

// swapTo is a request for other environments.
func (w *workshop) swapTo(file string) control.SwapRequest {
	if strings.HasSuffix(file, ".wasm") {
		file = w.path(file)
	}
	return control.SwapRequest{Component: "rollout", File: file}
}

// reloadWith is a request for a pipeline of the workshop with overrides.
func (w *workshop) reloadWith(file string, sets ...string) control.ReloadRequest {
	w.t.Helper()
	return control.ReloadRequest{File: w.path(file), Source: w.read(file), Sets: sets, Undo: true} // of swaps that the file does not have
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

// file returns the content of a file of the run's folder.
func (j *subject) file(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		j.t.Fatal(err)
	}
	return string(data)
}

// changes returns the changes recorded in the run's folder.
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
	j.ends(exitOK)
	j.nothingLeft()
}

// ends waits for the end of the process.
func (j *subject) ends(code int) {
	j.t.Helper()
	select {
	case <-j.ended:
		if j.code != code {
			j.t.Errorf("the run ended with %d, want %d:\n%s", j.code, code, j.output)
		}
	case <-time.After(longestWait):
		j.t.Fatalf("the run goes on and on:\n%s", j.output)
	}
}

// kill kills the process and waits for its end.
func (j *subject) kill() {
	_ = j.cmd.Process.Kill() // it may have ended
	<-j.ended
}

// says waits until the process has printed a text.
func (j *subject) says(text string) {
	j.t.Helper()
	want := regexp.MustCompile(text)
	j.within("it says "+text, func() bool { return want.MatchString(j.output.String()) })
}

// nothingLeft checks that a process that has ended left no other process, nothing unfinished, and no server at the socket.
func (j *subject) nothingLeft() {
	j.t.Helper()
	if client, err := control.Dial(j.t.Context(), control.SocketPath(j.dir)); err == nil {
		_ = client.Close()
		j.t.Error("somebody listens at the socket")
	}
	j.within("no process is left", func() bool { return len(j.processes()) == 0 })
	shared, err := filepath.Glob("/dev/shm/*rlhost*")
	if err != nil || len(shared) > 0 {
		j.t.Errorf("shared memory is left: %v %v", shared, err)
	}
}

// within waits until something is true.
func (j *subject) within(what string, so func() bool) {
	j.t.Helper()
	testkit.Until(j.t, what, so, j.output)
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

// processes returns the processes of the workshop's program, and their children.
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
