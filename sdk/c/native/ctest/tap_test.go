package ctest

import (
	"context"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// newTap returns the component of examples/plugins/process-c.
func newTap(t testing.TB) component.Component {
	t.Helper()
	program := spawn.Program{Name: "return_tap", Path: Build(t, Plugin, "../../../../examples/plugins/process-c/return_tap.c")}
	c, err := proxy.New(context.Background(), newRuntime(t), program, "return_tap")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExample_ReadsRewardsAndPassesBlocksOn(t *testing.T) {
	s := plugintest.NewStage(t, newTap(t), plugintest.StageOptions{Name: "tap", Table: map[string]any{"log_every": int64(2)}})
	queue := bus.Options{Mode: bus.Queue, Depth: 16, Overflow: bus.Block}
	in := s.To("on_trajectories", false, queue)
	s.From("trajectories", true, queue)
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 3, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Arena(2, schema.Bytes, schema)
	for range 2 {
		loan, err := a.Loan()
		if err != nil {
			t.Fatal(err)
		}
		tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
		copy(tr.Float32(trajectory.Reward), []float32{1, -10, 0.5, 3, 1000, 0.5})
		copy(tr.Bytes(trajectory.Valid), []byte{1, 1, 1, 1, 0, 1}) // 1000 belongs to a phantom step
		h, err := loan.Commit()
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Emit(hostabi.Message{Handle: h, T: 7, PolicyVersion: 3}); err != nil {
			t.Fatal(err)
		}
		s.Done(h)
		if m := s.Next("trajectories"); m.Handle != h || m.T != 7 || m.PolicyVersion != 3 {
			t.Errorf("passed on %+v, want the handle %v", m, h)
		}
		s.Done(h)
	}
	blocks, gauge := s.Host.Stats.Counter("return_tap/blocks"), s.Host.Stats.Gauge
	s.Until("metrics of two blocks", func() bool { return blocks.Value() == 2 })
	if got := [2]float64{gauge("return_tap/least_reward").Value(), gauge("return_tap/greatest_reward").Value()}; got != [2]float64{-10, 3} {
		t.Errorf("rewards from %g to %g, want -10 to 3", got[0], got[1])
	}
	if got := s.Host.Stats.Histogram("return_tap/mean_reward").Snapshot(); got.Count != 2 || got.Min != -1 || got.Max != -1 {
		t.Errorf("means %+v, want -1 twice", got)
	}
	s.Until("a line in the log", func() bool { return strings.Contains(s.Log(), "block 2: 5 env steps, reward mean -1, from -10 to 3") })
}

func TestExample_IsAskedToLogMore(t *testing.T) {
	s := plugintest.NewStage(t, newTap(t), plugintest.StageOptions{Name: "tap"})
	for _, c := range []struct{ args, want string }{
		{`{"blocks":5}`, "100"}, {`{"blocks":-1}`, "RangeError|-1 blocks are less than none|return_tap.c:84"}, {`{"blocks":0}`, "5"},
	} {
		if got := ask(t, s, "set_log_every", c.args, soon); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
}

func TestExample_ChecksItsConfiguration(t *testing.T) {
	err := newTap(t).Configure(plugintest.DecodeTable(map[string]any{"log_every": int64(-1), "lag": "x"}))
	if err == nil || !strings.Contains(err.Error(), "`log_every` is negative") || !strings.Contains(err.Error(), "`lag` is not a key") {
		t.Errorf("Configure = %v", err)
	}
}
