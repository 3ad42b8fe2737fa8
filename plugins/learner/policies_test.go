package learner

import (
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
)

// The rows of other policies change no bit of the learning, and a dataset without a row of the learner's own policy changes nothing.
func TestPolicies_ALearnerLearnsFromItsOwnRows(t *testing.T) {
	mine := func(i int) bool { return i%3 == 0 }
	alone := newRig(t, rigOptions{})
	alone.teach(t, 0, 0, func(tr trajectory.Trajectory) {
		for i := range tr.Bytes(trajectory.Valid) {
			if !mine(i % tr.Schema.Rows()) {
				tr.Bytes(trajectory.Valid)[i] = 0
			}
		}
	})
	shared := newRig(t, rigOptions{policies: "main rival"})
	shared.teach(t, 0, 0, func(tr trajectory.Trajectory) {
		own := tr.Bytes(trajectory.Valid.At(1))
		for i := range own {
			own[i] = tr.Bytes(trajectory.Valid)[i]
			if mine(i % tr.Schema.Rows()) {
				continue
			}
			own[i] = 0
			tr.Float32(trajectory.Reward)[i], tr.Float32(trajectory.LogProb)[i] = float32(math.NaN()), float32(math.NaN())
			tr.Float32(trajectory.Value)[i], tr.Int32(trajectory.Action)[i] = float32(math.Inf(1)), 1<<30
		}
		clear(tr.Uint64(trajectory.PolicyVersion.At(1)))
	})
	if !slices.Equal(shared.weights[1].Params, alone.weights[1].Params) {
		t.Error("rows of another policy change what is learned")
	}
	if got, want := shared.reports[0]["global_step"], alone.reports[0]["global_step"]; got != want || want == 0 {
		t.Errorf("learned from %v rows, want %v", got, want)
	}
	shared.teach(t, 1, 1, func(tr trajectory.Trajectory) { clear(tr.Bytes(trajectory.Valid.At(1))) })
	if w := shared.weights; len(w) != 3 || !slices.Equal(w[2].Params, w[1].Params) || w[2].Version != 2 {
		t.Errorf("a dataset without own rows: %d versions, or other parameters", len(w))
	}
	for name, x := range shared.reports[1] {
		if math.IsNaN(x) {
			t.Errorf("a dataset without own rows: %s is NaN", name)
		}
	}
}
