package graph_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// In a synchronous run a dataset has all trajectories that arrive, unless the file says something else.
func TestFlow_ASynchronousDatasetHasTheRowsThatComeToIt(t *testing.T) {
	parse := func(text string, sets ...string) *graph.Graph {
		t.Helper()
		const head = "rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"cartpole@1\"\n[train]\npreset = \"general\"\n"
		g, problems := graphtest.Parse("x.toml", []byte(head+text), graph.ParseOptions{Sets: sets, Parts: graphtest.Standard()})
		if g == nil {
			t.Fatal(problems)
		}
		return g
	}
	for text, want := range map[string]int{
		"":                                 2048,
		"[component.rollout]\ncount = 2":   4096,
		"[component.rollout]\nhorizon = 6": 192,
		"[component.rollout]\nenvs = 256":  16384,
		"[component.rollout]\nsplits = 4":  2048,
		"[policy.main]\nenv = \"e\"\n[policy.rival]\nenv = \"e\"\n[component.rollout]\ncount = 3": 6144,
	} {
		g := parse(text)
		for i := range g.Components {
			if x := &g.Components[i]; x.Kind == "batcher" && x.Flow.DatasetRows != want {
				t.Errorf("%q: %s has datasets of %d rows, want %d", text, x.Name, x.Flow.DatasetRows, want)
			}
		}
		if again, problems := graphtest.Parse("y.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: graphtest.Standard()}); again == nil || again.Hash() != g.Hash() {
			t.Errorf("%q: written out it is another graph: %v", text, problems)
		}
	}
	// A run's expanded file follows its overrides.
	g := parse("[component.batcher]\ndataset_rows = 2048")
	more, problems := graphtest.With(g, []string{"component.rollout.count=2"}, graphtest.Standard())
	if more == nil || more.Component("batcher").Flow.DatasetRows != 4096 {
		t.Fatalf("with two rollouts: %v", problems)
	}
	less, problems := graphtest.With(more, []string{"component.rollout.count=1"}, graphtest.Standard())
	if less == nil || less.Hash() != g.Hash() {
		t.Errorf("with one rollout again it is another graph, or none: %v", problems)
	}
	if _, problems := graphtest.With(g, []string{"component.rollout.count=2", "component.batcher.dataset_rows=2048"}, graphtest.Standard()); !hasCode(problems, "E060") {
		t.Errorf("an override that says how many rows is not taken at its word: %v", problems)
	}
	// A file's word is not changed.
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"cartpole@1\"\n[train]\npreset = \"general\"\n[component.batcher]\ndataset_rows = 4096\n"
	if _, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()}); !hasCode(problems, "E060") {
		t.Errorf("dataset_rows = 4096 of 2048 rows: %v, want E060", problems)
	}
}

func hasCode(problems graph.Problems, code string) bool {
	return slices.ContainsFunc(problems, func(p graph.Problem) bool { return p.Code == code })
}

// After following the advice of E060 or E090 there is neither.
func TestFlow_AdviceAboutDatasetsIsRight(t *testing.T) {
	const seed = 60
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	advice := regexp.MustCompile(`use dataset_rows = (\d+)`)
	advised := 0
	for range 150 {
		mode := []string{"sync", "async"}[r.IntN(2)]
		text := fmt.Sprintf("rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"cartpole@1\"\n[train]\npreset = \"fast\"\nmode = %q\n[component.rollout]\ncount = %d\nhorizon = %d\nblocks = %d\n"+
			"[component.batcher]\ncount = %d\ndataset_rows = ", mode, 1+r.IntN(3), 1+r.IntN(70), 1+r.IntN(3), 1+r.IntN(3))
		rows := fmt.Sprint(1 + r.IntN(9000))
		_, problems := graphtest.Parse("x.toml", []byte(text+rows), graph.ParseOptions{Parts: graphtest.Standard()})
		for _, p := range problems {
			m := advice.FindStringSubmatch(p.Help)
			if p.Code != "E060" && p.Code != "E090" || m == nil {
				continue
			}
			advised++
			if _, problems := graphtest.Parse("x.toml", []byte(text+m[1]), graph.ParseOptions{Parts: graphtest.Standard()}); hasCode(problems, "E060") || hasCode(problems, "E090") {
				t.Fatalf("%s%s\n%v\nthe advice leads to\n%v", text, rows, p, problems)
			}
		}
	}
	if advised < 50 {
		t.Errorf("they advised %d times of 150, want more", advised)
	}
}
