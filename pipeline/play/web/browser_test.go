package web

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit/browser"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// servePage serves a page with a stage until the test ends.
func servePage(t *testing.T, stage *Stage) string {
	t.Helper()
	screen := New(Options{Rate: 60, Open: func(context.Context, int) (*Stage, error) { return stage, nil }})
	page, err := Page(screen, stage.What, stage.Show.Keys)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := loopback.New("the test", page, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		screen.Close()
	})
	return server.URL(l)
}

// builtinStage is a stage of a built-in environment.
func builtinStage(t *testing.T, use string) *Stage {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	source := env.DefaultSource()
	source.Use = use
	plugin, err := parts.Load(t.Context(), "", graph.EnvTable{Source: source}, ".")
	if err != nil {
		t.Fatal(err)
	}
	g, err := play.New(plugin, play.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{g, plugin, engines} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &Stage{Show: play.NewShow(g, play.DefaultKeys(g), 0), What: use, Close: func() error { return nil }}
}

func silent(t *testing.T, tab *browser.Tab) {
	t.Helper()
	if faults := tab.Faults(); len(faults) > 0 {
		t.Errorf("the page complains:\n%s", strings.Join(faults, "\n"))
	}
}

// A person plays a game of two on a telephone, by touch: each button is a move, and pictures have the colours of the game.
func TestBrowser_AGameIsPlayedByTouch(t *testing.T) {
	tab := browser.Open(t, 360, 640)
	stage := builtinStage(t, "connectfour@1")
	stage.Show.Game.By = play.Person
	tab.Load(servePage(t, stage))
	tab.Until("a picture is there", `document.querySelector(".picture").naturalWidth > 20`)
	tab.Until("nothing happens before the person moves", `document.querySelector(".said").textContent.startsWith("you: step 0,")`)
	tab.Click(`.keys button[data-key="3"]`)
	tab.Until("both have moved", `/^you: step [2-9]/.test(document.querySelector(".said").textContent) || document.querySelector(".said").textContent.includes("step 1,")`)
	const colours = `(() => { const i = document.querySelector(".picture"), c = document.createElement("canvas"); c.width = i.naturalWidth; c.height = i.naturalHeight;
		const d = c.getContext("2d"); d.drawImage(i, 0, 0); const p = d.getImageData(0, 0, c.width, c.height).data, all = new Set();
		for (let k = 0; k < p.length; k += 4) all.add(p.slice(k, k + 3).join()); return all })()`
	tab.Until("the person's piece is red", colours+`.has("224,58,58")`)
	if got := tab.Text(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
		t.Error("the page is wider than the telephone")
	}
	silent(t, tab)
}

// right is a policy.
type right struct{}

func (right) Begin() {}
func (right) Act(evaluation.Observation) ([]evaluation.Elements, error) {
	return []evaluation.Elements{{I32: []int32{2}}}, nil
}

// A policy plays until a key takes over; what the key's action does is seen while it is held, a button gives back, and text is no HTML.
func TestBrowser_AKeyTakesOverFromAPolicy(t *testing.T) {
	d := &drawing{modes: hostabi.RenderText, fps: 30}
	d.Plugin = plugintest.New(plugintest.Script{Actions: 3, Length: endless, Reward: func(at plugintest.At) float32 { return float32(at.Action) }})
	g, err := play.New(d, play.Options{Seed: 1, Seats: []play.Seat{right{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.By = play.Policy
	keys := play.Keys{"left": {1}, "space": {0}, play.None: {0}}
	stage := &Stage{Show: play.NewShow(g, keys, 0), What: "scripted", Close: func() error { return nil }}
	tab := browser.Open(t, 800, 600)
	tab.Load(servePage(t, stage))
	said := func(what, by, reward string) {
		t.Helper()
		tab.Until(what, `document.querySelector(".said").textContent.startsWith("`+by+`: ") && document.querySelector(".said").textContent.includes("reward `+reward+`,")`)
	}
	said("the policy plays", "policy", "2")
	browser.Ask[bool](tab, `dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft"}))`)
	said("a key is held", "you", "1")
	browser.Ask[bool](tab, `dispatchEvent(new KeyboardEvent("keyup", {key: "ArrowLeft"}))`)
	said("it is released", "you", "0")
	tab.Click(`button[data-key="tab"]`)
	said("the policy plays again", "policy", "2")
	tab.Press("p")
	tab.Until("it is paused", `document.querySelector(".note").textContent == "paused"`)
	if got := tab.Text(`document.querySelector(".text").textContent.includes("<b onclick") && !document.querySelector(".text b")`); got != "true" {
		t.Errorf("the text is %s", tab.Text(`document.querySelector(".text").innerHTML`))
	}
	silent(t, tab)
}
