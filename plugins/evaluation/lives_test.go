package evaluation

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/plugins/plugintest"
)

// An episode in a world whose agents begin again is over when each has had its first life, and later lives do not count: else it would
// never end, or its return would depend on the others' lives.
func TestRun_AnEpisodeOfAgentsThatRespawnIsTheFirstLifeOfEach(t *testing.T) {
	for _, envs := range []int{1, 3} {
		p := plugintest.NewLives(3, func(agent, life int) int { return []int{2, 5, 3}[agent] + 10*life })
		r, err := Run(t.Context(), Options{Plugin: p, Player: Player{Actor: &dice{}}, Episodes: 6, Envs: envs, MaxSteps: 100})
		if err != nil {
			t.Fatal(err)
		}
		if want := (2. + 5 + 3) / 3; slices.ContainsFunc(r.Returns, func(x float64) bool { return x != want }) || r.Unfinished != 0 {
			t.Errorf("%d at a time: returns %v, want %g each; %d unfinished", envs, r.Returns, want, r.Unfinished)
		}
		if slices.ContainsFunc(r.Lengths, func(n int) bool { return n != 5 }) {
			t.Errorf("%d at a time: lengths %v, want 5 each", envs, r.Lengths)
		}
	}
}
