package wrap

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// driven makes steps of a world whose agents begin again, with wrappers around it.
func driven(t *testing.T, steps int, list []env.Wrapper, each func(step int, d *env.Driver)) {
	t.Helper()
	p, err := New(plugintest.NewLives(2, func(agent, _ int) int { return []int{3, 4}[agent] }), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 1, Autoreset: hostabi.SameStep}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	for step := range steps {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		each(step, d)
	}
}

// The discounted return of an agent begins again with its life: it is what it would be if the agent were alone.
func TestRewardNormalize_BeginsAnewWithEachLife(t *testing.T) {
	var alone []float32
	d := discounted{variance: 1, count: 1e-4}
	l := normalizeLayer{gamma: 0.5, epsilon: 1e-8}
	for step := range 12 {
		d.add(1, l.gamma)
		alone = append(alone, within(d.scaled(1, l.epsilon), 10))
		if step%3 == 2 {
			d.sum = 0
		}
	}
	var got []float32
	driven(t, 12, []env.Wrapper{{"reward_normalize": map[string]any{"gamma": 0.5}}}, func(_ int, d *env.Driver) {
		got = append(got, d.Result(trajectory.ShapedReward).Float32()[0])
	})
	if !slices.Equal(got, alone) {
		t.Errorf("normalised rewards %v, want %v", got, alone)
	}
}

// A time limit ends the lives that run, and the world's episode.
func TestTimeLimit_EndsTheLivesThatRun(t *testing.T) {
	var ends []byte
	driven(t, 12, []env.Wrapper{{"time_limit": int64(6)}}, func(_ int, d *env.Driver) {
		for agent := range 2 {
			ends = append(ends, d.Terminated()[agent]|d.Truncated()[agent]<<1)
		}
	})
	third := []byte{0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 2} // the first agent dies in steps 3 and 6, the other in 4 and is cut off in 6
	if !slices.Equal(ends, slices.Concat(third, third)) {
		t.Errorf("ends %v, want %v twice", ends, third)
	}
}
