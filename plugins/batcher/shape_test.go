package batcher

import (
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
)

// reshape changes the shape of later blocks, as when a rollout is replaced.
func (r *rig) reshape(t *testing.T, shape trajectory.Shape) {
	t.Helper()
	schema, err := trajectory.NewSchema(r.schema.Spec, shape)
	if err != nil {
		t.Fatal(err)
	}
	r.schema = schema
	r.arena, err = r.Host.Arenas.Add(arena.Config{Name: "others", Blocks: 64, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBatcher_MixesNoShapes(t *testing.T) {
	r := newRig(t, 3*blockRows, 4)
	r.give(t, 0, 0, 0)
	r.give(t, 0, 1, 0)
	r.reshape(t, trajectory.Shape{Steps: 2, Envs: 4})
	for k := range 4 {
		r.give(t, 0, 10+k, 0)
	}
	r.MustSettle()
	r.expect(t, "two shapes", []int{10, 11, 12})
	r.publish(t, 5) // the waiting blocks are too old now
	for k := range 5 {
		r.give(t, 0, 20+k, 5)
	}
	r.MustSettle()
	r.expect(t, "the first shape is no more", []int{10, 11, 12}, []int{20, 21, 22})
	if r.dropped() != 3*blockRows || r.gauge("batcher/waiting_rows") != 2*blockRows {
		t.Errorf("%d rows dropped, %v wait; want %d and %d", r.dropped(), r.gauge("batcher/waiting_rows"), 3*blockRows, 2*blockRows)
	}
}
