//go:build !invariants

package author_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/plugintest"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// In the invariants build each lease keeps its stack.
func TestAuthored_ASlotCallAllocatesNothing(t *testing.T) {
	for name, create := range map[string]func() sdk.Component{"by hand": func() sdk.Component { return &relay{} }, "declared": newDeclared} {
		t.Run(name, func(t *testing.T) { slotAllocatesNothing(t, create) })
	}
}

// newDeclared is a component that works like relay.
func newDeclared() sdk.Component {
	var out sdk.Signal
	var reward, obs sdk.Column
	return &sdk.Declared{
		Signals: []sdk.Output{{Name: "out", Payload: "p", Bind: &out}},
		Slots: []sdk.Input{{Name: "in", Payload: "p", Columns: []sdk.Want{{Name: "reward", Into: &reward, Write: true}, {Name: "obs", Into: &obs}},
			Handle: func(m *sdk.Message) error {
				for t := range reward.Rows {
					reward.Row(t, 0).Float32()[0] += obs.Row(t, 0).Float32()[0]
				}
				return sdk.Pass(out, m)
			}}},
	}
}

func slotAllocatesNothing(t *testing.T, create func() sdk.Component) {
	s := plugintest.NewStage(t, author.Kind(create)(),
		plugintest.StageOptions{Grants: map[string][]string{"in": {"reward"}}})
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 4, Envs: 1})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := s.Arena(1, schema.Bytes, schema).Loan()
	if err != nil {
		t.Fatal(err)
	}
	h, err := loan.Commit()
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan struct{}, 1)
	in := s.To("in", false, bus.Options{Mode: bus.Queue, Overflow: bus.Block})
	s.Handle("out", bus.Options{Mode: bus.Queue, Overflow: bus.Block}, func(*hostabi.Message) { came <- struct{}{} })
	op := func() {
		if err := in.Emit(hostabi.Message{Handle: h}); err != nil {
			t.Error(err)
		}
		<-came
	}
	for range 100 {
		op()
	}
	if n := testing.AllocsPerRun(200, op); n != 0 {
		t.Errorf("%v allocations for a slot call, want 0", n)
	}
	s.Done(h)
}
