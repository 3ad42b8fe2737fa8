package overrides_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/overrides"
)

func parse(t *testing.T, sets ...string) *graph.Graph {
	t.Helper()
	src, err := os.ReadFile("../../pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graphtest.Parse("pipeline.toml", src, graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets})
	if problems.Err() != nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}

// The overrides that Back returns undo changes and additions.
func TestBack_RestoresAChangedTable(t *testing.T) {
	before := parse(t)
	env := before.Envs[0].Name
	changed := []string{"env." + env + ".workers=2", "env." + env + ".runtime=process", "env." + env + ".args={ max_steps = 200 }"}
	if now := parse(t, changed...); now.Expanded() == before.Expanded() {
		t.Fatal("nothing has changed")
	}
	back := overrides.Back(before, "env", env)
	if again := parse(t, append(changed, back...)...); again.Expanded() != before.Expanded() {
		t.Errorf("with %q it is\n%s\nwant\n%s", back, again.Expanded(), before.Expanded())
	}
}

func TestBackComponent_HasItsPolicy(t *testing.T) {
	before := parse(t, "policy.main.net={ hidden = [8] }")
	back := overrides.BackComponent(before, "learner")
	if !slices.ContainsFunc(back, func(set string) bool {
		return strings.HasPrefix(set, "policy.main.net.hidden = [8]") || strings.HasPrefix(set, "policy.main.net = ")
	}) {
		t.Errorf("%q has nothing of the policy", back)
	}
}

// Absence is named only where the graph has the key.
func TestNeeded_LeavesOutAbsenceThatIsThere(t *testing.T) {
	before := parse(t)
	env := before.Envs[0].Name
	back, absent := overrides.Back(before, "env", env), "env."+env+".args = {}"
	if !slices.Contains(back, absent) {
		t.Fatalf("%q lacks %q", back, absent)
	}
	if kept := overrides.Needed(before, back); slices.Contains(kept, absent) {
		t.Errorf("%q keeps what the graph does not have", kept)
	}
	with := parse(t, "env."+env+".args={ max_steps = 200 }")
	if kept := overrides.Needed(with, back); !slices.Contains(kept, absent) {
		t.Errorf("%q leaves out what the graph has", kept)
	}
}

// Modules that are stored by their hash are named where they lie now, alone and in lists of wrappers.
func TestMoved_NamesStoredModulesWhereTheyLie(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	sets := []string{
		`env.cartpole.use = "/old/plugins/` + hash + `.wasm"`, `env.cartpole.wrap = [{ time_limit = 5 }, { args = { least = 2 }, use = "/old/` + hash + `.wasm" }]`,
		`env.cartpole.use = "/old/plugins/` + strings.Repeat("cd", 32) + `.wasm"`, `env.cartpole.use = "cartpole@1"`,
	}
	want := slices.Clone(sets)
	want[0], want[1] = `env.cartpole.use = "/new.wasm"`, `env.cartpole.wrap = [{ time_limit = 5 }, { args = { least = 2 }, use = "/new.wasm" }]`
	got := overrides.Moved(sets, func(h string, _ bool) (string, error) {
		if h != hash {
			return "", os.ErrNotExist
		}
		return "/new.wasm", nil
	})
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := overrides.Replaced(sets, "env.cartpole.use", `"a"`); len(got) != 2 || got[1] != `env.cartpole.use = "a"` {
		t.Errorf("replaced: %q", got)
	}
}
