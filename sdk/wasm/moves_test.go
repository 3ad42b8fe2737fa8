//go:build !wasip1

package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// panel has several actions, which its reward encodes; an episode has two steps.
type panel struct{ steps int32 }

func (p *panel) Reset(_ *sdk.Rand, obs *sdk.Observed) {
	p.steps = 0
	obs.Float32[0][0] = 0
}

func (p *panel) Step(_ *sdk.Rand, action *sdk.Taken, obs *sdk.Observed) sdk.Result {
	p.steps++
	obs.Float32[0][0] = float32(p.steps)
	wheel, gear, lamps, dial := action.Float32[0], action.Int32[1], action.Int32[2], action.Int32[3]
	if action.Names != nil { // the panels that step together have none
		wheel, gear = sdk.TakenAt[float32](action, "wheel"), sdk.TakenAt[int32](action, "gear")
		lamps, dial = sdk.TakenAt[int32](action, "lamps"), sdk.TakenAt[int32](action, "dial/0")
	}
	sum := gear[0] + 4*lamps[0] + 8*lamps[1] + 16*dial[0] + 32*dial[1]
	return sdk.Result{Reward: wheel[0] + 2*wheel[1] + float32(sum), Truncated: p.steps == 2}
}

func (p *panel) ActionMask(legal []uint8) {
	for k := range legal {
		legal[k] = flag((int32(k)+p.steps)%3 != 0)
	}
}

// panels are panels that step together.
type panels []panel

func (p panels) Reset(i int, rng *sdk.Rand, obs *sdk.Observed) { p[i].Reset(rng, obs) }

func (p panels) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, uint8], action *sdk.Taken, obs *sdk.Observed) {
	part := func(i int) (*sdk.Taken, *sdk.Observed) {
		one := &sdk.Taken{Int32: make([][]int32, 4), Float32: [][]float32{action.Float32[0][2*i:][:2], nil, nil, nil}}
		one.Int32[1], one.Int32[2], one.Int32[3] = action.Int32[1][i:][:1], action.Int32[2][2*i:][:2], action.Int32[3][2*i:][:2]
		return one, &sdk.Observed{Float32: [][]float32{obs.Float32[0][i:][:1]}}
	}
	for i := range rngs {
		one, seen := part(i)
		r := p[first+i].Step(&rngs[i], one, seen)
		rows.Rewards[i], rows.Terminated[i], rows.Truncated[i] = r.Reward, flag(r.Terminated), flag(r.Truncated)
	}
}

func (p panels) ActionMask(i int, legal []uint8) { p[i].ActionMask(legal) }

func panelSpec() sdk.Spec {
	return sdk.Spec{Name: "panel@1", Observations: []sdk.Space{sdk.Box(0, 2, 1)}, Actions: []sdk.Space{
		sdk.Box(-1, 1, 2).Named("wheel"), sdk.Discrete(3).From(-1).Named("gear"), sdk.MultiBinary(2).Named("lamps"), sdk.MultiDiscrete(2, 3).Named("dial/0"),
	}}
}

// Every action reaches the environment from its own tensor, each discrete one has its mask and is held to its values, also where an
// environment of the batch waits.
func TestBatch_TakesSeveralActions(t *testing.T) {
	for name, serve := range map[string]func(){
		"one by one": func() { ServeComposite(panelSpec(), func(*sdk.Config) (*panel, error) { return &panel{}, nil }) },
		"together": func() {
			ServeCompositeBatch(panelSpec(), func(_ *sdk.Config, n int) (panels, error) { return make(panels, n), nil })
		},
	} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep} {
			for _, columns := range []bool{false, true} {
				clear(linear)
				serve()
				takesSeveralActions(t, name, mode, columns)
			}
		}
	}
}

func takesSeveralActions(t *testing.T, name string, mode hostabi.Autoreset, columns bool) {
	const gear, lamps, dial, gearMask, dialMask = tensorMask, tensorMask + 1, tensorMask + 2, tensorMask + 3, tensorMask + 5
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spec.Spaces(hostabi.RoleAction), "wheel: Box[2], gear: Discrete(3) from -1, lamps: MultiBinary[2], dial/0: MultiDiscrete[2,3]"; got != want {
		t.Fatalf("described as %s, want %s", got, want)
	}
	if got, want := spec.Spaces(hostabi.RoleActionMask), "gear: Box[3] of u8, lamps: Box[4] of u8, dial/0: Box[5] of u8"; got != want {
		t.Fatalf("masks are %s, want %s", got, want)
	}
	r := &rig{t: t, envs: 3, descs: spec.Tensors}
	if r.batch, _, err = served.create("", r.envs, mode); err != nil {
		t.Fatal(err)
	}
	r.bind(columns)
	r.reset(0, nil, 1, 2, 3)
	for now := range 3 {
		for i := range r.envs {
			*at[float32](r, tensorAction, now, i, 0), *at[float32](r, tensorAction, now, i, 1) = 0.5, -0.25
			*at[int32](r, gear, now, i, 0) = -1
		}
	}
	*at[int32](r, gear, 0, 2, 0), *at[int32](r, lamps, 0, 2, 1), *at[int32](r, dial, 0, 2, 0), *at[int32](r, dial, 0, 2, 1) = 1, 1, 1, 2
	for k, place := range []struct{ tensor, elem int }{{gearMask, 0}, {gearMask, 2}, {gearMask + 1, 0}, {dialMask, 0}, {dialMask, 4}} {
		value := []int{0, 2, 3, 7, 11}[k]
		if got := *at[uint8](r, place.tensor, 0, 2, place.elem); got != flag(value%3 != 0) {
			t.Errorf("%s, %v, columns %v: value %d is legal: %d", name, mode, columns, value, got)
		}
	}
	if status := r.batch.step(0, 0, 3); status != hostabi.StatusOK {
		t.Fatal(status)
	}
	if got := [2]float32{*at[float32](r, tensorReward, 0, 1, 0), *at[float32](r, tensorReward, 0, 2, 0)}; got != [2]float32{-1, 1 + 8 + 16 + 64} {
		t.Errorf("%s, %v, columns %v: the actions were %v", name, mode, columns, got)
	}
	for _, bad := range []struct {
		tensor, elem int
		value        int32
	}{{gear, 0, 2}, {gear, 0, -2}, {lamps, 1, 2}, {lamps, 0, -1}, {dial, 0, 2}, {dial, 1, 3}} {
		place := at[int32](r, bad.tensor, 1, 1, bad.elem)
		was := *place
		*place = bad.value
		if status := r.batch.step(1, 0, 3); status != hostabi.StatusAction || r.batch.current() != 1 {
			t.Errorf("%s: %+v is taken: %v, environment %d", name, bad, status, r.batch.current())
		}
		*place = was
	}
	if status := r.batch.step(1, 0, 3); status != hostabi.StatusOK || *at[uint8](r, tensorTruncated, 1, 1, 0) != 1 {
		t.Errorf("%s, %v: %v: a refused action has moved something", name, mode, status)
	}
	if got, want := *at[uint8](r, gearMask, 2, 1, 0), flag(mode != hostabi.SameStep); got != want {
		t.Errorf("%s, %v: the first gear is legal behind the end: %d", name, mode, got)
	}
	*at[int32](r, gear, 2, 1, 0) = 7 // which nobody reads where the environment waits
	if status := r.batch.step(2, 1, 1); (status == hostabi.StatusOK) != (mode == hostabi.NextStep) {
		t.Errorf("%s, %v: the step after the end: %v", name, mode, status)
	}
	if got := testing.AllocsPerRun(10, func() { r.batch.step(0, 0, 3) }); name == "one by one" && got != 0 {
		t.Errorf("step allocates %v times", got)
	}
}

func TestServe_WantsOneOrSeveralActions(t *testing.T) {
	spec := panelSpec()
	ServeDict(spec, newCollector)
	if _, err := served.describe(""); err == nil {
		t.Error("ServeDict takes several actions")
	}
	spec.Actions = nil
	ServeComposite(spec, func(*sdk.Config) (*panel, error) { return &panel{}, nil })
	if _, err := served.describe(""); err == nil {
		t.Error("ServeComposite takes none")
	}
}
