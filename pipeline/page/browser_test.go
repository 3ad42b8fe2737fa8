package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/internal/testkit/browser"
	"github.com/rlhost/rlhost/pipeline/page"
)

// open opens a page from the disk.
func open(t *testing.T, path string) *browser.Tab {
	t.Helper()
	tab := browser.Open(t, 900, 900)
	tab.Load("file://" + path)
	return tab
}

// silent fails the test if a page has complained.
func silent(t *testing.T, tab *browser.Tab) {
	t.Helper()
	if faults := tab.Faults(); len(faults) > 0 {
		t.Errorf("the page complains:\n%s", strings.Join(faults, "\n"))
	}
}

// A page from the disk shows its picture, plays 10,000 steps as the host does, and draws faster than a screen does.
func TestBrowser_APagePlaysAsTheHostDoes(t *testing.T) {
	for name, bytes := range map[string]int{"cartpole": 200_000, "breakout": 1_000_000} {
		l := train(t, played[name])
		path := l.file(1)
		if info, err := os.Stat(path); err != nil || info.Size() > int64(bytes) {
			t.Errorf("%s is %v, want at most %d bytes: %v", name, info.Size(), bytes, err)
		}
		tab := open(t, path)
		tab.Until("it plays", `rlhost.game?.steps > 3`)
		rate := tab.Text(`new Promise((done) => { let n = 0; const from = performance.now();
  const tick = () => ++n < 60 ? requestAnimationFrame(tick) : done(Math.round(60000 / (performance.now() - from))); requestAnimationFrame(tick); })`)
		cost := tab.Text(`(() => { rlhost.pause(true); const from = performance.now(); for (let i = 0; i < 500; i++) { rlhost.step(); rlhost.show(); } return ((performance.now() - from) / 500).toFixed(3); })()`)
		t.Logf("%s: %s frames a second, a step and its picture take %s ms", name, rate, cost)
		if pixels := tab.Text(`new Set(new Uint32Array(document.getElementById("picture").getContext("2d").getImageData(0, 0, 160, 140).data.buffer)).size`); pixels == "1" {
			t.Errorf("%s: the picture has one colour", name)
		}
		if first := differs(tab.Text("("+trace+")(rlhost.game, 10_000)"), l.host(10_000)); first != "" {
			t.Errorf("%s: %s", name, first)
		}
		silent(t, tab)
	}
}

// A key and a button take over from the policy, the list gives back, and the slider changes the policy's version.
func TestBrowser_APersonTakesOver(t *testing.T) {
	text := strings.Replace(played["cartpole"], `"cartpole@1"`, "\"cartpole@1\"\nkeys = { a = 0, d = 1 }", 1)
	tab := open(t, train(t, text).file(3))
	tab.Until("it plays", `rlhost.game?.steps > 0`)
	for _, step := range []struct{ do, want string }{
		{"", `rlhost.game.person === null`},
		{"d", `rlhost.game.person === 0 && rlhost.game.chosen[0] === 1 && document.getElementById("who").value === "0"`},
		{"a", `rlhost.game.chosen[0] === 0`},
		{"left", `rlhost.game.chosen[0] === 0`}, // no key of this page
	} {
		if step.do != "" {
			tab.Press(step.do)
		}
		tab.Until("after "+step.do, step.want)
	}
	tab.Click("#keys button:last-child")
	tab.Until("the button has acted", `rlhost.game.chosen[0] === 1`)
	if got := tab.Text(`(() => { const who = document.getElementById("who"); who.value = ""; who.dispatchEvent(new Event("change")); return rlhost.game.person; })()`); got != "null" {
		t.Errorf("a person plays %s, want nobody", got)
	}
	shown := `document.getElementById("which").textContent`
	newest := tab.Text(shown)
	oldest := tab.Text(`(() => { const v = document.getElementById("version"); v.value = 0; v.dispatchEvent(new Event("input")); return ` + shown + `; })()`)
	if newest == oldest || tab.Text(`rlhost.versions.length`) != "3" {
		t.Errorf("the slider shows %q, then %q", newest, oldest)
	}
	if acts := tab.Text(`rlhost.game.policies[0].about.policy_version`); !strings.HasPrefix(oldest, "version "+acts+",") {
		t.Errorf("version %s acts, and the page shows %q", acts, oldest)
	}
	tab.Press("d")
	tab.Text(`rlhost.game.legal = () => false`)
	tab.Press("a")
	tab.Until("it waits for a legal action", `document.getElementById("turn").textContent === "this action is not legal now"`)
	tab.Text(`delete rlhost.game.legal`)
	silent(t, tab)
	tab.Text(`rlhost.game.step = () => { throw new Error("trap in rl_step") }`)
	tab.Until("a fault is said", `!rlhost.runs && document.getElementById("failed").innerText.includes("trap in rl_step")`)
}

// A game of turns waits for a person, whose keys are the digits, and refuses what is not legal.
func TestBrowser_AGameOfTurnsWaits(t *testing.T) {
	tab := open(t, train(t, played["connectfour"]).file(1))
	tab.Until("your turn", `document.getElementById("turn").textContent.endsWith("your turn")`)
	before := tab.Text(`rlhost.game.steps`)
	tab.Click("#step")
	if after := tab.Text(`rlhost.game.steps`); after != before {
		t.Errorf("a step is made without the person: %s, want %s", after, before)
	}
	tab.Click("#pause")
	tab.Press("3")
	tab.Until("both have played", `rlhost.game.steps >= `+before+` + 2 && rlhost.game.waits() && /^agents.1 took [0-6]; your turn$/.test(document.getElementById("turn").textContent)`)
	tab.Text(`rlhost.game.legal = () => false, rlhost.say(), rlhost.at = rlhost.game.steps`)
	tab.Press("3")
	if got := tab.Text(`rlhost.game.steps === rlhost.at && [...document.querySelectorAll("#keys button")].every((b) => b.disabled)`); got != "true" {
		t.Error("an illegal action is taken, or its button can be pressed")
	}
	silent(t, tab)
}

// An environment without pictures shows the numbers that it observes; an action in a Box is a list of a key.
func TestBrowser_NumbersInPlaceOfAPicture(t *testing.T) {
	tab := open(t, train(t, `
[env.it]
use = "pendulum@1"
keys = { left = [-1.5], none = 0 }
[train]
preset = "continuous"
env = "it"
`).file(1))
	tab.Until("it shows numbers", `/^observation (-?[\d.e-]+ ?){3}$/.test(document.getElementById("text").textContent)`)
	tab.Text(`dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }))`)
	tab.Until("a person plays", `rlhost.game.chosen?.[0] === -1.5`)
	tab.Text(`dispatchEvent(new KeyboardEvent("keyup", { key: "ArrowLeft" }))`)
	tab.Until("no key is held", `rlhost.game.chosen[0] === 0 && rlhost.game.steps > 3`)
	silent(t, tab)
}

// The pages of examples/pages play.
func TestBrowser_ExamplesPlay(t *testing.T) {
	pages, err := filepath.Glob("../../examples/pages/*.html")
	if err != nil || len(pages) < 4 {
		t.Fatal(pages, err)
	}
	for _, path := range pages {
		whole, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		tab := open(t, whole)
		tab.Until(path+" plays", `rlhost.game && (rlhost.game.steps > 3 || rlhost.game.waits()) && rlhost.versions.length === 4`)
		silent(t, tab)
	}
}

// Names of strangers are text, whatever is in them; an environment that this host cannot run is said on the page.
func TestBrowser_StrangersAreText(t *testing.T) {
	const evil = `</script></title><script>document.title = "owned"</script><img src=x onerror="document.title='owned'">`
	html, err := page.Make(&page.Content{Title: evil, About: evil, Module: []byte("\x00asm\x01\x00\x00\x00"), Args: map[string]string{evil: evil},
		Keys: env.Keys{"<": {0}}, Versions: []page.Version{{Module: []byte("\x00asm\x01\x00\x00\x00")}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "evil.html")
	if err := os.WriteFile(path, html, 0o644); err != nil {
		t.Fatal(err)
	}
	tab := open(t, path)
	tab.Until("it says why", `document.getElementById("failed").textContent.includes("the module does not export rl_env_v1")`)
	if got := tab.Text(`document.title + document.querySelector("h1").textContent`); got != evil+evil {
		t.Errorf("the title is %q", got)
	}
}
