package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func TestShaper_RewritesRewardsInPlace(t *testing.T) {
	r := plugintest.NewRig(t, newShaper(), plugintest.RigOptions{Name: "shaper", Grants: map[string][]string{"on_trajectories": {"reward"}}}, func(into any) error {
		c := into.(*struct {
			Scale float64 `toml:"scale"`
			Shift float64 `toml:"shift"`
			Clip  float64 `toml:"clip"`
		})
		c.Scale, c.Shift, c.Clip = 0.5, 0.25, 1
		return nil
	})
	in := r.To("on_trajectories")
	var got []hostabi.Message
	var rewards []float32
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 2, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	r.From("trajectories", func(m *hostabi.Message) {
		got = append(got, *m)
		tr, lease, err := trajectory.Lease(r.Host.Arenas, m.Handle)
		if err != nil {
			t.Fatal(err)
		}
		rewards = slices.Clone(tr.Float32(trajectory.Reward))
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
	a, err := r.Host.Arenas.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
	copy(tr.Float32(trajectory.Reward), []float32{1, -10, 0, 3})
	h, err := loan.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Emit(hostabi.Message{Handle: h, T: 7}); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(h); err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Handle != h || got[0].T != 7 || !slices.Equal(rewards, []float32{0.75, -1, 0.25, 1}) {
		t.Errorf("got %v with rewards %v", got, rewards)
	}
	if d := r.Host.Stats.Histogram("shaper/reward").Snapshot(); d.Count != 4 {
		t.Errorf("%d rewards observed, want 4", d.Count)
	}
}

func TestShaper_RefusesANegativeClip(t *testing.T) {
	c := newShaper().(*shaper)
	err := c.Configure(func(any) error { c.config.Clip = -1; return nil })
	if err == nil || !strings.Contains(err.Error(), "`clip` is -1, want 0 (none) or more") {
		t.Errorf("Configure = %v", err)
	}
}
