package session

import (
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A synchronous run can have another number of rollouts: its datasets become as large as their input.
func TestScale_ASynchronousRunsDatasetsFollow(t *testing.T) {
	r := begin(t, "train.mode=sync", "component.batcher.dataset_rows=512")
	r.learns()
	for _, count := range []int{2, 1} {
		r.mustDo(control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": count}}, nil)
		g := r.pipeline.Graph()
		rollout := g.Component("rollout")
		if got, want := g.Component("batcher").Flow.DatasetRows, count*rollout.Flow.Splits*rollout.Flow.BlockRows; got != want || rollout.Count != count {
			t.Fatalf("with %d rollouts datasets have %d rows, want %d", rollout.Count, got, want)
		}
		r.learns()
	}
}
