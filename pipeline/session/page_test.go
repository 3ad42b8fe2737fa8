package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// What a page cannot play is refused with its reason and a remedy.
func TestPage_NamesWhatItCannotPlay(t *testing.T) {
	t.Parallel()
	for want, table := range map[string]graph.EnvTable{
		`the native plugin "gymnasium"`: {Plugin: &graph.PluginTable{Name: "gymnasium"}},
		"through wrappers":              {Source: env.Source{Wrap: []env.Wrapper{{"time_limit": 5}}}},
		"the files of a folder":         {Source: env.Source{Data: "levels"}},
	} {
		table.Name = "it"
		err := BuildError(pageable(&table))
		if err == nil || !strings.Contains(err.Error(), `error[E101]: environment "it" cannot be played on a page: `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want E101 with %q", err, want)
		}
	}
	if err := pageable(&graph.EnvTable{}); err != nil {
		t.Errorf("a module is refused: %v", err)
	}
}

// The versions of a page are spread over the run's, the chosen one among them.
func TestPage_VersionsAreSpread(t *testing.T) {
	t.Parallel()
	var saved []runs.Saved
	for v := range uint64(9) {
		saved = append(saved, runs.Saved{PolicyVersion: 10 * (v + 1)})
	}
	for _, c := range []struct {
		chosen uint64
		n      int
		want   []uint64
	}{
		{90, 1, []uint64{90}}, {90, 2, []uint64{10, 90}}, {30, 3, []uint64{10, 30, 90}}, {90, 4, []uint64{10, 30, 60, 90}},
		{90, 9, []uint64{10, 20, 30, 40, 50, 60, 70, 80, 90}}, {95, 0, []uint64{95}}, {95, 3, []uint64{10, 50, 95}},
	} {
		if got := spread(saved, c.chosen, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d versions with %d are %v, want %v", c.n, c.chosen, got, c.want)
		}
	}
}
