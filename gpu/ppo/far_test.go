package ppo_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// farHost is a host that can learn, in this process.
type farHost struct {
	name   string
	learns *ppo.Learns
	calls  int
	dies   int  // before this call, from 1; 0: never
	late   bool // it has done that call, and its reply is lost
}

func newFarHost(name string) *farHost {
	return &farHost{name: name, learns: ppo.NewLearns(func(string) (policy.Backend, error) { return cpu.New(), nil })}
}

func (h *farHost) Name() string { return h.name }

func (h *farHost) Call(data []byte) ([]byte, error) {
	h.calls++
	if h.calls == h.dies && !h.late {
		return nil, errDied
	}
	reply := h.learns.Handle(bytes.Clone(data))
	if h.calls == h.dies {
		return nil, errDied
	}
	return reply, nil
}

// hostsOf are hosts of a learner, and what is logged about them.
func hostsOf(log *strings.Builder, list ...*farHost) ppo.Hosts {
	return ppo.Hosts{Most: len(list), Log: slog.New(slog.NewTextHandler(log, nil)), Here: func() (here []ppo.HostCaller) {
		for _, h := range list {
			here = append(here, h)
		}
		return here
	}}
}

// Learners on other hosts have the bits of learners here.
func TestFar_LearnsWhatLearnersHereDo(t *testing.T) {
	here := &watched{}
	want, datasets := newTeam(t, here)
	var log strings.Builder
	b := &watched{}
	l, _ := newTeamWith(t, b, 1, hostsOf(&log, newFarHost("b"), newFarHost("c")))
	for i, d := range datasets {
		wanted, err := want.Update(d, teamRates)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Update(d, teamRates)
		if err != nil || got != wanted {
			t.Fatalf("dataset %d: %+v, %v, want %+v", i, got, err, wanted)
		}
		if s, w := b.same(t), here.same(t); !slices.Equal(s.Params, w.Params) || !slices.Equal(s.AdamV, w.AdamV) {
			t.Fatalf("dataset %d: other parameters than those of learners here", i)
		}
	}
	if got := strings.Count(log.String(), "a host learns"); got != 2 || strings.Contains(log.String(), "no more") {
		t.Errorf("log %s", log.String())
	}
}

// So do they with every part of a dataset: chunks with burn-in, masks, Box actions, statistics of observations and of returns.
func TestFar_HasAllOfADataset(t *testing.T) {
	core := policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}},
		Nodes: []policy.Node{{Name: "trunk.core", In: []string{"obs"}, GRU: &layer.GRU{Size: 8}}},
		Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 3}}}}}.Network()
	core.Chunk = 4
	box := policy.MLP{Obs: 5, Hidden: []int{8}, Activation: policy.Tanh, NormalizeObs: true, Heads: policy.Heads{Policy: []policy.Dist{{
		Action: "action", Gaussian: &head.Gaussian{N: 2}, Bounds: &policy.Bounds{Low: []float32{-1, -1}, High: []float32{1, 1}}}}}}.Network()
	for name, x := range map[string]struct {
		o      policytest.Options
		change func(c *ppo.Config)
	}{
		"chunks": {policytest.Options{Network: core, Masked: true, InvalidEvery: 7}, func(c *ppo.Config) { c.BurnInRows = 1 }},
		"box":    {policytest.Options{Network: box, SoA: true}, func(c *ppo.Config) { c.NormalizeReturns, c.Accumulate = true, 2 }},
	} {
		n := &x.o.Network
		x.o.Steps, x.o.Envs, x.o.Blocks = 8, 5, 2
		c := ppo.Defaults()
		c.Epochs, c.Minibatch, c.Learners = 2, 16, 2
		x.change(&c)
		c.Minibatch += c.BurnInRows
		want, err := ppo.NewLearner(cpu.New(), n, policy.Init(n, 1), c)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		c.Learners = 1
		got, err := ppo.NewLearnerWith(cpu.New(), n, policy.Init(n, 1), c, hostsOf(&log, newFarHost("b")))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			x.o.Seed = seed
			d := policytest.Acted(t, cpu.New(), policy.Init(n, 1), x.o)
			var states []ppo.State
			for _, l := range []ppo.Learner{want, got} {
				if _, err := l.Update(d, teamRates); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				s, err := l.State()
				if err != nil {
					t.Fatal(err)
				}
				states = append(states, s)
			}
			if !slices.Equal(states[0].Params, states[1].Params) || states[0].Returns != states[1].Returns {
				t.Errorf("%s: other parameters than those of learners here: %s", name, log.String())
			}
		}
		if strings.Contains(log.String(), "no more") {
			t.Errorf("%s: log %s", name, log.String())
		}
		if err := errors.Join(want.Close(), got.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A host that is lost before or after any call leaves the others with every step of the update made once, and no error: the step under way is
// done again without it. It learns again once it is back.
func TestFar_ALostHostCostsNoStep(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 9))
	for _, late := range []bool{false, true} {
		for dies := 1; ; dies++ {
			var log strings.Builder
			hosts := []*farHost{newFarHost("b"), newFarHost("c")}
			lost := hosts[random.IntN(2)]
			lost.dies, lost.late = dies, late
			b := &watched{}
			l, datasets := newTeamWith(t, b, 2, hostsOf(&log, hosts...))
			what := fmt.Sprintf("host %s lost at call %d, done %v", lost.name, dies, late)
			stats, err := l.Update(datasets[0], teamRates)
			if err != nil || stats.OptimizerSteps != teamSteps {
				t.Fatalf("%s: %v steps, %v", what, stats.OptimizerSteps, err)
			}
			if got := b.same(t); got.AdamSteps != teamSteps {
				t.Fatalf("%s: %d steps are made", what, got.AdamSteps)
			}
			ended := lost.calls < dies
			lost.dies = 0
			for i, d := range datasets[1:] {
				if _, err := l.Update(d, teamRates); err != nil {
					t.Fatalf("%s: the next dataset: %v", what, err)
				}
				if got := b.same(t); got.AdamSteps != uint64(teamSteps*(i+2)) {
					t.Fatalf("%s: %d steps after the next dataset", what, got.AdamSteps)
				}
			}
			if strings.Contains(log.String(), "other bits") {
				t.Fatalf("%s: %s", what, log.String())
			}
			if ended {
				break // it was not lost: there are no more calls
			}
			if back := strings.Count(log.String(), `msg="a host learns"`); dies > 1 && back != 3 || !strings.Contains(log.String(), errDied.Error()) {
				t.Fatalf("%s: %d hosts began to learn: %s", what, back, log.String())
			}
		}
	}
}

// tampered is a host that changes replies.
type tampered struct {
	*farHost
	change func(reply []byte) []byte
}

func (h tampered) Call(data []byte) ([]byte, error) {
	reply, err := h.farHost.Call(data)
	return h.change(reply), err
}

// A host whose replies are cut, are none, or have no gradient costs the run no step, and a host with other bits learns no more.
func TestFar_BadRepliesAreThatHostsEnd(t *testing.T) {
	for name, change := range map[string]func(op string, reply []byte) []byte{
		"cut":  func(op string, reply []byte) []byte { return reply[:len(reply)-1] },
		"none": func(string, []byte) []byte { return nil },
		"longer": func(_ string, reply []byte) []byte {
			if bytes.Contains(reply, []byte(`"summing":true`)) {
				reply = append(reply, 0, 0, 0, 0)
			}
			return reply
		},
		"fewer sums": func(_ string, reply []byte) []byte {
			return bytes.Replace(reply, []byte(`"numbers":7`), []byte(`"numbers":2`), 1)
		},
		"no gradient": func(string, []byte) []byte { return []byte{2, 0, 0, 0, '{', '}'} },
	} {
		var log strings.Builder
		h := newFarHost("b")
		bad := tampered{h, func(reply []byte) []byte {
			if h.calls < 6 {
				return reply
			}
			return change("", reply)
		}}
		hosts := hostsOf(&log, h)
		hosts.Here = func() []ppo.HostCaller { return []ppo.HostCaller{bad} }
		b := &watched{}
		l, datasets := newTeamWith(t, b, 1, hosts)
		stats, err := l.Update(datasets[0], teamRates)
		if err != nil || stats.OptimizerSteps != teamSteps || b.same(t).AdamSteps != teamSteps {
			t.Errorf("%s: %v steps, %v", name, stats.OptimizerSteps, err)
		}
		if !strings.Contains(log.String(), "a host learns no more") {
			t.Errorf("%s: log %s", name, log.String())
		}
	}
}

// Calls that are none are refused, and change nothing.
func TestLearns_RefusesWhatIsNoCall(t *testing.T) {
	l := ppo.NewLearns(func(string) (policy.Backend, error) { return nil, errors.New("there is no such backend") })
	for _, call := range []string{"", "xxxx", "\x02\x00\x00\x00{}", "\xff\xff\xff\xff{}", "\x0f\x00\x00\x00{\"op\":\"target\"}", "\x0d\x00\x00\x00{\"op\":\"open\"}"} {
		if reply := l.Handle([]byte(call)); !strings.Contains(string(reply), `"error"`) {
			t.Errorf("call %q: %q", call, reply)
		}
	}
}
