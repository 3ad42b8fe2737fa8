package wrap_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// uneven is a script of episodes of 3 to 9 steps with rewards of both signs.
func uneven() plugintest.Script {
	return plugintest.Script{
		Length: func(env, episode int) int { return 3 + (env+2*episode)%7 },
		Ends: func(env, episode int) plugintest.End {
			return []plugintest.End{plugintest.Terminates, plugintest.Truncates}[(env+episode)%2]
		},
		Reward: func(at plugintest.At) float32 { return float32(at.Step) - 2.5 + float32(at.Action) },
	}
}

// lists are the wrappers, one by one and several.
func lists() map[string][]env.Wrapper {
	return map[string][]env.Wrapper{
		"time_limit":        {{"time_limit": 5}},
		"time_limit of 1":   {{"time_limit": 1}},
		"reward_scale":      {{"reward_scale": 0.5}},
		"reward_clip":       {{"reward_clip": 1}},
		"reward_clip signs": {{"reward_clip": "sign"}},
		"record_stats":      {{"record_stats": "frames"}},
		"reward_normalize":  {{"reward_normalize": map[string]any{"gamma": 0.9}}},
		"action_repeat":     {{"action_repeat": 3}},
		"sticky_action":     {{"sticky_action": 0.5}},
		"actions":           {{"time_limit": 5}, {"sticky_action": 0.4}, {"record_stats": "x"}, {"action_repeat": 2}, {"sticky_action": 0.3}, {"action_repeat": 2}, {"time_limit": 2}},
		"several":           {{"time_limit": 5}, {"reward_clip": "sign"}, {"reward_scale": -2.0}, {"time_limit": 4}, {"reward_clip": 1.5}},
	}
}

// made returns a scripted plugin with wrappers around its environments.
func made(t *testing.T, s plugintest.Script, list ...env.Wrapper) env.Plugin {
	t.Helper()
	p, err := wrap.New(plugintest.New(s), numbers(list), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// numbers makes int64 of int, as decoders do.
func numbers(list []env.Wrapper) []env.Wrapper {
	for _, w := range list {
		for key, value := range w {
			if i, ok := value.(int); ok {
				w[key] = int64(i)
			}
		}
	}
	return list
}

// Every wrapper keeps every promise of env.Env: exact snapshots and states, blocks that are switched, no allocations.
func TestWrapped_KeepsThePromisesOfEnvironments(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{0, hostabi.NextStep} {
		for name, list := range lists() {
			if mode != 0 {
				name += ", next step alone"
			}
			t.Run(name, func(t *testing.T) {
				s := uneven()
				s.Autoreset = mode
				plugintest.TestEnv(t, made(t, s, list...), plugintest.Options{Seed: 7})
			})
		}
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	for want, w := range map[string]env.Wrapper{
		"`wrap[1].time_limit` is 0, want 1 to":                           {"time_limit": 0},
		"`wrap[1].time_limit` must be an integer":                        {"time_limit": "x"},
		"`wrap[1].reward_scale` is 0, want 1e-12":                        {"reward_scale": 0.0},
		"`wrap[1].reward_clip` is -1, want a number above 0":             {"reward_clip": -1},
		"`wrap[1].reward_clip` is signs, want":                           {"reward_clip": "signs"},
		"`wrap[1].time_limt` is not a wrapper: did you mean `time_limit": {"time_limt": 5},
		"`wrap[1].resize` is [0 84], want height and width":              {"resize": []any{int64(0), int64(84)}},
		"`wrap[1].grayscale` does not suit scripted@1: none of its":      {"grayscale": true},
		"`wrap[1]` names 2 wrappers, want one":                           {"time_limit": 5, "reward_clip": 1},
		"`wrap[1]` names 0 wrappers":                                     {},
	} {
		_, err := wrap.New(plugintest.New(uneven()), numbers([]env.Wrapper{{"time_limit": 3}, w}), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", w, err, want)
		}
	}
}
