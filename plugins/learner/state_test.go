package learner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// keeping is a network with one core.
func keeping(gru *layer.GRU, lstm *layer.LSTM) policy.Network {
	return policy.Network{Format: policy.Format, Inputs: []policy.Input{{Path: "obs", Shape: []int{plugintest.ObsElems}}}, Chunk: 4,
		Nodes: []policy.Node{{Name: "core", In: []string{"obs"}, GRU: gru, LSTM: lstm},
			{Name: "actor", In: []string{"core"}, Dense: &layer.Dense{Out: 2, Gain: 1}}, {Name: "critic", In: []string{"core"}, Dense: &layer.Dense{Out: 1, Gain: 1}}},
		Policy: []policy.Dist{{Action: "action", From: "actor", Categorical: &head.Categorical{N: 2}}},
		Values: []policy.ValueHead{{Name: "value", From: "critic"}}}
}

// A dataset whose blocks keep no state of the policy, or not where its chunks begin, is refused.
func TestS19TheLearnerNeedsItsStateInBlocks(t *testing.T) {
	for want, m := range map[string]trajectory.Memory{
		"blocks keep 4 elements of state, the network's cores 6":               {State: 4, Chunk: 4},
		"blocks keep a state every 8 rows, the network's chunks begin every 4": {State: 6},
		"": {State: 8, Chunk: 2},
	} {
		r := newRig(t, rigOptions{network: keeping(&layer.GRU{Size: 6}, nil)})
		s, err := trajectory.NewSchema(r.schema.Spec, trajectory.Shape{Steps: steps, Envs: envs, Memory: m})
		if err != nil {
			t.Fatal(err)
		}
		d := policy.Dataset{Blocks: []trajectory.Trajectory{{Schema: s, Mem: make([]byte, s.Bytes)}}}
		if err := d.Check(&r.c.definition.Network); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
}

// A minibatch has a whole chunk.
func TestS19AMinibatchHasAChunk(t *testing.T) {
	r := plugintest.RigOptions{Name: "learner", Policies: map[string]component.Policy{"main": &policy.Definition{Network: keeping(&layer.GRU{Size: 6}, nil), Backend: cpu.New()}}}
	for size, want := range map[int]string{3: "use minibatch = 4 or more in [component.learner]", 4: ""} {
		err := plugintest.StartError(t, New(), r, func(into any) error {
			into.(*config).Policy, into.(*config).Minibatch = "main", size
			return nil
		})
		var known *table.Error
		if errors.As(err, &known); (err == nil) != (want == "") || err != nil && (known == nil || known.Code != CodeChunks || !strings.Contains(known.Help, want)) {
			t.Errorf("a minibatch of %d rows: %v", size, err)
		}
	}
}

// A run that begins with the weights of another one, whose core was another, keeps all parameters but the core's.
func TestS19InitFromKeepsAllButTheCores(t *testing.T) {
	gru, lstm := keeping(&layer.GRU{Size: 6}, nil), keeping(nil, &layer.LSTM{Size: 6})
	r := newRig(t, rigOptions{network: gru})
	r.teach(t, 0, 0, nil)
	old := r.saved(t)
	begins, err := StartFrom(old, 77, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t, rigOptions{network: lstm, seed: 77, restore: begins})
	next.MustSettle()
	s, err := next.c.backend.State()
	if err != nil {
		t.Fatal(err)
	}
	fresh := policy.Init(&lstm, 77)
	for _, p := range lstm.Params() {
		got, want := s.Params[p.Offset:][:p.Rows*p.Cols], fresh[p.Offset:][:p.Rows*p.Cols]
		if !strings.HasPrefix(p.Name, "core.") {
			want = old.Tensors[p.Name].Data
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", p.Name, got, want)
		}
	}
	if s.AdamSteps != 0 || slices.ContainsFunc(s.AdamM, func(x float32) bool { return x != 0 }) {
		t.Errorf("the optimiser goes on after %d steps", s.AdamSteps)
	}
	if log := next.Log.String(); !strings.Contains(log, "the recurrent layers of the saved policy are others") || !strings.Contains(log, "gru(6)") {
		t.Errorf("log %q", log)
	}
	next.teach(t, 1, 0, nil)
	if again := next.saved(t); strings.Contains(string(again.RawMeta), "begins") {
		t.Errorf("it says that a run begins with it: %s", again.RawMeta)
	}
	for want, c := range map[string]struct {
		state component.State
		n     policy.Network
	}{
		`"core = gru(6) of obs", the pipeline's "core = gru(7) of obs"`:  {begins, keeping(&layer.GRU{Size: 7}, nil)},
		`"core = gru(6) of obs", the pipeline's "core = lstm(6) of obs"`: {old, lstm}, // a resumed run
	} {
		if err := newRig(t, rigOptions{network: c.n}).c.Restore(c.state); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Rows of burn-in are not learned from. They are env steps that were trained on, like all others of a dataset: steps add up.
func TestS25BurnInRowsCountAsTrained(t *testing.T) {
	n := keeping(&layer.GRU{Size: 6}, nil)
	burn := n.Chunk - 1
	for rows, learned := range map[int]float64{0: steps * envs, burn: steps * envs / float64(n.Chunk)} {
		r := newRig(t, rigOptions{network: n, config: func(c *config) { c.BurnInRows = rows }})
		r.teach(t, 0, 0, nil)
		got := r.reports[0]
		if got["losses/valid_rows"] != learned || got["global_step"] != steps*envs || r.c.trained.Value() != steps*envs {
			t.Errorf("%d rows of burn-in: %v rows learned from, global_step = %v, %d trained; want %v, %d and %d", rows, got["losses/valid_rows"],
				got["global_step"], r.c.trained.Value(), learned, steps*envs, steps*envs)
		}
	}
}

// Burn-in leaves a chunk with rows to learn from, and needs a state.
func TestStart_RefusesBurnInThatThePolicyHasNoRoomFor(t *testing.T) {
	for want, n := range map[string]policy.Network{
		"use burn_in_rows = 2, or net.chunk = 8":             keeping(&layer.GRU{Size: 6}, nil),
		"leave it out, or give the policy a recurrent layer": plain(),
	} {
		r := plugintest.RigOptions{Name: "learner", Policies: map[string]component.Policy{"main": &policy.Definition{Network: n, Backend: cpu.New()}}}
		err := plugintest.StartError(t, New(), r, func(into any) error {
			into.(*config).Policy, into.(*config).BurnInRows = "main", 4
			return nil
		})
		var known *table.Error
		if !errors.As(err, &known) || known.Code != component.CodeBurnIn || !strings.Contains(known.Help, want) {
			t.Errorf("Start = %v, want E095 and %q", err, want)
		}
	}
}
