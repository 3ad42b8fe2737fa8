package pipeline

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/hostabi"
)

// heard counts the messages of taps.
type heard struct {
	mu    sync.Mutex
	calls map[string]int // by "signal from"
	last  map[string]uint64
	order bool // a sequence went back
}

func (h *heard) hear(signal, from string, m *hostabi.Message, _ *arena.Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls, h.last = map[string]int{}, map[string]uint64{}
	}
	key := signal + " " + from
	h.calls[key]++
	h.order = h.order || m.Sequence <= h.last[key]
	h.last[key] = m.Sequence
}

func (h *heard) count(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[key]
}

func TestTap_ShowsTheMessagesOfTheSignalsThatAPatternNames(t *testing.T) {
	_, w, p := observe(t, chain(""), BuildOptions{}, "component.first.count=2")
	cases := []struct {
		pattern string
		want    []string
	}{
		{"first.out", []string{"first.out first[0]", "first.out first[1]"}},
		{"first[1].*", []string{"first.out first[1]"}},
		{"source", []string{"source.ticks source"}},
		{"*.out", []string{"first.out first[0]", "first.out first[1]", "second.out second"}},
		{"kind:valve.o?t", []string{"first.out first[0]", "first.out first[1]", "second.out second"}},
	}
	ears := make([]*heard, len(cases))
	var cancels []func()
	for i, c := range cases {
		ears[i] = &heard{}
		cancel, err := p.Tap(c.pattern, false, ears[i].hear)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		cancels = append(cancels, cancel)
	}
	end := startRun(t, p)
	for i, c := range cases {
		for _, key := range c.want {
			testkit.Until(t, c.pattern+" shows "+key, func() bool { return ears[i].count(key) > 50 })
		}
		ears[i].mu.Lock()
		if len(ears[i].calls) != len(c.want) || ears[i].order {
			t.Errorf("%s shows %v, out of order: %v", c.pattern, ears[i].calls, ears[i].order)
		}
		ears[i].mu.Unlock()
	}
	for _, cancel := range cancels {
		cancel()
		cancel() // once more does nothing
	}
	before := ears[2].count("source.ticks source")
	ticks := w.total.Load()
	testkit.Until(t, "ticks without taps", func() bool { return w.total.Load() > ticks+100 })
	if got := ears[2].count("source.ticks source"); got != before {
		t.Errorf("a cancelled tap showed %d more messages", got-before)
	}
	for _, m := range p.running.now().members {
		for _, port := range m.of.Manifest.Signals {
			if n := len(m.host.Signal(port.Name).Connections()); m.name == "second" && n != 1 || n > 2 {
				t.Errorf("%s.%s has %d connections after the taps", m.name, port.Name, n)
			}
		}
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestTap_RefusesWhatNamesNothing(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	cases := map[string]control.Code{
		"source.tick": control.CodeUnknown, "sink.*": control.CodeUnknown, "frist.out": control.CodeUnknown, "first[1].out": control.CodeUnknown,
		"": control.CodeBad, "first.": control.CodeBad, ".out": control.CodeBad, "first.out[1]": control.CodeBad,
		"first.kind:x": control.CodeBad, "first.a.b": control.CodeBad,
	}
	for pattern, want := range cases {
		_, err := p.Tap(pattern, false, (&heard{}).hear)
		var e *control.Error
		if !errors.As(err, &e) || e.Code != want {
			t.Errorf("Tap(%q) = %v, want code %s", pattern, err, want)
		}
		if want == control.CodeUnknown && e.Help != "there are source.ticks, first.out, second.out" {
			t.Errorf("Tap(%q) helps with %q", pattern, e.Help)
		}
	}
}

func TestTap_WithColumnsHasTheBlock(t *testing.T) {
	_, _, p := observe(t, bins, BuildOptions{})
	var shown, wrong atomic.Int64
	cancel, err := p.Tap("rollout.trajectories", true, func(_, _ string, m *hostabi.Message, a *arena.Set) {
		tr, lease, err := trajectory.Lease(a, m.Handle)
		if err != nil || tr.Meta().ValidRows != m.T {
			wrong.Add(1)
		}
		if err == nil && lease.Release() != nil {
			wrong.Add(1)
		}
		shown.Add(1)
	})
	if err != nil {
		t.Fatal(err)
	}
	end := startRun(t, p)
	testkit.Until(t, "trajectories", func() bool { return shown.Load() > 200 })
	cancel()
	if _, err := end(); err != nil { // also if the tap had kept a block
		t.Error(err)
	}
	if wrong.Load() != 0 {
		t.Errorf("%d of %d blocks were not there or not the right ones", wrong.Load(), shown.Load())
	}
}

func TestTap_ThatIsBehindHoldsNothingUp(t *testing.T) {
	for _, columns := range []bool{false, true} {
		_, _, p := observe(t, bins, BuildOptions{})
		release, first := make(chan struct{}), make(chan struct{})
		var once sync.Once
		seen := &heard{}
		_, err := p.Tap("*", columns, func(signal, from string, m *hostabi.Message, a *arena.Set) {
			once.Do(func() { close(first) })
			<-release
			seen.hear(signal, from, m, a)
		})
		if err != nil {
			t.Fatal(err)
		}
		end := startRun(t, p)
		<-first
		made := p.Stats().Counter(component.CounterMade)
		from := made.Value()
		testkit.Until(t, "thousands of trajectories past the tap", func() bool { return made.Value() > from+10*tapDepth })
		close(release)
		if _, err := end(); err != nil {
			t.Error(err)
		}
		if n := seen.count("rollout.trajectories rollout"); n == 0 || n > 10*tapDepth && !columns {
			t.Errorf("columns %v: the tap showed %d messages", columns, n)
		}
	}
}

func TestTap_EndsWithTheRun(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{}, "component.sink.stop_at=100")
	before := runtime.NumGoroutine()
	ear := &heard{}
	cancel, err := p.Tap("source.ticks", false, ear.hear)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ended *control.Error
	if _, err := p.Tap("source.ticks", false, ear.hear); !errors.As(err, &ended) || ended.Code != control.CodeEnded {
		t.Errorf("a tap after the end: %v", err)
	}
	cancel()
	testkit.Until(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestTap_ThatPanicsEndsAlone(t *testing.T) {
	_, w, p := observe(t, chain(""), BuildOptions{})
	end := startRun(t, p)
	cancel, err := p.Tap("source", false, func(string, string, *hostabi.Message, *arena.Set) { panic("a defect") })
	if err != nil {
		t.Fatal(err)
	}
	from := w.total.Load()
	testkit.Until(t, "ticks", func() bool { return w.total.Load() > from+1000 })
	cancel()
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestTap_FollowsInstancesThatAreReplacedOrRenamed(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	_, _, other := observe(t, strings.ReplaceAll(chain(""), `name = "chain"`, `name = "other"`), BuildOptions{}, "component.first.count=2")
	ear := &heard{}
	cancel, err := p.Tap("first.out", false, ear.hear)
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	emit := func(p *Pipeline, i int) {
		if err := p.running.now().members[i].host.Signal("out").Emit(hostabi.Message{}); err != nil {
			t.Error(err)
		}
	}
	before, after := p.running.now(), other.running.now()
	emit(p, 1)
	p.taps.follow(after) // prepared
	emit(p, 1)
	emit(other, 1)
	p.running.state.Store(after)
	defer p.running.state.Store(before) // each is closed with its own
	p.taps.follow(after)                // committed
	emit(p, 2)
	emit(other, 1)
	old := before.members[1].host.Signal("out")
	if err := old.Emit(hostabi.Message{}); err != nil || len(old.Connections()) != 1 {
		t.Errorf("the old signal has %d connections, %v", len(old.Connections()), err)
	}
	testkit.Until(t, "all of them", func() bool {
		return ear.count("first.out first") == 2 && ear.count("first.out first[0]") == 2 && ear.count("first.out first[1]") == 1
	})
}

func TestTap_ManyComeAndGoWhileTheRunGoesOn(t *testing.T) {
	_, _, p := observe(t, bins, BuildOptions{})
	end := startRun(t, p)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 50 {
				ear := &heard{}
				cancel, err := p.Tap("rollout.*", (i+k)%2 == 0, ear.hear)
				if err != nil {
					t.Error(err)
					return
				}
				if k%10 == 0 {
					for at := time.Now(); ear.count("rollout.trajectories rollout") == 0 && time.Since(at) < 5*time.Second; {
						runtime.Gosched()
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	if _, err := end(); err != nil {
		t.Error(err)
	}
}
