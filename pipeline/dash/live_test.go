package dash

import (
	"math"
	"net/http"
	"strings"
	"testing"
)

// Four environments are drawn at a time; a fifth one says so, and begins when another's place is free. Nothing is drawn for runs that there are
// not, nor by a server that draws none.
func TestLive_IsBounded(t *testing.T) {
	dir := t.TempDir()
	newJob(t, dir, "pole")
	drawn := &drawnRuns{t: t, use: "cartpole@1"}
	l := newLive(func(string) Opener { return drawn })
	var last func() error
	for n := range maxLive {
		stage, err := l.open(t.Context(), drawn, n)
		if err != nil {
			t.Fatal(err)
		}
		last = stage.Close
		if n < maxLive-1 {
			t.Cleanup(func() { _ = stage.Close() })
		}
	}
	_, err := l.open(t.Context(), drawn, 0)
	if err == nil || !strings.Contains(err.Error(), "error["+CodeTooManyShown+"]: the environments of 4 runs are drawn already") {
		t.Errorf("a fifth one: %v", err)
	}
	if err := last(); err != nil {
		t.Error(err)
	}
	drawn.fail.Store(true)
	if _, err := l.open(t.Context(), drawn, 0); err == nil || strings.Contains(err.Error(), CodeTooManyShown) {
		t.Errorf("a place is free, and the opener fails: %v", err)
	}
	drawn.fail.Store(false)
	stage, err := l.open(t.Context(), drawn, 0) // the failed one has given its place back
	if err != nil {
		t.Fatal(err)
	}
	last = stage.Close
	t.Cleanup(func() { _ = last() })

	root := serve(t, Options{Dir: dir, Opener: func(string) Opener { return drawn }})
	if code, _ := get(t, root+"live?run=nobody"); code != http.StatusNotFound {
		t.Errorf("a run that there is not: %d", code)
	}
	if code, _ := get(t, strings.Replace(root, root[len(root)-5:], "xxxx/", 1)+"live?run=pole/0001"); code != http.StatusForbidden {
		t.Errorf("a wrong token: %d", code)
	}
	plain := serve(t, Options{Dir: dir})
	if code, page := get(t, plain+"run?run=pole/0001"); code != http.StatusOK || strings.Contains(page, "data-frames") {
		t.Errorf("a server that draws none: %d", code)
	}
	if code, _ := get(t, plain+"live?run=pole/0001"); code != http.StatusNotFound {
		t.Errorf("a server that draws none answers %d", code)
	}
}

// All pictures together have a fiftieth of the processors, and one at most a tenth of a processor.
func TestLive_SharesTheProcessors(t *testing.T) {
	for _, c := range []struct {
		processors, shown int
		want              float64
	}{{1, 1, 0.02}, {2, 0, 0.04}, {2, 1, 0.04}, {2, 4, 0.01}, {16, 1, 0.1}, {16, 4, 0.08}} {
		if got := shareOf(c.processors, c.shown); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("each of %d pictures on %d processors may take %g of one, want %g", c.shown, c.processors, got, c.want)
		}
	}
}
