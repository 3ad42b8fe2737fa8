package page_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/page"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// Environments of one agent, of pictures in stacks, of turns with masks, and one whose policy remembers states, actions and rewards.
var played = map[string]string{
	"cartpole": `
[env.it]
use = "cartpole@1"
[train]
preset = "fast"
env = "it"
`,
	"positions": `
[env.it]
use = "cartpole-positions@1"
[policy.main]
inputs = ["last_action", "executed_action", "last_reward"]
normalize_obs = true
net = { core = { kind = "gru", size = 16 } }
[train]
preset = "general"
env = "it"
`,
	"breakout": `
[env.it]
use = "minatar-breakout@1"
[policy.main]
frame_stack = 2
inputs = ["last_action"]
[train]
preset = "general"
env = "it"
`,
	"connectfour": `
[env.it]
use = "connectfour@1"
[train]
preset = "fast"
env = "it"
`,
}

// scripted is a script that prints the trace of the page's only version.
const scripted = `const game = new Game(unpacked(data.module), data);
game.use(unpacked(data.versions[0].rest));
console.log((` + trace + `)(game, STEPS));`

// The page's host and policy do in Node as the program does: the same actions, rewards and observations, bit for bit.
func TestPage_PlaysAsTheHostDoes(t *testing.T) {
	t.Parallel()
	for name, text := range played {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := train(t, text)
			html, err := l.page(1)
			if err != nil {
				t.Fatal(err)
			}
			if own := `"keys":{"left":[1],"none":[0],"right":[2]}`; name == "breakout" && !strings.Contains(string(html), own) {
				t.Errorf("the page has not the keys that the environment's author has given")
			}
			const steps = 10_000
			if first := differs(node(t, html, "const STEPS = 10_000;\n"+scripted), l.host(steps)); first != "" {
				t.Errorf("%s (%d bytes)", first, len(html))
			}
			t.Logf("%d bytes", len(html))
		})
	}
}

// A person has the same keys on a page as in the terminal.
func TestPage_HasTheKeysOfTheTerminal(t *testing.T) {
	t.Parallel()
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	for use, args := range map[string]map[string]string{"cartpole@1": nil, "minatar-freeway@1": nil, "connectfour@1": nil, "pendulum@1": nil, "taxi@1": nil,
		"../../examples/plugins/lunarlander-cpp/lunarlander.wasm": {"continuous": "true"},
		"../../hostabi/conformance/optional-absent.wasm":          nil} {
		source := env.DefaultSource()
		source.Use, source.Args = use, args
		table := graph.EnvTable{Source: source}
		plugin, err := parts.Load(t.Context(), use, table, ".")
		if err != nil {
			t.Fatal(err)
		}
		defer plugin.Close()
		g, err := play.New(plugin, play.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		c := page.Content{Args: args}
		if c.Module, err = parts.File(table, "."); err != nil {
			t.Fatal(err)
		}
		html, err := page.Make(&c)
		if err != nil {
			t.Fatal(err)
		}
		var got play.Keys
		said := node(t, html, "console.log(JSON.stringify(defaultKeys(new Env(unpacked(data.module), data), 0)))")
		if err := json.Unmarshal([]byte(said), &got); err != nil || !maps.EqualFunc(got, play.DefaultKeys(g), slices.Equal) {
			t.Errorf("%s: the page's keys are %s, want %v: %v", use, said, play.DefaultKeys(g), err)
		}
	}
}
