package graph

import (
	"slices"
	"testing"
)

func TestLikelyUse_KnowsIdsOfGymnasiumAndNamesWithoutVersion(t *testing.T) {
	builtins := []string{"cartpole-positions@1", "cartpole@1", "minatar-breakout@1"}
	for use, want := range map[string][]string{
		"cartpole@1":            {"cartpole@1"},
		"cartpole":              {"cartpole@1"},
		"CartPole-v1":           {"gymnasium:CartPole-v1", "cartpole@1"},
		"cartpole@2":            {"cartpole@1"},
		"ALE/Pong-v5":           {"gymnasium:ALE/Pong-v5"},
		"MinAtar/Breakout-v1":   {"gymnasium:MinAtar/Breakout-v1", "minatar-breakout@1"},
		"gymnasium:CartPole-v1": {"gymnasium:CartPole-v1"},
		"cartpole/3":            nil,
		"./cartpole":            nil,
		"cartpole.wasm":         nil,
		"walk":                  nil,
	} {
		if got := LikelyUse(use, builtins); !slices.Equal(got, want) {
			t.Errorf("LikelyUse(%q) = %q, want %q", use, got, want)
		}
	}
}
