package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rlhost/rlhost/core/env"
)

// Upgraded returns the text of a pipeline file that an earlier version may have stored in a run's folder, rewritten to keep its meaning.
// Keys that this version refuses are left for the user to change.
func Upgraded(file string, text []byte) []byte {
	if filepath.Base(file) != PipelineFile {
		return text
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), infoFile)); err != nil {
		return text
	}
	return []byte(withNames(withRawRewards(string(text))))
}

// upgraded returns a pipeline that an earlier version has stored as this one writes it. Stored pipelines have one key a line, with all
// defaults.
func upgraded(text string) string { return withNames(withRawRewards(withWrappers(text))) }

// withRawRewards makes the last reward enter policies as it did before there was a choice: their networks were trained on that.
func withRawRewards(text string) string {
	sections := strings.Split(text, "\n[")
	for i, s := range sections {
		if strings.HasPrefix(s, "policy.") && !strings.Contains(s, "\nlast_reward = ") {
			sections[i] = entersReward.ReplaceAllString(s, "$0\nlast_reward = \"raw\"")
		}
	}
	return strings.Join(sections, "\n[")
}

var entersReward = regexp.MustCompile(`(?m)^inputs = \[.*"last_reward".*\]$`)

// withWrappers turns the former keys episode_limit and reward of rollouts into wrappers of the environments.
func withWrappers(text string) string {
	wraps := map[string]string{} // by the header of an environment's table
	sections := strings.Split(text, "\n[")
	for i, s := range sections {
		if !strings.HasPrefix(s, "component.") || !strings.Contains(s, "\nkind = \"rollout\"\n") {
			continue
		}
		var o struct {
			env     string
			limit   int
			rewards *env.RolloutRewards
		}
		var kept []string
		for _, line := range strings.Split(s, "\n") {
			r := env.RolloutRewards{}
			_, notReward := fmt.Sscanf(line, "reward = { scale = %g, clip = %g, sign = %t }", &r.Scale, &r.Clip, &r.Sign)
			_, notLimit := fmt.Sscanf(line, "episode_limit = %d", &o.limit)
			_, _ = fmt.Sscanf(line, "env = %q", &o.env)
			if notReward == nil {
				o.rewards = &r
			}
			if notReward != nil && notLimit != nil {
				kept = append(kept, line)
			}
		}
		list, header := env.MovedWrappers(o.limit, o.rewards), "env."+o.env+"]\n"
		if other, shared := wraps[header]; shared && other != list {
			continue // the user has to change the keys
		}
		sections[i], wraps[header] = strings.Join(kept, "\n"), list
	}
	for i, s := range sections {
		for header, list := range wraps {
			if rest, ok := strings.CutPrefix(s, header); ok && list != "" {
				sections[i] = header + "wrap = " + list + "\n" + rest
			}
		}
	}
	return strings.Join(sections, "\n[")
}
