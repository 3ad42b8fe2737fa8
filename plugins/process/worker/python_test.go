package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// gymnasium returns the plugin for environments of Gymnasium.
func gymnasium(t testing.TB) spawn.Program {
	python, args := rig.Gymnasium(t)
	return spawn.Program{Name: "gymnasium", Path: python, Args: args}
}

func loadGymnasium(t testing.TB, use string, workers int) env.Plugin {
	t.Helper()
	return loadFrom(t, gymnasium(t), workers, env.Source{Name: "gym", Use: use})
}

// Environments in Python do the same in any number of processes, and a process that dies is replaced like any other.
func TestGymnasium_IsWorkedInProcesses(t *testing.T) {
	two, one := newStage(t, loadGymnasium(t, "CartPole-v1", 2), 3), newStage(t, loadGymnasium(t, "CartPole-v1", 1), 3)
	ended := 0
	for step := range 60 {
		two.play(t, 1)
		one.play(t, 1)
		if !same(two, one) {
			t.Fatalf("step %d differs", step)
		}
		for _, flag := range two.Terminated() {
			ended += int(flag)
		}
	}
	if ended == 0 {
		t.Error("no episode has ended: the test looks at too little")
	}
	killOf(t, two.Env, 1)
	if spans := lost(t, two.next()); fmt.Sprint(spans) != "[{1 2}]" {
		t.Errorf("lost %v, want those of the second process", spans)
	}
	if err := two.Reset([]uint8{0, 1, 1}, two.seeds()); err != nil {
		t.Fatal(err)
	}
	two.play(t, 20)
}

// Numbers in the info of a reset are in the row where the episode begins, under their names.
func TestGymnasium_TellsNumbersAtReset(t *testing.T) {
	d, err := env.NewDriver(loadGymnasium(t, "FrozenLake-v1", 2), env.DriverOptions{Options: env.Options{Name: "lake", Envs: 3, Autoreset: hostabi.SameStep}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	tr, row := d.Acting()
	figures := tr.Schema.Figures()
	if len(figures) != 1 || figures[0].Name != "reset/prob" || !figures[0].AtBegin {
		t.Fatalf("figures %+v", figures)
	}
	for i := range 3 {
		if prob := tr.Row(trajectory.ResetInfo, row).Value(i, 0); prob != 1 {
			t.Errorf("environment %d begins with probability %g", i, prob)
		}
	}
}

// A process whose batch is closed makes the next one where the plugin is told to reuse it, of any size and mode; its traces are the same as in a new
// process.
func TestGymnasium_AProcessMakesABatchAfterAnother(t *testing.T) {
	p, fresh := loadGymnasium(t, "CartPole-v1", 1), newStage(t, loadGymnasium(t, "CartPole-v1", 1), 3)
	p.(env.Reusing).Reuse(2)
	pid := 0
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.Disabled, hostabi.SameStep} {
		d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "reused", Envs: 5, Autoreset: mode}})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Reset(nil, make([]uint64, 5)); err != nil {
			t.Fatal(err)
		}
		clear(d.Action())
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		if now := d.Env.(*batch).workers[0].p.PID(); pid != 0 && now != pid {
			t.Errorf("process %d made the batch, want %d, which made the one before", now, pid)
		}
		pid = d.Env.(*batch).workers[0].p.PID()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again := newStage(t, p, 3)
	if now := again.Env.(*batch).workers[0].p.PID(); now != pid {
		t.Errorf("process %d made the batch, want %d", now, pid)
	}
	for step := range 60 {
		again.play(t, 1)
		fresh.play(t, 1)
		if !same(again, fresh) {
			t.Fatalf("step %d differs from a new process", step)
		}
	}
	killOf(t, again.Env, 0)
	if spans := lost(t, again.next()); fmt.Sprint(spans) != "[{0 3}]" {
		t.Errorf("lost %v, want all", spans)
	}
}

const slowEnv = `import gymnasium, numpy, time
class Slow(gymnasium.Env):
    made = 0  # the first one is made to be described
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def __init__(self):
        self.number, self.steps = Slow.made, 0
        Slow.made += 1
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        time.sleep(0.1)
        return numpy.zeros(2, numpy.float32), {}
    def step(self, action):
        self.steps += 1
        time.sleep(1000 if self.steps == 2 and self.number == 4 else 0.1)
        return numpy.zeros(2, numpy.float32), 0.0, False, False, {}
`

// The limit on a step is for one environment of Python, however many share a process, and the one that hangs is named.
func TestGymnasium_ALimitIsForOneEnvironment(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "slow.py"), []byte(slowEnv), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	program := gymnasium(t)
	program.Env = append(program.Env, "PYTHONPATH")
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			p := loadFrom(t, program, 1, env.Source{Name: "gym", Use: "slow:Slow", Threads: threads, Limits: env.Limits{Step: 400 * time.Millisecond}})
			hangsFourth(t, p)
		})
	}
}

// hangsFourth steps eight environments of which the fourth hangs in its second step.
func hangsFourth(t *testing.T, p env.Plugin) {
	t.Helper()
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "slow", Envs: 8, Autoreset: hostabi.SameStep}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, make([]uint64, 8)); err != nil {
		t.Fatal(err)
	}
	clear(d.Action())
	if _, err := d.Step(); err != nil {
		t.Fatal(err)
	}
	clear(d.Action())
	var f *env.Fault
	if _, err := d.Step(); !errors.As(err, &f) || f.Kind != env.FaultDeadline || f.Env != 3 {
		t.Errorf("the fourth environment hangs: %v", err)
	}
}

const growingEnv = `import gymnasium, numpy
class Growing(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.kept = []
        return numpy.zeros(2, numpy.float32), {}
    def step(self, action):
        if action == 1 and len(self.kept) < 16:
            self.kept.append(numpy.ones(4 << 20))  # 32 MiB
        return numpy.zeros(2, numpy.float32), 0.0, False, False, {}
`

// A process that grows beyond limits.memory is replaced and named, before the machine has no memory left; the others lose nothing.
func TestGymnasium_AProcessThatGrowsTooLargeIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "growing.py"), []byte(growingEnv), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	program := gymnasium(t)
	program.Env = append(program.Env, "PYTHONPATH")
	p := loadFrom(t, program, 2, env.Source{Name: "gym", Use: "growing:Growing", Limits: env.Limits{Memory: 320 << 20}})
	stats := stat.NewRegistry()
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "growing", Envs: 2, Autoreset: hostabi.SameStep, Stats: stats}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Reset(nil, make([]uint64, 2)); err != nil {
		t.Fatal(err)
	}
	most := stepUntilLost(t, d, stats)
	clear(d.Action())
	if err := d.Reset([]uint8{0, 1}, make([]uint64, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Step(); err != nil {
		t.Errorf("after the process was replaced: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left := stats.Gauge("rollout/process_bytes").Value(); most < 16<<20 || left != 0 {
		t.Errorf("the processes had %g bytes at most, and %g when they had ended", most, left)
	}
}

// stepUntilLost lets the second environment grow until it is lost, and returns the most memory that was told.
func stepUntilLost(t *testing.T, d *env.Driver, stats *stat.Registry) (most float64) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		d.Action()[0], d.Action()[1] = 0, 1
		_, err := d.Step()
		most = max(most, stats.Gauge("rollout/process_bytes").Value())
		if err == nil {
			continue
		}
		spans := lost(t, err)
		if fmt.Sprint(spans) != "[{1 1}]" || !strings.Contains(err.Error(), "`limits.memory` allows 320MiB") {
			t.Errorf("lost %v: %v", spans, err)
		}
		return most
	}
	t.Fatal("a process with 512 MiB was not ended within a minute")
	return 0
}

// TestGymnasium_KeepsThePromises starts some forty processes, so it is for when there is time: RLHOST_LONG=1.
func TestGymnasium_KeepsThePromises(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("set RLHOST_LONG=1 to run it")
	}
	for _, use := range []string{"CartPole-v1", "Acrobot-v1"} {
		t.Run(use, func(t *testing.T) {
			plugintest.TestEnv(t, loadGymnasium(t, use, 2), plugintest.Options{Steps: 100})
		})
	}
}

func TestGymnasium_SaysWhatIsWrong(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	_, err := Load(t.Context(), r, gymnasium(t), Options{Source: env.Source{Name: "gym", Use: "NoSuchThing-v1"}})
	if err == nil || !strings.Contains(err.Error(), "NoSuchThing") {
		t.Errorf("an environment that does not exist: %v", err)
	}
}

// Pictures of environments in Python come from the process that has them, in any number of processes, and change nothing.
func TestGymnasium_DrawsPictures(t *testing.T) {
	source := env.Source{Name: "gym", Use: "CartPole-v1", Args: map[string]string{"render_mode": "rgb_array"}}
	two, one := newStage(t, loadFrom(t, gymnasium(t), 2, source), 3), newStage(t, loadFrom(t, gymnasium(t), 1, source), 3)
	if r := two.Env.Spec().Render; r != (hostabi.Render{Modes: hostabi.RenderRGB, Width: 600, Height: 400, FPS: 50}) {
		t.Fatalf("it is described as %+v", r)
	}
	seen := map[string]bool{}
	for range 5 {
		two.play(t, 1)
		one.play(t, 1)
		for i := range 3 {
			picture, err := two.Env.(env.Renderer).Render(i, hostabi.RenderRGB, 0, nil)
			same, also := one.Env.(env.Renderer).Render(i, hostabi.RenderRGB, 0, nil)
			if err != nil || also != nil || string(picture) != string(same) {
				t.Fatalf("environment %d: %v, %v, %d and %d bytes", i, err, also, len(picture), len(same))
			}
			seen[string(picture)] = true
		}
	}
	if !same(two, one) || len(seen) < 5 { // a cart that hardly moves looks the same
		t.Errorf("of 15 pictures %d differ; the episodes are the same: %t", len(seen), same(two, one))
	}
	if _, err := two.Env.(env.Renderer).Render(3, hostabi.RenderRGB, 0, nil); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("environment 3 of 3: %v", err)
	}
	plain := newStage(t, loadGymnasium(t, "CartPole-v1", 1), 1)
	if _, err := plain.Env.(env.Renderer).Render(0, hostabi.RenderRGB, 0, nil); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("without render_mode: %v", err)
	}
}
