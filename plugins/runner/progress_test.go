package runner

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/component"
)

// busy is a rig that has something to show.
func busy(t *testing.T, output Output) *rig {
	t.Helper()
	output.Queues = func() []Queue { return []Queue{{"trajectories", 3, 64}, {"act", 0, 8}} }
	g := start(t, setup{run: component.Run{Stop: component.StopRule{Window: 2}}, envs: 1, output: output})
	g.episode(0, 100, 2000)
	g.episode(0, 300, 1000)
	g.update(2048, 0.75, 2, 0.0112, 0.1234, 0.5812)
	return g
}

func TestPlainLinesHaveEverythingAndNoColour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, Output{})
		time.Sleep(1500 * time.Millisecond)
		g.end()
		got := strings.SplitAfter(g.out.String(), "\n")
		if len(got) != 3 || got[2] != "" {
			t.Fatalf("printed %q, want a line after a second and one at the end", got)
		}
		want := regexp.MustCompile(`^\d\d:\d\d:\d\d  env steps 2.05k  return 200.0±100.0  per s 3.00k\|3.00k  length 1500  ` +
			`lag 0.8/2  trajectories 3/64  act 0/8  kl 0.0112  clip 0.123  entropy 0.581\n$`)
		if !want.MatchString(got[0]) {
			t.Errorf("printed %q, want %s", got[0], want)
		}
	})
}

func TestJSONLinesHaveEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := busy(t, Output{JSON: true, Terminal: true, Color: true})
		time.Sleep(time.Second)
		g.end()
		got := lines(t, g.out.String())[0]
		for name, want := range map[string]any{
			"event": "progress", "env_steps": 2048.0, "env_steps_made": 3000.0, "wall_seconds": 1.0, "env_steps_per_s_10": 3000.0,
			"env_steps_per_s_60": 3000.0, "episodes": 2.0, "train_return": 200.0, "std_return": 100.0, "window_full": true,
			"episode_length": 1500.0, "policy_version": 1.0, "lag_mean": 0.75, "lag_max": 2.0, "approx_kl": 0.0112,
			"clipfrac": 0.1234, "entropy": 0.5812,
		} {
			if got[name] != want {
				t.Errorf("%s = %v, want %v", name, got[name], want)
			}
		}
		queues, _ := got["queues"].([]any)
		if len(queues) != 2 {
			t.Errorf("queues = %v, want two", got["queues"])
		}
	})
}

func TestUnknownNumbersAreNullInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, setup{envs: 1, output: Output{JSON: true}, config: func(c *config) { c.Log = nil }})
		g.episode(0, float32(math.NaN()), 1)
		g.update(2048) // all else NaN
		time.Sleep(time.Second)
		g.end()
		got := lines(t, g.out.String())[0]
		for _, name := range []string{"train_return", "std_return", "lag_mean", "approx_kl", "entropy"} {
			if v, ok := got[name]; !ok || v != nil {
				t.Errorf("%s = %v, want null", name, v)
			}
		}
	})
}

func TestConsoleIsSilentWhereTheFileDoesNotAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, setup{envs: 1, config: func(c *config) { c.Log = []string{"jsonl"} }})
		time.Sleep(5 * time.Second)
		g.end()
		if got := g.out.String(); got != "" {
			t.Errorf("printed %q", got)
		}
	})
}

func TestLiveLineIsRedrawnInPlaceAndFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var width atomic.Int64
		width.Store(60)
		g := busy(t, Output{Terminal: true, Width: func() int { return int(width.Load()) }})
		time.Sleep(time.Second)
		synctest.Wait()
		width.Store(30)
		time.Sleep(time.Second)
		synctest.Wait()
		g.end()
		draws := strings.Split(g.out.String(), clearLine)[1:]
		if len(draws) != 3 {
			t.Fatalf("drawn %d times: %q", len(draws), draws)
		}
		for i, limit := range []int{60, 30, 30} {
			line := strings.TrimSuffix(draws[i], "\n")
			if n := utf8.RuneCountInString(line); n >= limit || n == 0 {
				t.Errorf("draw %d has %d columns of %d: %q", i, n, limit, line)
			}
		}
		if !strings.HasSuffix(draws[2], "\n") {
			t.Error("the cursor stays in the live line")
		}
		if !strings.Contains(draws[0], "return 200.0±100.0") || strings.Contains(draws[1], "return") {
			t.Errorf("drew %q, want whole fields only, the first first", draws)
		}
	})
}

func TestIncompleteWindowSaysWhatItLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, setup{run: component.Run{Stop: component.StopRule{Window: 3}}, envs: 4})
		p := func() string {
			progress := g.r.progress()
			return g.r.shownReturn(&progress)
		}
		if got, want := p(), "– (0 of 3 episodes)"; got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
		for env := range 3 {
			g.episode(env, 7, 7)
		}
		synctest.Wait()
		if got, want := p(), "7.00±0.00 (3 of 4 envs)"; got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
		g.update(99_999)
		synctest.Wait()
		if got, want := p(), "7.00±0.00 (3 of 4 envs)"; got != want {
			t.Errorf("after a while without an episode: shown %q, want %q", got, want)
		}
		g.update(870_000)
		synctest.Wait()
		if got, want := p(), "7.00±0.00 (3 of 4 envs, no episode for 870k env steps)"; got != want {
			t.Errorf("after a long while: shown %q, want %q", got, want)
		}
		g.episode(3, 7, 7)
		synctest.Wait()
		if got, want := p(), "7.00±0.00"; got != want {
			t.Errorf("after an episode of the last environment: shown %q, want %q", got, want)
		}
		g.end()
	})
}

func TestLogErrorsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, setup{run: component.Run{Dir: "/nowhere/at/all"}, envs: 1})
		g.update(2048)
		time.Sleep(time.Second)
		g.end()
		if got := g.out.String(); !strings.Contains(got, "log errors 1") {
			t.Errorf("printed %q, want the log errors in it", got)
		}
	})
}

func TestFieldsThatDoNotFitAreLeftOut(t *testing.T) {
	fields := []field{{"", "12:00:00"}, {"return", "1±2"}, {"kl", "0.01"}}
	for width, want := range map[int]string{
		0: "", 7: "", 8: "12:00:00", 19: "12:00:00", 20: "12:00:00  return 1±2", 28: "12:00:00  return 1±2",
		29: "12:00:00  return 1±2  kl 0.01", 1000: "12:00:00  return 1±2  kl 0.01",
	} {
		if got := render(fields, width, false); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
		colored := render(fields, width, true)
		if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); got != want {
			t.Errorf("%d columns with colour: %q, want %q", width, got, want)
		}
	}
}

func TestCountsAreShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 999: "999", 999.4: "999", 999.6: "1.00k", 1000: "1.00k", 2048: "2.05k", 9999: "10.0k", 12345: "12.3k",
		99990: "100k", 412345: "412k", 999499: "999k", 999501: "1.00M", 2.05e6: "2.05M", 1.5e9: "1.50G", 2.5e13: "25000G",
	} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestOthersWriteAboveTheLiveLine(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	step := func(do func(), want string) {
		t.Helper()
		out.Reset()
		do()
		if got := out.String(); got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
	}
	write := func(text string) func() {
		return func() {
			if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("Write(%q) = %d, %v", text, n, err)
			}
		}
	}
	step(write("before\n"), "before\n")
	step(func() { s.Live("one") }, clearLine+"one")
	step(func() { s.Live("two") }, clearLine+"two")
	step(write("warning\n"), clearLine+"warning\ntwo")
	step(write("half"), clearLine+"half")
	step(write(" line\n"), " line\ntwo")
	step(write("half"), clearLine+"half")
	step(func() { s.Live("three") }, "\nthree")
	step(write(""), "")
	step(s.Leave, "\n")
	step(s.Leave, "")
	step(write("after\n"), "after\n")
}

// The rule that ends the run first says which share is done and how long it takes yet.
func TestProgress_TellsHowFarTheRunIs(t *testing.T) {
	for name, c := range map[string]struct {
		stop       component.StopRule
		done, left any
	}{
		"no rule":    {component.StopRule{}, nil, nil},
		"env steps":  {component.StopRule{EnvSteps: 8192}, 0.25, 3.0},
		"wall time":  {component.StopRule{WallTime: 4 * time.Second}, 0.25, 3.0},
		"both":       {component.StopRule{EnvSteps: 8192, WallTime: 2 * time.Second}, 0.5, 1.0},
		"past them":  {component.StopRule{EnvSteps: 1024}, 1.0, 0.0},
		"by returns": {component.StopRule{Window: 2}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := start(t, setup{run: component.Run{Stop: c.stop}, envs: 1, output: Output{JSON: true}})
				g.episode(0, 1, 2048)
				g.update(2048)
				time.Sleep(time.Second)
				g.end()
				got := lines(t, g.out.String())[0]
				if got["done"] != c.done || got["seconds_left"] != c.left {
					t.Errorf("done %v, %v seconds left; want %v and %v", got["done"], got["seconds_left"], c.done, c.left)
				}
			})
		})
	}
}

// Each row of metrics is a line of its own on request, with its numbers, also where that is not written.
func TestMetrics_AreToldOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, setup{envs: 1, output: Output{JSON: true, Metrics: true}, config: func(c *config) { c.Log = nil }})
		g.update(2048, 0.75, 2, 0.0112, 0.1234, 0.5812)
		g.update(4096, 0.75, 2, 0.0112, 0.1234, 0.5812)
		g.end()
		var steps []any
		for _, line := range lines(t, g.out.String()) {
			if line["event"] == "metrics" {
				steps = append(steps, line["global_step"])
				if line["losses/entropy"] != 0.5812 {
					t.Errorf("entropy is %v", line["losses/entropy"])
				}
			}
		}
		if len(steps) != 2 || steps[0] != 2048.0 || steps[1] != 4096.0 {
			t.Errorf("metrics at %v", steps)
		}
	})
}
