package learner

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

func normalised() policy.Network {
	m := plainMLP()
	m.NormalizeObs = true
	return m.Network()
}

func TestRestore_GoesOnAsIfNothingHadHappened(t *testing.T) {
	for name, n := range map[string]policy.Network{"plain": plain(), "normalised": normalised()} {
		o := rigOptions{network: n, seed: 3, config: func(c *config) { c.LRAnnealEnvSteps = 1000 }}
		whole := newRig(t, o)
		for k := range 4 {
			whole.teach(t, k, uint64(k), nil)
		}
		first := newRig(t, o)
		first.teach(t, 0, 0, nil)
		first.teach(t, 1, 1, nil)
		o.restore = first.saved(t)
		second := newRig(t, o)
		second.teach(t, 2, 2, nil)
		second.teach(t, 3, 3, nil)
		for i, w := range second.weights {
			want := whole.weights[2+i]
			if w.Version != want.Version || !slices.Equal(w.Params, want.Params) || !slices.Equal(w.ObsMean, want.ObsMean) ||
				!slices.Equal(w.ObsScale, want.ObsScale) {
				t.Errorf("%s: version %d differs from that of the unbroken learner", name, w.Version)
			}
		}
		for i, p := range second.reports {
			for key, want := range whole.reports[2+i] {
				if got := p[key]; got != want && key != "perf/update_seconds" {
					t.Errorf("%s: %s of dataset %d is %v, want %v", name, key, 2+i, got, want)
				}
			}
		}
		if second.Log.Len() > 0 {
			t.Errorf("%s: log %s", name, second.Log.String())
		}
	}
}

func TestRestore_SaysThatTheScheduleIsAnotherOne(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *config) { c.LRAnnealEnvSteps = 1000 }})
	r.teach(t, 0, 0, nil)
	next := newRig(t, rigOptions{config: func(c *config) { c.LRAnnealEnvSteps = 2000 }, restore: r.saved(t)})
	if got := next.Log.String(); !strings.Contains(got, "lr_anneal_env_steps=2000 saved=1000") {
		t.Errorf("log %q, want both schedules", got)
	}
}

// A run resumed where the learning rate has reached 0 warns at once, whatever ends the run.
func TestRestore_WarnsThatTheScheduleHasEnded(t *testing.T) {
	const said = "the learning rate is 0 from here on"
	for end, want := range map[uint64]bool{1: true, 8: true, 1 << 20: false, 0: false} {
		config := func(c *config) { c.LRAnnealEnvSteps = end }
		r := newRig(t, rigOptions{config: config})
		r.teach(t, 0, 0, nil)
		next := newRig(t, rigOptions{config: config, restore: r.saved(t)})
		if got := next.Log.String(); strings.Contains(got, said) != want {
			t.Errorf("lr_anneal_env_steps = %d: the log is %q, said is to be %v", end, got, want)
		}
	}
}

func TestRestore_RefusesAnotherNetwork(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.teach(t, 0, 0, nil)
	s := r.saved(t)
	for want, change := range map[string]func(*policy.MLP){
		`"input obs [5]", the pipeline's "input obs [6]"`:                                                             func(m *policy.MLP) { m.Obs = 6 },
		`"actor.head = dense(2) of actor.0.activation", the pipeline's "actor.head = dense(3) of actor.0.activation"`: func(m *policy.MLP) { m.Actions = 3 },
		`"actor.head = dense(2) of actor.0.activation", the pipeline's "actor.1 = dense(8) of actor.0.activation"`:    func(m *policy.MLP) { m.Hidden = []int{8, 8} },
		`"actor.0.activation = tanh of actor.0", the pipeline's "actor.0.activation = relu of actor.0"`:               func(m *policy.MLP) { m.Activation = policy.ReLU },
		`"actor.0 = dense(8) of obs", the pipeline's "trunk.0 = dense(8) of obs"`:                                     func(m *policy.MLP) { m.ShareTrunk = true },
		`"input obs [5]", the pipeline's "input obs [5] running"`:                                                     func(m *policy.MLP) { m.NormalizeObs = true },
	} {
		m := plainMLP()
		change(&m)
		n := m.Network()
		err := newRig(t, rigOptions{network: n}).c.Restore(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for name, damage := range map[string]func(component.State) component.State{
		"no tensors": func(s component.State) component.State { s.Tensors = nil; return s },
		"a short tensor": func(s component.State) component.State {
			s.Tensors = maps.Clone(s.Tensors)
			s.Tensors["adam_v.critic.head.bias"] = component.Tensor{Shape: []int{0}}
			return s
		},
		"an activation that steers a terminal": func(s component.State) component.State {
			s.RawMeta = []byte(strings.Replace(string(s.RawMeta), `"tanh"`, `"\u001b[2Jtanh"`, 1))
			return s
		},
		"no JSON": func(s component.State) component.State { s.RawMeta = []byte("{"); return s },
	} {
		if err := newRig(t, rigOptions{}).c.Restore(damage(s)); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %q, want an error whose strings are quoted", name, err)
		}
	}
}

func TestRestore_RefusesADamagedNormaliser(t *testing.T) {
	r := newRig(t, rigOptions{network: normalised()})
	r.teach(t, 0, 0, nil)
	s := r.saved(t)
	for _, text := range []string{`"normalizer":null`, `"normalizer":{"count":1,"mean":[0],"m2":[0]}`} {
		i := strings.Index(string(s.RawMeta), `"normalizer":`)
		damaged := component.State{RawMeta: []byte(string(s.RawMeta[:i]) + text + "}"), Tensors: s.Tensors}
		if err := newRig(t, rigOptions{network: normalised()}).c.Restore(damaged); err == nil {
			t.Errorf("%s is restored", text)
		}
		if _, _, err := Weights(damaged); err == nil {
			t.Errorf("%s has weights", text)
		}
	}
}

func TestWeights_AreThePublishedOnes(t *testing.T) {
	for _, n := range []policy.Network{plain(), normalised()} {
		r := newRig(t, rigOptions{network: n})
		r.teach(t, 0, 0, nil)
		s := r.saved(t)
		network, w, err := Weights(s)
		if err != nil {
			t.Fatal(err)
		}
		want := r.weights[1]
		if w.Version != 1 || !slices.Equal(w.Params, want.Params) || !slices.Equal(w.ObsMean, want.ObsMean) || !slices.Equal(w.ObsScale, want.ObsScale) {
			t.Error("the weights of a snapshot are not those that were published")
		}
		if err := policy.SameParameters(&network, &n); err != nil {
			t.Error(err)
		}
		if version, steps, err := new(Learner).Progress(s); err != nil || version != 1 || steps != 32 {
			t.Errorf("progress %d, %d, %v; want version 1 after 32 env steps", version, steps, err)
		}
	}
	if _, _, err := Weights(component.State{RawMeta: []byte(`{"network":{"obs":1}}`)}); err == nil {
		t.Error("a network that cannot be has weights")
	}
}

func TestStartFrom_KeepsThePolicyAndBeginsTheRestAnew(t *testing.T) {
	r := newRig(t, rigOptions{network: normalised(), config: func(c *config) { c.LRAnnealEnvSteps = 1000 }})
	r.teach(t, 0, 0, nil)
	r.teach(t, 1, 1, nil)
	old := r.saved(t)
	n := normalised()
	begin := func(t *testing.T, reset ...string) (*rig, ppo.State) {
		s, err := StartFrom(old, 77, reset)
		if err != nil {
			t.Fatal(err)
		}
		next := newRig(t, rigOptions{network: n, seed: 77, restore: s})
		next.MustSettle()
		if next.Log.Len() > 0 {
			t.Errorf("log %q: a new run has a schedule of its own", next.Log.String())
		}
		state, err := next.c.backend.State()
		if err != nil {
			t.Fatal(err)
		}
		if w := next.weights[0]; w.Version != 0 || next.c.envSteps != 0 || next.c.index != 0 || next.c.optimizerSteps != 0 {
			t.Errorf("%v: begins at version %d, env step %d", reset, w.Version, next.c.envSteps)
		}
		return next, state
	}
	zero := make([]float32, n.ParamCount())
	critic := slices.IndexFunc(n.Params(), func(p policy.Param) bool { return p.Name == "critic.0.weight" })
	at := n.Params()[critic].Offset
	fresh := policy.Init(&n, 77)
	want := r.weights[2]

	next, s := begin(t)
	if !slices.Equal(s.Params, want.Params) || slices.Equal(s.AdamM, zero) || s.AdamSteps != 16 || next.c.normalizer.Count != 64 {
		t.Error("without reset, something of the policy is lost")
	}
	next, s = begin(t, ResetOptimizer)
	if !slices.Equal(s.Params, want.Params) || !slices.Equal(s.AdamM, zero) || !slices.Equal(s.AdamV, zero) || s.AdamSteps != 0 || next.c.normalizer.Count != 64 {
		t.Error("reset of the optimiser: want its state at zero, and the rest kept")
	}
	_, s = begin(t, ResetValue)
	if !slices.Equal(s.Params[:at], want.Params[:at]) || !slices.Equal(s.Params[at:], fresh[at:]) {
		t.Error("reset of the value: want the critic as in a new run, and the actor kept")
	}
	if !slices.Equal(s.AdamM, zero) || !slices.Equal(s.AdamV, zero) || s.AdamSteps != 0 {
		t.Error("reset of the value: want the optimiser's state at zero, whose moments are those of the old critic")
	}
	next, s = begin(t, ResetNormalizer, ResetOptimizer)
	if !slices.Equal(s.Params, want.Params) || next.c.normalizer.Count != 0 || next.weights[0].ObsScale[0] != 1 {
		t.Error("reset of the normaliser: want one that has seen nothing, and the parameters kept")
	}
	if _, err := StartFrom(old, 1, []string{"memory"}); err == nil || !strings.Contains(err.Error(), "want optimizer, value or normalizer") {
		t.Errorf("reset of something else: %v", err)
	}
	if again, err := StartFrom(old, 1, []string{ResetOptimizer}); err != nil || slices.Equal(old.Tensors["adam_m.actor.0.weight"].Data, again.Tensors["adam_m.actor.0.weight"].Data) {
		t.Errorf("the old state was changed (%v)", err)
	}
}

// The description of a network comes from a file. It must not ask for more memory than the file's tensors have.
func TestWeights_ADescriptionCannotAskForMemory(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.teach(t, 0, 0, nil)
	honest := r.saved(t)
	for name, change := range map[string]func(*policy.MLP){
		"observations":         func(m *policy.MLP) { m.Obs = 1 << 31 },
		"actions":              func(m *policy.MLP) { m.Actions = 1 << 31 },
		"more actions":         func(m *policy.MLP) { m.Actions = 1 << 62 },
		"a product that wraps": func(m *policy.MLP) { m.Obs, m.Hidden = 1<<62, []int{4} },
		"layers":               func(m *policy.MLP) { m.Hidden = slices.Repeat([]int{1}, 1<<12) },
	} {
		m := plainMLP()
		change(&m)
		for _, network := range []any{m, m.Network()} { // of format 0 and of format 1
			meta, err := json.Marshal(map[string]any{"network": network})
			if err != nil {
				t.Fatal(err)
			}
			state := component.State{RawMeta: meta, Tensors: honest.Tensors}
			if _, _, err := Weights(state); err == nil {
				t.Errorf("%s: weights were made", name)
			}
			if _, err := StartFrom(state, 1, []string{ResetOptimizer, ResetValue}); err == nil {
				t.Errorf("%s: a run could start from it", name)
			}
		}
	}
}

// A snapshot whose network is of format 0 can be continued, and is written in the newest format.
func TestS24SnapshotsOfOlderFormatsAreConverted(t *testing.T) {
	r := newRig(t, rigOptions{network: normalised(), seed: 3})
	r.teach(t, 0, 0, nil)
	s := r.saved(t)
	fields := map[string]any{}
	if err := s.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	mlp := plainMLP()
	mlp.NormalizeObs = true
	fields["network"] = mlp
	meta, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t, rigOptions{network: normalised(), restore: component.State{RawMeta: meta, Tensors: s.Tensors}})
	next.MustSettle()
	if !slices.Equal(next.weights[0].Params, r.weights[1].Params) {
		t.Error("the restored parameters are others")
	}
	var again saved
	if err := next.saved(t).Decode(&again); err != nil || again.Network.Format != policy.Format {
		t.Errorf("the next snapshot is of format %d, %v", again.Network.Format, err)
	}
	fields["network"] = map[string]any{"format": policy.Format + 1}
	if meta, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Weights(component.State{RawMeta: meta, Tensors: s.Tensors}); err == nil || !strings.Contains(err.Error(), "format 2, this version has 1") {
		t.Errorf("a network of a newer format: %v", err)
	}
}

// The value of a policy keeps its meaning where statistics of returns begin or end with a resume or a new run, and where
// its weights come from a file.
func TestS18StatisticsOfReturnsBeginAndEndWithARun(t *testing.T) {
	with, without := func(c *config) { c.NormalizeReturns = true }, func(*config) {}
	for name, c := range map[string]struct{ was, is func(*config) }{"begin": {without, with}, "end": {with, without}, "go on": {with, with}} {
		r := newRig(t, rigOptions{config: c.was})
		r.teach(t, 0, 0, nil)
		r.teach(t, 1, 1, nil)
		s := r.saved(t)
		want := r.weights[2].Params
		if _, w, err := Weights(s); err != nil || !slices.Equal(w.Params, want) {
			t.Errorf("%s: the weights of the snapshot are not those that were published (%v)", name, err)
		}
		started, err := StartFrom(s, 5, []string{ResetOptimizer})
		if err != nil {
			t.Fatal(err)
		}
		exported := map[string]component.Tensor{}
		n := plain()
		for _, p := range n.Params() {
			exported[p.Name] = component.Tensor{Shape: p.Shape, Data: want[p.Offset : p.Offset+p.Rows*p.Cols]}
		}
		given, err := FromTensors(n, exported)
		if err != nil {
			t.Fatal(err)
		}
		for from, state := range map[string]component.State{"resume": s, "start from it": started, "export": given} {
			next := newRig(t, rigOptions{config: c.is, restore: state})
			next.teach(t, 0, 0, nil)
			if got := next.weights[0].Params; !slices.Equal(got, want) {
				t.Errorf("%s, %s: the first version is another policy", name, from)
			}
			if state, err := next.c.backend.State(); err != nil || (state.Returns.Count >= 32) != next.c.config.NormalizeReturns {
				t.Errorf("%s, %s: statistics %+v after a dataset (%v)", name, from, state.Returns, err)
			}
		}
	}
	anew, err := StartFrom(newRig(t, rigOptions{config: with}).saved(t), 5, []string{ResetValue})
	if err != nil || anew.Meta.(saved).Returns != nil {
		t.Errorf("reset of the value keeps the statistics of its unit (%v)", err)
	}
	damaged := newRig(t, rigOptions{config: with}).saved(t)
	damaged.RawMeta = []byte(strings.Replace(string(damaged.RawMeta), `"m2":0`, `"m2":-1`, 1))
	if err := newRig(t, rigOptions{config: with}).c.Restore(damaged); err == nil || !strings.Contains(err.Error(), "squared deviations -1") {
		t.Errorf("statistics that no returns have: %v", err)
	}
}

// A learner that takes over from another publishes its state's version again, or a new one if a newer version has been published,
// so that no number has two sets of parameters.
func TestRestore_PublishesTheSameVersionAgain(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.teach(t, 0, 0, nil)
	state := r.saved(t)
	for _, c := range []struct{ published, want uint64 }{{0, 1}, {1, 1}, {2, 3}} {
		next := newRig(t, rigOptions{restore: state, published: c.published})
		next.MustSettle()
		if got := next.weights[0].Version; got != c.want {
			t.Errorf("after version %d, version 1 is published as %d, want %d", c.published, got, c.want)
		}
	}
}
