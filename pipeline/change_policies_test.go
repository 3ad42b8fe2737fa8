package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// rounds counts the answered requests of askers, by the policies that act.
type rounds struct {
	asked atomic.Uint64
	mu    sync.Mutex
	by    map[string]*atomic.Uint64
}

func (r *rounds) of(policies string) *atomic.Uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[policies] == nil {
		r.by[policies] = new(atomic.Uint64)
	}
	return r.by[policies]
}

// duelist asks, as a rollout does, and asks again when each policy that acts has answered.
type duelist struct {
	component.Component
	h      *component.Host
	rounds *rounds
	c      struct {
		Env       string             `toml:"env"`
		Policies  map[string]string  `toml:"policies"`
		Opponents map[string]float64 `toml:"opponents"`
		GivesUp   bool               `toml:"gives_up"` // it fails when it has asked and quits says so
		Another   bool               `toml:"another"`  // nothing to it
	}
	started func()        // by Start
	quits   func() bool   // whether a player that gives up does now, before it asks
	stopped func()        // by Stop of a player that has given up
	goesOn  bool          // from another's state
	asked   uint64        // the number of its question
	open    []uint32      // policies that have not answered
	idle    bool          // it is paused, and does not ask
	rested  func()        // called when it would ask again; nil if it is not paused
	turns   atomic.Uint64 // odd while it waits for answers
}

// Owed says whether it waits for answers.
func (a *duelist) Owed(fn func(component.Owed)) {
	if n := a.turns.Load(); n%2 == 1 {
		fn(component.Owed{Signal: "obs_ready", Mark: n})
	}
}

func (a *duelist) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("obs_ready", component.PayloadRequest), Slots: graphtest.Ports("on_actions", component.PayloadActions)}
}

func (a *duelist) Configure(decode func(any) error) error { return decode(&a.c) }

func (a *duelist) Flow() component.Flow {
	return component.Flow{Envs: 4, Policies: a.c.Policies, Opponents: a.c.Opponents}
}

func (a *duelist) Start(h *component.Host) error {
	a.h = h
	if a.started != nil {
		a.started()
	}
	h.Slot("on_actions", a.onActions)
	if _, err := h.Env(a.c.Env); err != nil {
		return err
	}
	h.Receiver.Post(a.ask, hostabi.Message{})
	return nil
}

func (a *duelist) acting() []string {
	f := a.Flow()
	return f.Acting()
}

func (a *duelist) ask(*hostabi.Message) {
	if rested := a.rested; rested != nil {
		a.rested, a.idle = nil, true
		rested()
		return
	}
	for _, name := range a.acting() {
		a.open = append(a.open, trajectory.PolicyID(name))
	}
	a.turns.Add(1)
	quits := a.c.GivesUp && a.quits()
	a.asked = a.rounds.asked.Add(1)
	if err := a.h.Signal("obs_ready").Emit(hostabi.Message{Sender: a.h.ID, Inline: [2]uint64{1: a.asked}}); err != nil {
		a.h.Fail(err)
	}
	if quits {
		a.h.Fail(errors.New("it gives up"))
	}
}

func (a *duelist) onActions(m *hostabi.Message) {
	if a.h.Abrupt && m.Inline[1] != a.asked {
		return // it is for the predecessor
	}
	i := slices.Index(a.open, uint32(m.Inline[0]))
	if i < 0 {
		a.h.Fail(fmt.Errorf("an answer of policy %x, which was not asked", m.Inline[0]))
		return
	}
	if a.open = slices.Delete(a.open, i, i+1); len(a.open) == 0 {
		a.turns.Add(1)
		a.rounds.of(strings.Join(a.acting(), " ")).Add(1)
		a.h.Receiver.Post(a.ask, hostabi.Message{})
	}
}

func (a *duelist) Pause(rested func()) { a.rested = rested }

func (a *duelist) Resume() {
	if a.rested = nil; a.idle {
		a.idle = false
		a.h.Receiver.Post(a.ask, hostabi.Message{})
	}
}

func (a *duelist) Waiting() []component.Waiting       { return nil }
func (a *duelist) Snapshot() (component.State, error) { return component.State{}, nil }
func (a *duelist) Restore(component.State) error {
	if !a.goesOn {
		return errors.New("of other policies")
	}
	return nil
}

func (a *duelist) Stop() error {
	if a.c.GivesUp {
		a.stopped()
	}
	return nil
}

func (a *duelist) EnvName() string { return a.c.Env }
func (a *duelist) PrepareEnvs(context.Context, component.EnvChange) (component.PreparedEnvs, error) {
	return nil, component.ErrChanging
}

// seconder answers for a policy.
type seconder struct {
	component.Component
	h *component.Host
	c struct {
		Policy string `toml:"policy"`
		Breaks bool   `toml:"breaks"` // it fails when it is asked and broken says so
	}
	broken func() bool
	mute   func() bool // it does not answer; nil: it does
	wait   func()      // before it answers; nil: it does not
}

func (a *seconder) Manifest() component.Manifest {
	return component.Manifest{Signals: graphtest.Ports("actions", component.PayloadActions), Slots: graphtest.Ports("act", component.PayloadRequest)}
}

func (a *seconder) Configure(decode func(any) error) error { return decode(&a.c) }

func (a *seconder) Start(h *component.Host) error {
	a.h = h
	h.Slot("act", func(m *hostabi.Message) {
		if a.mute != nil && a.mute() {
			return
		}
		if a.wait != nil {
			a.wait()
		}
		if a.c.Breaks && a.broken() {
			h.Fail(errors.New("it breaks"))
			return
		}
		answer := *m
		answer.Inline[0] = uint64(trajectory.PolicyID(a.c.Policy))
		if err := h.Signal("actions").Emit(answer); err != nil {
			h.Fail(err)
		}
	})
	return nil
}

func (a *seconder) Snapshot() (component.State, error) { return component.State{}, nil }
func (a *seconder) Restore(component.State) error      { return nil }
func (a *seconder) Stop() error                        { return nil }

// duelParts are the parts of a pipeline in which policies answer.
func duelParts(r *rounds) *graph.Parts {
	parts := graphtest.Loading()
	parts.Kinds["duelist"] = func() component.Component { return &duelist{rounds: r} }
	parts.Kinds["seconder"] = func() component.Component { return &seconder{} }
	parts.Load = func(_ context.Context, _ string, e graph.EnvTable, _ string) (env.Plugin, error) {
		return &game{graphtest.Described{Obs: 4, Groups: []hostabi.Group{{Name: "player", Agents: 2}}}, &stageHooks{}, e.Use}, nil
	}
	return parts
}

// duelText is a pipeline in which policies act, the first two for the agents and the others as opponents.
func duelText(mode string, policies ...string) string {
	text := "rlhost = 1\n[run]\nname = \"duel\"\n[train]\nmode = \"" + mode + "\"\n[env.duel]\nuse = \"cartpole@1\"\n[policy.main]\nenv = \"duel\"\n" +
		"[component.duelist]\nkind = \"duelist\"\nenv = \"duel\"\n"
	second := policies[min(1, len(policies)-1)]
	text += fmt.Sprintf("policies = { \"player/0\" = %q, \"player/1\" = %q }\n", policies[0], second)
	if len(policies) > 2 {
		text += fmt.Sprintf("opponents = { %q = 0.5 }\n", policies[2])
	}
	for _, name := range policies {
		if name == "rival" {
			text += "[policy.rival]\nenv = \"duel\"\n"
		}
		component := "seconder_" + strings.ReplaceAll(name, "@", "_")
		text += fmt.Sprintf("[component.%s]\nkind = \"seconder\"\npolicy = %q\n"+
			"[[wire]]\nsignal = \"duelist.obs_ready\"\nslot = \"%[1]s.act\"\nmode = \"all\"\ndepth = 4\non_full = \"block\"\n"+
			"[[wire]]\nsignal = \"%[1]s.actions\"\nslot = \"duelist.on_actions\"\nmode = \"reply\"\ndepth = 4\non_full = \"block\"\n", component, name)
	}
	return text
}

// Policies are added, frozen and removed during a run: the asking component starts again and asks the policies that act then, and no other.
func TestTransition_PoliciesComeAndGo(t *testing.T) {
	for _, mode := range []string{graph.ModeAsync, graph.ModeSync} {
		t.Run(mode, func(t *testing.T) {
			answered := &rounds{by: map[string]*atomic.Uint64{}}
			s, _ := newStage()
			r := runLive(t, s, duelParts(answered), duelText(mode, "main"), BuildOptions{Grace: time.Nanosecond})
			for i, policies := range [][]string{{"main"}, {"main", "rival"}, {"main", "rival", "main@3"}, {"main", "main@3"}, {"main"}} {
				if i > 0 {
					x, err := r.Prepare(t.Context(), mustParse(t, duelText(mode, policies...), r.parts), TransitionOptions{})
					if err != nil {
						t.Fatalf("%v: %v", policies, r.because(err))
					}
					o, err := x.Commit(t.Context())
					if err != nil {
						t.Fatalf("%v: %v", policies, r.because(err))
					}
					if !slices.Equal(o.Replaced, []string{"duelist"}) || !strings.Contains(strings.Join(o.Notes, "\n"), "duelist begins new episodes: other policies act") {
						t.Errorf("%v: replaced %v, %v", policies, o.Replaced, o.Notes)
					}
				}
				names := slices.Sorted(slices.Values(policies))
				n := answered.of(strings.Join(names, " "))
				before := n.Load()
				testkit.Until(t, fmt.Sprintf("answers of %v", policies), func() bool { return n.Load() > before+10 || len(r.over) > 0 })
			}
			r.end()
		})
	}
}

// An asker that fails on probation is replaced after its pending answers: the answering components work on its blocks until then.
func TestTransition_AFailedInstanceStaysUntilItsRequestsAreAnswered(t *testing.T) {
	answered := &rounds{by: map[string]*atomic.Uint64{}}
	var quits, open atomic.Bool // it should fail, and has failed: its request is open
	again, left := make(chan struct{}), make(chan bool, 1)
	parts := duelParts(answered)
	parts.Kinds["duelist"] = func() component.Component {
		return &duelist{
			rounds: answered, goesOn: true,
			quits:   func() bool { open.Store(quits.Load()); return quits.Load() },
			stopped: func() { left <- open.Load() },
			started: func() {
				if open.Load() {
					close(again)
				}
			},
		}
	}
	parts.Kinds["seconder"] = func() component.Component {
		return &seconder{wait: func() {
			if open.Load() {
				<-again
				for range 1000 { // an impatient host takes it away meanwhile
					runtime.Gosched()
				}
				open.Store(false)
			}
		}}
	}
	s, _ := newStage()
	text := strings.Replace(duelText(graph.ModeAsync, "main"), "kind = \"seconder\"", "kind = \"seconder\"\nloop = \"apart\"", 1)
	r := runLive(t, s, parts, text, BuildOptions{Grace: time.Nanosecond})
	n := answered.of("main")
	testkit.Until(t, "answers", func() bool { return n.Load() > 10 })
	rolledBack := make(chan error, 1)
	change := func(text string) {
		x, err := r.Prepare(t.Context(), mustParse(t, text, r.parts), TransitionOptions{Probation: true, RolledBack: func(_ string, fault error) { rolledBack <- fault }})
		if err == nil {
			_, err = x.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(r.because(err))
		}
	}
	change(strings.Replace(text, "kind = \"duelist\"", "kind = \"duelist\"\ngives_up = true", 1))
	quits.Store(true)
	if fault := <-rolledBack; fault == nil || !strings.Contains(fault.Error(), "it gives up") {
		t.Errorf("rolled back for %v", fault)
	}
	quits.Store(false)
	change(text)
	if early := <-left; early {
		t.Error("it left while its question was being answered")
	}
	before := n.Load()
	testkit.Until(t, "answers", func() bool { return n.Load() > before+10 })
	r.end()
}

// An instance that others wait for is restored first: they pause when its successor has answered.
func TestTransition_AFailedInstanceIsRestoredFirst(t *testing.T) {
	answered := &rounds{by: map[string]*atomic.Uint64{}}
	parts := duelParts(answered)
	parts.Kinds["duelist"] = func() component.Component { return &duelist{rounds: answered, goesOn: true} }
	var breaks atomic.Bool
	parts.Kinds["seconder"] = func() component.Component { return &seconder{broken: breaks.Load} }
	s, _ := newStage()
	text := duelText(graph.ModeAsync, "main")
	r := runLive(t, s, parts, text, BuildOptions{Grace: time.Nanosecond})
	n := answered.of("main")
	testkit.Until(t, "answers", func() bool { return n.Load() > 10 })
	broken := make(chan string, 1)
	options := TransitionOptions{Probation: true, Deadline: 10 * time.Second, RolledBack: func(name string, _ error) { broken <- name }}
	change := func(text string) error {
		x, err := r.Prepare(t.Context(), mustParse(t, text, r.parts), options)
		if err == nil {
			_, err = x.Commit(t.Context())
		}
		return err
	}
	other := strings.Replace(text, "kind = \"duelist\"", "kind = \"duelist\"\nanother = true", 1)
	other = strings.Replace(other, "kind = \"seconder\"", "kind = \"seconder\"\nbreaks = true", 1)
	if err := change(other); err != nil {
		t.Fatal(r.because(err))
	}
	breaks.Store(true)
	if name := <-broken; name != "seconder_main" {
		t.Errorf("%s has failed", name)
	}
	if err := change(text); err != nil {
		t.Fatal(r.because(err))
	}
	before := n.Load()
	testkit.Until(t, "answers", func() bool { return n.Load() > before+10 })
	r.end()
}

// The plan of a reload that adds a policy to a preset adds and replaces what it must, and no more.
func TestPlan_OfAFurtherPolicy(t *testing.T) {
	const one = "rlhost = 1\n[run]\nname = \"duel\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"fast\"\n"
	const two = one + "[policy.rival]\n[component.rollout]\npolicies = { \"player/0\" = \"main\", \"player/1\" = \"rival\" }\nopponents = { past = 0.1 }\n[policy.past]\nof = \"main\"\n"
	texts := map[string]string{"one": one, "two": two, "frozen": strings.ReplaceAll(two, "= \"rival\"", "= \"rival@7\"")}
	const added = "inference_rival batcher_rival learner_rival"
	for _, c := range []struct{ from, to, replaced, added, ended string }{
		{"one", "two", "rollout batcher", "inference_rival inference_past batcher_rival learner_rival opponents_past", ""},
		{"two", "one", "rollout batcher", "", "inference_rival inference_past batcher_rival learner_rival opponents_past"},
		{"two", "frozen", "rollout", "inference_rival_7 frozen_rival_7", added},
		{"frozen", "two", "rollout", added, "inference_rival_7 frozen_rival_7"},
	} {
		parts := graphtest.Standard()
		from, to := mustParse(t, texts[c.from], parts), mustParse(t, texts[c.to], parts)
		before := &assembly{graph: from}
		all := new(loops.Set)
		for i := range from.Components {
			of := &from.Components[i]
			x := &instance{component: parts.Kinds[of.Kind](), loop: all.Join(of.LoopOf(0)), host: &component.Host{}}
			before.members = append(before.members, member{x, of, 0, of.Name})
		}
		p, err := planOf(before, to)
		if err == nil {
			err = p.fixed()
		}
		if err != nil {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
			continue
		}
		var replaced, more, ended []string
		for _, s := range p.assignments {
			switch {
			case s.old == nil:
				more = append(more, s.of.Name)
			case len(s.why) > 0:
				replaced = append(replaced, s.of.Name)
			}
		}
		for _, m := range p.ended {
			ended = append(ended, m.name)
		}
		for what, list := range map[string][2]string{"replaced": {strings.Join(replaced, " "), c.replaced},
			"added": {strings.Join(more, " "), c.added}, "ended": {strings.Join(ended, " "), c.ended}} {
			if list[0] != list[1] {
				t.Errorf("from %s to %s: %s %q, want %q", c.from, c.to, what, list[0], list[1])
			}
		}
		if !p.rewires("rollout") || p.rewires("runner") {
			t.Errorf("from %s to %s: the rollout's wires differ: %v, the runner's: %v", c.from, c.to, p.rewires("rollout"), p.rewires("runner"))
		}
	}
}
