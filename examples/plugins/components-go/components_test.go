package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/component/author"
	"github.com/rlhost/rlhost/examples/plugins/chooser-go/chooser"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/sdk/component"
)

// trainings are short synchronous ones with a component of each kind, whose keys stand where %s is.
var trainings = []struct {
	kind     string
	make     func() component.Component
	pipeline string
	another  string // a set with which something else is learned
	// racy: in a process the component's releases of blocks arrive whenever they do, and rollouts go on by them.
	racy bool
}{
	{"chooser", chooser.New, chosen, "component.chooser.keep=2", true},
}

const chosen = `
rlhost = 1
[run]
name = "chosen"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.rollout]
envs = 9
splits = 3
[component.batcher]
dataset_rows = 384
[component.chooser]
%s
of = 3
keep = 1
[[wire]]
signal = "rollout.trajectories"
slot = "chooser.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "chooser.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// A training learns the same, bit for bit, with a component built in, as a process, and as a module in each language.
func TestComponents_LearnTheSameInAllRuntimes(t *testing.T) {
	program := filepath.Join(t.TempDir(), "components")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, x := range trainings {
		t.Run(x.kind, func(t *testing.T) {
			train := func(keys string, sets ...string) *session.Result {
				t.Helper()
				parts, engines := builtin.New(builtin.Options{})
				defer engines.Close()
				parts.Kinds[x.kind] = author.Kind(x.make)
				g, problems := graph.Parse("run.toml", fmt.Appendf(nil, x.pipeline, keys), graph.ParseOptions{Parts: parts, Sets: append(sets, "run.dir="+t.TempDir())})
				if g == nil {
					t.Fatal(problems)
				}
				result, err := session.Train(t.Context(), session.Options{Parts: parts, Graph: g})
				if err != nil {
					t.Fatal(err)
				}
				return result
			}
			builtIn := fmt.Sprintf("kind = %q", x.kind)
			want := train(builtIn)
			if other := train(builtIn, x.another); other.ParamsHash == want.ParamsHash {
				t.Errorf("with %s the parameters are the same: the component does nothing", x.another)
			}
			if got := train(fmt.Sprintf("plugin = \"p\"\nkind = %q", x.kind), "plugin.p.path="+program); got.ParamsHash != want.ParamsHash && !x.racy || got.ParamsHash == "" {
				t.Errorf("as a process: parameters %.12s, built in %.12s", got.ParamsHash, want.ParamsHash)
			}
			for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
				if got := train(fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)); got.ParamsHash != want.ParamsHash {
					t.Errorf("%s: parameters %.12s, built in %.12s", name, got.ParamsHash, want.ParamsHash)
				}
			}
		})
	}
}
