package site

import (
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit/browser"
)

// The site is opened from the disk, without any server: pages, links between them, and the search. make docs has built it.
func TestBrowser_TheSiteIsReadAndSearchedFromTheDisk(t *testing.T) {
	tab := browser.Open(t, 1200, 900)
	index, err := filepath.Abs("../../.cache/docs/site/index.html")
	if err != nil {
		t.Fatal(err)
	}
	tab.Load("file://" + index)
	tab.Until("the tab of tutorials", `[...document.querySelectorAll(".md-tabs__link")].some(a => a.textContent.trim() == "Start")`)
	browser.Ask[any](tab, `document.querySelector(".md-content a[href=\"how-to/dash.html\"]").click()`)
	tab.Until("the page behind a link", `document.title.startsWith("Watch runs in a browser") && document.querySelector(".md-search__input") !== null`)
	browser.Ask[any](tab, `document.querySelector("label.md-header__button[for=__search], .md-search__icon").click()`)
	tab.Until("the search is ready", `document.querySelector(".md-search-result__meta").textContent.trim() === "Type to start searching"`)
	browser.Ask[any](tab, `(() => { const words = document.querySelector(".md-search__input");
		words.focus(); words.value = "otlpjsonfile"; for (const kind of ["input", "keyup"]) words.dispatchEvent(new Event(kind, { bubbles: true })); })()`)
	tab.Until("what the search finds", `[...document.querySelectorAll(".md-search-result__link")].some(a => a.href.includes("evaluate-and-plot.html"))`)
	if foreign := browser.Ask[float64](tab, `performance.getEntriesByType("resource").filter(r => !r.name.startsWith("file:") && !r.name.startsWith("data:")).length`); foreign != 0 {
		t.Errorf("%g things come from elsewhere", foreign)
	}
	for _, fault := range tab.Faults() {
		t.Errorf("the page says: %s", fault)
	}
}
