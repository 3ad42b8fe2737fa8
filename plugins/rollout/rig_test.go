package rollout

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// rig is a rollout component whose requests are answered with the action (env + step) mod actions, by policy
// version 3, and whose blocks are kept until the test lets go of them.
type rig struct {
	*plugintest.Rig
	c        *Rollout
	plugin   *plugintest.Plugin
	answers  *bus.Signal
	silent   bool // requests are kept
	asked    []hostabi.Message
	blocks   []kept
	keep     bool                                                    // leases of blocks are kept
	judge    func(tr trajectory.Trajectory, q trajectory.ActRequest) // writes values
	episodes []trajectory.Episode
	versions []uint64 // of the episodes, that acted
}

// kept is a block that was handed over, and what stood in it then.
type kept struct {
	lease arena.Lease
	meta  trajectory.Meta
	obs   []float32
}

type rigOptions struct {
	script plugintest.Script
	plugin env.Plugin // instead of the script
	run    component.Run
	config func(*config)
	memory trajectory.Memory // of the policy
	limit  int               // of the episodes, by a wrapper; 0 = none
	others []string          // columns that others may write
}

// limited returns a plugin whose environments have a time limit around them, or the plugin itself.
func limited(t testing.TB, p env.Plugin, limit int) env.Plugin {
	t.Helper()
	if limit == 0 {
		return p
	}
	p, err := wrap.New(p, []env.Wrapper{{"time_limit": int64(limit)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small is the configuration of tests: 2 splits of 3 environments, blocks of 4 steps.
func small(c *config) {
	c.Env, c.Envs, c.Splits, c.Horizon = "scripted", 6, 2, 4
}

func newRig(t testing.TB, o rigOptions) *rig {
	t.Helper()
	r := &rig{c: New().(*Rollout), plugin: plugintest.New(o.script)}
	var p env.Plugin = r.plugin
	if o.plugin != nil {
		p = o.plugin
	}
	r.Rig = plugintest.NewRig(t, r.c, plugintest.RigOptions{Name: "rollout", Run: o.run, Written: o.others,
		Envs: map[string]env.Plugin{"scripted": limited(t, p, o.limit)}, Tables: component.Tables{
			Policies: map[string]component.PolicyTable{"main": {Env: "scripted", Memory: o.memory}, "past": {Of: "main"}}},
	}, func(into any) error {
		c := into.(*config)
		small(c)
		if o.config != nil {
			o.config(c)
		}
		return nil
	})
	r.answers = r.ToOnLoan("on_actions")
	r.From("obs_ready", r.onAsk)
	r.From("trajectories", func(m *hostabi.Message) { r.onBlock(t, m) })
	r.From("episodes", func(m *hostabi.Message) {
		r.episodes, r.versions = append(r.episodes, trajectory.EpisodeOf(m)), append(r.versions, m.PolicyVersion)
	})
	t.Cleanup(func() { // before the rig's own: kept blocks are no leak of the component's
		for len(r.blocks) > 0 {
			r.letGo(t)
		}
	})
	return r
}

func (r *rig) onAsk(m *hostabi.Message) {
	r.asked = append(r.asked, *m)
	if !r.silent {
		r.answer(r.asked[len(r.asked)-1])
	}
}

// answer writes the actions of a request and replies.
func (r *rig) answer(m hostabi.Message) {
	q := trajectory.ActRequestOf(&m)
	mem, err := r.c.arena.Loaned(q.Block)
	if err != nil {
		r.Host.Fail(err)
		return
	}
	tr := trajectory.Trajectory{Schema: r.c.schema, Mem: mem}
	n := tr.Schema.Rows()
	for env := range n {
		if !q.ValueOnly {
			tr.Int32(trajectory.Action)[q.T*n+env] = int32((uint64(env) + q.Step) % uint64(tr.Schema.Spec.Actions()))
		}
		tr.Float32(trajectory.Value)[q.T*n+env] = 0
	}
	if r.judge != nil {
		r.judge(tr, q)
	}
	m.PolicyVersion = 3
	if err := r.answers.Emit(hostabi.Message{T: m.T, Split: m.Split, Inline: m.Inline, Handle: m.Handle, PolicyVersion: 3}); err != nil {
		r.Host.Fail(err)
	}
}

func (r *rig) onBlock(t testing.TB, m *hostabi.Message) {
	lease, err := r.Host.Arenas.Lease(m.Handle)
	if err != nil {
		t.Error(err)
		return
	}
	tr := trajectory.Trajectory{Schema: r.c.schema, Mem: lease.Bytes()}
	r.blocks = append(r.blocks, kept{lease, *tr.Meta(), append([]float32(nil), tr.Float32(trajectory.Obs)...)})
	if !r.keep {
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	}
}

// eachBlock calls fn with each block that is handed over, which is valid during the call.
func (r *rig) eachBlock(t testing.TB, fn func(m *hostabi.Message, tr trajectory.Trajectory)) {
	r.From("trajectories", func(m *hostabi.Message) {
		tr, lease, err := trajectory.Lease(r.Host.Arenas, m.Handle)
		if err != nil {
			t.Error(err)
			return
		}
		defer lease.Release()
		fn(m, tr)
	})
}

// advantages returns the advantages in a block by γ = 0.9 and λ = 0.5.
func advantages(t *testing.T, tr trajectory.Trajectory) []float32 {
	t.Helper()
	c := ppo.Defaults()
	c.Gamma, c.GAELambda = 0.9, 0.5
	var targets ppo.Targets
	if err := targets.GAE(&policy.Dataset{Blocks: []trajectory.Trajectory{tr}}, &c); err != nil {
		t.Fatal(err)
	}
	return targets.Advantage
}

// wantAdvantages compares advantages by row.
func wantAdvantages(t *testing.T, got []float32, want ...float64) {
	t.Helper()
	for row := range want {
		if math.Abs(float64(got[row])-want[row]) > 1e-5 {
			t.Errorf("advantage of row %d is %v, want %v", row, got[row], want[row])
		}
	}
}

// letGo releases the block that has been kept for longest.
func (r *rig) letGo(t testing.TB) {
	t.Helper()
	b := r.blocks[0]
	r.blocks = r.blocks[1:]
	if b.lease.Bytes() != nil {
		if err := b.lease.Release(); err != nil {
			t.Error(err)
		}
	}
}

// until runs until so many blocks have been handed over in all.
func (r *rig) until(t testing.TB, blocks int) {
	t.Helper()
	r.MustRun(func() bool { return len(r.blocks) >= blocks })
}

func (r *rig) counter(name string) uint64 { return r.Host.Stats.Counter(name).Value() }
