package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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

	replies []any // to the changes asked for
}

// begin starts a training in the folder and waits until it listens.
func (w *workshop) begin(args ...string) *movedJob {
	w.t.Helper()
	j := &movedJob{w: w, t: w.t, done: make(chan struct{})}
	j.cmd = exec.Command(w.program, append([]string{"train", "--json"}, args...)...)
	j.cmd.Dir, j.cmd.Env, j.cmd.Stdout, j.cmd.Stderr = w.dir, w.environ(), &j.out, &j.err
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
	j.replies = append(j.replies, reply)
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
	j.replies = append(j.replies, reply)
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
	if s.Made != s.Trained+s.Dropped+s.UnderWay {
		j.t.Errorf("after %s: %+v do not add up", after, s)
	}
	if s.Dropped != s.Reasons["policy_lag"] { // a busy machine may starve one group for so long that what it made is too old
		j.t.Errorf("after %s: %+v: a change dropped env steps", after, s)
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
preset = "fast"
mode = "` + mode + `"
[component.learner]
anneal_env_steps = 500_000
[swap]
canary = 0
probation = "0s"
[plugin.own]
path = "./second/rlhost"
args = ["plugin", "serve"]
`
}
