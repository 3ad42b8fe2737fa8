package pipeline

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

func pause(t *testing.T, p *Pipeline, patterns ...string) []control.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answers, err := p.Pause(ctx, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func resume(t *testing.T, p *Pipeline, patterns ...string) []control.Answer {
	t.Helper()
	answers, err := p.Resume(t.Context(), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func states(answers []control.Answer) string {
	var list []string
	for _, a := range answers {
		text := a.Name + " " + string(a.State)
		if a.Error != nil {
			text += " " + string(a.Error.Code)
		}
		if a.TimedOut {
			text += " late"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// moving reports whether ticks arrive.
func moving(w *world) func() bool {
	from := w.total.Load()
	return func() bool { return w.total.Load() > from+100 }
}

func TestPause_PausesUpstreamFirst(t *testing.T) {
	v, w, p := observe(t, chain(""), BuildOptions{}, "component.first.count=2")
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	const all = "source paused, first[0] paused, first[1] paused, second paused, sink paused"
	if got := states(pause(t, p)); got != all {
		t.Errorf("Pause: %s", got)
	}
	calls := strings.Split(v.called(), ", ")
	slices.Sort(calls[:2])
	if want := []string{"pause first[0]", "pause first[1]", "pause second"}; !slices.Equal(calls, want) {
		t.Errorf("asked %v, want %v", calls, want)
	}
	still := w.total.Load()
	for range 3 { // everything under way on the loops ends
		for _, l := range p.running.loops.All() {
			l.Do(func() {})
		}
	}
	if got := w.total.Load(); got != still {
		t.Errorf("%d ticks came after the answer", got-still)
	}
	if got := states(pause(t, p, "first")); got != "first[0] paused, first[1] paused" {
		t.Errorf("once more: %s", got)
	}
	if got := states(resume(t, p, "second", "kind:sink")); got != "second running, sink running" {
		t.Errorf("Resume: %s", got)
	}
	if s := statusOf(t, p, "first[1]"); s.State != control.Paused {
		t.Errorf("first[1] is %s", s.State)
	}
	if got := states(resume(t, p)); got != strings.ReplaceAll(all, "paused", "running") {
		t.Errorf("Resume: %s", got)
	}
	testkit.Until(t, "ticks again", moving(w))
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestPause_RefusesPatternsWithoutAMatch(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	for pattern, want := range map[string]control.Code{"third": control.CodeUnknown, "first[1]": control.CodeUnknown, "first[": control.CodeBad} {
		for _, do := range []func(context.Context, []string) ([]control.Answer, error){p.Pause, p.Resume} {
			var e *control.Error
			if answers, err := do(t.Context(), []string{"sink", pattern}); !errors.As(err, &e) || e.Code != want || answers != nil {
				t.Errorf("%q: %v, %v, want %s", pattern, answers, err, want)
			}
		}
	}
	if p.pauses.has(p.running.now().members[3].instance) {
		t.Error("the sink is paused all the same")
	}
}

func TestPause_WhoIsLateRunsOn(t *testing.T) {
	v, w, p := observe(t, chain(""), BuildOptions{}, "component.second.sticky=true")
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	answers, err := p.Pause(ctx, []string{"first", "second"})
	if err != nil || states(answers) != "first paused, second running E076 late" {
		t.Errorf("Pause = %s, %v", states(answers), err)
	}
	testkit.Until(t, "the late one is resumed", func() bool { return v.called() == "pause first, pause second, resume second" })
	v.mu.Lock()
	late := v.stuck[0]
	v.mu.Unlock()
	late.h.Receiver.Loop().Do(late.rested) // too late: nothing happens
	if s := statusOf(t, p, "second"); s.State == control.Paused {
		t.Errorf("second is %s", s.State)
	}
	resume(t, p)
	testkit.Until(t, "ticks again", moving(w))
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestPause_MayComeLater(t *testing.T) {
	v, _, p := observe(t, chain(""), BuildOptions{}, "component.second.sticky=true")
	end := startRun(t, p)
	answers := make(chan []control.Answer, 1)
	go func() { answers <- pause(t, p, "second") }()
	testkit.Until(t, "asked", func() bool { return v.called() == "pause second" })
	if s := statusOf(t, p, "second"); s.State != control.Running {
		t.Errorf("before it rests it is %s", s.State)
	}
	v.mu.Lock()
	x := v.stuck[0]
	v.mu.Unlock()
	x.h.Receiver.Loop().Do(x.rested)
	if got := states(<-answers); got != "second paused" {
		t.Errorf("Pause: %s", got)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestStop_EndsAPausedRunAtABoundary(t *testing.T) {
	for _, mode := range []string{"async", "sync"} {
		boundaries, last := 0, false
		var p *Pipeline
		var w *world
		_, w, p = observe(t, chain(""), BuildOptions{Grace: time.Hour, AtBoundary: func(Snapshot) error {
			boundaries++
			last = p.Stopping() != ""
			return nil
		}}, "train.mode="+mode)
		end := startRun(t, p)
		testkit.Until(t, "ticks", moving(w))
		pause(t, p)
		if reason, err := end(); err != nil || reason != "enough" || !last {
			t.Errorf("%s: Run = %s, %v; %d boundaries, with the last: %v", mode, reason, err, boundaries, last)
		}
		if answers, err := p.Pause(t.Context(), nil); err != nil || answers[0].Error == nil || answers[0].Error.Code != control.CodeEnded {
			t.Errorf("%s: Pause after the end = %s, %v", mode, states(answers), err)
		}
	}
}

func TestAtNextBoundary_LiftsAPauseForAsLongAsItTakes(t *testing.T) {
	_, w, p := observe(t, chain(""), BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	pause(t, p, "source", "sink")
	called := 0
	if err := p.AtNextBoundary(t.Context(), func(snapshot Snapshot) error {
		called++
		states, err := snapshot()
		if _, ok := states["sink"]; !ok {
			t.Errorf("snapshot has %v, %v", states, err)
		}
		return nil
	}); err != nil || called != 1 {
		t.Errorf("AtNextBoundary = %v after %d calls", err, called)
	}
	for _, name := range []string{"source", "sink"} {
		if s := statusOf(t, p, name); s.State != control.Paused {
			t.Errorf("%s is %s after the checkpoint", name, s.State)
		}
	}
	resume(t, p)
	testkit.Until(t, "ticks again", moving(w))
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestPause_IsRefusedWhileAChangeIsMade(t *testing.T) {
	_, w, p := observe(t, chain(""), BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	pause(t, p, "first")
	restore := p.pauses.lift()
	testkit.Until(t, "ticks although it is paused", moving(w))
	if got := states(pause(t, p, "sink")); got != "sink  E072" {
		t.Errorf("Pause: %s", got)
	}
	restore()
	if s := statusOf(t, p, "first"); s.State != control.Paused {
		t.Errorf("first is %s", s.State)
	}
	restore = p.pauses.lift()
	if got := states(resume(t, p, "first")); got != "first running" {
		t.Errorf("Resume: %s", got)
	}
	restore()
	if s := statusOf(t, p, "first"); s.State != control.Running {
		t.Errorf("first, which was resumed, is %s", s.State)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestPause_OfAPipelineThatDoesNotRunYetIsLate(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	answers, err := p.Pause(ctx, []string{"sink"})
	if err != nil || states(answers) != "sink running E076 late" {
		t.Errorf("Pause = %s, %v", states(answers), err)
	}
}

var _ component.Pauser = (*valve)(nil)

func TestDepths_WhoAsksComesBeforeWhoAnswers(t *testing.T) {
	src, err := os.ReadFile("../pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graphtest.Parse("../pipeline.toml", src, graph.ParseOptions{Parts: graphtest.Standard()})
	if problems.Err() != nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	depth := depths(g)
	for name, want := range map[string]int{"rollout": 0, "inference": 1, "batcher": 1, "learner": 2, "runner": 3} {
		if depth[name] != want {
			t.Errorf("%s has depth %d, want %d", name, depth[name], want)
		}
	}
	circle := &graph.Graph{Components: []graph.Component{{Name: "a"}, {Name: "b"}},
		Wires: []graph.Wire{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "a", To: "a"}}}
	if depth := depths(circle); depth["a"] > 2 || depth["b"] > 2 {
		t.Errorf("a circle has depths %v", depth)
	}
}
