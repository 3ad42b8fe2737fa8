package runner

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Rollouts 1 and 2 have a policy each, in rollout 3 several act.
func twoPolicies() setup {
	return setup{
		envs: 4, run: component.Run{Policy: "main", Stop: component.StopRule{Return: new(10.0), Window: 2, EnvSteps: 5000}},
		policies: map[uint16]string{1: "main", 2: "rival", 4: "main", 5: "rival"}, acting: map[string]int{"main": 2, "rival": 2, "past": 1},
	}
}

// Stop rules look at the returns of the leading policy, whatever the others' are.
func TestRunner_EachPolicyHasAWindow(t *testing.T) {
	watch(t, twoPolicies(), func(t *testing.T, g *rig) {
		gauge := func(name string) float64 { return g.h.Stats.Gauge(name).Value() }
		for env := range uint32(2) {
			g.played(2, trajectory.Episode{Return: 50, Length: 5, Env: 2 + env})
			g.played(3, trajectory.Episode{Return: 70, Length: 7, Env: env, Policy: trajectory.PolicyID("rival")})
			g.played(3, trajectory.Episode{Return: 90, Length: 9, Env: env, Policy: trajectory.PolicyID("past")})
			g.played(3, trajectory.Episode{Return: 1e6, Length: 9, Env: env, Policy: trajectory.PolicyID("gone")})
		}
		g.wantStops()
		if mean := gauge(component.GaugeMeanReturn); !math.IsNaN(mean) {
			t.Errorf("main has not played and has a mean return of %v", mean)
		}
		if a, b, l := gauge("rival/charts/episodic_return"), gauge("past/charts/episodic_return"), gauge("past/charts/episodic_length"); a < 50 || a > 70 || b != 90 || l != 9 {
			t.Errorf("rival has %v, past %v after %v steps", a, b, l)
		}
		g.wantCount("runner/episodes", 8)
		g.played(1, trajectory.Episode{Return: 9, Length: 1, Env: 0})
		g.played(3, trajectory.Episode{Return: 9, Length: 1, Env: 1, Policy: trajectory.PolicyID("main")})
		g.wantStops()
		g.played(1, trajectory.Episode{Return: 11, Length: 1, Env: 0})
		g.played(1, trajectory.Episode{Return: 11, Length: 1, Env: 1})
		g.wantStops(component.StopReturn)
	})
}

// A message may come from a component that has gone: it is of the policy that the component had.
func TestRunner_RemembersWhoHasGone(t *testing.T) {
	s := twoPolicies()
	watch(t, s, func(t *testing.T, g *rig) {
		g.played(2, trajectory.Episode{Return: 50, Length: 5, Env: 2})
		synctest.Wait()
		delete(s.policies, 2)
		g.played(2, trajectory.Episode{Return: 50, Length: 5, Env: 3})
		if g.r.window.Len() != 0 || g.r.others["rival"].window.Len() != 2 {
			t.Errorf("main has %d episodes, rival %d, want 0 and 2", g.r.window.Len(), g.r.others["rival"].window.Len())
		}
	})
}

// Another learner's report ends no run, and is in the leading one's next line under its policy's name.
func TestRunner_ReportsOfOthersAreInTheLinesOfTheLeadingPolicy(t *testing.T) {
	s := twoPolicies()
	s.run.Dir = t.TempDir()
	watch(t, s, func(t *testing.T, g *rig) {
		g.reported(5, 6000, 1)
		g.reported(5, 7000, 2)
		g.wantStops()
		g.reported(4, 2048, 3)
		g.played(2, trajectory.Episode{Return: 50, Length: 5, Env: 2})
		g.reported(4, 4096, 4)
		g.wantStops()
		g.reported(4, 6144, 5)
		g.wantStops(component.StopEnvSteps)
	})
	all := lines(t, read(t, s.run.Dir, MetricsFile))
	if len(all) != 3 || all[0]["global_step"] != 2048.0 || all[0]["lag/mean"] != 3.0 || all[0]["rival/global_step"] != 7000.0 || all[0]["rival/lag/mean"] != 2.0 {
		t.Fatalf("%v", all)
	}
	if _, again := all[1]["rival/global_step"]; again || all[1]["rival/charts/episodic_return"] != 50.0 || all[1]["lag/mean"] != 4.0 {
		t.Errorf("%v", all[1])
	}
}

// All windows are in the state, and a run that continues with another leading policy has that policy's.
func TestRunner_StateHasAllWindows(t *testing.T) {
	var state component.State
	s := twoPolicies()
	watch(t, s, func(t *testing.T, g *rig) {
		g.reported(4, 2048, 3)
		for env := range uint32(2) {
			g.played(1, trajectory.Episode{Return: 5, Length: 5, Env: env, Task: 1})
			g.played(2, trajectory.Episode{Return: 7, Length: 7, Env: 2 + env})
		}
		state = g.snapshot()
	})
	for leading, want := range map[string][2]float64{"main": {5, 7}, "rival": {7, 5}} {
		next := s
		next.run.Policy, next.from, next.run.Synchronous = leading, &state, true
		other := "rival"
		if leading == other {
			other = "main"
		}
		watch(t, next, func(t *testing.T, g *rig) {
			if w, o := g.r.window, g.r.others[other]; w.Mean() != want[0] || o == nil || o.window.Mean() != want[1] || !w.Full() || !o.window.Full() {
				t.Errorf("%s leads with %v, %s has %+v, want %v", leading, w.Mean(), other, o, want)
			}
			if was := leading == "main"; was != (g.r.trained == 2048) || was != (g.r.task == 1) {
				t.Errorf("%s leads with %d env steps and task %d", leading, g.r.trained, g.r.task)
			}
			g.wantCount("runner/episodes", 4)
		})
	}
	one := setup{envs: 2, run: component.Run{Policy: "main"}}
	watch(t, one, func(t *testing.T, g *rig) {
		g.episode(0, 1, 1)
		alone := string(g.snapshot().RawMeta)
		if strings.Contains(alone, "policy\"") || strings.Contains(alone, "others") {
			t.Errorf("the state of a run of one policy tells of several: %s", alone)
		}
	})
}

// If a policy acts in some of the environments only, these have their part in its window.
func TestWindowWaitsForTheEnvironmentsThatAPolicyActsIn(t *testing.T) {
	for _, c := range []struct {
		name               string
		size, envs, acting int
		order              []int
		full               bool
	}{
		{name: "two of four, both", size: 4, envs: 4, acting: 2, order: []int{2, 3, 2, 2}, full: true},
		{name: "two of four, one", size: 4, envs: 4, acting: 2, order: []int{2, 2, 2, 2}},
		{name: "all of four", size: 3, envs: 4, acting: 4, order: []int{2, 3, 2}},
		{name: "many, a share of each that counts", size: 6, envs: 40, acting: 4, order: []int{30, 31, 32, 33, 30, 31, 32, 33}, full: true},
		{name: "many, a share of three", size: 6, envs: 40, acting: 4, order: []int{30, 31, 32, 30, 31, 32, 30, 31, 32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(c.size)
			w.SetActing(c.acting)
			w.SetEnvs(c.envs)
			for _, env := range c.order {
				push(w, env, 1)
			}
			restored := NewWindow(c.size)
			restored.SetActing(c.acting)
			if err := restored.Restore(w.State(), w.Append(nil)); err != nil {
				t.Fatal(err)
			}
			if w.Full() != c.full || restored.Full() != c.full {
				seen, parts := w.Coverage()
				t.Errorf("Full = %v, restored %v, with %d episodes of %d of %d environments, want %v", w.Full(), restored.Full(), w.Len(), seen, parts, c.full)
			}
		})
	}
}

// Each line says who played: agent, policy and the newest version that acted.
func TestEpisodesSayWhoPlayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g := start(t, setup{run: component.Run{Dir: dir, Policy: "main", Resumes: 2}, envs: 2,
			policies: map[uint16]string{1: "main", 2: "rival"}, acting: map[string]int{"main": 2, "rival": 2, "past": 1}})
		for _, m := range []hostabi.Message{
			{Sender: 1, PolicyVersion: 3}, {Sender: 2, PolicyVersion: 12}, // one policy acts in all rows of a rollout
			{Sender: 1, PolicyVersion: 40, T: trajectory.PolicyID("past")}, {Sender: 1, PolicyVersion: 4, T: trajectory.PolicyID("main")},
			{Sender: 1, PolicyVersion: 7, T: trajectory.PolicyID("gone")},
		} {
			e := trajectory.Episode{Return: 1, Length: 5, Env: 1, Agent: 2, Policy: m.T, Number: 9, Begun: 3}.Message()
			e.Sender, e.PolicyVersion = m.Sender, m.PolicyVersion
			if err := g.episodes.Emit(e); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		g.end()
		want := episodesHeader
		for _, who := range []string{"main,3", "rival,12", "past,40", "main,4", ",7"} {
			want += "0,1,1,5,false,2," + who + ",131075,9\n"
		}
		if got := read(t, dir, EpisodesFile); got != want {
			t.Errorf("episodes are\n%s\nwant\n%s", got, want)
		}
	})
}

// A file of a version that did not say who played stays one table.
func TestEpisodesKeepTheColumnsOfTheirFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const before = "env_step,env,return,length,terminated\n20,1,20.5,20,true\n"
		if err := os.WriteFile(filepath.Join(dir, EpisodesFile), []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		g := start(t, setup{run: component.Run{Dir: dir, Policy: "main"}, envs: 2})
		g.episode(0, 1, 10)
		synctest.Wait()
		g.end()
		if got, want := read(t, dir, EpisodesFile), before+"10,0,1,10,true\n"; got != want {
			t.Errorf("episodes are\n%s\nwant\n%s", got, want)
		}
	})
}

// A rule for a policy is judged by that policy's window and env steps, whether it leads or not, and a gauge says which policy ended the run.
func TestRunner_RulesForSinglePolicies(t *testing.T) {
	rule := func(policy string, r component.PolicyRule) setup {
		s := twoPolicies()
		s.run.Stop.Policies = map[string]component.PolicyRule{policy: r}
		return s
	}
	gauge := func(g *rig, name string) float64 { return g.h.Stats.Gauge(name).Value() }
	watch(t, rule("rival", component.PolicyRule{Return: new(60.5)}), func(t *testing.T, g *rig) {
		for env := range uint32(2) {
			g.played(2, trajectory.Episode{Return: 59, Length: 5, Env: 2 + env})
			g.played(3, trajectory.Episode{Return: 90, Length: 9, Env: env, Policy: trajectory.PolicyID("past")})
		}
		g.wantStops()
		g.played(2, trajectory.Episode{Return: 61, Length: 5, Env: 2})
		g.wantStops()
		g.played(2, trajectory.Episode{Return: 61, Length: 5, Env: 3})
		g.wantStops(component.StopReturn)
		if reached := gauge(g, "rival/charts/reached_return"); reached != 61 {
			t.Errorf("rival has reached %v, want 61", reached)
		}
	})
	watch(t, rule("past", component.PolicyRule{Return: new(90.0)}), func(t *testing.T, g *rig) { // it has no learner
		g.played(3, trajectory.Episode{Return: 90, Length: 9, Env: 0, Policy: trajectory.PolicyID("past")})
		g.wantStops()
		g.played(3, trajectory.Episode{Return: 90, Length: 9, Env: 0, Policy: trajectory.PolicyID("past")})
		g.wantStops(component.StopReturn)
	})
	var state component.State
	steps := rule("rival", component.PolicyRule{EnvSteps: 7000})
	watch(t, steps, func(t *testing.T, g *rig) {
		g.reported(4, 4096, 1)
		g.reported(5, 6999, 1)
		g.wantStops()
		state = g.snapshot()
		g.reported(5, 7000, 1)
		g.wantStops(component.StopEnvSteps)
		if reached := gauge(g, "rival/charts/reached_steps"); reached != 7000 {
			t.Errorf("rival has reached %v env steps, want 7000", reached)
		}
	})
	steps = rule("rival", component.PolicyRule{EnvSteps: 6000})
	steps.from = &state
	watch(t, steps, func(t *testing.T, g *rig) { g.wantStops(component.StopEnvSteps) }) // it was there when the run was resumed
	both := rule("main", component.PolicyRule{Return: new(5.0)})
	watch(t, both, func(t *testing.T, g *rig) { // the leading one has rules of both kinds
		g.played(1, trajectory.Episode{Return: 6, Length: 1, Env: 0})
		g.played(1, trajectory.Episode{Return: 6, Length: 1, Env: 1})
		g.wantStops(component.StopReturn)
		if reached := gauge(g, component.GaugeReachedReturn); reached != 6 {
			t.Errorf("main has reached %v, want 6", reached)
		}
	})
}
