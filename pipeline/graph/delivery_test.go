package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// delivered describes how messages wait on the wires of a file, by payload.
func delivered(t *testing.T, wires string) map[string]string {
	t.Helper()
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n" + wires
	g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatal(problems)
	}
	by := map[string]string{}
	for _, w := range g.Wires {
		by[w.Payload] = fmt.Sprintf("%v %d %v", w.Mode, w.Depth, w.OnFull)
	}
	return by
}

func TestWires_OfTwoLinesWaitAsTheirPayloadDoes(t *testing.T) {
	presets := graph.DefaultPresets()
	if strings.Contains(presets["ppo"], "on_full") {
		t.Fatal("the wires of the preset say themselves how their messages wait")
	}
	got := delivered(t, "")
	for payload, want := range map[string]string{
		"act_request": "queue 64 block", "actions": "reply 64 block", "trajectory": "queue 64 block", "dataset": "queue 4 block",
		"weights": "latest 1 coalesce", "learner_stats": "all 256 block", "episode": "all 4096 block",
	} {
		if got[payload] != want {
			t.Errorf("%s: %s, want %s", payload, got[payload], want)
		}
	}
}

func TestWires_DepthAndOnFullSuitTheModeThatIsWritten(t *testing.T) {
	for keys, want := range map[string]string{
		`mode = "latest"`:  "latest 1 coalesce",
		`mode = "queue"`:   "queue 4096 block",
		`depth = 8`:        "all 8 block",
		`on_full = "fail"`: "all 4096 fail",
		`mode = "all"` + "\ndepth = 2\n" + `on_full = "drop_newest"`: "all 2 drop_newest",
	} {
		wire := "[[wire]]\nsignal = \"rollout.episodes\"\nslot = \"runner.on_episodes\"\n" + keys + "\n"
		if got := delivered(t, wire)["episode"]; got != want {
			t.Errorf("episodes with %s: %s, want %s", keys, got, want)
		}
	}
	wire := "[[wire]]\nsignal = \"learner.weights\"\nslot = [\"inference.on_weights\", \"batcher.on_weights\"]\nmode = \"all\"\n"
	wire += "on_full = \"coalesce\"\n"
	if got := delivered(t, wire)["weights"]; got != "all 64 coalesce" {
		t.Errorf("weights to all: %s", got)
	}
}
