package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Whatever the boundary, the mode, the number of splits: every row is of one version, episodes end as they must, and
// everything is counted once.
func TestS2ChangesEndEpisodesAsTruncated(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
			for splits := 1; splits <= 3; splits++ {
				for variant := range 4 { // each pair of choices comes up with some boundary
					turn := variant + splits + int(mode) + int(at)
					if testing.Short() && turn%4 != 0 {
						continue
					}
					keep, async, limit, halves := variant&1 != 0, variant&2 != 0, turn&1*4, turn%3 == 0
					name := fmt.Sprintf("%v/%v/splits %d/keep %v/async %v/limit %d/halves %v", at, mode, splits, keep, async, limit, halves)
					t.Run(name, func(t *testing.T) {
						o := worldOptions{mode: mode, splits: splits, async: async, limit: limit, masked: turn&2 != 0}
						if halves {
							o.wrap = func(p env.Plugin) env.Plugin { return elsewhere{p} }
						}
						testChanges(t, o, component.EnvChange{At: at, KeepState: keep})
					})
				}
			}
		}
	}
}

func testChanges(t *testing.T, o worldOptions, c component.EnvChange) {
	w := newWorld(t, o)
	w.more(2)
	for k, row := range []int{0, 1, 3, 4, 2, 0} {
		w.inRow(k%w.c.config.Splits, row)
		version := 2 + k%3
		if o.wrap != nil {
			c.Plugin = o.wrap(w.plugins[version])
		}
		w.change(version, c)
		went := w.went[len(w.went)-1]
		if went.Envs != 6 || len(went.PauseNS) != w.c.config.Splits || went.Dropped != 0 && c.At != component.AtNow {
			t.Errorf("change %d went %+v", k, went)
		}
		carries := c.KeepState && o.wrap == nil && c.At != component.AtEpisode
		if carries && went.Kept == 0 && row > 0 || !carries && went.Kept != 0 || carries && went.Truncated > 0 ||
			c.At == component.AtEpisode && went.Truncated != 0 {
			t.Errorf("change %d went %+v, keeping %v", k, went, carries)
		}
		w.wantOpen(map[int]int{version: w.c.config.Splits})
		w.more(3)
	}
	w.balance()
	if w.c.restarted.All() != 0 {
		t.Errorf("%d restarts", w.c.restarted.All())
	}
	if w.told == 0 {
		t.Error("no episode ended: the test looks at too little")
	}
	dropped := 0
	for _, went := range w.went {
		dropped += int(went.Dropped)
	}
	if got := w.counter("swap/dropped_env_steps"); int(got) != dropped || (dropped > 0) != (c.At == component.AtNow) {
		t.Errorf("%d env steps counted as dropped, %d told", got, dropped)
	}
}

// One environment, blocks of 4, γ = 0.9, λ = 0.5, V = 10 times the step, rewards of 1, then of 2. The change comes
// between rows 1 and 2: rows 0 and 1 are an episode that is cut off at V = 20, rows 2 and 3 begin another one.
//
//	A(3) = 2 + 0.9·20 - 10          = 10      V(obs[4]) = 20
//	A(2) = 2 + 0.9·10 - 0 + 0.45·10 = 15.5
//	A(1) = 1 + 0.9·20 - 10          =  9
//	A(0) = 1 + 0.9·10 - 0 + 0.45·9  = 14.05
func TestS2AdvantagesAroundAChangeAreThoseByHand(t *testing.T) {
	w := newWorld(t, worldOptions{config: func(c *config) { c.Envs = 1 }})
	var got []float32
	w.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
		if got == nil {
			got = advantages(t, tr)
		}
	})
	w.inRow(0, 1)
	w.change(2, component.EnvChange{At: component.AtStep})
	w.run(func() bool { return got != nil })
	wantAdvantages(t, got, 14.05, 9, 15.5, 10)
}

// Between two trajectories the learner sees what it would have seen: the cut changes no target, for the block ends there.
func TestS4AChangeBetweenTrajectoriesBootstrapsFromTheLastRow(t *testing.T) {
	for _, paused := range []bool{false, true} {
		w := newWorld(t, worldOptions{config: func(c *config) { c.Envs = 1 }})
		truncated, bootstrap, lastValue := []byte(nil), float32(0), float32(0)
		w.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			truncated = bytes.Clone(tr.Bytes(trajectory.Truncated))
			bootstrap, lastValue = tr.Float32(trajectory.Bootstrap)[3], tr.Float32(trajectory.Value)[4]
		})
		w.inRow(0, 2)
		if paused {
			w.c.Pause(func() {})
			w.more(1)
			w.change(2, component.EnvChange{At: component.AtTrajectory})
			if truncated[3] != 0 || lastValue != 40 || w.went[0].Truncated != 1 {
				t.Errorf("the block that was gone: truncated %v, V(obs[4]) %v, went %+v", truncated, lastValue, w.went)
			}
			continue
		}
		w.change(2, component.EnvChange{At: component.AtTrajectory})
		w.more(1)
		if truncated[3] != 1 || bootstrap != 40 || lastValue != 40 {
			t.Errorf("truncated %v, bootstrap_value %v, V(obs[4]) %v; want 1, 40, 40", truncated, bootstrap, lastValue)
		}
	}
}

func TestPrepareEnvs_RefusesOtherSpaces(t *testing.T) {
	w := newWorld(t, worldOptions{config: func(c *config) { c.Layout = "soa" }})
	for want, script := range map[string]plugintest.Script{
		"its action is another one":                                                    {Actions: 4},
		"it has a tensor of role action_mask":                                          {Actions: 3, Legal: func(plugintest.At, int) bool { return true }},
		"its info is none, that of those that run is made: max[2], length: at the end": {Actions: 3},
		"its info is made: max[3], that of those that run is made: max[2], length: at the end": {Actions: 3,
			Infos: []hostabi.Tensor{{Path: "made", Rank: 1, Shape: [hostabi.MaxRank]uint32{3}, Flags: hostabi.TensorMax}}},
		"it does not offer autoreset same_step":          {Actions: 3, Autoreset: hostabi.NextStep, Infos: worldInfos()},
		"it does not take observations as [elem][env]":   {Actions: 3, Caps: 1 << 30, Infos: worldInfos()},
		"rollout: other@1 cannot take the place of v1@1": {Name: "other@1", Actions: 2},
	} {
		p, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: plugintest.New(script)})
		var spaces *component.SpacesError
		if !errors.As(err, &spaces) || !strings.Contains(err.Error(), want) || p != nil {
			t.Errorf("%v, want %q", err, want)
			continue
		}
		if strings.Contains(want, "[elem][env]") != strings.Contains(spaces.Help, "rlhost reload --set component.rollout.layout=aos") {
			t.Errorf("%v has the help %q", err, spaces.Help)
		}
		if table := spaces.Table(); !strings.Contains(table, "action") || !strings.Contains(table, "v1@1 (running)") {
			t.Errorf("the table is\n%s", table)
		}
	}
	other := w.plugins[2].Spec()
	other.Tensors = slices.Clone(other.Tensors)
	other.Tensors[1].Shape[0]++
	if reason := w.c.differs(&other); reason != "its observation is another one" {
		t.Errorf("another shape: %q", reason)
	}
	other.Tensors[1].Shape[0]--
	other.Tensors[1].High, other.Tensors[0].Path = 9, "x"
	if reason := w.c.differs(&other); reason != "" {
		t.Errorf("other bounds and names: %q", reason)
	}
	w.change(2, component.EnvChange{}) // a refused change is in nobody's way
}

func TestPrepareEnvs_WhatCannotBeMadeIsRefusedAndLeavesNothing(t *testing.T) {
	flaws := map[int]func(*plugintest.Script){
		2: func(s *plugintest.Script) { s.MaxEnvs = 2 },
		3: func(s *plugintest.Script) {
			s.Cue = func(at plugintest.At) plugintest.Cue {
				if at.Reset && at.Env == 4 {
					return plugintest.Trap
				}
				return plugintest.Nothing
			}
		},
		4: func(s *plugintest.Script) {
			s.Cue = func(at plugintest.At) plugintest.Cue {
				if at.Reset && at.Env == 4 {
					return plugintest.NaNObservation
				}
				return plugintest.Nothing
			}
		},
	}
	w := newWorld(t, worldOptions{splits: 2, flaws: flaws})
	w.more(2)
	for version, want := range map[int]string{2: "3 environments", 3: "rollout env 4: trap in rl_reset", 4: "rollout env 4: output in rl_reset"} {
		for _, at := range []component.Boundary{component.AtStep, component.AtEpisode} {
			if _, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: w.plugins[version], At: at}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("version %d: %v, want %q", version, err, want)
			}
		}
	}
	for _, envs := range []int{-1, 7} {
		if _, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{Plugin: w.plugins[1], Envs: envs}); err == nil {
			t.Errorf("a trial of %d environments is taken", envs)
		}
	}
	if _, err := w.c.PrepareEnvs(t.Context(), component.EnvChange{}); err == nil {
		t.Error("a change to no plugin is taken")
	}
	w.wantOpen(map[int]int{1: 2})
	w.more(2)
	w.balance()
}

func TestPrepareEnvs_OneChangeAtATime(t *testing.T) {
	w := newWorld(t, worldOptions{splits: 2})
	refused := func(when string, o component.EnvChange) {
		t.Helper()
		o.Plugin = w.plugins[3]
		if _, err := w.c.PrepareEnvs(t.Context(), o); !errors.Is(err, component.ErrChanging) {
			t.Errorf("%s: %v, want ErrChanging", when, err)
		}
	}
	p := w.prepare(2, component.EnvChange{At: component.AtTrajectory})
	refused("while one is prepared", component.EnvChange{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(); err == nil {
		t.Error("a change that was closed is committed")
	}
	p = w.prepare(2, component.EnvChange{At: component.AtTrajectory})
	w.inRow(0, 1)
	w.commit(p)
	refused("while one is under way", component.EnvChange{})
	if err := p.Commit(); err == nil {
		t.Error("a change is committed twice")
	}
	if err := p.Close(); err != nil || len(w.went) != 0 {
		t.Errorf("Close of a change under way: %v, went %v", err, w.went)
	}
	w.run(func() bool { return len(w.went) > 0 })
	w.change(1, component.EnvChange{Envs: 2})
	refused("a trial while one is on", component.EnvChange{Envs: 1})
	w.change(3, component.EnvChange{At: component.AtStep})
	w.more(2)
	w.wantOpen(map[int]int{3: 2})
	w.balance()
}
