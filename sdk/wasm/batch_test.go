//go:build !wasip1

package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// counter ends after limit steps, terminated if its last action was 1, else truncated. It observes its number of
// steps and a random number drawn at reset.
type counter struct {
	limit, steps int32
	luck         float32
}

func newCounter(c *sdk.Config) (*counter, error) {
	limit := c.Int("limit", 3)
	if limit < 1 {
		return nil, errors.New("limit must be positive")
	}
	return &counter{limit: int32(limit)}, nil
}

func (c *counter) look(obs []float32) { obs[0], obs[1] = float32(c.steps), c.luck }

func (c *counter) Reset(rng *sdk.Rand, obs []float32) {
	c.steps, c.luck = 0, rng.Uniform(0, 1)
	c.look(obs)
}

func (c *counter) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	c.steps++
	c.look(obs)
	over := c.steps == c.limit
	return sdk.Result{Reward: float32(action[0]) + 1, Terminated: over && action[0] == 1, Truncated: over}
}

func (c *counter) ActionMask(legal []uint8) { legal[0], legal[1] = 1, uint8(c.steps%2) }

// Draw draws a pixel for each step.
func (c *counter) Draw(p *sdk.Picture) { p.Rect(0, 0, float32(c.steps), 1, 0x102030) }

func (c *counter) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, uint32(c.steps))
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(c.luck)), nil
}

func (c *counter) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return errors.New("a counter has 8 bytes")
	}
	c.steps, c.luck = int32(binary.LittleEndian.Uint32(b)), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	return nil
}

func (c *counter) String() string { return fmt.Sprintf("%d of %d", c.steps, c.limit) }

// rig is a batch of counters over the native stand-in for linear memory.
type rig struct {
	t     *testing.T
	batch instance
	envs  int
	descs []hostabi.Tensor
	binds []hostabi.Binding
}

const rigTime = 16 // rows of time

func newRig(t *testing.T, config string, envs int, mode hostabi.Autoreset, columns bool) *rig {
	t.Helper()
	clear(linear)
	Serve(sdk.Spec{Name: "counter@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 2), PictureWidth: 3, PictureHeight: 2, PictureFPS: 30}, newCounter)
	r := &rig{t: t, envs: envs}
	data, err := served.describe(config)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hostabi.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	r.descs = spec.Tensors
	r.batch, _, err = served.create(config, envs, mode)
	if err != nil {
		t.Fatal(err)
	}
	r.bind(columns)
	return r
}

func (r *rig) bind(columns bool) {
	r.t.Helper()
	at := uint32(64)
	for _, d := range r.descs {
		size, elems := uint32(d.DType.Bytes()), uint32(d.Elems(1<<20))
		b := hostabi.Binding{Ptr: at, StrideT: size * elems * uint32(r.envs), StrideEnv: size * elems, StrideElem: size}
		if columns {
			b.StrideEnv, b.StrideElem = size, size*uint32(r.envs)
		}
		at += (b.StrideT*rigTime + 63) &^ 63
		if d.Role == hostabi.RoleFinalObservation {
			b.StrideT = 0
		}
		r.binds = append(r.binds, b)
	}
	if status := r.batch.bind(r.binds); status != hostabi.StatusOK {
		r.t.Fatalf("bind: %v", status)
	}
}

func at[T any](r *rig, tensor, t, env, elem int) *T {
	b := r.binds[tensor]
	return (*T)(unsafe.Pointer(&linear[b.Ptr+uint32(t)*b.StrideT+uint32(env)*b.StrideEnv+uint32(elem)*b.StrideElem]))
}

// step sets the same action for every environment and steps them all.
func (r *rig) step(t int, action int32) {
	r.t.Helper()
	for i := range r.envs {
		*at[int32](r, tensorAction, t, i, 0) = action
	}
	if status := r.batch.step(uint32(t), 0, r.envs); status != hostabi.StatusOK {
		r.t.Fatalf("step %d: %v", t, status)
	}
}

func (r *rig) reset(t int, mask []uint8, seeds ...uint64) {
	r.t.Helper()
	var raw []byte
	for _, s := range seeds {
		raw = binary.LittleEndian.AppendUint64(raw, s)
	}
	if status := r.batch.reset(uint32(t), mask, raw); status != hostabi.StatusOK {
		r.t.Fatalf("reset: %v", status)
	}
}

// row is the output of one environment in one step.
type row struct {
	steps, luck, reward   float32
	terminated, truncated uint8
}

func (r *rig) row(t, env int) row {
	return row{
		*at[float32](r, tensorObs, t+1, env, 0), *at[float32](r, tensorObs, t+1, env, 1),
		*at[float32](r, tensorReward, t, env, 0),
		*at[uint8](r, tensorTerminated, t, env, 0), *at[uint8](r, tensorTruncated, t, env, 0),
	}
}

func TestBatch_SameStepKeepsTheLastObservationAndStartsAgain(t *testing.T) {
	for _, columns := range []bool{false, true} {
		r := newRig(t, "limit=2\n", 3, hostabi.SameStep, columns)
		r.reset(0, nil, 5, 6, 7)
		first := *at[float32](r, tensorObs, 0, 1, 1)
		r.step(0, 0)
		r.step(1, 1)
		got := r.row(1, 1)
		if got.steps != 0 || got.luck == first || got.reward != 2 || got.terminated != 1 || got.truncated != 0 {
			t.Errorf("columns %v: step at the end wrote %+v", columns, got)
		}
		if steps, luck := *at[float32](r, tensorFinal, 0, 1, 0), *at[float32](r, tensorFinal, 0, 1, 1); steps != 2 || luck != first {
			t.Errorf("columns %v: final observation %v %v, want 2 %v", columns, steps, luck, first)
		}
	}
}

func TestBatch_NextStepSpendsAStepOnTheReset(t *testing.T) {
	r := newRig(t, "limit=2\n", 2, hostabi.NextStep, false)
	r.reset(0, nil, 5, 6)
	r.step(0, 0)
	r.step(1, 0)
	if got := r.row(1, 0); got.steps != 2 || got.truncated != 1 || got.terminated != 0 {
		t.Errorf("last step wrote %+v, want the last observation and truncated", got)
	}
	r.step(2, 1)
	if got := r.row(2, 0); got.steps != 0 || got.reward != 0 || got.terminated|got.truncated != 0 {
		t.Errorf("step after the end wrote %+v, want a first observation and nothing else", got)
	}
	r.step(3, 0)
	if got := r.row(3, 0); got.steps != 1 || got.reward != 1 {
		t.Errorf("first step of the new episode wrote %+v", got)
	}
}

func TestBatch_DisabledWaitsForTheHost(t *testing.T) {
	r := newRig(t, "limit=1\n", 2, hostabi.Disabled, true)
	r.reset(0, nil, 5, 6)
	r.step(0, 0)
	ended := r.row(0, 0)
	r.step(1, 0)
	if got, want := r.row(1, 0), (row{steps: ended.steps, luck: ended.luck}); got != want {
		t.Errorf("step of an ended environment wrote %+v, want %+v", got, want)
	}
	r.reset(2, []uint8{0, 1})
	r.step(2, 0)
	if r.row(2, 0).reward != 0 || r.row(2, 1).reward != 1 {
		t.Errorf("rewards after a reset of environment 1 = %v %v, want 0 1", r.row(2, 0).reward, r.row(2, 1).reward)
	}
}

func TestBatch_SeedAloneDecidesAnEpisode(t *testing.T) {
	r := newRig(t, "", 2, hostabi.SameStep, false)
	r.reset(0, nil, 9, 9)
	if a, b := *at[float32](r, tensorObs, 0, 0, 1), *at[float32](r, tensorObs, 0, 1, 1); a != b {
		t.Errorf("equal seeds start with %v and %v", a, b)
	}
	r.reset(0, nil, 9, 10)
	if a, b := *at[float32](r, tensorObs, 0, 0, 1), *at[float32](r, tensorObs, 0, 1, 1); a == b {
		t.Errorf("seeds 9 and 10 both start with %v", a)
	}
}

func TestBatch_RangesAreTheWholeStep(t *testing.T) {
	rows := func(ranges ...int) []row {
		r := newRig(t, "limit=2\n", 5, hostabi.SameStep, false)
		r.reset(0, nil, 1, 2, 3, 4, 5)
		var out []row
		for s := range 5 {
			from := 0
			for _, to := range append(ranges, r.envs) {
				if status := r.batch.step(uint32(s), from, to-from); status != hostabi.StatusOK {
					t.Fatal(status)
				}
				from = to
			}
			for i := range r.envs {
				out = append(out, r.row(s, i))
			}
		}
		return out
	}
	if got, want := rows(1, 1, 4), rows(); !slices.Equal(got, want) {
		t.Errorf("ranges wrote\n%v\nwant\n%v", got, want)
	}
}

func TestBatch_BadActionMovesNothing(t *testing.T) {
	r := newRig(t, "", 3, hostabi.SameStep, false)
	r.reset(0, nil, 1, 2, 3)
	before, _, _ := r.batch.save(0)
	before = bytes.Clone(before)
	*at[int32](r, tensorAction, 0, 2, 0) = -1
	if got := r.batch.step(0, 0, 3); got != hostabi.StatusAction {
		t.Errorf("action -1: %v, want %v", got, hostabi.StatusAction)
	}
	if got := r.batch.current(); got != 2 {
		t.Errorf("current environment = %d, want 2", got)
	}
	if after, _, _ := r.batch.save(0); !bytes.Equal(before, after) {
		t.Errorf("environment 0 moved: %x, was %x", after, before)
	}
}

func TestBatch_SavedEnvironmentHasTheSameFuture(t *testing.T) {
	r := newRig(t, "", 2, hostabi.SameStep, false)
	r.reset(0, nil, 1, 2)
	r.step(0, 0)
	saved, status, err := r.batch.save(0)
	if status != hostabi.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	var want []row
	for s := 1; s < 8; s++ {
		r.step(s, 0)
		want = append(want, r.row(s, 0))
	}
	if status, err := r.batch.load(1, saved); status != hostabi.StatusOK {
		t.Fatal(status, err)
	}
	for s := 1; s < 8; s++ {
		r.step(s, 0)
		if got := r.row(s, 1); got != want[s-1] {
			t.Errorf("step %d after load wrote %+v, want %+v", s, got, want[s-1])
		}
	}
	for _, bad := range [][]byte{nil, saved[:5], append(slices.Clone(saved), 0)} {
		if status, err := r.batch.load(0, bad); status != hostabi.StatusArgument || err == nil {
			t.Errorf("load of %d wrong bytes: %v, %v", len(bad), status, err)
		}
	}
	other := bytes.Repeat([]byte{0xff}, len(saved))
	if status, err := r.batch.load(0, other); status != hostabi.StatusVersion || err == nil {
		t.Errorf("load of a state of another version: %v, %v", status, err)
	}
}

func TestBatch_WritesMasksAndText(t *testing.T) {
	r := newRig(t, "", 2, hostabi.SameStep, true)
	r.reset(0, nil, 1, 2)
	r.step(0, 0)
	for s, want := range []uint8{0, 1} {
		if got := *at[uint8](r, tensorMask, s, 1, 1); got != want {
			t.Errorf("mask of action 1 at time %d = %d, want %d", s, got, want)
		}
	}
	if text, status := r.batch.text(1); text != "1 of 3" || status != hostabi.StatusOK {
		t.Errorf("render = %q, %v", text, status)
	}
	if need := r.batch.draw(1, func(int) []byte { return nil }); need != 3*2*3 {
		t.Errorf("a picture has %d bytes, want %d", need, 3*2*3)
	}
	picture := bytes.Repeat([]byte{9}, 3*2*3)
	r.batch.draw(1, func(int) []byte { return picture })
	if want := append([]byte{0x10, 0x20, 0x30}, make([]byte, 15)...); !bytes.Equal(picture, want) {
		t.Errorf("the picture is %x, want %x", picture, want)
	}
}

func TestBatch_AllIsLegalAfterAnEnd(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		r := newRig(t, "limit=2\n", 2, mode, true)
		r.reset(0, nil, 1, 2)
		r.step(0, 0)
		r.step(1, 0) // the mask of action 1 is 0 again, or the masks of a new episode
		want := uint8(1)
		if mode == hostabi.SameStep {
			want = 0
		}
		if got := *at[uint8](r, tensorMask, 2, 1, 1); got != want {
			t.Errorf("%v: mask of action 1 behind the end = %d, want %d", mode, got, want)
		}
		if mode == hostabi.Disabled {
			r.reset(2, []uint8{1, 1})
		}
		r.step(2, 0)
		want = map[hostabi.Autoreset]uint8{hostabi.SameStep: 1, hostabi.Disabled: 1}[mode]
		if got := *at[uint8](r, tensorMask, 3, 1, 1); got != want {
			t.Errorf("%v: mask of action 1 a step later = %d, want the author's %d", mode, got, want)
		}
	}
}

func TestCreate_RefusesWhatCannotBe(t *testing.T) {
	newRig(t, "", 1, hostabi.SameStep, false)
	cases := []struct {
		config string
		envs   int
		mode   hostabi.Autoreset
		want   hostabi.Status
	}{
		{"limit=0\n", 1, hostabi.SameStep, hostabi.StatusConfig},
		{"limit=one\n", 1, hostabi.SameStep, hostabi.StatusConfig},
		{"limits=1\n", 1, hostabi.SameStep, hostabi.StatusConfig},
		{"", 0, hostabi.SameStep, hostabi.StatusArgument},
		{"", math.MaxInt32, hostabi.SameStep, hostabi.StatusArgument},
		{"", 1, hostabi.SameStep | hostabi.NextStep, hostabi.StatusUnsupported},
	}
	for _, c := range cases {
		if _, got, err := served.create(c.config, c.envs, c.mode); got != c.want || err == nil {
			t.Errorf("create(%q, %d, %d): %v, %v, want %v", c.config, c.envs, c.mode, got, err, c.want)
		}
	}
}

func TestBatch_NeedsABindingAndAReset(t *testing.T) {
	r := newRig(t, "", 1, hostabi.SameStep, false)
	if got := r.batch.step(0, 0, 1); got != hostabi.StatusState {
		t.Errorf("step before reset: %v, want %v", got, hostabi.StatusState)
	}
	for name, spoil := range map[string]func([]hostabi.Binding) []hostabi.Binding{
		"too few":    func(b []hostabi.Binding) []hostabi.Binding { return b[1:] },
		"misaligned": func(b []hostabi.Binding) []hostabi.Binding { b[tensorObs].StrideEnv = 2; return b },
		"missing":    func(b []hostabi.Binding) []hostabi.Binding { b[tensorFinal].Ptr = 0; return b },
	} {
		if got := r.batch.bind(spoil(slices.Clone(r.binds))); got != hostabi.StatusArgument {
			t.Errorf("%s: bind = %v, want %v", name, got, hostabi.StatusArgument)
		}
	}
	if got := r.batch.reset(0, nil, nil); got != hostabi.StatusState {
		t.Errorf("reset after a bad bind: %v, want %v", got, hostabi.StatusState)
	}
}

func TestBatch_StepAllocatesNothing(t *testing.T) {
	for _, columns := range []bool{false, true} {
		r := newRig(t, "limit=2\n", 8, hostabi.SameStep, columns)
		r.reset(0, nil, 1, 2, 3, 4, 5, 6, 7, 8)
		if got := testing.AllocsPerRun(100, func() { r.batch.step(0, 0, 8) }); got != 0 {
			t.Errorf("columns %v: step allocates %v times", columns, got)
		}
	}
}

// FuzzBatch_Load loads arbitrary bytes: whatever is accepted must come back from save, and the batch must step on.
func FuzzBatch_Load(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(make([]byte, 20))
	f.Add(bytes.Repeat([]byte{1}, 20))
	f.Add(append(bytes.Repeat([]byte{0xff}, 8), 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, "", 2, hostabi.NextStep, false)
		r.reset(0, nil, 1, 2)
		status, err := r.batch.load(0, data)
		if (status == hostabi.StatusOK) != (err == nil) {
			t.Errorf("load: %v with error %v", status, err)
		}
		if status == hostabi.StatusOK {
			if got, _, _ := r.batch.save(0); !bytes.Equal(got, data) {
				t.Errorf("saved %x, loaded %x", got, data)
			}
		}
		r.step(0, 0)
		r.step(1, 1)
	})
}

// chooser observes the sum of its action.
type chooser[A sdk.Action] struct{}

func (chooser[A]) Reset(_ *sdk.Rand, obs []float32) { obs[0] = 0 }

func (chooser[A]) Step(_ *sdk.Rand, action []A, obs []float32) sdk.Result {
	obs[0] = 0
	for _, a := range action {
		obs[0] += float32(a)
	}
	return sdk.Result{}
}

func (chooser[A]) ActionMask(legal []uint8) {
	for i := range legal {
		legal[i] = 1
	}
}

func TestServe_DescribesEachSpace(t *testing.T) {
	inf := float32(math.Inf(1))
	number := func(c *sdk.Config) (chooser[float32], error) { return chooser[float32]{}, nil }
	choice := func(c *sdk.Config) (chooser[int32], error) { return chooser[int32]{}, nil }
	for _, c := range []struct {
		want   string
		action sdk.Space
		wrong  int32 // value that is outside its second element, or its only one
	}{
		{"MultiDiscrete[3,2]", sdk.MultiDiscrete(3, 2), 2},
		{"MultiDiscrete[3,2] from 5", sdk.MultiDiscrete(3, 2).From(5), 4},
		{"MultiBinary[4]", sdk.MultiBinary(4), 2},
		{"Discrete(3) from -1", sdk.Discrete(3).From(-1), 2},
		{"Box[2]", sdk.Boxes([]float32{-1, 0}, []float32{1, inf}), 0},
	} {
		clear(linear)
		if spec := (sdk.Spec{Name: "chooser@1", Action: c.action, Obs: sdk.Box(0, 0, 1)}); c.action.Choices() > 0 {
			Serve(spec, choice)
		} else {
			Serve(spec, number)
		}
		data, err := served.describe("")
		if err != nil {
			t.Fatal(err)
		}
		spec, err := hostabi.ParseSpec(data)
		if err != nil || spec.Spaces(hostabi.RoleAction) != c.want {
			t.Fatalf("described as %s, %v; want %s", spec.Spaces(hostabi.RoleAction), err, c.want)
		}
		if c.action.Choices() == 0 {
			if low, high := spec.Tensors[0].Bounds(1); low != 0 || high != inf {
				t.Errorf("bounds %v..%v", low, high)
			}
			continue
		}
		r := &rig{t: t, envs: 3, descs: spec.Tensors}
		if r.batch, _, err = served.create("", r.envs, hostabi.SameStep); err != nil {
			t.Fatal(err)
		}
		r.bind(true)
		r.reset(0, nil, 1, 2, 3)
		elems := c.action.Elems()
		for i := range r.envs {
			for elem := range elems {
				*at[int32](r, tensorAction, 0, i, elem) = int32(c.action.Start)
			}
		}
		if status := r.batch.step(0, 0, r.envs); status != hostabi.StatusOK {
			t.Errorf("%s: %v", c.want, status)
		}
		if got := *at[float32](r, tensorObs, 1, 2, 0); got != float32(elems*c.action.Start) {
			t.Errorf("%s: the environment saw actions of sum %v", c.want, got)
		}
		*at[int32](r, tensorAction, 1, 1, min(elems-1, 1)) = c.wrong
		if status := r.batch.step(1, 1, 1); status != hostabi.StatusAction {
			t.Errorf("%s: %d is taken: %v", c.want, c.wrong, status)
		}
	}
}
