package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

func statusOf(t *testing.T, p *Pipeline, name string) control.ComponentStatus {
	t.Helper()
	for _, s := range p.Status().Components {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no status of %s", name)
	return control.ComponentStatus{}
}

func TestStatus_TellsStateFromBeforeTheRunToItsEnd(t *testing.T) {
	_, w, p := observe(t, chain(""), BuildOptions{}, "component.first.count=2")
	if s := statusOf(t, p, "first[1]"); s.State != control.Ready || s.Kind != "valve" || s.Runtime != "builtin" || s.Host != "local" || s.Depth != 4 {
		t.Errorf("before the run: %+v", s)
	}
	if p.Status().State != control.Running && p.Status().State != control.Ready {
		t.Errorf("state %s", p.Status().State)
	}
	end := startRun(t, p)
	testkit.Until(t, "ticks", func() bool { return w.total.Load() > 1000 })
	testkit.Until(t, "a rate", func() bool { return statusOf(t, p, "sink").Rate > 0 })
	for _, name := range []string{"source", "first[0]", "first[1]", "second", "sink"} {
		if s := statusOf(t, p, name); s.State != control.Running || s.Unit != "messages" {
			t.Errorf("%+v", s)
		}
	}
	wires := p.Wires()
	if len(wires) != 3 || wires[0].Wire != "source.ticks → first.on_ticks" || wires[0].Mode != "queue" || wires[0].Depth != 8 || wires[0].Delivered < 1000 {
		t.Errorf("wires %+v", wires)
	}
	if c := p.Status().Cause; c != "" {
		t.Errorf("while it runs: %s", c)
	}
	if _, err := end(); err != nil {
		t.Fatal(err)
	}
	if s := statusOf(t, p, "sink"); s.State != control.Completed || p.Status().State != control.Completed || p.Status().Cause != "" {
		t.Errorf("after the run: %+v, %s, cause %q", s, p.Status().State, p.Status().Cause)
	}
}

func TestStarted_WakesForTheBeginningOfTheRunAndForProcesses(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	process := p.Started()
	p.running.now().members[0].host.ProcessChanged()
	<-process
	begins, same := p.Started(), p.Started()
	select {
	case <-begins:
		t.Error("nothing has started")
	default:
	}
	startRun(t, p)
	<-begins
	<-same
	if s := p.Status().State; s == control.Ready {
		t.Errorf("the run has begun, and is %s", s)
	}
}

func TestStatus_AFailedRunSaysSo(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{}, "component.source.fail_at=20")
	if _, err := p.Run(t.Context()); err == nil {
		t.Fatal("no failure")
	}
	if s := statusOf(t, p, "source"); s.State != control.Failed {
		t.Errorf("%+v", s)
	}
}

// full reports whether members of a pipeline wait for room, each for the next one.
func full(p *Pipeline, members ...int) bool {
	s := p.watch.snapshot(time.Now())
	return !slices.ContainsFunc(members, func(i int) bool { return !s.Instances[i].WaitsForRoom() })
}

// later is a moment at which a run that is stalled now has been stalled for a while.
func later() time.Time { return time.Now().Add(30 * time.Second) }

func TestCause_FollowsFullWiresToTheOneThatHangs(t *testing.T) {
	v, _, p := observe(t, chain(""), BuildOptions{}, "component.second.hang_at=50")
	end := startRun(t, p)
	<-v.hung
	testkit.Until(t, "full wires, and a sink with nothing left to take", func() bool {
		return full(p, 0, 1) && statusOf(t, p, "sink").Queued == 0
	})
	p.watch.snapshot(time.Now())
	s := p.watch.snapshot(later())
	if got, want := s.Cause(), "second has been at one message for "; !strings.HasPrefix(got, want) ||
		!strings.Contains(got, ": first.out → second.on_ticks is full (") {
		t.Errorf("cause %q, want it to begin with %q", got, want)
	}
	for i, x := range s.Instances {
		d := s.describe(i)
		switch x.Name {
		case "first", "second":
			if d.State != control.Stalled || d.Queued < 3 || !strings.HasPrefix(d.Note, "has taken nothing for ") {
				t.Errorf("%+v", d)
			}
			if want := map[string]string{"first": "room at second.on_ticks"}[x.Name]; d.WaitsFor != want {
				t.Errorf("%s waits for %q, want %q", x.Name, d.WaitsFor, want)
			}
		case "sink":
			if d.State != control.Running || d.WaitsFor != "second.out" || d.IdleSecs < 29 {
				t.Errorf("%+v", d)
			}
		}
	}
	close(v.hang)
	testkit.Until(t, "ticks again", func() bool { return p.watch.snapshot(time.Now()).Instances[1].Stalled == 0 && p.Status().Cause == "" })
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestCause_NamesThePausedOne(t *testing.T) {
	_, _, p := observe(t, chain(""), BuildOptions{})
	startRun(t, p)
	answers, err := p.Pause(t.Context(), []string{"sink"})
	if err != nil || len(answers) != 1 || answers[0] != (control.Answer{Name: "sink", State: control.Paused}) {
		t.Fatalf("Pause = %+v, %v", answers, err)
	}
	testkit.Until(t, "full wires", func() bool { return full(p, 0, 1, 2) })
	p.watch.snapshot(time.Now())
	for _, l := range p.running.loops.All() { // they answer for themselves
		l.Do(func() {})
	}
	if got, want := p.watch.snapshot(later()).Cause(), "sink is paused (rlhost unpause sink): second.out → sink.on_ticks is full ("; !strings.HasPrefix(got, want) {
		t.Errorf("cause %q, want %q", got, want)
	}
	if s := statusOf(t, p, "sink"); s.State != control.Paused || s.Note != "" || p.Status().State != control.Paused {
		t.Errorf("%+v, run %s", s, p.Status().State)
	}
}

func TestSteps_AddUpAtEveryBoundaryOfASynchronousRun(t *testing.T) {
	var p *Pipeline
	boundaries := 0
	_, _, p = observe(t, bins, BuildOptions{AtBoundary: func(Snapshot) error {
		boundaries++
		s := p.steps.readOnce()
		if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Dropped != s.Reasons["policy_lag"] {
			t.Errorf("boundary %d: %+v", boundaries, s)
		}
		return nil
	}}, "train.mode=sync", "component.learner.stop_at=500")
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := p.Steps()
	if boundaries < 400 || s.Made == 0 || s.Trained == 0 || s.Dropped == 0 || s.Made != s.Trained+s.Dropped+s.UnderWay {
		t.Errorf("after %d boundaries: %+v", boundaries, s)
	}
}

func TestSteps_AddUpWhileTheRunGoesOn(t *testing.T) {
	_, _, p := observe(t, bins, BuildOptions{})
	end := startRun(t, p)
	same := 0
	for range 100 {
		if s := p.Steps(); s.Made == s.Trained+s.Dropped+s.UnderWay {
			same++
		}
	}
	if same < 50 {
		t.Errorf("the counts added up %d times of 100", same)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestSteps_CountWhatWiresDropAndNobodyTakes(t *testing.T) {
	text := strings.ReplaceAll(bins, `"block"`, `"drop_newest"`)
	text = strings.ReplaceAll(text, "depth = 8", "depth = 1")
	_, _, p := observe(t, text+"[component.other]\nkind = \"cutter\"\nlimit = 10\n", BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "drops", func() bool { return p.Steps().Reasons["wire"] > 80 })
	testkit.Until(t, "the other one's last trajectory", func() bool {
		return slices.ContainsFunc(p.running.now().members, func(m member) bool {
			n, _ := m.done(0)
			return m.name == "other" && n == 41
		})
	})
	if _, err := end(); err != nil {
		t.Error(err)
	}
	// The trajectories hold 1 to 8 valid rows: only their own counts add up.
	s := p.Steps()
	if s.Made != s.Trained+s.Dropped+s.UnderWay {
		t.Errorf("at the end %+v do not add up", s)
	}
	var handed uint64
	members := p.running.now().members
	for i := range members {
		if n, unit := members[i].done(0); unit == "env steps" {
			handed += n
			if other := members[i].name == "other"; other != (n == 41) { // 10 trajectories, of 2 to 8, 1, 2 and 3 rows
				t.Errorf("%s has handed over %d env steps", members[i].name, n)
			}
		}
	}
	if handed != s.Made {
		t.Errorf("the instances have handed over %d env steps, of %d", handed, s.Made)
	}
}

func TestStatus_OfASynchronousRunMayBeAskedAtABoundary(t *testing.T) {
	var p *Pipeline
	asked := 0
	_, _, p = observe(t, chain(""), BuildOptions{AtBoundary: func(Snapshot) error {
		asked++
		if s := p.Status(); s.State != control.Running || s.Cause != "" || len(s.Components) != 4 {
			t.Errorf("%+v", s)
		}
		return nil
	}}, "train.mode=sync", "component.sink.stop_at=50")
	if reason, err := p.Run(t.Context()); err != nil || reason != component.StopEnvSteps || asked == 0 {
		t.Errorf("Run = %s, %v; asked %d times", reason, err, asked)
	}
}
