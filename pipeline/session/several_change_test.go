package session_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// going is a run that commands change.
type going struct {
	*trainer
	x     *session.Session
	c     *control.Client
	ended chan error
}

// begun begins a run of a file, or resumes the newest one where file is empty.
func (s *trainer) begun(file string, sets ...string) *going {
	s.Helper()
	g := &going{trainer: s, ended: make(chan error, 1)}
	o := s.options()
	var err error
	if file == "" {
		o.Sets = sets
		g.x, err = session.Resume(s.Context(), s.newest(), o)
	} else {
		o.Graph = s.graph(file, sets...)
		g.x, err = session.Begin(s.Context(), o)
	}
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		_, err := g.x.Run(context.Background())
		g.ended <- err
	}()
	g.c = dial(s.T, control.SocketPath(g.x.Folder().Dir))
	return g
}

// end stops the run, which saves it.
func (g *going) end() {
	g.Helper()
	g.x.Stop(false)
	if err := errors.Join(<-g.ended, g.c.Close(), g.x.Close()); err != nil {
		g.Fatal(err)
	}
}

func (g *going) do(verb control.Verb, q, reply any) {
	g.Helper()
	if err := g.c.Do(g.Context(), verb, q, reply, nil); err != nil {
		var e *control.Error
		if errors.As(err, &e) {
			g.Fatalf("%s: %v (%s) %s", verb, err, e.Help, e.Problems)
		}
		g.Fatalf("%s: %v", verb, err)
	}
}

func (g *going) reload(file string, sets ...string) (r control.ReloadReply) {
	g.Helper()
	q := control.ReloadRequest{File: filepath.Join(g.dir, "duet.toml"), Source: file, Sets: append([]string{"run.dir=" + g.dir}, sets...)}
	g.do(control.VerbReload, q, &r)
	return r
}

func (g *going) rollback(component string) (r control.SwapReply) {
	g.Helper()
	g.do(control.VerbRollback, control.RollbackRequest{Component: component}, &r)
	return r
}

// learners returns the names of the running learners.
func (g *going) learners() (names []string) {
	for _, l := range g.x.Pipeline().Learners() {
		names = append(names, l.Name)
	}
	return names
}

// alone is shared with main playing all agents; a run of both lasts until it is stopped.
var (
	endless = strings.NewReplacer("env_steps = 8192, window", "env_steps = 500_000_000, window", "every = \"0s\"", "every = \"1h\"",
		"[env.game]", "[swap]\ntrial_envs = 0\nprobation = \"0s\"\n[env.game]").Replace(shared)
	alone = func() string {
		text, _, _ := strings.Cut(endless, "[policy.rival]")
		_, rest, _ := strings.Cut(endless, "[component.rollout]")
		rest = strings.Replace(rest, `policies = { "*/0" = "main", "*/1" = "rival" }`, "", 1)
		for _, name := range []string{"batcher_rival", "learner_rival"} {
			before, after, _ := strings.Cut(rest, "[component."+name+"]")
			_, after, _ = strings.Cut(after, "[component.")
			rest = before + "[component." + after
		}
		return text + "[component.rollout]" + rest
	}()
)

// A change of policies is undone as a whole: policies, components and wires are as they were, and later changes elsewhere stay.
// The way back has a way back, also from a resumed run.
func TestSeveral_AChangeOfPoliciesIsRolledBack(t *testing.T) {
	s := newTrainer(t)
	g := s.begun(alone)
	p := g.x.Pipeline()
	before := p.Graph().Expanded()
	if r := g.reload(endless); r.Outcome != control.Committed || !slices.Equal(g.learners(), []string{"learner", "learner_rival"}) {
		t.Fatalf("%+v: learners %v", r, g.learners())
	}
	with := p.Graph().Expanded()
	if r := g.rollback("rollout"); r.Outcome != control.RolledBack || p.Graph().Expanded() != before {
		t.Errorf("%+v: the pipeline is\n%s\nwant\n%s", r, p.Graph().Expanded(), before)
	}
	if r := g.rollback("batcher"); r.Outcome != control.RolledBack || p.Graph().Expanded() != with {
		t.Errorf("%+v: the pipeline is\n%s\nwant\n%s", r, p.Graph().Expanded(), with)
	}
	g.reload(endless, "component.learner.learning_rate=0.002", "component.learner_rival.learning_rate=0.001")
	g.end()

	g = s.begun("")
	p = g.x.Pipeline()
	if r := g.rollback("rollout"); r.Outcome != control.RolledBack || len(g.learners()) != 0 {
		t.Errorf("%+v: learners %v", r, g.learners())
	}
	if was, is := s.graph(alone, "component.learner.learning_rate=0.002"), p.Graph(); len(was.Components) != len(is.Components) || len(is.Policies) != 1 ||
		was.Component("learner") == nil || !strings.Contains(is.Expanded(), "learning_rate = 0.002") {
		t.Errorf("after a resume the pipeline is\n%s\nwant\n%s", is.Expanded(), was.Expanded())
	}
	g.do(control.VerbCheckpoint, nil, nil)
	g.end()
	if c, err := s.newest().Load(runs.Latest); err != nil || !c.Exact {
		t.Errorf("%+v: %v", c, err)
	}
}

// A policy that is removed and added again starts from scratch, and its version numbers continue: none occurs twice in a run.
func TestSeveral_VersionsOfAReturningPolicyContinue(t *testing.T) {
	s := newTrainer(t)
	g := s.begun(endless)
	rival := func() uint64 {
		for _, l := range g.x.Pipeline().Learners() {
			if l.Policy == "rival" {
				return l.Version
			}
		}
		return 0
	}
	learns := func(from uint64) (newest uint64) {
		t.Helper()
		testkit.Until(t, fmt.Sprintf("rival learns beyond version %d", from), func() bool {
			newest = rival()
			return newest > from
		})
		return newest
	}
	newest := learns(3)
	for range 2 {
		g.reload(alone)
		if left := g.x.Pipeline().Left()["rival"]; left < newest {
			t.Errorf("version %d is the last one of rival, which had %d", left, newest)
		}
		newest = g.x.Pipeline().Left()["rival"]
		g.reload(endless)
		if v := rival(); v != 0 && v <= newest {
			t.Errorf("rival came back as version %d, it had %d", v, newest)
		}
		newest = learns(newest + 1)
	}
	g.reload(alone)
	newest = g.x.Pipeline().Left()["rival"]
	g.end()

	g = s.begun("")
	g.reload(endless)
	if v := learns(0); v <= newest {
		t.Errorf("in a resumed run rival came back as version %d, it had %d", v, newest)
	}
	g.end()
}

// Of two changes at once, even of different policies, one is made and the other's error names it. One after the other both are
// made; the first is then watched no more, and the second says so.
func TestSeveral_ChangesOfTwoPoliciesAtOnce(t *testing.T) {
	s := newTrainer(t)
	file := strings.Replace(endless, `probation = "0s"`, `probation = "1h"`, 1)
	g := s.begun(file)
	first, both := []string{"component.learner.learning_rate=0.002"}, []string{"component.learner.learning_rate=0.002", "component.learner_rival.learning_rate=0.001"}
	ask := func(sets []string) (r control.ReloadReply, err error) {
		c, err := control.Dial(t.Context(), control.SocketPath(g.x.Folder().Dir))
		if err != nil {
			return r, err
		}
		q := control.ReloadRequest{File: filepath.Join(g.dir, "duet.toml"), Source: file, Sets: append([]string{"run.dir=" + g.dir}, sets...)}
		err = c.Do(t.Context(), control.VerbReload, q, &r, nil)
		return r, errors.Join(err, c.Close())
	}
	var all sync.WaitGroup
	outcomes := make(chan error, 2)
	for _, sets := range [][]string{first, both[1:]} {
		all.Go(func() {
			_, err := ask(sets)
			outcomes <- err
		})
	}
	all.Wait()
	for range 2 {
		var e *control.Error
		if err := <-outcomes; err != nil && (!errors.As(err, &e) || e.Code != control.CodeBusy || !strings.Contains(e.Reason, "reload of duet.toml") || e.Help == "") {
			t.Errorf("of two at once: %v", err)
		}
	}
	for _, sets := range [][]string{nil, first, both} {
		r, err := ask(sets)
		if err != nil || r.Outcome != control.Committed {
			t.Fatalf("%v: %+v, %v", sets, r, err)
		}
		notes := r.Notes
		for _, x := range r.Swaps {
			notes = append(notes, x.Notes...)
		}
		if text := strings.Join(notes, "\n"); sets == nil && !strings.Contains(text, "the probation of the reload of duet.toml has ended") {
			t.Errorf("it is not said that the change before, which is taken back, is no longer watched: %q", text)
		}
	}
	text := g.x.Pipeline().Graph().Expanded()
	if strings.Count(text, "learning_rate = 0.002") != 1 || strings.Count(text, "learning_rate = 0.001\n") != 1 {
		t.Errorf("after both the pipeline is\n%s", text)
	}
	g.end()
}

// Instances of a policy's inference share its requests, as many as there are, and learn the same as one; their number may change during
// the run.
func TestSeveral_InstancesOfAPolicyShareItsRequests(t *testing.T) {
	s := newTrainer(t)
	one := s.train(shared)
	for _, counts := range [][2]int{{1, 2}, {3, 2}} {
		got := s.train(shared, fmt.Sprintf("component.inference.count=%d", counts[0]), fmt.Sprintf("component.inference_rival.count=%d", counts[1]))
		if got.ParamsHash != one.ParamsHash || got.ParamsHashes["rival"] != one.ParamsHashes["rival"] {
			t.Errorf("with %v instances: %.8s and %.8s, want %.8s and %.8s", counts, got.ParamsHash, got.ParamsHashes["rival"], one.ParamsHash, one.ParamsHashes["rival"])
		}
	}
	g := s.begun(endless, "train.mode=async", "component.rollout.blocks=8", "component.batcher_rival.count=2", "component.inference.count=2")
	for _, count := range []int{3, 1, 2} {
		g.do(control.VerbScale, control.ScaleRequest{Components: map[string]int{"inference_rival": count}}, nil)
		g.do(control.VerbCheckpoint, nil, nil) // both learn
		g.do(control.VerbCheckpoint, nil, nil)
	}
	p := g.x.Pipeline()
	if _, err := p.Pause(t.Context(), nil); err != nil {
		t.Error(err)
	}
	asked := map[string]uint64{}
	for _, w := range p.Wires() {
		asked[w.Wire] = w.Delivered
	}
	if all := asked["rollout.obs_ready → inference.act"]; all == 0 || asked["rollout.obs_ready → inference_rival.act"] != all {
		t.Errorf("the instances of each policy's inference together got %v, want as many", asked)
	}
	g.end()
	if n := p.Steps(); n.Made != n.Trained+n.Dropped+n.UnderWay || n.Trained == 0 {
		t.Errorf("%+v do not add up", n)
	}
}
