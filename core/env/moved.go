package env

import (
	"fmt"
	"strings"
)

// RolloutRewards is the value of a rollout's key reward in earlier versions: clamp(Scale·r, ±Clip), with the sign of r in its
// place where Sign is set.
type RolloutRewards struct {
	Scale float64 `toml:"scale"`
	Clip  float64 `toml:"clip"` // 0 = off
	Sign  bool    `toml:"sign"`
}

// MovedWrappers returns the TOML text of a list of wrappers equivalent to a rollout's keys episode_limit and reward of
// earlier versions; 0 and nil mean missing keys. The text is empty where they did nothing.
func MovedWrappers(limit int, r *RolloutRewards) string {
	var list []string
	add := func(is bool, format string, value any) {
		if is {
			list = append(list, fmt.Sprintf("{ "+format+" }", value))
		}
	}
	add(limit > 0, "time_limit = %d", limit)
	if r != nil {
		add(r.Sign, "reward_clip = %q", "sign")
		add(r.Scale != 0 && r.Scale != 1, "reward_scale = %g", r.Scale)
		add(r.Clip != 0, "reward_clip = %g", r.Clip)
	}
	if len(list) == 0 {
		return ""
	}
	return "[" + strings.Join(list, ", ") + "]"
}
