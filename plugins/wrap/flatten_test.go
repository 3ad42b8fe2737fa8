package wrap_test

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// A picture becomes a vector of the same bytes.
func TestFlatten_TellsTheSameElementsAsAVector(t *testing.T) {
	load := guests(t)
	observed := func(list ...env.Wrapper) (shape []int, bytes []byte) {
		p, err := load(t, "minatar-breakout@1", list)
		if err != nil {
			t.Fatal(err)
		}
		d := driven(t, p, 3, hostabi.SameStep)
		for range 5 {
			d.Draw(func(int) uint64 { return 0 })
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
		}
		l, _ := d.Schema().Layout(trajectory.Obs)
		return l.Shape, slices.Clone(d.Obs().Data)
	}
	pictureShape, picture := observed()
	shape, vector := observed(env.Wrapper{"flatten": true})
	if !slices.Equal(pictureShape, []int{10, 10, 4}) || !slices.Equal(shape, []int{400}) || !slices.Equal(picture, vector) {
		t.Errorf("pictures of %v become %v, the same bytes: %v", pictureShape, shape, slices.Equal(picture, vector))
	}
	p, err := load(t, "minatar-breakout@1", []env.Wrapper{{"time_limit": 9}, {"flatten": true}, {"action_repeat": 2}, {"sticky_action": 0.2}})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.TestEnv(t, p, plugintest.Options{Seed: 3, Steps: 100})
}
