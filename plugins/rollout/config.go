package rollout

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/component"
)

// config is the component's table.
type config struct {
	Env          string `toml:"env"`           // name of an [env] table
	Envs         int    `toml:"envs"`          // environments of one instance
	Splits       int    `toml:"splits"`        // parts they are stepped in
	Horizon      int    `toml:"horizon"`       // steps of a trajectory
	Blocks       int    `toml:"blocks"`        // trajectory blocks per split; synchronous mode uses 1
	MaxRestarts  int    `toml:"max_restarts"`  // faults of one instance before the run fails
	EpisodeLimit int    `toml:"episode_limit"` // truncates episodes after that many env steps; 0 = never
	Layout       string `toml:"layout"`        // of observations: auto, aos, soa

	Reward rewards `toml:"reward"`

	ResetParams bool `toml:"reset_params"` // another component writes those of the episodes to come

	Policies  map[string]string  `toml:"policies"`  // by pattern of agents; empty: one policy acts in all rows
	Opponents map[string]float64 `toml:"opponents"` // shares of episodes by policy
}

func defaults() config {
	return config{Envs: 32, Splits: 2, Horizon: 64, Blocks: 2, MaxRestarts: 5, Layout: "auto", Reward: asTheyAre}
}

// rewards says what is learned from the rewards of environments: clamp(Scale·r, ±Clip), where r is the reward or, with
// Sign, -1, 0 or 1.
type rewards struct {
	Scale float64 `toml:"scale"`
	Clip  float64 `toml:"clip"` // 0 = off
	Sign  bool    `toml:"sign"`
}

// asTheyAre learns from rewards as they are.
var asTheyAre = rewards{Scale: 1}

// of writes what is learned from rewards.
func (w *rewards) of(dst, raw []float32) {
	scale, clip := float32(w.Scale), float32(w.Clip)
	if clip == 0 {
		clip = math.MaxFloat32
	}
	for i, r := range raw {
		if w.Sign {
			r = sign(r)
		}
		dst[i] = max(-clip, min(clip, scale*r))
	}
}

func sign(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func (w *rewards) validate(bad func(key, reason, help string)) {
	if s := math.Abs(w.Scale); !(s >= 1e-12 && s <= 1e12) {
		bad("reward.scale", fmt.Sprintf("is %g, want 1e-12 to 1e12 or the same below 0", w.Scale), "")
	}
	if !(w.Clip >= 0 && w.Clip <= 1e12) {
		bad("reward.clip", fmt.Sprintf("is %g, want 0 (off) to 1e12", w.Clip), "")
	}
}

// maxEnvs bounds the environments of one instance, so that a slip of the finger does not reserve all memory.
const maxEnvs = 1 << 16

func (c *config) validate() error {
	var errs []error
	bad := func(key, reason, help string) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: reason, Help: help})
	}
	if c.Env == "" {
		bad("env", "is missing", "name one of the [env] tables")
	}
	switch {
	case c.Envs < 1 || c.Envs > maxEnvs:
		bad("envs", fmt.Sprintf("is %d, want 1 to %d", c.Envs, maxEnvs), "")
	case c.Splits < 1:
		bad("splits", fmt.Sprintf("is %d, want 1 or more", c.Splits), "2 overlaps stepping and inference")
	case c.Envs%c.Splits != 0:
		lower := c.Envs / c.Splits * c.Splits
		bad("envs", fmt.Sprintf("= %d is not divisible by splits = %d", c.Envs, c.Splits),
			fmt.Sprintf("use %d or %d, or set splits = 1 to turn double-buffering off", max(lower, c.Splits), lower+c.Splits))
	}
	if c.Horizon < 1 || c.Horizon > 1<<16 {
		bad("horizon", fmt.Sprintf("is %d, want 1 to %d", c.Horizon, 1<<16), "")
	}
	if c.Blocks < 1 || c.Blocks > 64 {
		bad("blocks", fmt.Sprintf("is %d, want 1 to 64", c.Blocks), "2 lets a split go on while the learner reads")
	}
	if c.MaxRestarts < 0 {
		bad("max_restarts", fmt.Sprintf("is %d, want 0 or more", c.MaxRestarts), "")
	}
	if c.EpisodeLimit < 0 {
		bad("episode_limit", fmt.Sprintf("is %d, want 0 (never) or more", c.EpisodeLimit), "")
	}
	c.Reward.validate(bad)
	c.validatePolicies(bad)
	if c.Layout != "auto" && c.Layout != "aos" && c.Layout != "soa" {
		bad("layout", fmt.Sprintf("is %q, want auto, aos or soa", c.Layout), "")
	}
	return errors.Join(errs...)
}
