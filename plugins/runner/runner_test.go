package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/plugintest"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

func TestRunEndsWhenTheFullWindowReachesTheReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := component.StopRule{Return: new(475.0), Window: 4}
		g := start(t, setup{run: component.Run{Stop: rule}, envs: 8})
		defer g.end()
		for env := range 7 {
			g.episode(env, 500, 500)
		}
		g.wantStops() // with a window that one environment has no part in
		if mean := g.h.Stats.Gauge("charts/episodic_return").Value(); !math.IsNaN(mean) {
			t.Errorf("mean return %v while the window is not full, want NaN", mean)
		}
		g.episode(7, 300, 300)
		g.wantStops(component.StopReturn)
		if mean := g.h.Stats.Gauge("charts/episodic_return").Value(); mean != 475 {
			t.Errorf("mean return %v, want 475", mean)
		}
		g.wantCount("runner/episodes", 8)
	})
}

func TestReturnOfZeroCanBeATarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for least, want := range map[*float64]int{new(0.0): 1, nil: 0} {
			g := start(t, setup{run: component.Run{Stop: component.StopRule{Return: least, Window: 1}}, envs: 1})
			g.episode(0, 0, 1)
			if len(g.stops()) != want {
				t.Errorf("stopped %d times with a rule on returns: %v, want %d", len(g.stops()), least != nil, want)
			}
			g.end()
		}
	})
}

func TestRunEndsAtItsEnvSteps(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{EnvSteps: 4096}}, envs: 1}, func(t *testing.T, g *rig) {
		g.update(2048)
		g.wantStops() // at 2048 env steps
		g.update(4096)
		g.update(6144)
		g.wantStops(component.StopEnvSteps)
	})
}

func TestRunEndsAtItsWallTime(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{WallTime: 90 * time.Second}}, envs: 1}, func(t *testing.T, g *rig) {
		time.Sleep(89 * time.Second)
		g.wantStops() // after 89 s
		time.Sleep(time.Second)
		g.wantStops(component.StopWallTime)
	})
}

func TestMetricsHaveOneLinePerLearnerRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := start(t, setup{run: component.Run{Dir: dir}, envs: 2})
		for _, height := range []float64{1, 2, 1.5} {
			g.h.Stats.Histogram("env/height").Observe(height)
		}
		g.h.Stats.Counter("lag/max").Add(99) // the learner's own number of that name counts
		g.update(2048, 0.25, 1, 0.01, 0.125, math.Inf(1))
		g.episode(0, 20, 20)
		g.episode(1, 40.5, 40)
		g.h.Stats.Histogram("env/height").Observe(4)
		g.h.Stats.Histogram("env/height").Observe(5)
		g.update(4096, math.NaN(), 2, 1e-9, 0.25, 0.5)
		g.update(6144, 0, 0, 0, 0, 0)
		got := lines(t, read(t, dir, MetricsFile))
		g.end()
		if len(got) != 3 {
			t.Fatalf("%d lines, want 3", len(got))
		}
		if _, ok := got[2]["env/height"]; ok {
			t.Error("the third line has env/height, of which nothing was reported since the second")
		}
		want := []map[string]any{
			{"global_step": 2048.0, "lag/mean": 0.25, "lag/max": 1.0, "losses/approx_kl": 0.01, "losses/clipfrac": 0.125,
				"losses/entropy": nil, "charts/episodes": 0.0, "charts/window_full": 0.0, "env/height": 1.5, "env/height/count": 3.0,
				"charts/episodic_return": nil},
			{"global_step": 4096.0, "lag/mean": nil, "lag/max": 2.0, "losses/approx_kl": 1e-9, "losses/clipfrac": 0.25,
				"losses/entropy": 0.5, "charts/episodes": 2.0, "charts/episodic_return": 30.25, "charts/episodic_length": 30.0,
				"rollout/env_steps": 60.0, "rollout/envs": 2.0, "env/height": 4.5, "env/height/count": 2.0},
		}
		for i := range want {
			for name, value := range want[i] {
				if v, ok := got[i][name]; !ok || v != value {
					t.Errorf("line %d has %s = %v (%v), want %v", i, name, v, ok, value)
				}
			}
			for _, name := range []string{"time", "charts/SPS", "perf/wall_seconds"} {
				if _, ok := got[i][name].(float64); !ok {
					t.Errorf("line %d has no number %s", i, name)
				}
			}
		}
	})
}

func TestEpisodesHaveALineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := start(t, setup{run: component.Run{Dir: dir, Policy: "main"}, envs: 2})
		g.episode(1, 20.5, 20)
		synctest.Wait()
		g.episode(0, float32(math.Inf(-1)), 500)
		synctest.Wait()
		g.end()
		want := "env_step,env,return,length,terminated,agent,policy,policy_version,life,number\n20,1,20.5,20,true,0,main,0,0,0\n520,0,-Inf,500,false,0,main,0,0,0\n"
		if got := read(t, dir, EpisodesFile); got != want {
			t.Errorf("episodes are\n%s\nwant\n%s", got, want)
		}
	})
}

func TestNothingIsWrittenWithoutFolderOrJsonl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, s := range []setup{
			{run: component.Run{}},
			{run: component.Run{Dir: dir}, config: func(c *config) { c.Log = []string{"console"} }},
		} {
			g := start(t, s)
			g.episode(0, 1, 1)
			g.update(2048)
			g.end()
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("run folder has %v, %v", entries, err)
		}
	})
}

func TestUnwritableLogIsCountedAndTrainingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "gone")
		g := start(t, setup{run: component.Run{Dir: dir, Stop: component.StopRule{EnvSteps: 8192}}, envs: 1})
		for step := 2048.0; step < 8192; step += 2048 {
			g.episode(0, 1, 1)
			g.update(step)
		}
		g.wantCount("runner/log_errors", 6)
		if got := strings.Count(g.warnings.String(), "training goes on"); got != 1 {
			t.Errorf("%d warnings, want one: %s", got, g.warnings.String())
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		g.update(8192)
		if got := len(lines(t, read(t, dir, MetricsFile))); got != 1 {
			t.Errorf("%d lines after the folder came back, want 1", got)
		}
		if len(g.stops()) != 1 {
			t.Error("the stop rule no longer works")
		}
		g.end()
	})
}

func TestDamagedStatsAreCountedAndTrainingGoesOn(t *testing.T) {
	watch(t, setup{envs: 1}, func(t *testing.T, g *rig) {
		other, err := g.h.Arenas.Add(arena.Config{Name: "other", Blocks: 1, BlockBytes: 8, Schema: &native.Schema{}})
		if err != nil {
			t.Fatal(err)
		}
		alien := plugintest.Commit(t, other, nil)
		slot := g.h.BoundSlot("on_stats")
		for _, h := range []hostabi.Handle{0, alien, hostabi.MakeHandle(200, 1, 1), hostabi.MakeHandle(1, 3, 77)} {
			slot.Post(hostabi.Message{Handle: h})
		}
		g.h.BoundSlot("on_episodes").Post(trajectory.Episode{Env: math.MaxUint32}.Message())
		synctest.Wait()
		g.wantCount("runner/log_errors", 5)
		g.update(2048)
		if g.r.trained != 2048 {
			t.Errorf("%d env steps after a good report, want 2048", g.r.trained)
		}
		if err := other.Release(alien); err != nil {
			t.Error(err)
		}
	})
}

func TestStatsOfSillyStepsDoNotEndTheRun(t *testing.T) {
	watch(t, setup{run: component.Run{Stop: component.StopRule{EnvSteps: 100}}, envs: 1}, func(t *testing.T, g *rig) {
		for _, steps := range []float64{math.NaN(), -1, math.Inf(1), 1e300} {
			g.update(steps)
		}
		if len(g.stops()) > 0 || g.r.trained != 0 {
			t.Errorf("stopped with %v at %d env steps", g.stops(), g.r.trained)
		}
	})
}

// play feeds a rig with rounds of episodes and learner reports that follow from their number.
func (g *rig) play(from, to int) {
	g.t.Helper()
	for round := from; round < to; round++ {
		for k := range 5 {
			g.episode((3*round+k)%4, float32(round*10+k)/3, 10+round)
			synctest.Wait()
		}
		g.update(float64(round+1)*2048, 0.5, 1, 0.01, 0.1, 0.6)
	}
}

func TestResumedRunGoesOnAsTheUnbrokenOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := component.StopRule{Return: new(60.0), Window: 10, WallTime: time.Hour}
		unbroken, broken := t.TempDir(), t.TempDir()
		g := start(t, setup{run: component.Run{Dir: unbroken, Synchronous: true, Stop: rule}, envs: 4})
		g.play(0, 30)
		wantStops, wantWindow := g.stops(), describe(g.r.window)
		g.end()

		run := component.Run{Dir: broken, Synchronous: true, Stop: rule}
		g = start(t, setup{run: run, envs: 4})
		g.play(0, 10)
		time.Sleep(10 * time.Minute)
		state := g.snapshot()
		g.play(10, 14) // lost with the process
		g.end()
		g = start(t, setup{run: run, envs: 4, from: &state})
		if wall := g.r.wall(); wall != 10*time.Minute {
			t.Errorf("wall time %v after the resume, want 10m", wall)
		}
		g.play(10, 30)
		if got := describe(g.r.window); got != wantWindow {
			t.Errorf("window %s, want %s", got, wantWindow)
		}
		if !slices.Equal(g.stops(), wantStops) || len(wantStops) != 1 {
			t.Errorf("stopped with %v, want %v", g.stops(), wantStops)
		}
		g.wantCount("runner/episodes", 150)
		g.end()
		if got, want := read(t, broken, EpisodesFile), read(t, unbroken, EpisodesFile); got != want {
			t.Errorf("episodes differ:\n%s\nwant\n%s", got, want)
		}
		if got, want := stepsOf(t, broken), stepsOf(t, unbroken); !slices.Equal(got, want) {
			t.Errorf("metrics at %v, want %v", got, want)
		}
		if n := strings.Count(read(t, broken, MetricsFile+".abandoned"), "\n"); n != 4 {
			t.Errorf("%d lines are kept of the future that was lost, want 4", n)
		}
	})
}

func stepsOf(t *testing.T, dir string) (steps []float64) {
	t.Helper()
	for _, line := range lines(t, read(t, dir, MetricsFile)) {
		steps = append(steps, line["global_step"].(float64))
	}
	return steps
}

func TestResumeInAsyncModeWaitsForEveryEnvironmentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := component.StopRule{Return: new(0.0), Window: 4}
		g := start(t, setup{run: component.Run{Stop: rule}, envs: 2})
		for range 4 {
			g.episode(0, -1, 1)
			g.episode(1, -1, 1)
		}
		state := g.snapshot()
		g.end()
		g = start(t, setup{run: component.Run{Stop: rule}, envs: 2, from: &state})
		defer g.end()
		if g.r.window.Len() != 4 {
			t.Errorf("window of %d episodes after the resume, want 4", g.r.window.Len())
		}
		for range 8 {
			g.episode(0, 1, 1)
		}
		if len(g.stops()) > 0 {
			t.Error("stopped by the episodes of one environment")
		}
		g.episode(1, 1, 50)
		if len(g.stops()) != 1 {
			t.Errorf("stopped %d times when both have ended again, want 1", len(g.stops()))
		}
	})
}

func TestDamagedStateIsNotRestored(t *testing.T) {
	watch(t, setup{envs: 1}, func(t *testing.T, g *rig) {
		for _, state := range []component.State{
			{RawMeta: []byte("7")},
			{RawMeta: []byte(`{"wall_ns": -1}`)},
			{RawMeta: []byte(`{"window": {"episodes": 3}}`), Blobs: map[string][]byte{windowBlob: make([]byte, 13)}},
		} {
			if err := g.r.Restore(state); err == nil {
				t.Errorf("Restore(%s) succeeded", state.RawMeta)
			}
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		decode func(c *config) error
		want   string
	}{
		{func(*config) error { return nil }, ""},
		{func(c *config) error { c.Log = nil; return nil }, ""},
		{func(c *config) error { c.Log = []string{"console", "nothing"}; return nil }, "`log` has \"nothing\": use console, jsonl, csv, tensorboard, wandb, mlflow and prometheus"},
		{func(c *config) error { c.Listen = "127.0.0.1:1"; return nil }, "`listen` is there, and nothing is served: add \"prometheus\" to log, or take the key out"},
		{func(c *config) error { c.Log, c.Listen = []string{"prometheus"}, "9464"; return nil }, "`listen` is \"9464\": address 9464: missing port in address: write an address and a port, such as 127.0.0.1:9464"},
		{func(c *config) error { c.Every = time.Millisecond; return nil }, "`every` is 1ms, want 10ms or more"},
		{func(c *config) error { c.Every = -time.Second; return nil }, "`every` is -1s, want 10ms or more"},
		{func(*config) error { return broken }, "broken"},
	} {
		err := New(Output{})().Configure(func(into any) error { return c.decode(into.(*config)) })
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("Configure = %v, want %q", err, c.want)
		}
	}
}

func TestSecondRunnerIsRefused(t *testing.T) {
	err := New(Output{})().Start(&component.Host{Peers: func(string) int { return 2 }})
	if err == nil || !strings.Contains(err.Error(), "2 runners, want one") {
		t.Errorf("Start beside another runner: %v", err)
	}
}

func TestStopBeforeStartIsHarmless(t *testing.T) {
	if err := New(Output{})().Stop(); err != nil {
		t.Error(err)
	}
}

func TestEpisodeSlotDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := component.StopRule{Return: new(1e9)}
		g := start(t, setup{run: component.Run{Dir: t.TempDir(), Stop: rule}, envs: 32})
		g.end() // the slot is called from here now
		m := trajectory.Episode{Return: 123.456, Length: 123}.Message()
		env := uint64(0)
		slot := func() {
			m.Inline[1] = env
			env = (env + 1) % 32
			g.r.onEpisode(&m)
		}
		for range 2000 {
			slot()
		}
		if n := testing.AllocsPerRun(5000, slot); n != 0 {
			t.Errorf("an episode allocates %v times", n)
		}
		if err := g.r.log.close(); err != nil {
			t.Error(err)
		}
	})
}

func TestLogFileHasOnlyWholeLinesOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	l := logFile{path: filepath.Join(dir, "log"), header: []byte("head\n"), whole: wholeLines}
	line := []byte(strings.Repeat("x", 99) + "\n")
	written, failed := 0, 0
	for i := range 300 {
		if i == 200 {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.append(line); err == nil {
			written++
		} else if failed++; !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	want := "head\n" + strings.Repeat(string(line), written)
	if got := read(t, dir, "log"); got != want || failed == 0 || written < 100 {
		t.Errorf("file has %d bytes after %d lines written and %d failed, want %d", len(got), written, failed, len(want))
	}
}

func TestUnfinishedLineOfADeadProcessIsCutOff(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("whole\nhal"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := logFile{path: path, header: []byte("head\n"), whole: wholeLines}
	if err := errors.Join(l.append([]byte("next\n")), l.close()); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, dir, "log"), "whole\nnext\n"; got != want {
		t.Errorf("file is %q, want %q", got, want)
	}
}

func TestRewindTouchesOnlyAFileThatFits(t *testing.T) {
	for _, c := range []struct {
		content   string
		size      int64
		want      string
		abandoned string
	}{
		{"a\nb\nc\n", 4, "a\nb\n", "c\n"},
		{"a\nb\n", 4, "a\nb\n", ""},
		{"a\n", 4, "a\n", ""},           // of another run, or cut by hand
		{"abcdef\n", 3, "abcdef\n", ""}, // not where a line ends
		{"a\nb\n", -1, "a\nb\n", ""},
		{"a\nb\n", 0, "", "a\nb\n"},
	} {
		dir := t.TempDir()
		l := logFile{path: filepath.Join(dir, "log"), whole: wholeLines}
		if err := os.WriteFile(l.path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.rewind(c.size), l.close()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, "log"); got != c.want {
			t.Errorf("%q taken back to %d is %q, want %q", c.content, c.size, got, c.want)
		}
		if abandoned, _ := os.ReadFile(l.path + ".abandoned"); string(abandoned) != c.abandoned {
			t.Errorf("%q taken back to %d keeps %q, want %q", c.content, c.size, abandoned, c.abandoned)
		}
	}
}
