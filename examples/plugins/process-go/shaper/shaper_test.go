package shaper

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/internal/training"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func TestShaper_RewritesRewardsInPlace(t *testing.T) {
	table := map[string]any{"scale": 0.5, "shift": 0.25, "clip": 1.0}
	r := plugintest.NewRig(t, author.Kind(New)(), plugintest.RigOptions{Name: "shaper", Grants: map[string][]string{"on_trajectories": {"reward"}}},
		plugintest.DecodeTable(table))
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
	h := plugintest.Give(t, in, hostabi.Message{T: 7, Sender: 3}, a, func(block []byte) {
		copy(trajectory.Trajectory{Schema: schema, Mem: block}.Float32(trajectory.Reward), []float32{1, -10, 0, 3})
	})
	if err := r.Settle(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Handle != h || got[0].T != 7 || got[0].Sender != 3 || !slices.Equal(rewards, []float32{0.75, -1, 0.25, 1}) {
		t.Errorf("got %v with rewards %v", got, rewards)
	}
	if d := r.Host.Stats.Histogram("shaper/reward").Snapshot(); d.Count != 4 {
		t.Errorf("%d rewards observed, want 4", d.Count)
	}
}

func TestShaper_RefusesANegativeClip(t *testing.T) {
	err := author.Kind(New)().Configure(plugintest.DecodeTable(map[string]any{"clip": -1.0}))
	if err == nil || !strings.Contains(err.Error(), "`clip` is -1, want 0 (none) or more") {
		t.Errorf("Configure = %v", err)
	}
}

const shaped = `
rlhost = 1
[run]
name = "shaped"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.shaper]
%s
scale = %g
shift = 0.5
[[wire]]
signal = "rollout.trajectories"
slot = "shaper.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
write = ["reward"]
[[wire]]
signal = "shaper.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// It learns the same, bit for bit, built in and as a process.
func TestShaper_LearnsTheSameInBothRuntimes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shaper")
	testkit.Build(t, "..", program)
	builtIn := train(t, `kind = "reward_shaper"`, 0.1)
	if process := train(t, `plugin = "p"`, 0.1, "plugin.p.path="+program); process != builtIn {
		t.Errorf("as a process: parameters %.12s, built in %.12s", process, builtIn)
	}
	if other := train(t, `kind = "reward_shaper"`, 0.2); other == builtIn {
		t.Error("another scale gives the same parameters: nothing is shaped")
	}
}

// train returns the hash of the parameters that come out of a training with the shaper.
func train(t *testing.T, keys string, scale float64, sets ...string) string {
	t.Helper()
	result, _ := training.Must(t, fmt.Sprintf(shaped, keys, scale), training.Kinds{"reward_shaper": New}, sets...)
	return result.ParamsHash
}
