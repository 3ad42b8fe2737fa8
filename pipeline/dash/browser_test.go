package dash

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/internal/testkit/browser"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// told is how long a page took, and what it loaded.
const told = `(() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const all = [performance.getEntriesByType("navigation")[0], ...performance.getEntriesByType("resource")].filter(e => !e.name.includes("/events"));
  return [Math.round(paint.startTime), Math.round(Math.max(...all.map(e => e.responseEnd))), all.reduce((n, e) => n + e.transferSize, 0)].join(" ");
})()`

// loaded waits for all pictures that can be seen, and returns the milliseconds until the first paint and until the last byte, and the bytes.
func loaded(t *testing.T, tab *browser.Tab) (paint, last, bytes int) {
	t.Helper()
	tab.Until("all pictures are there", `[...document.querySelectorAll("figure img")].filter(i => i.getBoundingClientRect().top < innerHeight).every(i => i.complete && i.naturalWidth > 0)`)
	tab.Until("it has painted", `performance.getEntriesByName("first-contentful-paint").length`)
	if _, err := fmt.Sscan(tab.Text(told), &paint, &last, &bytes); err != nil {
		t.Fatal(err)
	}
	return paint, last, bytes
}

// silent fails the test if a page has complained.
func silent(t *testing.T, tab *browser.Tab) {
	t.Helper()
	if faults := tab.Faults(); len(faults) > 0 {
		t.Errorf("the page complains:\n%s", strings.Join(faults, "\n"))
	}
}

// A page of a run with 100,000 lines of metrics is there at once, and small; one of ten such runs, compared, soon after. It says how long it took.
func TestBrowser_LargeRunsAreThereAtOnce(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 100_000))
	tab := browser.Open(t, 1200, 800)
	tab.Load(serve(t, Options{Dir: dir}) + "run?run=pole/0001&still=1")
	paint, last, size := loaded(t, tab)
	t.Logf("a run with 100,000 lines: first paint %d ms, all pictures that are seen %d ms, %d bytes", paint, last, size)
	if size > 300<<10 {
		t.Errorf("the page loads %d bytes", size)
	}
	q := url.Values{}
	for i := range 10 {
		name := fmt.Sprintf("seed%d", i)
		newJob(t, dir, name).write("metrics.jsonl", metricsText(0, 10_000))
		q.Add("run", name+"/0001")
	}
	tab.Load(serve(t, Options{Dir: dir}) + "compare?still=1&" + q.Encode())
	paint, last, size = loaded(t, tab)
	if size > 300<<10 {
		t.Errorf("the comparison loads %d bytes", size)
	}
	t.Logf("ten runs with 10,000 lines: first paint %d ms, all pictures that are seen %d ms, %d bytes", paint, last, size)
	silent(t, tab)
}

// A page follows its run: points, a swap, a stall and its cause, and how it dies. Its pictures zoom and show values, its buttons do what they say.
func TestBrowser_APageIsLive(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 200))
	root := serve(t, Options{Dir: dir})
	tab := browser.Open(t, 1200, 800)
	tab.Load(root + "run?run=pole/0001")
	loaded(t, tab)
	tab.Until("it is live", `document.getElementById("link").textContent == "live"`)
	before := tab.Text(`document.querySelector("#chart-return img").src`)
	wrote := time.Now()
	j.write("metrics.jsonl", metricsText(200, 300))
	tab.Until("the curve has the new points", fmt.Sprintf(`document.querySelector("#chart-return img").src != %q`, before))
	t.Logf("new points were drawn after %v", time.Since(wrote).Round(time.Millisecond))

	if err := j.run.Note(runs.Change{Step: runs.StepCommitted, Number: 1, What: "swap", Component: "env.pole", Old: &runs.Version{File: "a.wasm"}, New: &runs.Version{File: "b.wasm"}, EnvStep: 150_000}); err != nil {
		t.Fatal(err)
	}
	j.set(func(s *control.StatusReply) {
		s.Components[0].Version.File, s.State, s.Cause = "/x/b.wasm", control.Stalled, "learner waits for a dataset"
	})
	tab.Until("the swap is told", `document.getElementById("part-changes").innerText.includes("a.wasm → b.wasm")`)
	tab.Until("and the new version", `document.getElementById("part-wiring").textContent.includes("b.wasm")`)
	tab.Until("the cause stands out", `document.querySelector("[role=alert]")?.innerText.includes("learner waits for a dataset") && document.querySelector(".wiring .why .name").textContent == "learner"`)

	// Hover, drag, keys.
	pointer := func(kind string, share float64) string {
		return fmt.Sprintf(`(() => { const f = document.getElementById("chart-return"), b = f.querySelector("img").getBoundingClientRect();
			f.setPointerCapture = () => {}; f.dispatchEvent(new PointerEvent(%q, {pointerId: 1, clientX: b.left + %g * b.width, clientY: b.top + 50, bubbles: true})); return true })()`, kind, share)
	}
	tab.Until("values are shown", pointer("pointermove", 0.6)+` && document.querySelector("#chart-return output").textContent.includes("training ")`)
	browser.Ask[bool](tab, pointer("pointerdown", 0.5))
	browser.Ask[bool](tab, pointer("pointermove", 0.7))
	browser.Ask[bool](tab, pointer("pointerup", 0.7))
	tab.Until("the pictures show a part", `/from=\d+/.test(location.search) && [...document.querySelectorAll("figure img")].slice(0, 2).every(i => i.src.includes("from=") && i.naturalWidth)`)
	browser.Ask[bool](tab, `document.getElementById("chart-return").focus(), true`)
	tab.Until("numbers of that part", `document.getElementById("chart-return").numbers`)
	tab.Press("+")
	tab.Press("\x1b")
	tab.Until("Escape shows all", `!location.search.includes("from=")`)

	// Buttons.
	browser.Ask[bool](tab, `document.querySelector("form[data-line*=' swap '] input[name=version]").focus(), true`)
	for _, key := range "it's" {
		tab.Press(string(key))
	}
	tab.Until("the command line follows", `document.querySelector("form[data-line*=' swap '] code").textContent.includes("swap COMPONENT 'it'\\''s' --run")`)
	tab.Click(`form[data-line*="checkpoint"] button`)
	tab.Until("the button says what it came to", `document.querySelector("form[data-line*=checkpoint] output").textContent.includes("saved policy version 7")`)
	if got := j.requests(); got != `checkpoint {}` {
		t.Errorf("the job was asked %s", got)
	}
	silent(t, tab)
	if file := os.Getenv("RLHOST_PICTURE"); file != "" {
		tab.Picture(file)
	}
	j.die()
	tab.Until("the death is told", `document.getElementById("part-head").innerText.includes("killed")`)
	silent(t, tab)
}

// The environment is drawn while its section is open, by newer weights when there are some, and nothing is drawn when it is closed. A page
// without scripts shows a picture.
func TestBrowser_TheEnvironmentIsDrawnWhileItIsWanted(t *testing.T) {
	dir := t.TempDir()
	newJob(t, dir, "pole").write("metrics.jsonl", metricsText(0, 50))
	newJob(t, dir, "other")
	drawn := &drawnRuns{t: t, use: "minatar-breakout@1"}
	root := serve(t, Options{Dir: dir, Opener: func(string) Opener { return drawn }})
	tab := browser.Open(t, 1200, 800)
	tab.Load(root + "run?run=pole/0001")
	tab.Until("it is live", `document.getElementById("link").textContent == "live"`)
	if opened, _ := drawn.count(); opened != 0 {
		t.Errorf("%d environments are opened before anybody looks", opened)
	}
	tab.Click("#live summary")
	tab.Until("a picture is there", `document.querySelector("#live .picture").naturalWidth > 20 && document.querySelector("#live .picture").checkVisibility()`)
	tab.Until("it says whose", `document.querySelector("#live .said").textContent.includes("weights 0")`)
	before := tab.Text(`document.querySelector("#live .picture").src`)
	tab.Until("it moves", fmt.Sprintf(`document.querySelector("#live .picture").src != %q`, before))
	drawn.stale.Store(true)
	tab.Until("newer weights play", `document.querySelector("#live .said").textContent.includes("weights 1")`)
	tab.Click("#live summary")
	testkit.Until(t, "nothing is drawn when it is closed", func() bool { opened, open := drawn.count(); return opened >= 2 && open == 0 })
	drawn.fail.Store(true)
	tab.Click("#live summary")
	tab.Until("it says why it cannot", `document.querySelector("#live .note").textContent.includes("no checkpoint <b>yet")`)
	silent(t, tab)
	drawn.fail.Store(false)
	tab.WithoutScripts()
	tab.Load(root + "run?run=other/0001&live=1")
	if got := tab.Text(`document.querySelector("#live .picture").naturalWidth > 20 && document.getElementById("live").open`); got != "true" {
		t.Error("a page without scripts has no picture")
	}
	silent(t, tab)
}

// readable lists the texts of a page whose contrast with their background is less than 4.5.
const readable = `(() => {
  const rgb = c => c.match(/[\d.]+/g).map(Number), light = c => { const [r, g, b] = rgb(c).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c && !/, 0\)$|transparent/.test(c)) return c } return "rgb(255, 255, 255)" };
  return [...document.querySelectorAll("body *")].filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) && e.checkVisibility()).map(e => {
    const inPicture = e.closest(".wiring"), rect = inPicture && getComputedStyle(document.querySelector(".wiring rect")).fill;
    const a = light(inPicture ? getComputedStyle(e).fill : getComputedStyle(e).color), b = light(inPicture && e.closest(".box") ? rect : behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return ratio < 4.5 ? e.tagName + " " + e.textContent.trim().slice(0, 20) + " " + ratio.toFixed(2) : "" }).filter(Boolean).join("\n") })()`

// Light and dark, wide and on a phone, a page can be read, by keyboard too; a run with 1,000 components also.
func TestBrowser_PagesCanBeRead(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 50))
	j.write("log.jsonl", `{"level":"ERROR","msg":"an error"}`+"\n"+`{"level":"WARN","msg":"`+strings.Repeat("long ", 100)+`"}`+"\n")
	j.set(func(s *control.StatusReply) {
		s.Cause = "learner waits"
		for i := range 998 {
			s.Components = append(s.Components, control.ComponentStatus{Name: fmt.Sprintf("actor[%d]", i), State: control.Running, Unit: "messages", Host: "local"})
			s.Wires = append(s.Wires, control.WireStatus{Wire: fmt.Sprintf("actor[%d].out → learner.on_dataset", i), Depth: 4, Queued: i % 2})
		}
	})
	drawn := &drawnRuns{t: t, use: "cartpole@1"}
	root := serve(t, Options{Dir: dir, Opener: func(string) Opener { return drawn }})
	for _, width := range []int{1200, 360} {
		tab := browser.Open(t, width, 800)
		for _, scheme := range []string{"light", "dark"} {
			tab.Prefers("prefers-color-scheme", scheme)
			for _, page := range []string{"", "run?run=pole/0001&still=1&live=1", "compare?run=pole/0001&still=1"} {
				tab.Load(root + page)
				if faint := tab.Text(readable); faint != "" {
					t.Errorf("%s, %d wide, %q has texts that are hard to read:\n%s", scheme, width, page, faint)
				}
				if got := tab.Text(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
					t.Errorf("%s, %d wide: %q is wider", scheme, width, page)
				}
			}
		}
		tab.Load(root + "run?run=pole/0001")
		tab.Until("a thousand components are one box each", `document.querySelectorAll(".wiring .box").length == 3 && document.querySelector(".wiring").textContent.includes("actor ×998")`)
		tab.Press("\t")
		if got := tab.Text(`document.activeElement.textContent`); got != "to the content" {
			t.Errorf("the first key leads to %q", got)
		}
		silent(t, tab)
	}
	j.set(func(s *control.StatusReply) {
		for i := range s.Components {
			s.Components[i].Name = fmt.Sprintf("part%d", i)
		}
	})
	tab := browser.Open(t, 1200, 800)
	tab.Load(root + "run?run=pole/0001")
	tab.Until("a thousand kinds are a table", `document.getElementById("part-wiring").innerText.includes("too many") && document.querySelectorAll("#part-components tbody tr").length == 1000`)
	silent(t, tab)
}

// Without JavaScript a page shows the same, and loads itself again until it is told to stand still.
func TestBrowser_WithoutScriptsAPageLoadsItselfAgain(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 50))
	root := serve(t, Options{Dir: dir})
	tab := browser.Open(t, 1000, 800)
	tab.WithoutScripts()
	tab.Load(root + "run?run=pole/0001")
	if got := tab.Text(`document.querySelectorAll("figure img").length + " " + document.querySelector("noscript").innerHTML.includes("refresh")`); got != "9 true" {
		t.Errorf("a page without scripts has pictures and a refresh: %s", got)
	}
	tab.Until("it has loaded itself again", `performance.getEntriesByType("navigation")[0].type == "reload" || performance.timeOrigin > `+fmt.Sprint(time.Now().Add(time.Second).UnixMilli()))
	tab.Click(`form[data-line*="checkpoint"] button`)
	tab.Until("the answer is a page", `document.body.innerText.includes("saved policy version 7")`)
	testkit.Until(t, "the job was asked", func() bool { return j.requests() == "checkpoint {}" })
	silent(t, tab)
}
