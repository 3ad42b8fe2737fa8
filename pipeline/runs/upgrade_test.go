package runs

import (
	"os"
	"path/filepath"
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

// A stored policy that reads the last reward gets it as before there was a choice; a policy that says how, and all others, stay as they are.
func TestUpgraded_TheLastRewardStaysRaw(t *testing.T) {
	policy := func(lines string) string {
		return "rlhost = 1\n\n[policy.main]\nenv = \"cart\"\n" + lines + "\n[component.inference]\nkind = \"inference\"\n"
	}
	const old = "inputs = [\"last_action\", \"last_reward\"]\n"
	raw := policy(old + "last_reward = \"raw\"\n")
	for text, want := range map[string]string{
		policy(old): raw, raw: raw, policy("inputs = [\"last_action\"]\n"): policy("inputs = [\"last_action\"]\n"),
		policy(old + "last_reward = \"running\"\n"): policy(old + "last_reward = \"running\"\n"),
	} {
		if got := upgraded(text); got != want {
			t.Errorf("%s\nbecomes\n%s", text, got)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, PipelineFile)
	if got := string(Upgraded(file, []byte(policy(old)))); got != policy(old) {
		t.Errorf("a file of the user's becomes\n%s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, infoFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := string(Upgraded(file, []byte(policy(old)))); got != raw {
		t.Errorf("the file of a run becomes\n%s", got)
	}
}
