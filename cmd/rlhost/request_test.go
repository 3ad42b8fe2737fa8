package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// oracle is a component in Python that answers requests, well and badly.
const oracle = `import time

import rlhost


class Oracle(rlhost.Component):
    slots = [rlhost.Slot("on_episodes", "episode")]

    def start(self, host):
        self.episodes, self.at = 0, ""

    def on_episodes(self, m):
        self.at = "slot"
        self.episodes += 1
        self.at = ""

    @rlhost.request
    def total(self, times: int = 1) -> int:
        """Episodes so far."""
        assert self.at == ""
        return self.episodes * times

    @rlhost.request
    def wrong(self, what: str):
        if what == "raise":
            raise KeyError("no such key")
        if what == "object":
            return object()
        if what == "long":
            return "x" * 200_000
        if what == "exit":
            raise SystemExit(3)
        while True:
            time.sleep(1)


rlhost.serve(Oracle)
`

// coach is a component in Python that asks the oracle.
const coach = `import rlhost


class Asker(rlhost.Component):
    slots = [rlhost.Slot("on_episodes", "episode")]
    asks = [rlhost.Ask("total", times=int), rlhost.Ask("wrong", what=str)]

    def start(self, host):
        self.came, self.early = [], ""

    def on_episodes(self, m):
        if not self.early:
            total = self.host.request("total", times=0)
            try:
                total.result()
            except RuntimeError as e:
                self.early = str(e)
            total.add_done_callback(lambda asked: self.came.append(asked.result()))
            self.host.request("wrong", 5.0, what="raise").add_done_callback(self.failed)

    def failed(self, asked):
        try:
            asked.result()
        except rlhost.HandlerError as e:
            self.came.append(f"{e.code} {e.type} {e.reason} {e.place}")

    @rlhost.request
    def told(self):
        return [self.early, *self.came]


rlhost.serve(Asker)
`

// A component in Python asks another one, without waiting for the answer.
func TestRequest_AComponentInPythonAsksAnother(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("oracle.py", oracle)
	w.write("asker.py", coach)
	text := `rlhost = 1
[run]
name = "asking"
stop = { env_steps = 500_000_000, wall_time = "5m" }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[component.asker]
asks = { total = "oracle.total", wrong = "oracle.wrong" }
plugin = "asker"
[component.oracle]
plugin = "oracle"
`
	for _, name := range []string{"oracle", "asker"} {
		text += fmt.Sprintf("[plugin.%[1]s]\npath = \"./%[1]s.py\"\ninterpreter = [%[2]q]\n[[wire]]\nsignal = \"rollout.episodes\"\nslot = \"%[1]s.on_episodes\"\n"+
			"mode = \"all\"\ndepth = 1024\non_full = \"drop_oldest\"\n", name, w.python())
	}
	w.write("p.toml", text)
	j := w.host("p.toml")
	const want = `["an answer comes between two messages: get it in a function for add_done_callback",0,"E122 KeyError 'no such key' oracle.py:26"]`
	var told json.RawMessage
	testkit.Until(t, "answers", func() bool {
		if err := j.client.AskOne(t.Context(), "asker", "told", json.RawMessage("{}"), &told); err != nil {
			t.Fatalf("%+v\n%s", err, j.output)
		}
		return strings.Contains(string(told), "E122")
	})
	if string(told) != want {
		t.Errorf("%s, want %s", told, want)
	}
}

// asked makes a request of one component and returns its answer.
func (j *subject) asked(component, name, args string, within time.Duration) control.AskAnswer {
	j.t.Helper()
	q := control.AskRequest{Patterns: []string{component}, Name: name, Args: json.RawMessage(args), Deadline: within.Seconds()}
	reply, err := j.client.Ask(j.t.Context(), q)
	if err != nil || len(reply.Answers) != 1 {
		j.t.Fatalf("%+v: %+v, %v\n%s", q, reply, err, j.output)
	}
	return reply.Answers[0]
}

func TestRequest_ComponentsInGoAndPythonAnswerDuringTheTraining(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	python := w.python()
	script, err := filepath.Abs("../../examples/plugins/process-python/shaper.py")
	if err != nil {
		t.Fatal(err)
	}
	w.example("Go", "between")
	w.write("oracle.py", oracle)
	text := strings.Replace(between, `mode = "sync"`, "", 1)
	text = strings.Replace(text, "stop = { env_steps = 20480 }", `stop = { env_steps = 500_000_000, wall_time = "5m" }`, 1)
	text = strings.Replace(text, "[component.between]\nplugin = \"between\"\n", "[component.between]\nplugin = \"between\"\nkind = \"reward_shaper\"\n", 1)
	w.write("p.toml", text+fmt.Sprintf(`[plugin.python]
path = %q
interpreter = [%q]
[plugin.oracle]
path = "./oracle.py"
interpreter = [%q]
stall = "2s"
[component.oracle]
plugin = "oracle"
[[wire]]
signal = "rollout.episodes"
slot = "oracle.on_episodes"
mode = "all"
depth = 1024
on_full = "drop_oldest"
`, script, python, python))
	j := w.host("p.toml")
	const soon = 30 * time.Second
	if a := j.asked("between", "set_scale", `{"scale": 0.5}`, soon); string(a.Reply) != "1" || a.Error != nil {
		t.Errorf("Go: %s", asJSON(a))
	}
	if a := j.asked("between", "set_scale", `{"scale": 1}`, soon); string(a.Reply) != "0.5" {
		t.Errorf("Go: %s", asJSON(a))
	}
	var total int
	testkit.Until(t, "episodes", func() bool {
		if err := j.client.AskOne(t.Context(), "oracle", "total", json.RawMessage(`{"times": 2}`), &total); err != nil {
			t.Fatalf("%+v", err)
		}
		return total > 0
	})
	// A wire is taken out and put in again by the client.
	if r, err := j.client.Disconnect(t.Context(), "rollout.episodes", "oracle.on_episodes"); err != nil || len(r.Changes) != 1 || r.Changes[0].Text != "removed" {
		t.Errorf("disconnect: %+v, %v", r, err)
	}
	quiet := string(j.asked("oracle", "total", "{}", soon).Reply)
	if again := string(j.asked("oracle", "total", "{}", soon).Reply); again != quiet {
		t.Errorf("without a wire: %s episodes, then %s", quiet, again)
	}
	wire := control.Wire{Signal: "rollout.episodes", Slot: "oracle.on_episodes", Mode: "all", Depth: 1024, OnFull: "drop_oldest"}
	if r, err := j.client.Connect(t.Context(), wire); err != nil || len(r.Changes) != 1 || !strings.HasPrefix(r.Changes[0].Text, "added: all, depth 1024") {
		t.Errorf("connect: %+v, %v", r, err)
	}
	testkit.Until(t, "episodes once more", func() bool { return string(j.asked("oracle", "total", "{}", soon).Reply) != quiet })
	for what, want := range map[string]string{
		"raise":  `^E122 KeyError: 'no such key' \(oracle.py:26\)$`,
		"object": `^E124 : the answer is no JSON: object <object object at 0x[0-9a-f]+> \(\)$`,
		"long":   `^E124 : the answer has 200002 bytes, at most 122880 \(\)$`,
		"exit":   `^E122 SystemExit: 3 \(oracle.py:32\)$`,
	} {
		a := j.asked("oracle", "wrong", fmt.Sprintf(`{"what": %q}`, what), soon)
		if a.Error == nil {
			t.Fatalf("%s: %s", what, asJSON(a))
		}
		if got := fmt.Sprintf("%s %s: %s (%s)", a.Error.Code, a.Error.Type, a.Error.Reason, a.Error.Place); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	// A handler that does not return: the request ends in time; the process is then killed and started again, and answers.
	if a := j.asked("oracle", "wrong", `{"what": "hang"}`, 100*time.Millisecond); !a.TimedOut || a.Error == nil || a.Error.Code != control.CodeUnanswered {
		t.Errorf("hang: %s", asJSON(a))
	}
	if a := j.asked("oracle", "total", "{}", soon); a.Error == nil || a.Error.Code != control.CodeLost || a.State != control.Lost {
		t.Errorf("while it hangs: %s", asJSON(a))
	}
	testkit.Until(t, "an answer of the next process", func() bool { return j.asked("oracle", "total", "{}", soon).Error == nil })
	// A process that is killed while it has a request.
	pid := j.pidOf("oracle")
	came := make(chan control.AskAnswer, 1)
	other := j.dial()
	go func() {
		reply, err := other.Ask(t.Context(), control.AskRequest{Patterns: []string{"oracle"}, Name: "wrong", Args: json.RawMessage(`{"what": "hang"}`)})
		if err != nil {
			t.Error(err)
			return
		}
		came <- reply.Answers[0]
	}()
	testkit.Until(t, "the request is under way", func() bool {
		return j.asked("oracle", "total", "{}", 20*time.Millisecond).Error != nil
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if a := <-came; a.Error == nil || a.Error.Code != control.CodeLost {
		t.Errorf("killed: %s", asJSON(a))
	}
	j.goesOn()
	w.asksByCommand()
}

// asksByCommand runs rlhost request.
func (w *workshop) asksByCommand() {
	w.t.Helper()
	w.fails(0, []string{"request"}, "between  set_scale(scale number)", "oracle   total(times integer?)    Episodes so far.")
	w.fails(0, []string{"request", "kind:reward_shaper", "set_scale", `{"scale": 1}`}, "between: 1\n")
	w.fails(exitFailed, []string{"request", "between", "set_scale", `{"scale": 1e9}`}, "between: error[E122]: a scale of 1e+09")
	w.fails(exitFailed, []string{"request", "--json", "between", "set_scale", `{"scal": 1}`}, `"code":"E121"`, "did you mean scale?")
	w.fails(exitUsage, []string{"request", "between", "set_scal"}, "error[E120]", `did you mean "set_scale"? between answers set_scale(scale number)`)
	w.fails(exitUsage, []string{"request", "between", "set_scale", "{"}, "error[E121]: the arguments are not JSON")
	w.fails(exitUsage, []string{"request", "between", "set_scale", "--timeout", "0s"}, "--timeout 0s, want more than 0")
	w.fails(exitUsage, []string{"request", "nobody", "set_scale"}, "error[E071]")
}

// pidOf returns the process that a component runs in.
func (j *subject) pidOf(component string) (pid int) {
	j.t.Helper()
	j.until("a process of "+component, func(s *control.StatusReply) bool {
		for _, c := range s.Components {
			if c.Name == component {
				_, err := fmt.Sscanf(c.Host, "pid %d", &pid)
				return err == nil
			}
		}
		return false
	})
	return pid
}

// A run and its components are among the names of the user while it runs, and gone soon after it was killed.
func TestNames_RunsAreThereUntilTheyEnd(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	runtime, err := os.MkdirTemp("", "rt") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	w.env = []string{"XDG_RUNTIME_DIR=" + runtime}
	start := func(args ...string) *exec.Cmd {
		c := w.command(args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	w.write("p.toml", strings.Replace(strings.Replace(plain, `mode = "sync"`, "", 1), "20480", "500_000_000", 1)+"[component.rollout]\ncount = 2\n")
	job := start("train", "p.toml")
	start("names", "serve") // later than the run
	listed := func() string {
		out, _ := w.command("names", "ls", "rlhost/runs").CombinedOutput() // it fails while nobody serves names
		return string(out)
	}
	testkit.Until(t, "names", func() bool {
		out := listed()
		return strings.Contains(out, "rlhost/runs/cartpole/0001 ") && strings.Contains(out, "rlhost/runs/cartpole/0001/rollout[1] ") &&
			strings.Contains(out, "job-") && strings.Contains(out, "learner")
	})
	w.fails(0, []string{"scale", "rollout=1"}, "scaled")
	testkit.Until(t, "a name ends with its component", func() bool {
		out := listed()
		return strings.Contains(out, "rlhost/runs/cartpole/0001/rollout ") && !strings.Contains(out, "rollout[1]")
	})
	if err := job.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	testkit.Until(t, "the names are gone", func() bool { return !strings.Contains(listed(), "cartpole") })
	t.Logf("gone after %v", time.Since(killed))
}
