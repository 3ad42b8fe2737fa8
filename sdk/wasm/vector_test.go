//go:build !wasip1

package wasm

import (
	"bytes"
	"encoding"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// picky is a collector that has masks and can be saved.
type picky struct{ collector }

func (p *picky) ActionMask(legal []uint8) { legal[0], legal[1] = uint8(p.steps+1)%2, 1 }

func (p *picky) AppendBinary(b []byte) ([]byte, error) { return append(b, byte(p.steps)), nil }

func (p *picky) UnmarshalBinary(b []byte) error {
	p.steps = int32(b[0])
	return nil
}

func newPicky(*sdk.Config) (*picky, error) { return &picky{}, nil }

// counters and pickies are the environments counter and picky as an author's own loops.
type (
	counters []*counter
	pickies  []*picky
)

func newCounters(c *sdk.Config, n int) (counters, error) {
	list := make(counters, n)
	for i := range list {
		var err error
		if list[i], err = newCounter(c); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l counters) Reset(i int, rng *sdk.Rand, obs []float32) { l[i].Reset(rng, obs) }

func (l counters) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, float32]) {
	for i := range rows.Rewards {
		r := l[first+i].Step(&rngs[i], rows.Actions[i:i+1], rows.Obs[2*i:2*i+2])
		rows.Rewards[i], rows.Terminated[i], rows.Truncated[i] = r.Reward, flag(r.Terminated), flag(r.Truncated)
	}
}

func (l counters) ActionMask(i int, legal []uint8) { l[i].ActionMask(legal) }

func (l counters) AppendEnv(b []byte, i int) ([]byte, error) { return l[i].AppendBinary(b) }

func (l counters) LoadEnv(i int, b []byte) error { return l[i].UnmarshalBinary(b) }

func newPickies(_ *sdk.Config, n int) (pickies, error) {
	list := make(pickies, n)
	for i := range list {
		list[i] = &picky{}
	}
	return list, nil
}

func (l pickies) row(obs *sdk.Observed, i int, at *sdk.Observed) {
	obs.Uint8[0], obs.Int32[1], obs.Float32[2] = at.Uint8[0][6*i:6*i+6], at.Int32[1][i:i+1], at.Float32[2][2*i:2*i+2]
}

func (l pickies) Reset(i int, rng *sdk.Rand, obs *sdk.Observed) { l[i].Reset(rng, obs) }

func (l pickies) Step(first int, rngs []sdk.Rand, rows sdk.Rows[int32, uint8], obs *sdk.Observed) {
	one := sdk.Observed{Names: obs.Names, Uint8: make([][]uint8, 3), Int32: make([][]int32, 3), Float32: make([][]float32, 3)}
	for i := range rows.Rewards {
		l.row(&one, i, obs)
		r := l[first+i].Step(&rngs[i], rows.Actions[i:i+1], &one)
		rows.Rewards[i], rows.Terminated[i], rows.Truncated[i] = r.Reward, flag(r.Terminated), flag(r.Truncated)
		rows.Discounts[i] = r.Discount
		l[first+i].Tell(rows.Figures[i : i+1])
	}
}

func (l pickies) ActionMask(i int, legal []uint8) { l[i].ActionMask(legal) }

func (l pickies) AppendEnv(b []byte, i int) ([]byte, error) { return l[i].AppendBinary(b) }

func (l pickies) LoadEnv(i int, b []byte) error { return l[i].UnmarshalBinary(b) }

var (
	_ encoding.BinaryAppender = (*picky)(nil)
	_ sdk.BatchSaver          = counters(nil)
	_ sdk.BatchMasker         = pickies(nil)
)

// An author's own loop writes the same as its environments one by one, masks and several observations included, and can
// be saved and loaded, in every mode and layout.
func TestServeBatch_WritesWhatSinglesWrite(t *testing.T) {
	one := sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 2), PictureWidth: 3, PictureHeight: 2}
	several := collectorSpec()
	several.Discount, several.Figures = true, []sdk.Figure{{Name: "score"}}
	for name, serve := range map[string][2]func(){
		"one observation":      {func() { Serve(one, newCounter) }, func() { ServeBatch(one, newCounters) }},
		"several observations": {func() { ServeDict(several, newPicky) }, func() { ServeDictBatch(several, newPickies) }},
	} {
		for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
			for _, columns := range []bool{false, true} {
				want, got := played(t, serve[0], mode, columns), played(t, serve[1], mode, columns)
				if len(want) == 0 || !bytes.Equal(got, want) {
					t.Errorf("%s, %v, columns %v: the batch does not write what the single environments write", name, mode, columns)
				}
			}
		}
	}
}

// played returns the memory after some steps, and a saved state.
func played(t *testing.T, serve func(), mode hostabi.Autoreset, columns bool) []byte {
	t.Helper()
	clear(linear)
	serve()
	data, err := served.describe("")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.All(hostabi.RoleActionMask)) != 1 {
		t.Fatalf("%s has no mask", spec.Name)
	}
	r := &rig{t: t, envs: 5, descs: spec.Tensors}
	if r.batch, _, err = served.create("", r.envs, mode); err != nil {
		t.Fatal(err)
	}
	r.bind(columns)
	r.reset(0, nil, 1, 2, 3, 4, 5)
	for step := range 9 {
		for env := range r.envs {
			*at[int32](r, tensorAction, step, env, 0) = int32(step+env) % 2
		}
		first := step % r.envs // in two parts
		for _, part := range [][2]int{{first, r.envs - first}, {0, first}} {
			if status := r.batch.step(uint32(step), part[0], part[1]); status != hostabi.StatusOK {
				t.Fatalf("step: %v", status)
			}
		}
		if mode == hostabi.Disabled {
			ended := make([]uint8, r.envs)
			for env := range ended {
				ended[env] = *at[uint8](r, tensorTerminated, step, env, 0) | *at[uint8](r, tensorTruncated, step, env, 0)
			}
			r.reset(step+1, ended)
		}
	}
	state, _, err := r.batch.save(1)
	if err != nil {
		t.Fatal(err)
	}
	state = bytes.Clone(state)
	if _, err := r.batch.load(4, state); err != nil {
		t.Fatal(err)
	}
	moved, _, err := r.batch.save(4)
	if err != nil || !bytes.Equal(moved, state) {
		t.Fatalf("loaded as %v, %v, want %v", moved, err, state)
	}
	return append(bytes.Clone(linear), state...)
}
