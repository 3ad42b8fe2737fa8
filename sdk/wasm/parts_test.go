//go:build !wasip1

package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// collector observes three things: a picture, how many steps it has made, and a random number drawn at reset.
type collector struct {
	steps int32
	luck  float32
}

func (c *collector) look(obs *sdk.Observed) {
	field, luck := sdk.ObservedAt[uint8](obs, "map"), sdk.ObservedAt[float32](obs, "inventory/luck")
	for i := range field {
		field[i] = uint8(10*c.steps) + uint8(i)
	}
	sdk.ObservedAt[int32](obs, "inventory/gold")[0], luck[0], luck[1] = c.steps, c.luck, float32(c.steps)
}

func (c *collector) Reset(rng *sdk.Rand, obs *sdk.Observed) {
	c.steps, c.luck = 0, rng.Uniform(0, 1)
	c.look(obs)
}

func (c *collector) Step(_ *sdk.Rand, action []int32, obs *sdk.Observed) sdk.Result {
	c.steps++
	c.look(obs)
	return sdk.Result{Reward: float32(action[0]), Truncated: c.steps == 2, Discount: 1 - float32(c.steps)/4}
}

func (c *collector) Tell(figures []float32) { figures[0] = float32(c.steps) }

func newCollector(*sdk.Config) (*collector, error) { return &collector{}, nil }

func collectorSpec() sdk.Spec {
	return sdk.Spec{Name: "collector@1", Action: sdk.Discrete(2), Observations: []sdk.Space{
		sdk.Box(0, 255, 2, 3).As("map", sdk.Uint8), sdk.Discrete(3).As("inventory/gold", sdk.Int32), sdk.Box(0, 2, 2).As("inventory/luck", sdk.Float32),
	}}
}

func TestBatch_WritesSeveralObservations(t *testing.T) {
	const gold, finalGold, luck, finalLuck = tensorMask, tensorMask + 1, tensorMask + 2, tensorMask + 3
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, columns := range []bool{false, true} {
			clear(linear)
			ServeDict(collectorSpec(), newCollector)
			data, err := served.describe("")
			if err != nil {
				t.Fatal(err)
			}
			spec, err := hostabi.ParseSpec(data)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := spec.Spaces(hostabi.RoleObservation), "map: Box[2,3] of u8, inventory/gold: Discrete(3), inventory/luck: Box[2]"; got != want {
				t.Fatalf("described as %s, want %s", got, want)
			}
			r := &rig{t: t, envs: 3, descs: spec.Tensors}
			if r.batch, _, err = served.create("", r.envs, mode); err != nil {
				t.Fatal(err)
			}
			r.bind(columns)
			r.reset(0, nil, 1, 2, 3)
			first := *at[float32](r, luck, 0, 2, 0)
			r.step(0, 1)
			r.step(1, 1)
			last := [...]any{*at[uint8](r, tensorObs, 2, 2, 5), *at[int32](r, gold, 2, 2, 0), *at[float32](r, luck, 2, 2, 0)}
			if mode == hostabi.SameStep {
				last = [...]any{*at[uint8](r, tensorFinal, 0, 2, 5), *at[int32](r, finalGold, 0, 2, 0), *at[float32](r, finalLuck, 0, 2, 0)}
				if got := *at[float32](r, luck, 2, 2, 0); got == first || *at[int32](r, gold, 2, 2, 0) != 0 {
					t.Errorf("columns %v: the new episode observes luck %v and gold %v", columns, got, *at[int32](r, gold, 2, 2, 0))
				}
			}
			if want := [...]any{uint8(25), int32(2), first}; last != want {
				t.Errorf("%v, columns %v: the last observations are %v, want %v", mode, columns, last, want)
			}
			if mode == hostabi.Disabled {
				*at[int32](r, gold, 2, 1, 0) = 7
			}
			r.step(2, 0)
			want := map[hostabi.Autoreset]int32{hostabi.SameStep: 1, hostabi.Disabled: 7}[mode]
			if got := *at[int32](r, gold, 3, 1, 0); got != want {
				t.Errorf("%v, columns %v: gold after the end is %v, want %v", mode, columns, got, want)
			}
			if got := testing.AllocsPerRun(10, func() { r.batch.step(0, 0, 3) }); got != 0 {
				t.Errorf("step allocates %v times", got)
			}
		}
	}
}

// A name that no observation or action of the type has is a mistake of the author's, which the host shows.
func TestObservedAt_RefusesOtherNamesAndTypes(t *testing.T) {
	obs := &sdk.Observed{Names: []string{"map", "gold"}, Uint8: [][]uint8{{1}, nil}, Int32: [][]int32{nil, {2}}}
	taken := &sdk.Taken{Names: []string{"gear"}, Int32: [][]int32{{3}}, Float32: [][]float32{nil}}
	if a, b, c := sdk.ObservedAt[uint8](obs, "map")[0], sdk.ObservedAt[int32](obs, "gold")[0], sdk.TakenAt[int32](taken, "gear")[0]; a != 1 || b != 2 || c != 3 {
		t.Errorf("the rows have %d, %d and %d", a, b, c)
	}
	for want, find := range map[string]func(){
		"observation gold: no observation of this type has the name": func() { sdk.ObservedAt[uint8](obs, "gold") },
		"observation gild: no observation of this type has the name": func() { sdk.ObservedAt[int32](obs, "gild") },
		"observation map: no observation of this type has the name":  func() { sdk.ObservedAt[float32](obs, "map") },
		"action gear: no action of this type has the name":           func() { sdk.TakenAt[float32](taken, "gear") },
		"action lamps: no action of this type has the name":          func() { sdk.TakenAt[int32](taken, "lamps") },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			find()
		}()
	}
}

func TestServe_WantsOneOrSeveralObservations(t *testing.T) {
	spec := collectorSpec()
	Serve(spec, newCounter)
	if _, err := served.describe(""); err == nil {
		t.Error("Serve takes several observations")
	}
	spec.Observations = nil
	ServeDict(spec, newCollector)
	if _, err := served.describe(""); err == nil {
		t.Error("ServeDict takes none")
	}
}

// The discount and the figures are the step's, also in the last step of an episode; a host need not want figures.
func TestBatch_WritesTheDiscountAndFigures(t *testing.T) {
	const discount, score, length, luck = tensorMask, tensorMask + 1, tensorMask + 2, tensorMask + 5
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep} {
		for _, columns := range []bool{false, true} {
			clear(linear)
			spec := collectorSpec()
			spec.Discount, spec.Figures = true, []sdk.Figure{{Name: "score", Gather: sdk.Sum}, {Name: "end/length", Episode: true}}
			ServeDict(spec, newCollector)
			data, err := served.describe("")
			if err != nil {
				t.Fatal(err)
			}
			described, err := hostabi.ParseSpec(data)
			if err != nil {
				t.Fatal(err)
			}
			want := hostabi.TensorAtT | hostabi.TensorOptional | hostabi.TensorEpisode
			if got := described.Tensors[length]; got.Path != "end/length" || got.Index != 1 || got.Flags&want != want {
				t.Errorf("described as %+v", got)
			}
			r := &rig{t: t, envs: 3, descs: described.Tensors}
			if r.batch, _, err = served.create("", r.envs, mode); err != nil {
				t.Fatal(err)
			}
			r.bind(columns)
			r.binds[length].Ptr = 0
			if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
				t.Fatal(status)
			}
			r.reset(0, nil, 1, 2, 3)
			for s, want := range []float32{1, 2} {
				r.step(s, 0)
				if d, got := *at[float32](r, discount, s, 2, 0), *at[float32](r, score, s, 2, 0); d != 1-want/4 || got != want {
					t.Errorf("%v, columns %v: step %d has discount %v and score %v", mode, columns, s, d, got)
				}
			}
			if first := *at[float32](r, luck, 2, 2, 1); first != map[hostabi.Autoreset]float32{hostabi.NextStep: 2}[mode] {
				t.Errorf("%v, columns %v: the observation after the end is of step %v", mode, columns, first)
			}
			r.step(2, 0)
			if d, got := *at[float32](r, discount, 2, 2, 0), *at[float32](r, score, 2, 2, 0); mode == hostabi.NextStep && (d != 0 || got != 0) {
				t.Errorf("columns %v: the step that begins an episode has discount %v and score %v", columns, d, got)
			}
		}
	}
}

func TestServe_WantsFiguresToBeTold(t *testing.T) {
	Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 2), Figures: []sdk.Figure{{Name: "score"}}}, newCounter)
	if _, err := served.describe(""); err == nil {
		t.Error("Serve takes figures that nobody tells")
	}
}
