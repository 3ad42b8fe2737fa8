package authortest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/sdk/sdktest/scribe"
)

// TestRuntime tests that a component of an author, a scribe, behaves in a runtime as sdk/component says. make returns an unconfigured one.
func TestRuntime(t *testing.T, make func(testing.TB) component.Component) {
	for name, scene := range map[string]func(*testing.T, func(testing.TB) component.Component){
		"is configured": authoredConfig, "has the ports of its table": authoredPorts, "answers": authoredAnswers,
		"reads blocks": authoredReads, "writes what a wire grants": authoredWrites, "makes blocks": authoredMakes,
		"reports": authoredReports, "is saved": authoredState, "fails": authoredFails, "leaves claims behind": authoredLeaves,
	} {
		t.Run(name, func(t *testing.T) { scene(t, make) })
	}
}

// scribed is a scribe that runs, with the test around it.
type scribed struct {
	*plugintest.Stage
	t              *testing.T
	orders, blocks *bus.Signal
}

func authoredStage(t *testing.T, c component.Component, o plugintest.StageOptions) *scribed {
	t.Helper()
	s := &scribed{Stage: plugintest.NewStage(t, c, o), t: t}
	block := bus.Options{Mode: bus.All, Overflow: bus.Block}
	s.orders, s.blocks = s.To("on_order", false, block), s.To("on_block", false, bus.Options{Mode: bus.Queue, Overflow: bus.Block})
	s.From("notes", false, block)
	s.From("blocks", true, block)
	return s
}

// ask sends an order and returns the answer.
func (s *scribed) ask(kind uint16, x, y uint64) hostabi.Message {
	s.t.Helper()
	return s.tell(s.orders, hostabi.Message{Kind: kind, Inline: [2]uint64{x, y}})
}

func (s *scribed) tell(on *bus.Signal, m hostabi.Message) hostabi.Message {
	s.t.Helper()
	m.Sender = 77
	if err := on.Emit(m); err != nil {
		s.t.Fatal(err)
	}
	got := s.Next("notes")
	if got.Kind != m.Kind || got.Sender != m.Sender {
		s.t.Fatalf("answer %+v to %+v", got, m)
	}
	return got
}

// rewards returns a handle, with one claim, of a new trajectory with these rewards.
func (s *scribed) rewards(values ...float32) hostabi.Handle {
	s.t.Helper()
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: len(values), Envs: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	loan, err := s.Arena(1, schema.Bytes, schema).Loan()
	if err != nil {
		s.t.Fatal(err)
	}
	copy(trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}.Float32(trajectory.Reward), values)
	h, err := loan.Commit()
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (s *scribed) expect(what string, got, want uint64) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %#x, want %#x", what, got, want)
	}
}

func authoredConfig(t *testing.T, make func(testing.TB) component.Component) {
	got := table.All(make(t).Configure(plugintest.DecodeTable(map[string]any{"bias": -1.0, "inputs": int64(9)})))
	want := []component.ConfigError{{Key: "bias", Reason: "is negative", Help: "write 0"}, {Key: "inputs", Reason: "is 9, want 0 to 8"}}
	if len(got) != 2 || *got[0] != want[0] || *got[1] != want[1] {
		t.Errorf("errors %v, want %v", got, want)
	}
	if got := table.All(make(t).Configure(plugintest.DecodeTable(map[string]any{"baas": 1.0}))); len(got) != 1 || got[0].Key != "baas" {
		t.Errorf("an unknown key: %v", got)
	}
}

func authoredPorts(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{Table: map[string]any{"inputs": int64(2)}})
	got := s.tell(s.To("on_input_1", false, bus.Options{Mode: bus.All, Overflow: bus.Block}), hostabi.Message{Kind: scribe.Echo})
	s.expect("input", uint64(got.T), 1)
}

func authoredAnswers(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{Name: "writer", Seed: 1<<63 + 5, Index: 3})
	m := hostabi.Message{Kind: scribe.Echo, T: 1 << 31, Split: 7, PolicyVersion: 1 << 63, Inline: [2]uint64{1 << 63, 9}}
	got := s.tell(s.orders, m)
	if got.T != m.T || got.Split != m.Split || got.PolicyVersion != m.PolicyVersion || got.Inline != m.Inline || got.Handle != 0 {
		t.Errorf("got %+v, want %+v", got, m)
	}
	got = s.ask(scribe.Who, 0, 0)
	s.expect("index", got.Inline[0], 3)
	s.expect("seed", got.Inline[1], 1<<63+5)
	s.expect("instances", uint64(got.T), 4)
	s.expect("length of the name", uint64(got.Split), uint64(len("writer")))
	s.ask(scribe.Later, 0, 0)
}

func authoredReads(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{})
	h, sum := s.rewards(1, -10, 0, 3.5), math.Float64bits(-5.5)
	s.expect("sum", s.tell(s.blocks, hostabi.Message{Kind: scribe.Sum, Handle: h}).Inline[0], sum)
	s.expect("mistakes refused", s.tell(s.blocks, hostabi.Message{Kind: scribe.Mistaken, Handle: h}).Inline[0], 1)
	s.tell(s.blocks, hostabi.Message{Kind: scribe.Keep, Handle: h})
	s.Done(h) // the scribe's lease keeps it
	s.expect("sum by the lease", s.ask(scribe.Release, 0, 0).Inline[0], sum)
	s.expect("spent tokens refused", s.ask(scribe.Spent, 0, 0).Inline[0], 1)
	s.Until("the block is free", func() bool { return s.Arenas.Retain(h) != nil })
}

func authoredWrites(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{Name: "refused"})
	h := s.rewards(1, 2)
	s.expect("without a grant", s.tell(s.blocks, hostabi.Message{Kind: scribe.Double, Handle: h}).Inline[0], 1)
	s.Done(h)
	s.Close()
	s = authoredStage(t, make(t), plugintest.StageOptions{Grants: map[string][]string{"on_block": {"reward"}}})
	h = s.rewards(1, 2)
	s.expect("with a grant", s.tell(s.blocks, hostabi.Message{Kind: scribe.Double, Handle: h}).Inline[0], 0)
	if err := s.blocks.Emit(hostabi.Message{Kind: scribe.Pass, Handle: h, T: 5, Sender: 3}); err != nil {
		t.Fatal(err)
	}
	s.Done(h)
	got := s.Next("blocks")
	tr, lease, err := trajectory.Lease(s.Arenas, got.Handle)
	if err != nil || got.Handle != h || got.T != 5 || got.Sender != 3 {
		t.Fatalf("passed on: %+v, %v", got, err)
	}
	if r := tr.Float32(trajectory.Reward); !slices.Equal(r, []float32{2, 4}) {
		t.Errorf("rewards %v", r)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
	s.Done(h)
}

func authoredMakes(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{Table: map[string]any{"bias": 0.5}})
	s.ask(scribe.Abort, 0, 0)
	s.expect("a block", s.ask(scribe.Make, 10, 0).Inline[1], 0)
	s.expect("another", s.ask(scribe.Make, 20, 0).Inline[1], 0)
	s.expect("none free", s.ask(scribe.Make, 30, 0).Inline[1], 1)
	for _, first := range []float64{10.5, 20.5} {
		h := s.Next("blocks").Handle
		got := s.tell(s.blocks, hostabi.Message{Kind: scribe.Sum, Handle: h})
		s.expect("sum", got.Inline[0], math.Float64bits(4*first+6))
		s.Done(h)
	}
	s.Until("one is free again", func() bool { return s.ask(scribe.Make, 40, 0).Inline[1] == 0 })
	s.Done(s.Next("blocks").Handle)
}

func authoredReports(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{})
	s.ask(scribe.Report, 4711, math.Float64bits(2.5))
	s.Until("metrics and log", func() bool {
		return s.Host.Stats.Counter("scribe/told").Value() == 4711 && s.Host.Stats.Gauge("scribe/gauge").Value() == 2.5 &&
			s.Host.Stats.Histogram("scribe/seen").Snapshot().Sum == 2.5 && strings.Contains(s.Log(), "scribe has 4711")
	})
	s.ask(scribe.Stop, 0, 0)
	s.Until("the stop", func() bool { return slices.Equal(s.Stops(), []component.StopReason{component.StopEnvSteps}) })
}

func authoredState(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{})
	s.ask(scribe.Echo, 0, 0)
	s.expect("orders", s.ask(scribe.Count, 0, 0).Inline[0], 2)
	state := s.Saved()
	s.Close()
	s = authoredStage(t, make(t), plugintest.StageOptions{Name: "successor", Before: func(c component.Component) error { return c.Restore(state) }})
	s.expect("orders after restore", s.ask(scribe.Count, 0, 0).Inline[0], 3)
}

func authoredFails(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{})
	if err := s.orders.Emit(hostabi.Message{Kind: scribe.Fail}); err != nil {
		t.Fatal(err)
	}
	if err := s.Failure(); err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("error %v", err)
	}
}

// Leases and loans that remain when the component stops do not leak: Close would report them.
func authoredLeaves(t *testing.T, make func(testing.TB) component.Component) {
	s := authoredStage(t, make(t), plugintest.StageOptions{})
	h := s.rewards(1)
	s.tell(s.blocks, hostabi.Message{Kind: scribe.Keep, Handle: h})
	s.Done(h)
	s.ask(scribe.Leave, 0, 0)
	s.Close()
	s.Arenas.Each(func(a *arena.Arena) { t.Errorf("arena %s is not closed", a.Name()) })
}
