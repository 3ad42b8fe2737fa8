package text

import (
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

func TestSwap_DescribesTheSwapLineByLine(t *testing.T) {
	r := control.SwapReply{
		Component: "rollout", Outcome: control.Committed, Old: control.Version{File: "/a/lander.wasm", Hash: "41c2e6d0aa"},
		New: control.Version{File: "/b/lander2.wasm", Hash: "9be0fe86bb"}, Checked: "abi 1, spaces equal, 23 checks ok",
		Trial: &control.Trial{
			Envs: 4, Old: control.TrialVersion{MeanReturn: 213.9, StdReturn: 12, MeanLength: 200, StdLength: 3},
			New:    control.TrialVersion{Episodes: 20, Unfinished: 2, Steps: 8000, MeanReturn: 214.7, StdReturn: 11, MeanLength: 201, StdLength: 4},
			Faster: 1.08, Verdict: "ok",
		},
		At: "episode", Envs: 64, Truncated: 1, Kept: 63, Took: 3.4, PauseMax: 0.21, Probation: 60,
		Notes: []string{"the reward is another one"},
	}
	want := `checked lander2.wasm: abi 1, spaces equal, 23 checks ok
trial: 4 envs, 8,000 steps: 0 traps, 20 episodes, 2 unfinished, mean return 214.7 ± 11.0 (old 213.9 ± 12.0), length 201.0 ± 4.0 (old 200.0 ± 3.0), 1.08× faster
swapped 64/64 envs at episode ends in 3.4 s · 0 transitions dropped · 1 episode ended as truncated · 63 episodes kept · stood still 0.21 ms at most · watched for 60 s · previous kept: rlhost rollback rollout
note: the reward is another one
`
	if got := Swap(&r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.Trial, r.Notes, r.Outcome, r.Envs = nil, nil, control.RolledBack, 0
	r.Kept, r.Truncated, r.Dropped, r.PauseMax, r.Probation, r.Checked = 0, 0, 12288, 0, 0, ""
	want = "rolled back rollout from lander.wasm (41c2e6d0) to lander2.wasm (9be0fe86) in 3.4 s · 12,288 transitions dropped · runs now: lander2.wasm (9be0fe86)\n"
	if got := Swap(&r); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	r.Outcome = control.Unchanged
	if got, want := Swap(&r), "rollout runs lander2.wasm (9be0fe86) already: nothing has changed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatus_ShowsInstancesThatAreAlikeInOneRow(t *testing.T) {
	mean, elo := 187.25, 438.4
	s := control.StatusReply{
		Run: "cartpole/0007", State: control.Stalled, PID: 42, Wall: 3725.4, Policy: 12, MeanReturn: &mean, Elo: &elo,
		Steps:     control.StepCounts{Made: 12288, Trained: 8192, Dropped: 2048, UnderWay: 2048, Reasons: map[string]uint64{"policy_lag": 2048, "swap": 0}},
		Wrapped:   3 << 20,
		Swaps:     control.SwapCounts{Committed: 1},
		Probation: []control.Probation{{Component: "rollout", Version: control.Version{File: "b.wasm", Hash: "9be0fe8600"}, Left: 42}},
		Cause:     "learner trapped",
	}
	version := &control.Version{File: "/a/lander.wasm", Hash: "41c2e6d0aa"}
	for _, name := range []string{"rollout[0]", "rollout[1]", "rollout[2]"} {
		s.Components = append(s.Components, control.ComponentStatus{Name: name, Runtime: "wasm", Host: "local", State: control.Running,
			Version: version, Rate: 137333, Unit: "env steps", Depth: 64})
	}
	s.Components[2].Note = "restarted"
	s.Components = append(s.Components, control.ComponentStatus{Name: "learner", Runtime: "process", Host: "pid 7", State: control.Stalled,
		Queued: 64, Depth: 64, WaitsFor: "batcher.datasets", Unit: "messages"})
	want := `cartpole/0007  stalled  pid 42  1h2m5s  policy version 12  train return 187.2  Elo 438
COMPONENT     HOST   STATE    VERSION                 RATE       QUEUE  NOTE
rollout[0-1]  local  running  lander.wasm (41c2e6d0)  275k st/s  0/128
rollout[2]    local  running  lander.wasm (41c2e6d0)  137k st/s  0/64   restarted
learner       pid 7  STALLED  –                       0 msg/s    64/64  waits for batcher.datasets
env steps: 12,288 made = 8,192 trained + 2,048 dropped + 2,048 under way (dropped: policy_lag 2,048)
wrappers: copied 3.1MB
changes: 1 committed, 0 rolled back, 0 refused
probation: rollout, b.wasm (9be0fe86), 42 s left
cause: learner trapped
`
	if got := Status(&s); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTap_ShowsValuesAndColumns(t *testing.T) {
	r := control.TapRecord{Signal: "rollout.trajectories", From: "rollout[1]", Sequence: 7, Handle: "1:3@9", Bytes: 53248,
		PolicyVersion: 4, Columns: map[string][]float64{"reward": {1, 0.5}}}
	got := Tap(&r)
	if want := " rollout.trajectories  #7  from rollout[1]  block 1:3@9 (53,248 bytes)  policy version 4\n  reward: 1 0.5\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q at its end", got, want)
	}
	r = control.TapRecord{Signal: "rollout.episodes", From: "rollout", Sequence: 1, Values: map[string]any{"return": 3, "env": 1}}
	if got, want := Tap(&r), " rollout.episodes  #1  env 1  return 3\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q at its end", got, want)
	}
}

func TestReloadAndGroup_TellWhatBecameOfIt(t *testing.T) {
	r := control.ReloadReply{Outcome: control.DryRun, Changes: []control.Change{{What: "component", Name: "learner", Text: "epochs 1 → 2"}}}
	if got, want := Reload("reloaded a.toml", &r), "component learner: epochs 1 → 2\ndry run: 1 difference; nothing has changed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Outcome, r.Took, r.EnvStep = control.Committed, 0.5, 4096
	if got, want := Reload("reloaded a.toml", &r), "component learner: epochs 1 → 2\nreloaded a.toml: 1 change in 0.50 s, at 4,096 env steps\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g := control.GroupReply{Answers: []control.Answer{{Name: "a"}, {Name: "b", TimedOut: true}, {Name: "c", Error: control.Errorf(control.CodeFailed, "no")}, {Name: "d"}}}
	if got, want := Group("paused", &g), "paused a, d\nb: no answer in time\nc: error[E082]: no\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for want, got := range map[string]string{
		"0": thousands(0), "999": thousands(999), "1,000": thousands(1000), "12,345,678": thousands(12345678),
		"1 trap": Count(1, "trap"), "0 traps": Count(0, "trap"), "3.2": Short(3.2), "61": Short(61), "1.5k": Short(1500),
		"412k": Short(412345), "2.1M": Short(2.1e6), "12M": Short(12e6), "0.42 s": seconds(0.42), "3.4 s": seconds(3.4), "61 s": seconds(61),
		"0.12 ms": pause(0.12), "21 ms": pause(21.2), "12 µs": pause(0.012),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDecimals_ShowThreeDigitsOfTheLargest(t *testing.T) {
	for want, values := range map[int][]float64{1: {475.24, 3}, 2: {1.53, 0.02}, 3: {-0.953}, 5: {0.00123}, 6: {1e-9, math.NaN()}} {
		if got := Decimals(values...); got != want {
			t.Errorf("Decimals(%v) = %d, want %d", values, got, want)
		}
	}
	if got := Decimals(0); got != 1 {
		t.Errorf("Decimals(0) = %d, want 1", got)
	}
}
