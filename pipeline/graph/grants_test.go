package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// A wire's grants are part of the file's meaning, and components that get them are replaced where they change.
func TestGrants_ArePartOfTheMeaning(t *testing.T) {
	a := graphtest.ReadArchive(t, "../testdata/errors/ok_plugin.txtar")
	parse := func(text string) *graph.Graph {
		g, problems := graphtest.Parse("pipeline.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
		if problems.Err() != nil {
			t.Fatal(problems)
		}
		return g
	}
	text := a.At("pipeline.toml").Data
	with, without := parse(text), parse(strings.Replace(text, "write = [\"reward\"]\n", "", 1))
	if got := with.Grants("shaper")["on_trajectories"]; !slices.Equal(got, []string{"reward"}) || len(with.Grants("batcher")) > 0 {
		t.Errorf("shaper may write %v, batcher %v", got, with.Grants("batcher"))
	}
	if again := parse(with.Expanded()); again.Hash() != with.Hash() || with.Hash() == without.Hash() {
		t.Errorf("the expanded form means something else, or the grant nothing:\n%s", with.Expanded())
	}
	for _, c := range []struct {
		from, to *graph.Graph
		want     string
	}{
		{without, with, `write of on_trajectories = ["reward"]`},
		{with, without, `write of on_trajectories ["reward"] removed`},
	} {
		if got := c.from.Reasons(c.to, "shaper"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("reasons %q, want %q", got, c.want)
		}
		if got := c.from.Reasons(c.to, "batcher"); len(got) > 0 {
			t.Errorf("batcher is made anew: %q", got)
		}
	}
}
