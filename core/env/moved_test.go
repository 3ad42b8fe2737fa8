package env

import "testing"

func TestMovedWrappers(t *testing.T) {
	for want, c := range map[string]struct {
		limit   int
		rewards *RolloutRewards
	}{
		"":                        {0, &RolloutRewards{Scale: 1}},
		"[{ time_limit = 500 }]":  {500, nil},
		"[{ reward_clip = 0.5 }]": {0, &RolloutRewards{Clip: 0.5}},
		`[{ time_limit = 7 }, { reward_clip = "sign" }, { reward_scale = -0.25 }, { reward_clip = 8 }]`: {7, &RolloutRewards{-0.25, 8, true}},
	} {
		if got := MovedWrappers(c.limit, c.rewards); got != want {
			t.Errorf("%d and %+v become %s, want %s", c.limit, c.rewards, got, want)
		}
	}
}
