package trace

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

func members(blocks ...hostabi.Handle) (list []trajectory.Member) {
	for _, b := range blocks {
		list = append(list, trajectory.Member{Handle: b})
	}
	return list
}

// ways gathers what a tracer tells, as lines of stages with their components and milliseconds.
type ways struct {
	begun time.Time
	lines []string
}

func (w *ways) add(way Way) {
	var parts []string
	for _, s := range way {
		parts = append(parts, fmt.Sprintf("%s %s %d-%d", s.Stage, s.Component, s.From.Sub(w.begun).Milliseconds(), s.To.Sub(w.begun).Milliseconds()))
	}
	w.lines = append(w.lines, strings.Join(parts, ", "))
}

func TestTracer_FollowsOneDatasetInEachPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := ways{begun: time.Now()}
		tracer := New(told.add)
		round := func(n uint64) {
			h := hostabi.Handle(10 * n)
			from := tracer.Now()
			time.Sleep(10 * time.Millisecond)
			tracer.Wrote("rollout[0]", 0, h+1, from)
			time.Sleep(5 * time.Millisecond)
			tracer.Wrote("rollout[1]", 1, h+2, from)
			tracer.Batched("batcher", h+3, members(h+1, h+1, h+2, 7777))
			from = tracer.Now()
			time.Sleep(20 * time.Millisecond)
			tracer.Learned("learner", h+3, "main", n, from)
			from = tracer.Now()
			time.Sleep(time.Millisecond)
			tracer.Loaded("inference[0]", "main", n, from)
			tracer.Loaded("inference[1]", "rival", n, from)
			tracer.Loaded("inference[1]", "main", n-1, from)
		}
		round(1) // followed
		round(2) // too early
		time.Sleep(Period)
		round(3) // followed
		tracer.Learned("learner", 999, "main", 4, tracer.Now())
		tracer.Loaded("inference[0]", "main", 4, tracer.Now())
		tracer.Close()
		tracer.Close()
		want := []string{
			"rollout rollout[0] 0-10, rollout rollout[1] 0-15, batcher batcher 10-15, learner learner 15-35, inference inference[0] 35-36",
			"rollout rollout[0] 1072-1082, rollout rollout[1] 1072-1087, batcher batcher 1082-1087, learner learner 1087-1107, inference inference[0] 1107-1108",
		}
		if !reflect.DeepEqual(told.lines, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(told.lines, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The tracer of another host tells how long blocks took, once each, and what was loaded.
func TestNewFar_TellsOfBlocksAndVersions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		loaded := ways{begun: begun}
		tracer := NewFar(func(s Span) { loaded.add(Way{s}) })
		time.Sleep(7 * time.Millisecond)
		tracer.Wrote("rollout[0]", 0, 5, begun)
		for i, want := range []time.Duration{7 * time.Millisecond, 0} {
			if took := tracer.Took(5); took != want {
				t.Errorf("the block took %v when it is asked for the %dth time, want %v", took, i+1, want)
			}
		}
		tracer.Batched("batcher", 6, members(5))
		for version := range uint64(3) {
			tracer.Learned("learner", 6, "main", version, begun)
			tracer.Loaded("inference[0]", "main", version, begun)
		}
		tracer.Close()
		want := slices.Repeat([]string{"inference inference[0] 0-7"}, 3)
		if !slices.Equal(loaded.lines, want) {
			t.Errorf("told %q, want %q", loaded.lines, want)
		}
	})
}

// What is never learned from, or never gathered, is forgotten.
func TestTracer_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := ways{begun: time.Now()}
		tracer := New(told.add)
		for i := range hostabi.Handle(3 * maxBlocks) {
			tracer.Wrote("rollout", 0, i+1, tracer.Now())
		}
		for i := range hostabi.Handle(maxWays + 1) {
			tracer.Batched("batcher", i+1, members(1, 2*maxBlocks+2))
			time.Sleep(Period)
		}
		if len(tracer.blocks) != maxBlocks || len(tracer.commits) != maxBlocks || len(tracer.datasets) != 1 {
			t.Errorf("%d blocks, %d commits, %d datasets", len(tracer.blocks), len(tracer.commits), len(tracer.datasets))
		}
		if way := tracer.datasets[maxWays+1]; len(way) != 2 {
			t.Errorf("a dataset of a forgotten block and one that is there: %v", way)
		}
	})
}

// A component without a tracer pays a comparison.
func TestTracer_NoneAllocatesNothing(t *testing.T) {
	var none *Tracer
	list := members(1, 2)
	if n := testing.AllocsPerRun(100, func() {
		none.Wrote("rollout", 0, 1, none.Now())
		none.Took(1)
		none.Batched("batcher", 3, list)
		none.Learned("learner", 3, "main", 1, none.Now())
		none.Loaded("inference", "main", 1, none.Now())
		none.Close()
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestTracer_IsForAllGoroutines(t *testing.T) {
	t.Parallel()
	told := 0
	tracer := New(func(Way) { told++ })
	var all sync.WaitGroup
	for g := range hostabi.Handle(4) {
		all.Go(func() {
			policy := fmt.Sprint(g)
			for i := range hostabi.Handle(1000) {
				h := g<<32 + 2*i
				tracer.Wrote("rollout", 0, h, tracer.Now())
				tracer.Batched("batcher", h+1, members(h))
				tracer.Learned("learner", h+1, policy, uint64(i), tracer.Now())
				tracer.Loaded("inference", policy, uint64(i), tracer.Now())
			}
		})
	}
	all.Wait()
	tracer.Close()
	if told == 0 {
		t.Error("nothing was told")
	}
}

func TestIsAddress(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"traces.jsonl": "false", "": "false", "/var/traces.jsonl": "false", "http://127.0.0.1:4318": "true", "https://collector/v1/traces": "true",
		"ftp://there": `"ftp://there" is no address of http or https`, "http://": `"http://" names no host`, "http://a b": "invalid character",
	} {
		is, err := IsAddress(to)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(is) != want {
			t.Errorf("%q: %t, %v; want %s", to, is, err, want)
		}
	}
}
