package rollout

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// shaping is a rollout whose rewards the test shapes: it has been asked about blocks, and answers on demand.
type shaping struct {
	*rig
	answers *bus.Signal
	asked   []hostabi.Message
}

// rewarded gives another reward in each step.
var rewarded = plugintest.Script{Reward: func(at plugintest.At) float32 { return float32(at.Env) + float32(at.Step)/8 }}

var shapedColumn = []string{trajectory.ShapedReward.String()}

func newShaping(t *testing.T) *shaping {
	t.Helper()
	r := &shaping{rig: newRig(t, rigOptions{script: rewarded, others: shapedColumn, config: func(c *config) { c.ShapedRewards = true }})}
	r.answers = r.ToOnLoan("on_shaped")
	r.From(signalRewards, func(m *hostabi.Message) { r.asked = append(r.asked, *m) })
	return r
}

// borrowed returns the block that a request is about.
func (r *shaping) borrowed(t *testing.T, m *hostabi.Message) trajectory.Trajectory {
	t.Helper()
	tr, err := trajectory.Borrowed(r.Host.Arenas, m.Handle)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A block is asked about when its rewards are complete, and committed when they have been shaped; returns stay raw.
func TestShapedRewards_AreWrittenBeforeTheCommit(t *testing.T) {
	r := newShaping(t)
	r.keep = true
	r.MustRun(func() bool { return len(r.asked) == 2 }) // of each split
	if len(r.blocks) > 0 {
		t.Fatal("a block is committed whose rewards have not been shaped")
	}
	for i := range r.asked {
		m := r.asked[i]
		tr := r.borrowed(t, &m)
		raw, shaped := tr.Float32(trajectory.Reward), tr.Float32(trajectory.ShapedReward)
		if !slices.Equal(raw, shaped) || slices.Max(raw) == 0 {
			t.Errorf("rewards %v come as %v, want them as they are", raw, shaped)
		}
		if q := trajectory.BlockRequestOf(&m); q.Step != 0 || int(q.FirstEnv) != 3*i || int(q.Split) != i || m.Sender != r.Host.ID {
			t.Errorf("request %+v from %d", q, m.Sender)
		}
		for k := range shaped {
			shaped[k] = -raw[k]
		}
		if err := r.answers.Emit(m); err != nil {
			t.Fatal(err)
		}
	}
	r.until(t, 2)
	for _, b := range r.blocks {
		tr := trajectory.Trajectory{Schema: r.c.schema, Mem: b.lease.Bytes()}
		for k, raw := range tr.Float32(trajectory.Reward) {
			if got := tr.Float32(trajectory.ShapedReward)[k]; got != -raw {
				t.Errorf("reward %v has become %v", raw, got)
			}
		}
	}
	for _, e := range r.episodes {
		if e.Return < 0 {
			t.Errorf("the return of an episode is %v, want the raw one", e.Return)
		}
	}
}

// Where nobody is asked, learning uses the reward: a copy of it where a wire lets somebody write the column, and no column where
// none does.
func TestShapedRewards_AreTheRewardsWhereNobodyIsAsked(t *testing.T) {
	for name, written := range map[string][]string{"granted": shapedColumn, "not granted": nil} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{script: rewarded, others: written})
			blocks := 0
			r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
				blocks++
				if shaped := tr.Float32(trajectory.ShapedReward); (shaped != nil) != (written != nil) || shaped != nil && !slices.Equal(shaped, tr.Float32(trajectory.Reward)) {
					t.Errorf("rewards %v are learned from as %v", tr.Float32(trajectory.Reward), shaped)
				}
			})
			r.MustRun(func() bool { return blocks == 4 })
		})
	}
}

func TestShapedRewards_NeedAGrantAndSomebodyWhoAnswers(t *testing.T) {
	for want, change := range map[string]func(h *component.Host){
		"`shaped_rewards` asks for shaped rewards, and nobody may write them": func(h *component.Host) { h.Written = nil },
		"`shaped_rewards` asks for shaped rewards, and nobody answers":        func(h *component.Host) { h.Readers = func(string) int { return 0 } },
	} {
		c := New().(*Rollout)
		configure := func(into any) error {
			small(into.(*config))
			into.(*config).ShapedRewards = true
			return nil
		}
		err := plugintest.StartError(t, changedHost{c, change}, plugintest.RigOptions{Name: "rollout", Written: shapedColumn,
			Envs: map[string]env.Plugin{"scripted": plugintest.New(rewarded)}}, configure)
		var bad *component.ConfigError
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Error(), want) {
			t.Errorf("Start = %v, want %s", err, want)
		}
	}
}

// changedHost is a component that starts with another host.
type changedHost struct {
	*Rollout
	change func(*component.Host)
}

func (c changedHost) Start(h *component.Host) error {
	c.change(h)
	return c.Rollout.Start(h)
}

// An answer that nobody has asked for, or that is no number, ends the run, and the error names its place.
func TestShapedRewards_AreChecked(t *testing.T) {
	for want, spoil := range map[string]func(tr trajectory.Trajectory, m *hostabi.Message){
		"rollout: what answers rewards: shaped_reward of env step 2 of environment 1 is NaN": func(tr trajectory.Trajectory, _ *hostabi.Message) {
			tr.Float32(trajectory.ShapedReward)[2*3+1] = float32(math.NaN())
		},
		"which was not asked for": func(_ trajectory.Trajectory, m *hostabi.Message) { m.Split = 1 },
	} {
		r := newShaping(t)
		r.MustRun(func() bool { return len(r.asked) == 2 })
		m := r.asked[0]
		spoil(r.borrowed(t, &m), &m)
		if err := r.answers.Emit(m); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the run ends with %v, want %q", err, want)
		}
	}
}
