package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
)

func TestReachedAt_IsTheFirstFullWindowAtTheBar(t *testing.T) {
	dir := t.TempDir()
	text := `{"global_step":2048,"charts/window_full":0,"charts/episodic_return":500}
{"global_step":4096,"charts/window_full":1,"charts/episodic_return":null}
{"global_step":6144,"charts/window_full":1,"charts/episodic_return":-86.5}
{"global_step":8192,"charts/window_full":1,"charts/episodic_return":-86.4}
`
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := reachedAt(dir, -86.4); err != nil || got == nil || *got != 8192 {
		t.Errorf("reached -86.4 at %v, %v, want 8192", got, err)
	}
	if got, err := reachedAt(dir, -80); err != nil || got != nil {
		t.Errorf("reached -80 at %v, %v, want nil", got, err)
	}
}

// Another call continues the newest set, and adds the seeds that it lacks; trained seeds stay.
func TestOpen_ExtendsTheNewestSet(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "toy.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o, toy := options{work: filepath.Join(dir, "work")}, &task{name: "toy", preset: "general", file: file, sets: []string{"a.b=1"}}
	opened := func(count int, id string, ended ...uint64) {
		t.Helper()
		set, err := open(o, toy, count)
		if err != nil {
			t.Fatal(err)
		}
		info := set.Info()
		var done []uint64
		for _, r := range info.Seeds {
			if r.State == runs.Ended {
				done = append(done, r.Seed)
			}
		}
		if len(info.Seeds) < count || info.ID() != id || !slices.Equal(done, ended) {
			t.Errorf("%d seeds: set %s has %d, %v ended; want %s with %v", count, info.ID(), len(info.Seeds), done, id, ended)
		}
		first := info.Seeds[count-1]
		first.State = runs.Ended
		if err := errors.Join(set.Update(first), set.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("rlhost = 1\n")
	opened(2, "learn/0001")
	opened(5, "learn/0001", 2)
	opened(3, "learn/0001", 2, 5)
	write("rlhost = 1\n# changed\n")
	opened(2, "learn/0002")
	opened(3, "learn/0002", 2)
	toy.sets = []string{"a.b=2"}
	opened(1, "learn/0003")
}

func TestMedian_CountsSeedsThatNeverReachAsMost(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		list []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{inf, 1, 2}, 2}, {[]float64{inf, 1, inf}, inf}} {
		if got := median(c.list); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.list, got, c.want)
		}
	}
}

func TestWriteBetween_LeavesTheRestOfThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("before\n"+first+"old\n"+last+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := writeBetween(file, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(file)
	if want := "before\n" + first + "\nnew\n\n" + last + "after\n"; string(page) != want || err != nil {
		t.Errorf("the page is %q, %v, want %q", page, err, want)
	}
	if err := os.WriteFile(file, []byte(last+first), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeBetween(file, "new\n"); err == nil || !strings.Contains(err.Error(), "has no place") {
		t.Errorf("a page without the markers: %v", err)
	}
}
