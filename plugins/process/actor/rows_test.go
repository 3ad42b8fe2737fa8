package actor

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

const testRows = 3

// answered is an actor of a policy with a MultiDiscrete action with a mask and a Box, and what a program has answered to a request.
type answered struct {
	*actor
	request policy.Request
}

// newAnswered is an answer that is right: the elements 1 and 2 of the action, a Box beyond its bounds, and a state.
func newAnswered(t *testing.T) *answered {
	t.Helper()
	n := policy.External{Program: "own", State: 2, Chunk: 1, Weights: []layer.Weight{{Name: "w", Shape: []int{4}}},
		Inputs: []policy.Input{{Path: "obs", Shape: []int{2}, DType: "f32"}},
		Policy: []policy.Dist{{Action: "action", Start: 10, MultiCategorical: &head.MultiCategorical{Counts: []int{2, 3}}},
			{Action: "action/1", Gaussian: &head.Gaussian{N: 1}, Bounds: &policy.Bounds{Low: []float32{-1}, High: []float32{1}}}}}.Network()
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	b := &Backend{program: spawn.Program{Name: "own"}, wanted: native.PolicyWanted{Name: "main"}}
	x := &answered{actor: newActor(b, &n, 2*testRows)}
	var err error
	if x.scratch, err = shm.Create("rlhost: test", x.layout.Bytes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	matrix := func(d hostabi.DType, elems int) trajectory.Matrix {
		size := d.Bytes()
		return trajectory.Matrix{DType: d, Data: make([]byte, testRows*elems*size), Rows: testRows, Elems: elems, StrideRow: elems * size, StrideElem: size}
	}
	x.request = policy.Request{Obs: []trajectory.Matrix{matrix(hostabi.F32, 2)}, Age: []byte{0, 1, 2}, State: matrix(hostabi.F32, 2), StateOut: matrix(hostabi.F32, 2),
		Mask: []trajectory.Matrix{matrix(hostabi.U8, 5), {}}, Action: []trajectory.Matrix{matrix(hostabi.I32, 2), matrix(hostabi.F32, 1)},
		Raw: []trajectory.Matrix{{}, matrix(hostabi.F32, 1)}, LogProb: make([]float32, testRows), Value: make([]float32, testRows)}
	for i := range x.request.Mask[0].Data {
		x.request.Mask[0].Data[i] = 1
	}
	for i := range x.request.State.Float32() {
		x.request.State.Float32()[i] = float32(i + 1)
	}
	discrete, box := x.column(&x.layout.Actions[0], hostabi.I32, 0, testRows).Int32(), x.column(&x.layout.Actions[1], hostabi.F32, 0, testRows).Float32()
	for row := range testRows {
		discrete[2*row], discrete[2*row+1], box[row] = 1, 2, 5
		x.floats(x.layout.ValueAt, testRows)[row], x.floats(x.layout.LogProbAt, testRows)[row] = float32(row), -1
	}
	return x
}

// An answer arrives as the environment and the learner have it: numbers from start on, a Box within its bounds and as it was drawn. The program has
// seen no state where an episode begins.
func TestActor_TakesAnAnswer(t *testing.T) {
	x := newAnswered(t)
	p := part{&x.request, 0, 0}
	if err := x.fill(&p); err != nil {
		t.Fatal(err)
	}
	if got := x.floats(x.layout.StateAt, 2*testRows); !slices.Equal(got, []float32{0, 0, 3, 4, 5, 6}) {
		t.Errorf("the program gets the states %v, want none in row 0", got)
	}
	if err := x.take(&p); err != nil {
		t.Fatal(err)
	}
	if got := x.request.Action[0].Int32(); !slices.Equal(got, []int32{11, 12, 11, 12, 11, 12}) {
		t.Errorf("the action is %v", got)
	}
	if got, raw := x.request.Action[1].Float32(), x.request.Raw[1].Float32(); got[0] != 1 || raw[0] != 5 {
		t.Errorf("the Box is %v, drawn as %v, want 1 and 5", got[0], raw[0])
	}
	if !slices.Equal(x.request.Value, []float32{0, 1, 2}) || !slices.Equal(x.request.LogProb, []float32{-1, -1, -1}) {
		t.Errorf("values %v, log_prob %v", x.request.Value, x.request.LogProb)
	}
}

// What a program answers that is no action, no number or forbidden is an error with its row, the policy and the plugin.
func TestActor_RefusesNonsense(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name, want string
		do         func(x *answered)
	}{
		{"no number as a value", "value is NaN", func(x *answered) { x.floats(x.layout.ValueAt, testRows)[1] = nan }},
		{"an infinite log_prob", "log_prob is +Inf", func(x *answered) { x.floats(x.layout.LogProbAt, testRows)[1] = inf }},
		{"no number in the state", "element 1 of the state is NaN", func(x *answered) { x.floats(x.layout.AfterAt, 2*testRows)[3] = nan }},
		{"no number in a Box", "element 0 of action/1 is NaN", func(x *answered) { x.column(&x.layout.Actions[1], hostabi.F32, 0, testRows).Float32()[1] = nan }},
		{"a choice too high", "element 1 of action is 3, want 0 to 2", func(x *answered) { x.column(&x.layout.Actions[0], hostabi.I32, 0, testRows).Int32()[3] = 3 }},
		{"a negative choice", "element 0 of action is -1, want 0 to 1", func(x *answered) { x.column(&x.layout.Actions[0], hostabi.I32, 0, testRows).Int32()[2] = -1 }},
		{"the least choice", "element 1 of action is -2147483648", func(x *answered) { x.column(&x.layout.Actions[0], hostabi.I32, 0, testRows).Int32()[3] = math.MinInt32 }},
		{"a forbidden choice", "element 1 of action is 2, which the mask forbids", func(x *answered) { x.request.Mask[0].Data[5+4] = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newAnswered(t)
			c.do(x)
			err := x.take(&part{&x.request, 4, 0})
			var row *policy.RowError
			if !errors.As(err, &row) || row.Request != 4 || row.Row != 1 {
				t.Fatalf("take = %v, want an error of row 1 of request 4", err)
			}
			var coded *table.Error
			if !errors.As(err, &coded) || coded.Code != CodeActing || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `policy "main": plugin "own"`) {
				t.Errorf("take = %v, want %s with %q", err, CodeActing, c.want)
			}
		})
	}
}

// A row without a legal choice is told before the program is asked.
func TestActor_RefusesARowWithoutALegalChoice(t *testing.T) {
	x := newAnswered(t)
	copy(x.request.Mask[0].Data[2*5:], []byte{1, 1, 0, 0, 0})
	err := x.fill(&part{&x.request, 1, 0})
	var row *policy.RowError
	if !errors.As(err, &row) || row.Row != 2 || row.Request != 1 || !errors.Is(err, policy.ErrNoLegalAction) {
		t.Errorf("fill = %v, want %v in row 2 of request 1", err, policy.ErrNoLegalAction)
	}
}

// An actor without weights, with too many rows in a request, or whose process has ended and may not be started again, says so.
func TestActor_RefusesWhatItCannotAsk(t *testing.T) {
	x := newAnswered(t)
	if err := x.Act([]policy.Request{x.request}); !errors.Is(err, policy.ErrNoWeights) {
		t.Errorf("Act without weights = %v, want %v", err, policy.ErrNoWeights)
	}
	if err := x.Load(policy.Weights{Params: make([]float32, 3)}); err == nil || !strings.Contains(err.Error(), "weights of 3 parameters, the network has 4") {
		t.Errorf("Load of too few parameters = %v", err)
	}
	err := x.Load(policy.Weights{Params: make([]float32, 4)})
	var known *spawn.Error
	if !errors.As(err, &known) || known.Code != spawn.CodeDied || !strings.Contains(err.Error(), "may not be started again") || !strings.Contains(known.Help, "max_restarts") {
		t.Errorf("Load without a process = %v, want %s", err, spawn.CodeDied)
	}
	x.layout.Rows = testRows - 1
	if err := x.Act([]policy.Request{x.request}); err == nil || !strings.Contains(err.Error(), "request 0: 3 rows, the most are 2") {
		t.Errorf("Act on too many rows = %v", err)
	}
}

// A network of other tensors, or another state, than the program's own is not computed by it.
func TestBackend_ComputesItsOwnNetworkAlone(t *testing.T) {
	b := &Backend{program: spawn.Program{Name: "own"}, made: native.PolicyMade{Weights: []native.PolicyWeight{{Name: "a", Shape: []int{2, 3}}, {Name: "b", Shape: []int{3}}}, State: 1}}
	own := func() []layer.Weight { return b.Weights() }
	turned := own()
	turned[0].Shape = []int{3, 2}
	for want, x := range map[string]policy.External{
		`it has a tensor more, "b"`:                                {State: 1, Weights: own()[:1]},
		`it has no tensor "c"`:                                     {State: 1, Weights: append(own(), layer.Weight{Name: "c", Shape: []int{1}})},
		`tensor 0 is "a" of shape [3 2], and its own "a" of [2 3]`: {State: 1, Weights: turned},
		"a state of 2 elements, and its own is 1":                  {State: 2, Weights: own()},
	} {
		x.Program, x.Inputs, x.Policy = "own", []policy.Input{{Path: "obs", Shape: []int{2}}}, []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 2}}}
		n := x.Network()
		if _, err := b.Compile(&n); !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile = %v, want %q", err, want)
		}
	}
}
