package session_test

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
)

// cutSets makes the lab's blocks of 10 environments times 32 steps, and datasets of 512 rows: 16 environments of 10.
var cutSets = []string{`train.mode="async"`, "component.rollout.envs=20", "component.rollout.horizon=32", "component.batcher.dataset_rows=512",
	"component.learner.minibatch=512", "component.learner.epochs=2", "run.stop.env_steps=16384"}

// Datasets of 512 rows from blocks of 320 have exactly these rows, each once; the learner reads them where they lie and copies none but
// for its gather, and env steps add up at every boundary.
func TestParts_DatasetsOfAnySize(t *testing.T) {
	for _, lag := range []int{8, 1} {
		t.Run(fmt.Sprintf("max_policy_lag %d", lag), func(t *testing.T) {
			seen := map[[2]uint64]int{} // columns that were learned from, by their block and environment
			cuts := 0
			x := experiment{script: uneven(), sets: append([]string{fmt.Sprintf("component.batcher.max_policy_lag=%d", lag)}, cutSets...),
				backend: func(b policy.Backend) policy.Backend {
					return &spy{Backend: b, updates: func(d *policy.Dataset) {
						columns := 0
						for i, b := range d.Blocks {
							lo, hi := d.Parts[i].Within(b.Schema)
							for e := lo; e < hi; e++ {
								seen[[2]uint64{uint64(b.Meta().FirstEnv) + uint64(e), b.Meta().Sequence}]++
							}
							if columns += hi - lo; hi-lo < b.Schema.Rows() {
								cuts++
							}
						}
						if rows := columns * d.Steps(); rows != 512 {
							t.Errorf("a dataset of %d rows, want 512", rows)
						}
					}}
				},
				boundary: func(p *pipeline.Pipeline, n int, _ func() (map[string]component.State, error)) error {
					s := p.Steps()
					if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Trained != uint64(512*n) {
						t.Errorf("boundary %d: %+v", n, s)
					}
					return nil
				}}
			o := x.must(t)
			for column, times := range seen {
				if times > 1 {
					t.Errorf("environment %d of block %d was learned from %d times", column[0], column[1], times)
				}
			}
			if datasets := len(o.hashes); datasets < 32 || cuts < datasets {
				t.Errorf("%d datasets with %d parts of blocks, want 32 and a part in each", datasets, cuts)
			}
			row := 4 * o.blocks[0].Schema.Spec.ObsElems()
			checkGathered(t, o, row)
			if dropped := o.stats["lag/dropped_rows"]; (dropped > 0) != (lag == 1) {
				t.Errorf("%v rows were too old", dropped)
			}
		})
	}
}
