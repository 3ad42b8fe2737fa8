//go:build !wasip1

package wasm

import (
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
	length := int32(w.params[0])
	if length == 0 {
		length = 3
	}
	return sdk.Result{Terminated: w.steps == length}
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

// A host that has no reset parameters leaves them unbound: environments get zeros.
func TestBatch_ResetParametersThatNobodySetsAreZero(t *testing.T) {
	r := serveWalkers(t, false)
	*at[float32](r, tensorMask, 0, 0, 0) = 5
	r.binds[len(r.binds)-1].Ptr = 0
	if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
		t.Fatalf("bind: %v", status)
	}
	r.reset(0, nil, 1, 2)
	if got := *at[float32](r, tensorObs, 0, 0, 0); got != 0 {
		t.Errorf("the environment is told %v", got)
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
