package wrap_test

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// driven returns a driver of environments of a plugin that have begun.
func driven(t *testing.T, p env.Plugin, envs int, mode hostabi.Autoreset) *env.Driver {
	t.Helper()
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: envs, Autoreset: mode}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	tr, _ := d.Acting()
	clear(tr.Bytes(trajectory.Action)) // tests that choose others write them
	seeds := make([]uint64, envs)
	for i := range seeds {
		seeds[i] = env.Seed(5, i)
	}
	if err := d.Reset(nil, seeds); err != nil {
		t.Fatal(err)
	}
	return d
}

// An episode has as many steps as the limit, then its last observation, and the next one begins: in the same step, or after
// a phantom step. A natural end counts as the environment says.
func TestTimeLimit_TruncatesAndBeginsTheNextEpisode(t *testing.T) {
	s := plugintest.Script{Length: func(env, episode int) int { return []int{2, 9, 3}[episode%3] }}
	const terminated, truncated = 1, 2
	for mode, want := range map[hostabi.Autoreset]struct {
		flags []int // of each step
		steps []int // that the observation after it shows
	}{
		hostabi.SameStep: {[]int{0, terminated, 0, 0, truncated, 0, 0, terminated, 0}, []int{1, 0, 1, 2, 0, 1, 2, 0, 1}},
		hostabi.NextStep: {[]int{0, terminated, 0, 0, 0, truncated, 0, 0, 0, terminated}, []int{1, 2, 0, 1, 2, 3, 0, 1, 2, 3}},
	} {
		s.Autoreset = mode
		d := driven(t, made(t, s, env.Wrapper{"time_limit": 3}), 2, mode)
		var flags, steps []int
		for range want.flags {
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
			flag := int(d.Terminated()[1]) | 2*int(d.Truncated()[1])
			flags = append(flags, flag)
			steps = append(steps, int(d.Obs().Float32()[plugintest.ObsElems+plugintest.ObsStep]))
			if flag == truncated && mode == hostabi.SameStep {
				if got := d.FinalObs().Float32()[plugintest.ObsElems+plugintest.ObsStep]; got != 3 {
					t.Errorf("the last observation of a truncated episode is of step %v, want 3", got)
				}
			}
			if between := mode == hostabi.NextStep && steps[len(steps)-1] == 0; between != (d.Reward()[1] == 0) {
				t.Errorf("%v: a reward of %v after steps %v", mode, d.Reward()[1], steps)
			}
		}
		if !slices.Equal(flags, want.flags) || !slices.Equal(steps, want.steps) {
			t.Errorf("%v: flags %v behind steps %v, want %v and %v", mode, flags, steps, want.flags, want.steps)
		}
	}
}

// An environment's figures at the end of an episode are absent where the limit has ended it, whatever is in its memory.
func TestTimeLimit_LeavesTheEndsFiguresAbsent(t *testing.T) {
	s := plugintest.Script{Length: func(env, _ int) int { return 2 + 2*env }, Infos: []hostabi.Tensor{{Path: "won", Flags: hostabi.TensorEpisode}},
		Tell: func(_ plugintest.At, figures []float32) { figures[0] = 7 }, Autoreset: hostabi.SameStep}
	d := driven(t, made(t, s, env.Wrapper{"time_limit": 3}), 2, hostabi.SameStep)
	for step := range 3 {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		told := d.Result(trajectory.Info).Float32()
		if step == 1 && told[0] != 7 || step == 2 && !trajectory.IsAbsent(told[1]) {
			t.Errorf("step %d tells %v", step, told)
		}
	}
}

// The limit is in the description, where evaluations and warnings look for one.
func TestTimeLimit_IsDescribed(t *testing.T) {
	for _, c := range [][3]int{{0, 5, 5}, {9, 5, 5}, {4, 5, 4}} {
		s := plugintest.Script{EpisodeLimit: c[0]}
		if got := made(t, s, env.Wrapper{"time_limit": c[1]}).Spec().EpisodeLimit; got != c[2] {
			t.Errorf("a limit of %d around one of %d is %d, want %d", c[1], c[0], got, c[2])
		}
	}
}
