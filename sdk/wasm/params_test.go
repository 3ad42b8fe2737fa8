//go:build !wasip1

package wasm

import (
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// walker walks as far as its first reset parameter says, 3 steps without one, and observes both of them.
type walker struct {
	params [2]float32
	steps  int32
}

func (w *walker) SetParams(params []float32) { copy(w.params[:], params) }

func (w *walker) Reset(_ *sdk.Rand, obs []float32) {
	w.steps = 0
	copy(obs, w.params[:])
}

func (w *walker) Step(_ *sdk.Rand, _ []int32, obs []float32) sdk.Result {
	w.steps++
	copy(obs, w.params[:])
	return sdk.Result{Terminated: w.steps == int32(sdk.ParamOr(w.params[:], 0, 3))}
}

func newWalker(*sdk.Config) (*walker, error) { return &walker{}, nil }

func walkerSpec() sdk.Spec {
	return sdk.Spec{Name: "walker@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 10, 2), Params: sdk.Box(1, 10, 2)}
}

// serveWalkers returns two walkers over the stand-in for linear memory.
func serveWalkers(t *testing.T, columns bool) *rig {
	t.Helper()
	clear(linear)
	Serve(walkerSpec(), newWalker)
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, envs: 2, descs: spec.Tensors}
	if last := r.descs[len(r.descs)-1]; last.Role != hostabi.RoleResetParam || last.Flags&hostabi.TensorOptional == 0 || last.Space() != "Box[2]" {
		t.Fatalf("the last tensor is %+v", last)
	}
	if r.batch, _, err = served.create("", r.envs, hostabi.SameStep); err != nil {
		t.Fatal(err)
	}
	r.bind(columns)
	return r
}

// An episode gets the reset parameters present when it begins, also where the environment begins it by itself.
func TestBatch_TellsResetParameters(t *testing.T) {
	const params = tensorMask
	for _, columns := range []bool{false, true} {
		r := serveWalkers(t, columns)
		set := func(env int, first, second float32) {
			*at[float32](r, params, 0, env, 0), *at[float32](r, params, 0, env, 1) = first, second
		}
		observes := func(row, env int, want ...float32) {
			t.Helper()
			for k, w := range want {
				if got := *at[float32](r, tensorObs, row, env, k); got != w {
					t.Errorf("row %d, environment %d observes parameter %d as %v, want %v", row, env, k, got, w)
				}
			}
		}
		set(0, 1, 7)
		set(1, 2, 8)
		r.reset(0, nil, 1, 2)
		observes(0, 0, 1, 7)
		observes(0, 1, 2, 8)
		set(0, 4, 9) // for what begins from now on
		set(1, 5, 9)
		r.step(0, 0)
		observes(1, 0, 4, 9)
		observes(1, 1, 2, 8)
		if *at[uint8](r, tensorTerminated, 0, 0, 0) != 1 || *at[uint8](r, tensorTerminated, 0, 1, 0) != 0 {
			t.Error("the first environment alone was to walk one step")
		}
	}
}

// A host that has no reset parameters leaves them unbound, and one that has one of two writes NaN for the other.
func TestBatch_ResetParametersThatNobodySetsAreNaN(t *testing.T) {
	for _, bound := range []bool{true, false} {
		r := serveWalkers(t, false)
		*at[float32](r, tensorMask, 0, 0, 0), *at[float32](r, tensorMask, 0, 0, 1) = float32(math.NaN()), 5
		if !bound {
			r.binds[len(r.binds)-1].Ptr = 0
		}
		if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
			t.Fatalf("bind: %v", status)
		}
		r.reset(0, nil, 1, 2)
		first, second := *at[float32](r, tensorObs, 0, 0, 0), *at[float32](r, tensorObs, 0, 0, 1)
		if first == first || (second == 5) != bound || (second != second) == bound {
			t.Errorf("bound %v: the environment is told %v and %v", bound, first, second)
		}
		for step, want := range []uint8{0, 0, 1} {
			r.step(step, 0)
			if got := *at[uint8](r, tensorTerminated, step, 0, 0); got != want {
				t.Errorf("bound %v: step %d ends the episode: %d, by its default it is %d", bound, step, got, want)
			}
		}
	}
}

func TestParamOr_TakesWhatIsSet(t *testing.T) {
	params := []float32{float32(math.NaN()), 0}
	if a, b := sdk.ParamOr(params, 0, 7), sdk.ParamOr(params, 1, 7); a != 7 || b != 0 {
		t.Errorf("ParamOr is %v and %v, want 7 and 0", a, b)
	}
}

func TestServe_ResetParametersNeedAMethod(t *testing.T) {
	spec := walkerSpec()
	Serve(spec, newCounter)
	if _, err := served.describe("limit=3"); err == nil || !strings.Contains(err.Error(), "SetParams, see sdk.ParamTaker") {
		t.Errorf("describe: %v", err)
	}
	spec.Params = sdk.MultiDiscrete(3, 4)
	Serve(spec, newWalker)
	if _, err := served.describe(""); err == nil || !strings.Contains(err.Error(), "params: want numbers") {
		t.Errorf("describe: %v", err)
	}
}
