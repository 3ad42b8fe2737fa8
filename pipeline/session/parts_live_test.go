package session

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// Batchers of datasets of other sizes replace each other while parts of blocks wait in them: no row is lost, and none counts twice.
func TestParts_ASuccessorGetsTheRestOfABlock(t *testing.T) {
	sets := func(rows int) []string {
		return []string{"train.mode=async", "component.rollout.blocks=5", "component.batcher.max_policy_lag=0", fmt.Sprintf("component.batcher.dataset_rows=%d", rows)}
	}
	r := begin(t, sets(832)...) // 13 environments of blocks of 8
	path, err := filepath.Abs("pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	block, before, rests, rows := r.pipeline.Graph().Component("rollout").Flow.BlockRows, uint64(0), 0, 832
	for _, next := range []int{448, 1024, 832, 512} {
		r.learns()
		r.pauses()
		s := r.pipeline.Steps()
		if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Dropped > 0 || (s.Trained-before)%uint64(rows) != 0 {
			t.Errorf("datasets of %d rows, %d trained before: %+v", rows, before, s)
		}
		if s.UnderWay%uint64(block) != 0 {
			rests++
		}
		before, rows = s.Trained, next
		r.mustDo(control.VerbReload, control.ReloadRequest{File: path, Source: file, Sets: sets(next)}, nil)
		r.mustDo(control.VerbUnpause, control.GroupRequest{}, nil)
	}
	r.learns()
	if rests < 2 {
		t.Errorf("%d times a part of a block was waiting: the test shows little", rests)
	}
}
