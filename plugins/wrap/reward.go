package wrap

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// shaper is a wrapper that writes trajectory.ShapedReward.
type shaper interface{ shapes() }

// rewards is shared by wrappers of rewards.
type rewards struct{}

func (rewards) shapes()                         {}
func (rewards) describe(*hostabi.EnvSpec) error { return nil }

// rewardScale multiplies rewards.
type rewardScale struct {
	rewards
	Scale float64 `toml:"reward_scale" doc:"Multiplies rewards." range:"1e-12 to 1e12, or the same below 0" default:""`
}

func (c *rewardScale) validate(bad func(key, reason, help string)) {
	if s := math.Abs(c.Scale); !(s >= 1e-12 && s <= 1e12) {
		bad("reward_scale", fmt.Sprintf("is %g, want 1e-12 to 1e12 or the same below 0", c.Scale), "")
	}
}

func (c *rewardScale) around(w *wrapped) layer {
	scale := float32(c.Scale)
	return shapedBy(w, func(r float32) float32 { return within(scale*r, math.MaxFloat32) })
}

// rewardClip cuts rewards off beyond a bound and its negative, or takes their sign.
type rewardClip struct {
	rewards
	Bound any `toml:"reward_clip" doc:"Clips rewards to this and its negative, or takes their sign." range:"above 0, up to 1e12, or \"sign\"" type:"number or text"`
}

// sign is the value of rewardClip.Bound for signs.
const sign = "sign"

func (c *rewardClip) validate(bad func(key, reason, help string)) {
	if b := c.bound(); c.Bound != sign && !(b > 0 && b <= 1e12) {
		bad("reward_clip", fmt.Sprintf("is %v, want a number above 0, 1e12 at most, or %q", c.Bound, sign), "1 keeps rewards within -1 and 1")
	}
}

// bound returns the bound as a number, 0 if it is none.
func (c *rewardClip) bound() float64 {
	switch b := c.Bound.(type) {
	case int64:
		return float64(b)
	case float64:
		return b
	}
	return 0
}

func (c *rewardClip) around(w *wrapped) layer {
	if c.Bound == sign {
		return shapedBy(w, signOf)
	}
	bound := float32(c.bound())
	return shapedBy(w, func(r float32) float32 { return within(r, bound) })
}

func within(r, bound float32) float32 { return max(-bound, min(bound, r)) }

func signOf(r float32) float32 {
	switch {
	case r > 0:
		return 1
	case r < 0:
		return -1
	}
	return 0
}

// shapeLayer writes shaped rewards, in blocks that have room for them: a function of the reward, or of an inner wrapper's shaped reward.
type shapeLayer struct {
	plain
	w     *wrapped
	tr    trajectory.Trajectory
	from  trajectory.Column
	shape func(float32) float32
}

func shapedBy(w *wrapped, shape func(float32) float32) *shapeLayer {
	l := &shapeLayer{w: w, from: trajectory.Reward, shape: shape}
	if env.Shapes(w.plugin.Plugin) {
		l.from = trajectory.ShapedReward
	}
	return l
}

func (l *shapeLayer) bind(tr trajectory.Trajectory) { l.tr = tr }

func (l *shapeLayer) after(t int) error {
	if !l.tr.Schema.Has(trajectory.ShapedReward) {
		return nil
	}
	if l.tr.Schema.Agents > 1 {
		trajectory.ShareOutcome(l.tr, t)
	}
	shaped, from := l.tr.Row(trajectory.ShapedReward, t).Float32(), l.tr.Row(l.from, t).Float32()
	for i, part := range l.w.part {
		if part == 0 {
			continue
		}
		for k, end := l.tr.Schema.RowsOf(i); k < end; k++ {
			shaped[k] = l.shape(from[k])
		}
	}
	return nil
}
