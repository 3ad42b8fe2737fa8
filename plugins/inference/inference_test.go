package inference

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// rig is an inference component with a policy for scripted environments, and a few blocks on loan to ask about.
type rig struct {
	*plugintest.Rig
	component component.Component
	network   policy.Network
	act       *bus.Signal
	weights   *bus.Signal
	arena     *arena.Arena
	blocks    []trajectory.Trajectory
	handles   []hostabi.Handle
	replies   []hostabi.Message
	replied   func(*hostabi.Message) // gets the replies, instead of replies; may be nil
	spoil     func(policy.Weights)   // of weights before they are published, or nil
}

// Shape of the blocks.
const (
	steps   = 3
	envs    = 5
	actions = 3
)

func network() policy.Network {
	return policy.MLP{Obs: plugintest.ObsElems, Actions: actions, Hidden: []int{8}, Activation: policy.Tanh,
		HiddenGain: math.Sqrt2, Heads: policy.Heads{PolicyGain: 1}}.Network()
}

func newRig(t testing.TB, c component.Component, blocks, maxRows int) *rig {
	t.Helper()
	return newRigOf(t, c, network(), blocks, maxRows)
}

func newRigOf(t testing.TB, c component.Component, n policy.Network, blocks, maxRows int) *rig {
	t.Helper()
	r := &rig{network: n, component: c}
	o := plugintest.RigOptions{Name: "inference", Run: component.Run{Seed: 9},
		Policies: map[string]component.Policy{"main": &policy.Definition{Network: r.network, Backend: cpu.New()}}}
	r.Rig = plugintest.NewRig(t, c, o, func(into any) error {
		if c, ok := into.(*config); ok {
			c.Policy, c.MaxRows = "main", maxRows
		}
		return nil
	})
	r.act = r.ToOnLoan("act")
	r.From("actions", func(m *hostabi.Message) {
		if r.replied != nil {
			r.replied(m)
			return
		}
		r.replies = append(r.replies, *m)
	})
	r.lend(t, blocks, "")
	return r
}

// lend makes blocks, in whose rows these policies act, and fills them with observations and masks.
func (r *rig) lend(t testing.TB, n int, policies string) {
	t.Helper()
	r.blocks, r.handles = nil, nil
	p := plugintest.New(plugintest.Script{Actions: actions, Legal: func(plugintest.At, int) bool { return true }})
	schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: steps, Envs: envs, Policies: policies, Versions: policies != "", Memory: r.network.Memory()})
	if err != nil {
		t.Fatal(err)
	}
	r.arena, err = r.Host.Arenas.Add(arena.Config{Name: "blocks" + policies, Blocks: n, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	for k := range n {
		loan, err := r.arena.Loan()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = loan.Abort() })
		tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
		for i := range tr.Float32(trajectory.Obs) {
			tr.Float32(trajectory.Obs)[i] = float32(math.Sin(float64(i + 100*k)))
		}
		for i := range tr.Bytes(trajectory.Mask) {
			tr.Bytes(trajectory.Mask)[i] = byte(i*i) % 3 % 2
			if i%actions == 0 {
				tr.Bytes(trajectory.Mask)[i] = 1
			}
		}
		clear(tr.Bytes(trajectory.Truncated))
		r.blocks, r.handles = append(r.blocks, tr), append(r.handles, loan.Handle())
	}
}

// publish sends weights of a version.
func (r *rig) publish(t testing.TB, n policy.Network, version uint64) {
	t.Helper()
	if r.weights == nil {
		r.weights = r.To("on_weights")
	}
	format := n.Weights()
	a, err := r.Host.Arenas.Add(arena.Config{Name: fmt.Sprint("weights ", version), Blocks: 1, BlockBytes: format.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Give(t, r.weights, hostabi.Message{PolicyVersion: version}, a, func(block []byte) {
		w, err := format.Format(block, version)
		if err != nil {
			t.Fatal(err)
		}
		copy(w.Params, policy.Init(&n, version))
		if r.spoil != nil {
			r.spoil(w)
		}
	})
}

// ask sends a request about a row of a block.
func (r *rig) ask(t testing.TB, block, row int, more func(*trajectory.ActRequest)) {
	t.Helper()
	q := trajectory.ActRequest{Block: r.handles[block], T: row, Step: uint64(100 + row), FirstEnv: uint32(envs * block)}
	if more != nil {
		more(&q)
	}
	if err := r.act.Emit(q.Message()); err != nil {
		t.Fatal(err)
	}
}

// written are the outputs of a row.
type written struct {
	action  []int32
	logProb []float32
	value   []float32
	version uint64
}

func (r *rig) written(block, row int) written {
	tr := r.blocks[block]
	lo, hi := row*envs, (row+1)*envs
	return written{slices.Clone(tr.Int32(trajectory.Action)[lo:hi]), slices.Clone(tr.Float32(trajectory.LogProb)[lo:hi]),
		slices.Clone(tr.Float32(trajectory.Value)[lo:hi]), tr.Uint64(trajectory.PolicyVersion)[row]}
}

func (w written) equal(o written) bool {
	return slices.Equal(w.action, o.action) && slices.Equal(w.logProb, o.logProb) && slices.Equal(w.value, o.value) && w.version == o.version
}

func TestInference_WaitsForWeightsThenServesAll(t *testing.T) {
	r := newRig(t, New(), 3, 1024)
	for block := range 3 {
		r.ask(t, block, 1, nil)
	}
	r.MustSettle()
	if len(r.replies) != 0 {
		t.Fatalf("%d replies before there are weights", len(r.replies))
	}
	r.publish(t, r.network, 6)
	r.MustSettle()
	if len(r.replies) != 3 {
		t.Fatalf("%d replies, want 3", len(r.replies))
	}
	for block, m := range r.replies {
		if m.Handle != r.handles[block] || m.T != 1 || m.PolicyVersion != 6 {
			t.Errorf("reply %d is %+v", block, m)
		}
		if w := r.written(block, 1); w.version != 6 || slices.Max(w.action) > 2 || slices.Min(w.action) < 0 {
			t.Errorf("block %d has %+v", block, w)
		}
	}
	h := r.Host.Stats.Histogram("inference/batch_rows").Snapshot()
	if h.Count != 1 || h.Max != 3*envs {
		t.Errorf("batches %+v, want one of 15 rows", h)
	}
}

// Fewer rows than min_rows are computed when the first of them has waited long enough, and at once when there are enough.
func TestInference_WaitsForRows(t *testing.T) {
	r := newRig(t, New(), 3, 1024)
	c := r.component.(*Inference)
	c.config.MinRows, c.config.MaxWait = 2*envs, time.Minute
	r.publish(t, r.network, 6)
	r.ask(t, 0, 1, nil)
	r.MustSettle()
	if len(r.replies) != 0 {
		t.Fatalf("%d replies with half of min_rows", len(r.replies))
	}
	r.ask(t, 1, 1, nil)
	r.MustSettle()
	if len(r.replies) != 2 || c.wait != nil || c.rows != 0 {
		t.Fatalf("%d replies with min_rows, want 2; %d rows still wait", len(r.replies), c.rows)
	}
	c.config.MaxWait = time.Millisecond
	r.ask(t, 2, 1, nil)
	r.MustRun(func() bool { return len(r.replies) == 3 })
	h := r.Host.Stats.Histogram("inference/batch_rows").Snapshot()
	if h.Count != 2 || h.Max != 2*envs || h.Min != envs {
		t.Errorf("batches %+v, want one of 10 rows and one of 5", h)
	}
}

// Who waits for more rows than there are is told.
func TestInference_WaitsInVain(t *testing.T) {
	r := newRig(t, New(), 1, 1024)
	c := r.component.(*Inference)
	c.config.MinRows, c.config.MaxWait = 1000, time.Microsecond
	r.publish(t, r.network, 6)
	for n := range inVain {
		if strings.Contains(r.Log.String(), "min_rows=1000") {
			t.Fatalf("told after %d waits", n)
		}
		r.ask(t, 0, 1, nil)
		r.MustRun(func() bool { return len(r.replies) == n+1 })
	}
	if log := r.Log.String(); strings.Count(log, "min_rows=1000 rows=5 ") != 1 {
		t.Errorf("the log is %q", log)
	}
}

// The outputs of a row do not depend on the other rows of its batch.
func TestInference_BatchesDoNotMatter(t *testing.T) {
	var want []written
	for _, maxRows := range []int{1024, 1, 2, 5, 7} {
		r := newRig(t, New(), 3, maxRows)
		r.publish(t, r.network, 1)
		for block := range 3 {
			r.ask(t, block, 0, nil)
		}
		r.ask(t, 0, 1, func(q *trajectory.ActRequest) { q.Bootstrap = true })
		r.ask(t, 1, steps, func(q *trajectory.ActRequest) { q.ValueOnly = true })
		r.MustSettle()
		got := []written{r.written(0, 0), r.written(1, 0), r.written(2, 0), r.written(0, 1)}
		if want == nil {
			want = got
		}
		for i := range want {
			if !got[i].equal(want[i]) {
				t.Errorf("max_rows = %d: %+v, want %+v", maxRows, got[i], want[i])
			}
		}
		if h := r.Host.Stats.Histogram("inference/batch_rows").Snapshot(); h.Max > float64(maxRows) {
			t.Errorf("max_rows = %d: a batch of %v", maxRows, h.Max)
		}
	}
}

func TestInference_BootstrapsTruncatedEnvironmentsAlone(t *testing.T) {
	r := newRig(t, New(), 1, 1024)
	tr := r.blocks[0]
	tr.Bytes(trajectory.Truncated)[1*envs+2], tr.Bytes(trajectory.Truncated)[1*envs+4] = 1, 1
	final := tr.Row(trajectory.FinalObs, 0).Float32()
	for i := range final {
		final[i] = float32(i) / 10
	}
	copy(tr.Row(trajectory.Obs, 0).Float32()[:2*plugintest.ObsElems], final[2*plugintest.ObsElems:]) // to compare with
	copy(tr.Row(trajectory.Obs, 0).Float32()[4*plugintest.ObsElems:], final[4*plugintest.ObsElems:])
	for i := range tr.Float32(trajectory.Bootstrap) {
		tr.Float32(trajectory.Bootstrap)[i] = -77
	}
	r.publish(t, r.network, 1)
	r.ask(t, 0, 0, nil)
	r.ask(t, 0, 2, func(q *trajectory.ActRequest) { q.Bootstrap = true })
	r.MustSettle()
	bootstrap, value := tr.Float32(trajectory.Bootstrap), tr.Float32(trajectory.Value)
	for i, v := range bootstrap {
		switch {
		case i == 1*envs+2 && v != value[0], i == 1*envs+4 && v != value[4]:
			t.Errorf("bootstrap value %d is %v, want that of the last observation", i, v)
		case i != 1*envs+2 && i != 1*envs+4 && v != -77:
			t.Errorf("bootstrap value %d is written, and nothing was truncated there", i)
		}
	}
}

func TestInference_ValueOnlyWritesNoAction(t *testing.T) {
	r := newRig(t, New(), 1, 1024)
	for i := range r.blocks[0].Int32(trajectory.Action) {
		r.blocks[0].Int32(trajectory.Action)[i] = -5
	}
	r.publish(t, r.network, 1)
	r.ask(t, 0, steps, func(q *trajectory.ActRequest) { q.ValueOnly = true })
	r.MustSettle()
	if got := r.blocks[0].Int32(trajectory.Action); slices.Max(got) != -5 {
		t.Errorf("actions %v are written", got)
	}
	if got := r.blocks[0].Uint64(trajectory.PolicyVersion)[steps]; got != 1 {
		t.Errorf("version %d, want 1", got)
	}
}

func TestInference_TakesTheNewestWeightsBetweenBatches(t *testing.T) {
	r := newRig(t, New(), 1, 1024)
	r.publish(t, r.network, 1)
	r.ask(t, 0, 0, nil)
	r.MustSettle()
	r.publish(t, r.network, 2)
	r.ask(t, 0, 1, nil)
	r.MustSettle()
	r.ask(t, 0, 2, nil)
	r.MustSettle()
	for row, want := range []uint64{1, 2, 2} {
		if got := r.written(0, row).version; got != want || r.replies[row].PolicyVersion != want {
			t.Errorf("row %d is of version %d, its reply of %d, want %d", row, got, r.replies[row].PolicyVersion, want)
		}
	}
}

func TestInference_RefusesRequestsItCannotServe(t *testing.T) {
	for want, more := range map[string]func(r *rig, q *trajectory.ActRequest){
		"no row 3 to act on in blocks of 3 steps": func(_ *rig, q *trajectory.ActRequest) { q.T = 3 },
		"no row 4 to act on":                      func(_ *rig, q *trajectory.ActRequest) { q.T, q.ValueOnly = 4, true },
		"no row 0 to act on":                      func(_ *rig, q *trajectory.ActRequest) { q.T, q.Bootstrap = 0, true },
		arena.ErrStale.Error():                    func(_ *rig, q *trajectory.ActRequest) { q.Block++ },
		arena.ErrForeign.Error():                  func(_ *rig, q *trajectory.ActRequest) { q.Block = 77 },
		"holds no trajectories":                   func(r *rig, q *trajectory.ActRequest) { q.Block = r.weightsHandle() },
	} {
		r := newRig(t, New(), 1, 1024)
		r.publish(t, r.network, 1)
		r.ask(t, 0, 1, func(q *trajectory.ActRequest) { more(r, q) })
		if err := r.Settle(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "inference: act on") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// weightsHandle is a handle of an arena without trajectories.
func (r *rig) weightsHandle() hostabi.Handle {
	for id := range uint8(10) {
		if a, err := r.Host.Arenas.Of(hostabi.MakeHandle(id, 0, 1)); err == nil && a != r.arena {
			return hostabi.MakeHandle(id, 0, 1)
		}
	}
	return 0
}

func TestInference_NamesTheEnvironmentWithoutALegalAction(t *testing.T) {
	for _, maxRows := range []int{1024, 2} {
		r := newRig(t, New(), 2, maxRows)
		clear(r.blocks[1].Row(trajectory.Mask, 1).Data[3*actions : 4*actions])
		r.publish(t, r.network, 1)
		r.ask(t, 0, 1, nil)
		r.ask(t, 1, 1, nil)
		err := r.Settle()
		if !errors.Is(err, policy.ErrNoLegalAction) || !strings.Contains(err.Error(), "environment 8 at env step 101") {
			t.Errorf("max_rows = %d: %v, want environment 8 at env step 101", maxRows, err)
		}
	}
}

func TestInference_RefusesWeightsOfAnotherNetwork(t *testing.T) {
	r := newRig(t, New(), 1, 1024)
	other := policy.MLP{Obs: plugintest.ObsElems, Actions: actions, Hidden: []int{9}, Activation: policy.Tanh}
	r.publish(t, other.Network(), 1)
	if err := r.Settle(); err == nil || !strings.Contains(err.Error(), "parameters") {
		t.Errorf("got %v, want the number of parameters", err)
	}
}

// Whatever a learner publishes, nothing acts with numbers that are not finite.
func TestInference_NamesThePublishedTensorThatIsNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		r := newRig(t, New(), 1, 1024)
		r.spoil = func(w policy.Weights) { w.Params[len(w.Params)-1] = float32(x) }
		r.publish(t, r.network, 3)
		var told *table.Error
		params := r.network.Params()
		last := params[len(params)-1].Name
		if err := r.Settle(); !errors.As(err, &told) || told.Code != CodeNotFinite || !errors.Is(err, policy.ErrNotFinite) ||
			!strings.Contains(err.Error(), "version 3") || !strings.Contains(err.Error(), last) {
			t.Errorf("%v: %v, want %s with version 3 and tensor %s", x, err, CodeNotFinite, last)
		}
	}
}

func TestConfigure_NamesWhatIsWrong(t *testing.T) {
	for want, c := range map[string]config{
		"`policy` is missing":        {MaxRows: 1},
		"`max_rows` is 0, want 1 to": {Policy: "main"},
	} {
		err := New().Configure(func(into any) error { *into.(*config) = c; return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for want, o := range map[string]plugintest.RigOptions{
		"not declared":                          {},
		"want *policy.Definition":               {Policies: map[string]component.Policy{"main": nil}},
		"network: format 0, this version has 1": {Policies: map[string]component.Policy{"main": &policy.Definition{Backend: cpu.New()}}},
	} {
		err := plugintest.StartError(t, New(), o, func(into any) error { into.(*config).Policy = "main"; return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start: %v, want %q", err, want)
		}
	}
}

func TestFlush_AllocatesNothing(t *testing.T) {
	for name, n := range map[string]policy.Network{"without a state": network(), "with a GRU": keeping(&layer.GRU{Size: 6}, nil)} {
		t.Run(name, func(t *testing.T) { flushAllocatesNothing(t, n) })
	}
}

func flushAllocatesNothing(t *testing.T, n policy.Network) {
	r := newRigOf(t, New(), n, 2, 7)
	r.publish(t, r.network, 1)
	clear(r.blocks[0].Bytes(trajectory.Truncated))
	r.servesWithoutAllocating(t)
}

// servesWithoutAllocating checks the requests about a row of the first block and the last one of the second.
func (r *rig) servesWithoutAllocating(t *testing.T) {
	t.Helper()
	c := r.Component.(*Inference)
	r.MustSettle()
	messages := []hostabi.Message{
		trajectory.ActRequest{Block: r.handles[0], T: 1, Bootstrap: true}.Message(),
		trajectory.ActRequest{Block: r.handles[1], T: steps, ValueOnly: true}.Message(),
	}
	serve := func() {
		c.pending = append(c.pending, messages...)
		if err := c.serve(); err != nil {
			t.Fatal(err)
		}
		c.pending = c.pending[:0]
	}
	if n := testing.AllocsPerRun(100, serve); n != 0 {
		t.Errorf("%v allocations for two requests, want 0", n)
	}
}

func TestRandom_TakesLegalActions(t *testing.T) {
	r := newRig(t, NewRandom(), 2, 0)
	for row := range steps {
		r.ask(t, 0, row, nil)
		r.ask(t, 1, row, nil)
	}
	r.ask(t, 0, steps, func(q *trajectory.ActRequest) { q.ValueOnly = true })
	r.MustSettle()
	if len(r.replies) != 2*steps+1 {
		t.Fatalf("%d replies, want 7", len(r.replies))
	}
	seen := map[int32]int{}
	for _, tr := range r.blocks {
		for i, a := range tr.Int32(trajectory.Action) {
			seen[a]++
			if tr.Bytes(trajectory.Mask)[i*actions+int(a)] != 1 {
				t.Errorf("row %d: action %d is not legal in %v", i, a, tr.Bytes(trajectory.Mask)[i*actions:(i+1)*actions])
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("actions %v: want several", seen)
	}
}

func TestRandom_RunsShareNoActions(t *testing.T) {
	actions := map[uint64][]int32{}
	for _, seed := range []uint64{1, 2} {
		p := plugintest.New(plugintest.Script{Actions: 1 << 16})
		schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 64, Envs: 1})
		if err != nil {
			t.Fatal(err)
		}
		tr := trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}
		c := NewRandom()
		plugintest.NewRig(t, c, plugintest.RigOptions{Run: component.Run{Seed: seed}}, func(any) error { return nil })
		for step := range 64 {
			c.(*Random).fill(tr, trajectory.ActRequest{T: step, Step: uint64(step)})
		}
		actions[seed] = slices.Clone(tr.Int32(trajectory.Action))
		if n := len(slices.Compact(slices.Sorted(slices.Values(actions[seed])))); n < 60 {
			t.Errorf("seed %d: %d different actions of 64 draws from 65536", seed, n)
		}
	}
	both := 0
	for _, a := range actions[2] {
		if slices.Contains(actions[1], a) {
			both++
		}
	}
	if both > 3 {
		t.Errorf("both runs have %d of 64 actions out of 65536: the streams are one, some steps apart", both)
	}
}
