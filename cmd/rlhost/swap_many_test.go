package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// swapsWanted is the number of swaps in a run: some, or as many as RLHOST_SWAPS says; 10,000 want -timeout 1h.
func swapsWanted(t *testing.T) int {
	text := os.Getenv("RLHOST_SWAPS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 {
		t.Fatalf("RLHOST_SWAPS=%q: want a number of 100 or more", text)
	}
	return n
}

// One run goes through many swaps, from C to Rust and back, every now and then to a process and back: it holds no more in
// the end than at the beginning, loses no env step, and learns the same as without them.
func TestSwapMany_NothingGrowsAndItLearns(t *testing.T) {
	t.Parallel()
	n := swapsWanted(t)
	every := 100
	if n < 1000 {
		every = n / 8 * 2
	}
	w := newSwapShop(t)
	wall := "10m"
	if n > 1000 {
		wall = "2h"
	}
	reaches475, _, _ := strings.Cut(jobOf("cartpole", oldVersion), "[policy.main]")
	w.write("many.toml", strings.NewReplacer("5m", wall, "episodes = 3", "episodes = 20").Replace(reaches475))
	j := w.host("many.toml", "--json")
	var early []control.Resources
	var processes, kept, ended, dropped uint64
	for i := 1; i <= n; i++ {
		if i%every == every-1 { // the one in C runs, and does afterwards
			processes += j.toProcessAndBack(i / every)
		}
		q := w.swapTo([]string{oldVersion, newVersion}[i%2])
		q.KeepState = new(i%4 < 2)
		q.At = []string{"trajectory", "step", "trajectory", "episode"}[i/2%4]
		r := j.swap(q)
		kept, ended, dropped = kept+uint64(r.Kept), ended+uint64(r.Truncated), dropped+r.Dropped
		if i <= n*2/10 && len(j.processes()) == 1 { // else the spare of a process that has gone is still there
			early = append(early, j.status().Resources)
		}
	}
	j.alone()
	j.comesDown(early)
	s := j.quiet()
	if got := s.Swaps.Committed; got != uint64(n)+processes {
		t.Errorf("%d changes are counted, %d were made", got, uint64(n)+processes)
	}
	steps := j.addsUp()
	t.Logf("%d swaps and %d changes of runtime, %d episodes kept, %d ended, %d env steps dropped; env steps %+v", n, processes, kept, ended, dropped, steps)
	if dropped != 0 {
		t.Errorf("%d env steps were dropped", dropped)
	}
	j.learnsAndEnds()
}

// toProcessAndBack moves a component or the environments to a process and back, and returns how many changes that took.
func (j *subject) toProcessAndBack(round int) uint64 {
	j.t.Helper()
	before := j.status().Swaps.Committed
	if what := []string{"inference", "environments", "batcher"}[round%3]; what != "environments" {
		for _, where := range []string{"process", "builtin"} {
			j.swap(control.SwapRequest{Component: what, File: where})
		}
	} else {
		for _, where := range []string{"process", "host"} {
			j.reload("many.toml", "env.cartpole.runtime="+strconv.Quote(where))
		}
	}
	return j.status().Swaps.Committed - before
}

// comesDown waits until the job holds no more than it did early, but for a little. Resources are released after the
// changes, so a busy machine is late with it; a leak is never released.
func (j *subject) comesDown(early []control.Resources) {
	j.t.Helper()
	bounds := []struct { // goroutines, descriptors, mappings, KiB of memory
		more int
		of   func(control.Resources) int
	}{
		{8, func(r control.Resources) int { return r.Goroutines }},
		{20, func(r control.Resources) int { return r.Descriptors }},
		{48, func(r control.Resources) int { return r.Mappings }},
		{32 << 10, func(r control.Resources) int { return int(r.Resident >> 10) }},
	}
	was := make([]int, len(bounds)) // in the middle
	for i, b := range bounds {
		var values []int
		for _, r := range early {
			values = append(values, b.of(r))
		}
		slices.Sort(values)
		was[i] = values[len(values)/2]
	}
	j.t.Logf("early %+v", early[len(early)/2])
	late := j.until(fmt.Sprintf("no more than %v and a little", was), func(s *control.StatusReply) bool {
		for i, b := range bounds {
			if b.of(s.Resources) > was[i]+b.more {
				return false
			}
		}
		return true
	})
	j.t.Logf("late  %+v", late.Resources)
}

// learnsAndEnds lets the run reach its return, which ends it, and checks its last output.
func (j *subject) learnsAndEnds() {
	j.t.Helper()
	q := j.w.reloadWith("many.toml", "run.stop.return=475")
	if err := j.client.Do(j.t.Context(), control.VerbReload, q, nil, nil); err != nil {
		j.refusal(err, control.CodeEnded, "the run ended meanwhile|the job ended before it answered") // for that rule, at once
	}
	<-j.ended
	end := j.end()
	j.t.Logf("ended by %s after %d env steps, mean return %.1f", end.Reason, end.EnvSteps, end.MeanReturn)
	if j.code != 0 || end.Reason != "return" || end.EvalReturn < 475 {
		j.t.Errorf("exit code %d, %s, evaluation %v: want 475", j.code, end.Reason, end.EvalReturn)
	}
	j.nothingLeft()
}
