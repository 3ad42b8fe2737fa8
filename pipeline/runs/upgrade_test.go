package runs

import (
	"strings"
	"testing"
)

func TestUpgraded_KeysOfRolloutsBecomeWrappers(t *testing.T) {
	const before = `rlhost = 1

[env.walk]
use = "walk@1"
swap = "always"

[env.other]
use = "walk@1"

[component.rollout]
kind = "rollout"
env = "walk"
episode_limit = 7
layout = "auto"
reward = { scale = 0.5, clip = 8.0, sign = true }

[component.second]
kind = "rollout"
env = "other"
episode_limit = 0
reward = { scale = 1.0, clip = 0.0, sign = false }

[component.third]
kind = "own"
episode_limit = 3
`
	want := strings.NewReplacer(
		"[env.walk]\n", "[env.walk]\nwrap = [{ time_limit = 7 }, { reward_clip = \"sign\" }, { reward_scale = 0.5 }, { reward_clip = 8 }]\n",
		"episode_limit = 7\n", "", "reward = { scale = 0.5, clip = 8.0, sign = true }\n", "", "episode_limit = 0\n", "",
		"reward = { scale = 1.0, clip = 0.0, sign = false }\n", "").Replace(before)
	if got := upgraded(before); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := upgraded(want); got != want {
		t.Errorf("a pipeline of this version becomes\n%s", got)
	}
	shared := strings.Replace(before, `env = "other"`, `env = "walk"`, 1)
	if got := upgraded(shared); !strings.Contains(got, "episode_limit = 0") || strings.Count(got, "wrap = ") != 1 {
		t.Errorf("two rollouts that treat one environment differently become\n%s", got)
	}
}
