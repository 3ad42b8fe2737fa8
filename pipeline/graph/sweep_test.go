package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/search"
)

// searched is a pipeline that a table [sweep] is added to.
const searched = `rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 10_000 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
`

// readSweep reads the table of a file.
func readSweep(t *testing.T, src string, sets ...string) (*search.Config, error) {
	t.Helper()
	read := func(sets []string) (*graph.Graph, error) {
		return graph.Parse("p.toml", []byte(src), graph.ParseOptions{Sets: sets, Parts: graphtest.Standard()})
	}
	g, err := read(sets)
	if err != nil {
		return nil, err
	}
	return g.Sweep(sets, func(sets []string) error {
		_, err := read(sets)
		return err
	})
}

func TestSweep_IsReadStrictly(t *testing.T) {
	t.Parallel()
	c, err := readSweep(t, searched+"[sweep]\nmethod = \"halving\"\ntrials = 16\nrungs = { factor = 2 }\n[sweep.space]\n"+
		"\"component.learner.learning_rate\" = { from = 1e-5, to = 1e-2, scale = \"log\" }\n\"policy.main.net.hidden\" = { choices = [[64, 64], [32]] }\n", "sweep.seeds=3")
	if err != nil {
		t.Fatal(err)
	}
	if c.EnvSteps != 10_000 || c.Seeds != 3 || !slices.Equal(c.Stops(), []uint64{2500, 5000, 10_000}) || len(c.Space) != 2 || c.Confirm.Seeds != 10 {
		t.Errorf("%+v with stops %v", c, c.Stops())
	}
	if c, err := readSweep(t, searched); c != nil || err != nil {
		t.Errorf("without a table: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		"[sweep]\ntrails = 3":   "p.toml:11:1: error[E002]: unknown key `trails` in [sweep]",
		"[sweep]\ntrials = 3.5": "p.toml:11:10: error[E003]: `sweep.trials` must be an integer",
		"[sweep]\ntrials = 3\nrungs = { last = 3 }\n[sweep.space]\n\"run.seed\" = { from = 1, to = 2 }": "p.toml:12:11: error[E002]: unknown key `last` in [sweep.rungs]",
		"[sweep]\ntrials = 3": "p.toml:10:2: error[E004]: `sweep.space` is missing",
		"[sweep]\n[sweep.space]\n\"run.seed\" = { from = 1, to = 2, integer = true }":                                  "p.toml:10:2: error[E004]: `sweep.trials` is missing",
		"[sweep]\ntrials = 3\n[sweep.space]\n\"run.seed\" = { from = 2, to = 1 }":                                      "p.toml:13:14: error[E005]: `sweep.space.\"run.seed\"` is from 2 to 1",
		"[sweep]\ntrials = 3\n[sweep.space]\n\"component.learner.epoch\" = { choices = [1, 2] }":                       "p.toml:13:1: error[E002]: with component.learner.epoch=1: unknown key `epoch`",
		"[sweep]\ntrials = 3\n[sweep.space]\n\"component.learner.epochs\" = { choices = [1, \"x\"] }":                  "p.toml:13:1: error[E003]: with component.learner.epochs=\"x\": ",
		"[sweep]\ntrials = 3\n[sweep.space]\n\"component.lerner.epochs\" = { choices = [1, 2] }":                       "p.toml:13:1: error[E008]: with component.lerner.epochs=1: there is no component \"lerner\"",
		"[sweep]\ntrials = 3\n[sweep.space]\ncomponent.learner.epochs = { choices = [1, 2] }":                          "p.toml:13:1: error[E005]: a key of the space stands without quotes",
		"[sweep]\ntrials = 3\n[sweep.space]\n\"run.seed\" = { choices = [1, 2] }\n\"run.seed\" = { choices = [1, 2] }": "p.toml:14:1: error[E006]: `sweep.space.run.seed` is defined twice",
		"[sweep]\nmethod = \"hlaving\"\ntrials = 3\n[sweep.space]\n\"run.seed\" = { choices = [1, 2] }":                "p.toml:11:10: error[E010]: `sweep.method` is \"hlaving\"",
		"sweep = 3": "p.toml:10:1: error[E002]",
	} {
		_, err := readSweep(t, searched+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
	if _, err := readSweep(t, searched+"[sweep]\n[sweep.space]\n\"run.seed\" = { choices = [1, 2] }\n", "run.seed=3"); err == nil ||
		!strings.Contains(err.Error(), "p.toml:12:1: error[E008]: `run.seed` is searched, and --set gives it a value") {
		t.Errorf("searched and given: %v", err)
	}
}

func TestAssign_ChangesKeysWhereTheyAre(t *testing.T) {
	t.Parallel()
	src := "rlhost = 1\n[run]\nname = \"x\" # a comment\nstop = { env_steps = 10_000 }\n[env.cartpole]\nuse = \"cartpole@1\"\nwrap = [{ kind = \"time_limit\", steps = 5 }]\n\n[component.learner]\nepochs = 4\n"
	for set, want := range map[string]string{
		"component.learner.epochs=8":         "epochs = 8\n",
		"component.learner.clip=0.1":         "[component.learner]\nclip = 0.1\nepochs = 4\n",
		"run.stop.env_steps=5":               "stop = { env_steps = 5 }",
		"run.stop.return=475":                "stop = { env_steps = 10_000, return = 475 }",
		"run.seed=3":                         "[run]\nseed = 3\nname = \"x\" # a comment\n",
		"policy.main.net.hidden=[32]":        "epochs = 4\n\n[policy.main.net]\nhidden = [32]\n",
		"env.cartpole.wrap[0].steps=7":       "wrap = [{ kind = \"time_limit\", steps = 7 }]",
		"train.preset=general":               "\n\n[train]\npreset = \"general\"\n",
		"run.name=other":                     "name = \"other\" # a comment",
		"component.\"a b\".rate=1":           "\n\n[component.\"a b\"]\nrate = 1\n",
		"component.learner.target={ kl=0.1}": "[component.learner]\ntarget = { kl=0.1}\n",
	} {
		got, err := graph.Assign("p.toml", []byte(src), []string{set})
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v\n%s\nwant %q in it", set, err, got, want)
		}
	}
	for set, want := range map[string]string{
		"env.cartpole.wrap[1].steps=7": "env.cartpole.wrap[1].steps has no place in it",
		"run=3":                        "run is a table in it",
		"run.name.x=3":                 "run.name is not a table in it",
		"nonsense":                     "is not key=value",
	} {
		if _, err := graph.Assign("p.toml", []byte(src), []string{set}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}

// FuzzSweep reads any table: what is wrong has a place, and a point of what is right means the same in the file as beside it.
func FuzzSweep(f *testing.F) {
	f.Add("method = \"asha\"\ntrials = 64\nenv_steps = 5000\n[sweep.space]\n\"component.learner.learning_rate\" = { from = 1e-5, to = 1e-2, scale = \"log\" }\n")
	f.Add("sampler = \"grid\"\n[sweep.space]\n\"component.learner.epochs\" = { from = 1, to = 4, grid = 4, integer = true }\n\"run.seed\" = { choices = [1, 2] }\n")
	f.Add("sampler = \"sobol\"\ntrials = 3\nseeds = 2\ngoal = \"min\"\n[sweep.space]\n\"component.learner.gamma\" = { from = 0.9, to = 0.999, scale = \"one_minus\" }\n")
	f.Add("program = [\"x\"]\ntrials = 3\nconfirm = { top = 0 }\nspace.a.b = 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		src := searched + "[sweep]\n" + text
		c, err := readSweep(t, src)
		for _, p := range graph.ProblemsOf(err) {
			if p.Line < 1 || p.Message == "" {
				t.Errorf("problem without a place: %+v", p)
			}
			if _, ok := graph.Explain(p.Code); !ok {
				t.Errorf("no page for %s", p.Code)
			}
		}
		if c == nil || c.Sampler == search.ByProgram {
			return
		}
		plan, err := search.NewPlan(c, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		step, err := plan.Next(search.NewHistory(c))
		if err != nil || len(step.Orders) == 0 {
			t.Fatalf("%v, %v", step, err)
		}
		sets := step.Orders[0].Set.Sets()
		beside, err := graph.Parse("p.toml", []byte(src), graph.ParseOptions{Sets: sets, Parts: graphtest.Standard()})
		if err != nil {
			return // values between the ends are tried by the trial
		}
		within, err := graph.Assign("p.toml", []byte(src), sets)
		if err != nil {
			return
		}
		if g, err := graph.Parse("p.toml", within, graph.ParseOptions{Parts: graphtest.Standard()}); err == nil && fmt.Sprint(g.Keys()) != fmt.Sprint(beside.Keys()) {
			t.Errorf("%q\nmeans in the file\n%s\nand beside it\n%s", sets, g.Expanded(), beside.Expanded())
		}
	})
}
