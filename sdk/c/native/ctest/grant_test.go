package ctest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// A column is written where the slot has the grant; elsewhere the component hears which key is missing.
func TestGrant_AColumnIsWrittenWhereAWireGrantsIt(t *testing.T) {
	program := spawn.Program{Name: "halve", Path: Build(t, Plugin, "../testdata/halve.c")}
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 2, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, grants := range []map[string][]string{{"on_trajectories": {"reward"}}, {"on_others": {"reward"}}, nil} {
		c, err := proxy.New(context.Background(), newRuntime(t), program, "halve")
		if err != nil {
			t.Fatal(err)
		}
		s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "halve[1]", Grants: grants})
		queue := bus.Options{Mode: bus.Queue, Depth: 4, Overflow: bus.Block}
		in := s.To("on_trajectories", false, queue)
		s.From("trajectories", true, queue)
		loan, err := s.Arena(1, schema.Bytes, schema).Loan()
		if err != nil {
			t.Fatal(err)
		}
		tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
		copy(tr.Float32(trajectory.Reward), []float32{1, -10, 0.5, 3})
		h, err := loan.Commit()
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Emit(hostabi.Message{Handle: h}); err != nil {
			t.Fatal(err)
		}
		want := []float32{0.5, -5, 0.25, 1.5}
		if grants["on_trajectories"] != nil {
			s.Next("trajectories")
			s.Done(h)
		} else {
			want = []float32{1, -10, 0.5, 3}
			err := s.Failure()
			if text := `E038 slot halve.on_trajectories: may not write reward: no wire grants it; ` +
				`add write = ["reward"] to each [[wire]] with slot = "halve.on_trajectories"`; err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("failed with %v, want %s", err, text)
			}
		}
		if got := tr.Float32(trajectory.Reward); !slices.Equal(got, want) {
			t.Errorf("with the grants %v: rewards %v, want %v", grants, got, want)
		}
		s.Done(h)
		s.Close()
	}
}
