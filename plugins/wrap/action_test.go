package wrap_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// With the probability the previous action is taken again, never in an episode's first step; the column keeps the policy's action.
// The draws depend on the environment's seed, not on its batch.
func TestStickyAction_TakesThePreviousOneAgain(t *testing.T) {
	const steps, length = 4000, 20
	run := func(first, envs int) (taken [][]int32) {
		taken = make([][]int32, first+envs)
		s := plugintest.Script{Actions: 1 << 15, Length: func(int, int) int { return length }, Autoreset: hostabi.SameStep}
		s.Reward = func(at plugintest.At) float32 { taken[at.Env] = append(taken[at.Env], at.Action); return 0 }
		d, err := env.NewDriver(made(t, s, env.Wrapper{"sticky_action": 0.25}), env.DriverOptions{Options: env.Options{Name: "test", Envs: envs, FirstEnv: first}})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		seeds := make([]uint64, envs)
		for i := range seeds {
			seeds[i] = env.Seed(11, first+i)
		}
		if err := d.Reset(nil, seeds); err != nil {
			t.Fatal(err)
		}
		for step := range steps {
			for i := range d.Action() {
				d.Action()[i] = int32(step)
			}
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
			tr, row := d.Stepped()
			for i, a := range tr.Row(trajectory.Action, row).Int32() {
				if a != int32(step) {
					t.Fatalf("step %d of env %d: the column has action %d", step, i, a)
				}
			}
		}
		return taken
	}
	both := run(0, 2)
	sticks := 0
	for step, a := range both[1] {
		switch {
		case int(a) == step:
		case step%length == 0 || a != both[1][step-1]:
			t.Fatalf("step %d takes action %d, the one before it %d", step, a, both[1][step-1])
		default:
			sticks++
		}
	}
	const possible = steps * (length - 1) / length
	if want, sigma := possible*0.25, math.Sqrt(possible*0.25*0.75); math.Abs(float64(sticks)-want) > 4*sigma {
		t.Errorf("%d of %d steps stick, want about %v", sticks, possible, want)
	}
	if alone := run(1, 1); !slices.Equal(alone[1], both[1]) || slices.Equal(both[0], both[1]) {
		t.Error("what sticks depends on the batch, or is the same in all environments")
	}
}

// Blocks with executed actions have the chosen and the taken ones, in their own units: within pictures, with several wrappers, for the
// last step of a repeat, and where nothing changes actions.
func TestS28_TheExecutedActionIsWhatTheEnvironmentTakes(t *testing.T) {
	sticky, clip, repeat := env.Wrapper{"sticky_action": 0.5}, env.Wrapper{"clip_action": true}, env.Wrapper{"action_repeat": 2}
	rescale, resize := env.Wrapper{"rescale_action": []any{-1.0, 1.0}}, env.Wrapper{"resize": []any{int64(1), int64(2)}}
	for name, list := range map[string][]env.Wrapper{
		"nothing": nil, "sticky": {sticky}, "sticky in pictures": {sticky, resize}, "sticky around pictures": {resize, sticky}, "rescaled": {rescale},
		"rescaled, sticky, clipped": {rescale, sticky, clip}, "sticky, repeated": {sticky, repeat}, "only rewards": {{"reward_scale": 2.0}},
	} {
		t.Run(name, func(t *testing.T) {
			read, envs := map[int][]float32{}, 3
			s := plugintest.Script{Spaces: []hostabi.Tensor{{DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{3}, Low: -2, High: 2}}, Picture: true, Length: func(env, _ int) int { return 7 + env }, Autoreset: hostabi.SameStep,
				Reward: func(at plugintest.At) float32 { read[at.Env] = slices.Clone(at.Actions); return 0 }}
			d, err := env.NewDriver(made(t, s, list...), env.DriverOptions{Options: env.Options{Name: "test", Envs: envs}, Memory: trajectory.Memory{Past: 1, Executed: true}})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := d.Reset(nil, []uint64{3, 4, 5}); err != nil {
				t.Fatal(err)
			}
			other := 0
			for step := range 100 {
				tr, row := d.Acting()
				chosen := tr.Row(trajectory.Action, row).Float32()
				for i := range chosen {
					chosen[i] = float32(step*7+i)/400 - 1
				}
				was := slices.Clone(chosen)
				before := tr.Row(trajectory.PastExecuted, 0)
				if row > 0 {
					before = tr.Row(trajectory.Executed, row-1)
				}
				if last := before.Float32(); step > 0 && !slices.Equal(last[:3], read[0]) {
					t.Fatalf("step %d: before it the executed action is %v, want %v", step, last[:3], read[0])
				}
				if _, err := d.Step(); err != nil {
					t.Fatal(err)
				}
				tr, row = d.Stepped()
				executed := tr.Row(trajectory.Executed, row).Float32()
				for i := range envs {
					if !slices.Equal(executed[3*i:][:3], read[i]) {
						t.Fatalf("step %d of env %d: it has taken %v, and the column has %v", step, i, read[i], executed[3*i:][:3])
					}
				}
				if !slices.Equal(tr.Row(trajectory.Action, row).Float32(), was) {
					t.Fatal("what was chosen has changed")
				}
				if !slices.Equal(executed, was) {
					other++
				}
			}
			if replaces := name != "nothing" && name != "only rewards"; replaces != (other > 0) {
				t.Errorf("another action than was chosen is taken in %d steps", other)
			}
		})
	}
}

// Environments read actions within their own bounds, element by element; the column keeps the policy's.
func TestActions_AreMappedForTheEnvironmentAlone(t *testing.T) {
	given := []float32{-1, 0.5, 3} // bounds of the elements: -2 to 2, 0 to 1, -1 to -0.5
	for _, c := range []struct {
		w         env.Wrapper
		want      []float32
		low, high float32
	}{
		{env.Wrapper{"rescale_action": []any{-1.0, 1.0}}, []float32{-2, 0.75, -0.5}, -1, 1},
		{env.Wrapper{"rescale_action": []any{int64(0), int64(2)}}, []float32{-2, 0.25, -0.5}, 0, 2},
		{env.Wrapper{"clip_action": true}, []float32{-1, 0.5, -0.5}, float32(math.Inf(-1)), float32(math.Inf(1))},
	} {
		var read []float32
		s := plugintest.Script{Spaces: plugintest.Spaces()["a Box"], Reward: func(at plugintest.At) float32 { read = slices.Clone(at.Actions); return 0 }}
		p := made(t, s, c.w)
		spec := p.Spec()
		box, _ := spec.Tensor(hostabi.RoleAction)
		if low, high := box.Bounds(1); low != c.low || high != c.high {
			t.Errorf("%v: the policy sees bounds %v to %v", c.w, low, high)
		}
		d := driven(t, p, 1, hostabi.SameStep)
		tr, row := d.Acting()
		copy(tr.Row(trajectory.Action, row).Float32(), given)
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		if got := tr.Row(trajectory.Action, row).Float32(); !slices.Equal(got, given) {
			t.Errorf("%v: the column has %v, want %v", c.w, got, given)
		}
		for i := range read {
			if math.Abs(float64(read[i]-c.want[i])) > 1e-6 {
				t.Errorf("%v: the environment reads %v, want %v", c.w, read, c.want)
			}
		}
	}
}

// Rewards of the repeated steps are added up until the episode ends, and environments that have ended wait for the others.
func TestActionRepeat_AddsUpToAnEpisodesEnd(t *testing.T) {
	s := plugintest.Script{Length: func(env, _ int) int { return 4 + env }, Reward: func(at plugintest.At) float32 { return float32(1 + at.Step) }, EpisodeLimit: 10}
	p := made(t, s, env.Wrapper{"action_repeat": 3})
	if got := p.Spec().EpisodeLimit; got != 4 {
		t.Errorf("10 steps are %d of three at most, want 4", got)
	}
	d := driven(t, p, 2, hostabi.SameStep)
	want := [][2]float32{{6, 6}, {4, 4 + 5}, {6, 6}, {4, 4 + 5}}
	for step, w := range want {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		if got := [2]float32(d.Reward()); got != w {
			t.Errorf("step %d has rewards %v, want %v", step, got, w)
		}
		if over := byte(step % 2); d.Terminated()[0] != over || d.Terminated()[1] != over {
			t.Errorf("step %d has ends %v", step, d.Terminated())
		}
		if made := d.Obs().Float32()[plugintest.ObsStep]; made != []float32{3, 0}[step%2] {
			t.Errorf("step %d leaves environment 0 at its step %v", step, made)
		}
	}
}

// Figures of episodes are measured at the wrapper's place: within a repeat they count its steps.
func TestRecordStats_ReportsEpisodesAtItsPlace(t *testing.T) {
	s := plugintest.Script{Length: func(int, int) int { return 5 }, Reward: func(plugintest.At) float32 { return 2 }, Autoreset: hostabi.SameStep}
	p := made(t, s, env.Wrapper{"record_stats": "frames"}, env.Wrapper{"action_repeat": 3}, env.Wrapper{"record_stats": "steps"})
	got := map[string]float64{}
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 2, Metric: func(m env.Metric) { got[m.Name] += m.Value * float64(m.Env) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		clear(d.Action())
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if got["frames_return"] != 10 || got["frames_length"] != 5 || got["steps_return"] != 10 || got["steps_length"] != 2 || len(got) != 4 {
		t.Errorf("reported %v", got)
	}
}

// An error names what an environment lacks before anything starts.
func TestNew_RefusesEnvironmentsThatDoNotSuit(t *testing.T) {
	load := guests(t)
	for _, c := range []struct {
		name, want string
		w          env.Wrapper
	}{
		{"cartpole@1", "`wrap[0].clip_action` does not suit cartpole@1: none of its actions is a Box", env.Wrapper{"clip_action": true}},
		{"cartpole@1", "`wrap[0].flatten` does not suit cartpole@1: its observations are vectors already", env.Wrapper{"flatten": true}},
		{"taxi@1", "its actions have a mask", env.Wrapper{"sticky_action": 0.5}},
		{"snake@1", "`wrap[0].action_repeat` does not suit snake@1: it has agents", env.Wrapper{"action_repeat": 2}},
	} {
		_, err := load(t, c.name, []env.Wrapper{c.w})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v around %s: %v, want %q", c.w, c.name, err, c.want)
		}
	}
	whole := plugintest.New(plugintest.Script{})
	if _, err := wrap.New(struct{ env.Plugin }{whole}, []env.Wrapper{{"action_repeat": int64(2)}}, nil); err == nil || !strings.Contains(err.Error(), "its runtime steps whole batches") {
		t.Errorf("a runtime that steps whole batches: %v", err)
	}
	native := wholePlugin{whole}
	for _, list := range [][]env.Wrapper{{{"action_repeat": int64(2)}}, {{"reward_scale": 2.0}, {"action_repeat": int64(2)}}} {
		var told *table.Error
		if _, err := wrap.New(native, list, nil); !errors.As(err, &told) || told.Help != native.StepsWhole() {
			t.Errorf("around a program's environments %v: %v, want the help %q", list, err, native.StepsWhole())
		}
	}
	open := plugintest.New(plugintest.Script{Spaces: plugintest.Spaces()["an open Box"]})
	if _, err := wrap.New(open, []env.Wrapper{{"rescale_action": []any{-1.0, 1.0}}}, nil); err == nil || !strings.Contains(err.Error(), "element 0 of its action has the bounds 0 and +Inf") {
		t.Errorf("a Box without a bound: %v", err)
	}
}

// wholePlugin steps whole batches alone, as programs do.
type wholePlugin struct{ env.Plugin }

func (wholePlugin) StepsWhole() string { return "do it elsewhere" }
