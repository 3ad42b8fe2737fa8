//go:build !wasip1

package wasm

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// lister is a walker that tells two numbers of each episode: how many it has begun, and nothing.
type lister struct {
	walker
	begun float32
}

func (l *lister) Reset(rng *sdk.Rand, obs []float32) {
	l.begun++
	l.walker.Reset(rng, obs)
}

func (l *lister) TellReset(infos []float32) { infos[0] = l.begun }

// An environment tells numbers of an episode in the row where it begins, by a reset and by itself, says how long a step takes, and a host
// that wants none leaves them unbound.
func TestBatch_TellsInfosAtReset(t *testing.T) {
	spec := walkerSpec()
	spec.ResetInfos, spec.DT = []string{"begun", "nothing"}, 0.25
	for _, bound := range []bool{true, false} {
		clear(linear)
		Serve(spec, func(*sdk.Config) (*lister, error) { return &lister{}, nil })
		data, err := served.describe("")
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := hostabi.ParseSpec(data)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, envs: 2, descs: parsed.Tensors}
		first := len(r.descs) - 2
		if d := &r.descs[first]; d.Role != hostabi.RoleResetInfo || d.Path != "begun" || d.Flags&hostabi.TensorOptional == 0 || parsed.DT != 0.25 {
			t.Fatalf("the tensor is %+v, a step of %g s", d, parsed.DT)
		}
		if r.batch, _, err = served.create("", r.envs, hostabi.SameStep); err != nil {
			t.Fatal(err)
		}
		r.bind(false)
		if !bound {
			r.binds[first].Ptr, r.binds[first+1].Ptr = 0, 0
			if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
				t.Fatalf("bind: %v", status)
			}
		}
		told := func(row, env int, want float32) {
			t.Helper()
			if got := *at[float32](r, first, row, env, 0); bound && got != want || *at[float32](r, first+1, row, env, 0) != 0 && bound {
				t.Errorf("row %d, environment %d: tells %g, want %g", row, env, got, want)
			}
		}
		*at[float32](r, tensorMask, 0, 0, 0), *at[float32](r, tensorMask, 0, 1, 0) = 1, 2 // lives of one step and of two
		r.reset(0, nil, 1, 2)
		told(0, 0, 1)
		told(0, 1, 1)
		r.step(0, 0)
		told(1, 0, 2)
		r.step(1, 0)
		told(2, 0, 3)
		told(2, 1, 2)
	}
}

func TestServe_InfosAtResetNeedAMethod(t *testing.T) {
	spec := walkerSpec()
	spec.ResetInfos = []string{"begun"}
	Serve(spec, newWalker)
	if _, err := served.describe(""); err == nil || !strings.Contains(err.Error(), "TellReset, see sdk.ResetTeller") {
		t.Errorf("describe: %v", err)
	}
	spec = walkerSpec()
	spec.AgentNames = []string{"one", "two"}
	Serve(spec, newWalker)
	if _, err := served.describe(""); err == nil || !strings.Contains(err.Error(), "want one for each of several agents") {
		t.Errorf("describe: %v", err)
	}
}

func TestServe_DescribesTheKeysOfAPerson(t *testing.T) {
	spec := walkerSpec()
	spec.Keys = "left=0\nright=1"
	Serve(spec, newWalker)
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := hostabi.ParseSpec(data); err != nil || got.Keys != spec.Keys {
		t.Errorf("keys %q, %v; want %q", got.Keys, err, spec.Keys)
	}
}
