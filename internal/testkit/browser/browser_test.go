package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page's script runs, its answer is awaited, and its complaints are kept: of its console, of an exception, of what it could not load.
func TestBrowser_RunsAPageAndKeepsItsComplaints(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, `<!doctype html><title>t</title><p id="p">before</p><img src="/missing.png"><script>
document.getElementById("p").textContent = "after"; console.error("told", 7); setTimeout(() => { throw new Error("thrown") })</script>`)
	}))
	defer server.Close()
	tab := Open(t, 800, 600)
	tab.Load(server.URL)
	if got := tab.Text(`document.getElementById("p").textContent`); got != "after" {
		t.Errorf("the paragraph says %q, want after", got)
	}
	if got := tab.Text(`new Promise(done => setTimeout(() => done(innerWidth), 1))`); got != "800" {
		t.Errorf("the page is %s wide, want 800", got)
	}
	faults := strings.Join(tab.Faults(), "\n")
	for _, want := range []string{"told", "thrown", "missing.png"} {
		if !strings.Contains(faults, want) {
			t.Errorf("nothing of %q among the complaints:\n%s", want, faults)
		}
	}
	tab.WithoutScripts()
	tab.Load(server.URL)
	tab.Until("a page without its script", `document.getElementById("p").textContent == "before"`)
}
