package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
)

// config is the component's table.
type config struct {
	Env           string        `toml:"env" doc:"Environment that it steps." range:"an [env] table" default:"required"`
	Envs          int           `toml:"envs" doc:"Environments of one instance." range:"1 to 65,536, divisible by splits" unit:"environments"`
	Splits        int           `toml:"splits" doc:"Parts that are stepped in turn: one steps while the policy computes for another." range:"1 or more"`
	Horizon       int           `toml:"horizon" doc:"Steps of a trajectory." range:"1 to 65,536" unit:"env steps"`
	WholeEpisodes bool          `toml:"whole_episodes" doc:"Each environment plays one episode a block, from its reset to its end; the rest of its rows is padding that is not valid."`
	Blocks        int           `toml:"blocks" doc:"Trajectory blocks of each split; sync mode uses 1." range:"1 to 64" unit:"blocks"`
	MaxRestarts   int           `toml:"max_restarts" doc:"Faults of an instance within restart_window before the run fails." range:"0 or more"`
	RestartWindow time.Duration `toml:"restart_window" doc:"Period that faults are counted in; 0 = the whole run." range:"0 or more"`
	Layout        string        `toml:"layout" doc:"Memory layout of observations." range:"auto, aos, soa"`

	ResetParams   bool `toml:"reset_params" doc:"Another component writes the parameters of the next episodes."`
	ShapedRewards bool `toml:"shaped_rewards" doc:"Another component writes the rewards to learn from."`

	Policies  map[string]string  `toml:"policies" doc:"Policies by patterns of agents; empty = one policy acts for all."`
	Opponents map[string]float64 `toml:"opponents" doc:"Shares of the episodes that other policies play, by policy." range:"above 0, together at most 1"`

	// Keys whose place is the environment's table, so that their error can say what to write there.
	EpisodeLimit *int                `toml:"episode_limit" doc:"-"`
	Reward       *env.RolloutRewards `toml:"reward" doc:"-"`
}

func defaults() config {
	return config{Envs: 32, Splits: 2, Horizon: 64, Blocks: 2, MaxRestarts: 5, Layout: "auto"}
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
	errs = append(errs, c.moved()...)
	c.validatePolicies(bad)
	if c.Layout != "auto" && c.Layout != "aos" && c.Layout != "soa" {
		bad("layout", fmt.Sprintf("is %q, want auto, aos or soa", c.Layout), "")
	}
	return errors.Join(errs...)
}

// codeMoved is the code of keys that have become wrappers; rlhost explain has its page.
const codeMoved = "E057"

// moved refuses keys that have become wrappers, and drops keys that ask for nothing: earlier versions wrote them out.
func (c *config) moved() (errs []error) {
	refuse := func(key, wrappers string) {
		if wrappers != "" {
			errs = append(errs, &component.ConfigError{Code: codeMoved, Key: key, Reason: "is a wrapper of the environment now",
				Help: fmt.Sprintf("write wrap = %s in [env.%s]", wrappers, c.Env)})
		}
	}
	if c.EpisodeLimit != nil {
		refuse("episode_limit", env.MovedWrappers(*c.EpisodeLimit, nil))
	}
	if c.Reward != nil {
		refuse("reward", env.MovedWrappers(0, c.Reward))
	}
	c.EpisodeLimit, c.Reward = nil, nil
	return errs
}

func (c *config) validatePolicies(bad func(key, reason, help string)) {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(c.Opponents)) {
		share := c.Opponents[name]
		if sum += share; !(share > 0 && share <= 1) {
			bad("opponents."+name, fmt.Sprintf("is %g, want a share of the episodes above 0, up to 1", share), "leave out an opponent that plays none")
		}
	}
	if sum > 1+1e-9 { // shares such as 0.1 are no binary fractions
		bad("opponents", fmt.Sprintf("have %g of the episodes together, at most 1", sum), "")
	}
	if len(c.Opponents) > 0 && len(c.Policies) == 0 {
		bad("opponents", "play against nobody", `say which policy plays the agents, such as policies = { "*/*" = "main" }`)
	}
	for _, name := range (&component.Flow{Policies: c.Policies, Opponents: c.Opponents}).Acting() {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' }) {
			bad("policies", fmt.Sprintf("name %q, which is no name of a policy", name), "")
		}
	}
}
