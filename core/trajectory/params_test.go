package trajectory

import (
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// withParams is a block of environments that take two numbers from 1 to 8 when an episode begins.
func withParams(t *testing.T) Trajectory {
	spec := testkit.Spec(3, 5, true)
	spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleResetParam, DType: hostabi.F32, Rank: 1,
		Shape: [hostabi.MaxRank]uint32{2}, Low: 1, High: 8, Flags: hostabi.TensorNoTime})
	return testTrajectory(t, spec, Shape{Steps: 4, Envs: 3})
}

func TestParams_CheckNamesTheEnvironment(t *testing.T) {
	tr := withParams(t)
	Params{tr}.Clear()
	p := tr.Float32(ResetParam)
	if len(p) != 6 {
		t.Fatalf("%d numbers for 3 environments that take 2", len(p))
	}
	for _, ok := range []float32{float32(math.NaN()), 1, 8, 2.5} {
		p[3] = ok
		if env, err := (Params{tr}).Check(); err != nil {
			t.Errorf("%v: environment %d: %v", ok, env, err)
		}
	}
	for _, bad := range []float32{-1, 0, 0.5, 9, float32(math.Inf(1))} {
		p[3] = bad
		if env, err := (Params{tr}).Check(); env != 1 || err == nil || !strings.Contains(err.Error(), "want 1 to 8, or NaN") {
			t.Errorf("%v: environment %d, %v", bad, env, err)
		}
	}
}

func TestParams_AreSavedLoadedAndCleared(t *testing.T) {
	from, to := withParams(t), withParams(t)
	copy(from.Float32(ResetParam), []float32{1, 2, 3, 4, 5, 6})
	saved := make([]byte, from.Schema.ParamBytes())
	Params{from}.Save(saved)
	Params{to}.Load(saved)
	if got := to.Float32(ResetParam); got[0] != 1 || got[5] != 6 {
		t.Errorf("loaded %v", got)
	}
	Params{to}.Clear()
	if got := to.Float32(ResetParam); got[0] == got[0] || got[5] == got[5] {
		t.Errorf("cleared to %v", got)
	}
	Params{to}.Copy(from)
	if got := to.Float32(ResetParam); got[0] != 1 || got[5] != 6 {
		t.Errorf("copied %v", got)
	}
	if s := testTrajectory(t, testkit.Spec(3, 5, true), Shape{Steps: 4, Envs: 3}).Schema; s.ParamBytes() != 0 {
		t.Errorf("%d bytes of parameters where there are none", s.ParamBytes())
	}
}
