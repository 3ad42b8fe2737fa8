package plugintest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// RuntimeHarness is a runtime of components under test.
type RuntimeHarness struct {
	// New returns an unconfigured component of kind probe, as Probe is one.
	New func(t testing.TB) component.Component
	// Rests: its components pause on request, and return the messages that they have not begun. Others count as
	// paused when they have nothing to do.
	Rests bool
	// Slow runtimes get fewer messages.
	Slow bool
}

// act is a scene: a probe that runs, connected to the test.
type act struct {
	*Stage
	t       testing.TB
	harness *RuntimeHarness
	numbers *bus.Signal // to on_number
	blocks  *bus.Signal // to on_block
	asks    *bus.Signal // to on_ask
	answers *bus.Signal // to on_answer
}

// TestRuntime tests that components of a runtime behave as in the host's own process.
func TestRuntime(t *testing.T, h RuntimeHarness) {
	for _, scene := range scenes() {
		t.Run(scene.name, func(t *testing.T) {
			if _, remote := h.New(t).(component.Remote); scene.kills && !remote {
				t.Skip("components of this runtime have no process of their own")
			}
			scene.run(t, &h)
		})
	}
}

type scene struct {
	name  string
	kills bool
	run   func(t *testing.T, h *RuntimeHarness)
}

func scenes() []scene {
	return []scene{
		{"describes itself", false, sceneDescribes},
		{"says what is wrong with its configuration", false, sceneConfig},
		{"gets its configuration", false, sceneConfigured},
		{"has the ports that its configuration says", false, scenePorts},
		{"can fail to start", false, sceneFailStart},
		{"messages arrive bit by bit as they were", false, sceneBits},
		{"messages arrive in order", false, sceneOrder},
		{"a slow component holds up its senders", false, sceneSlow},
		{"a slow receiver holds up the component", false, sceneHeld},
		{"blocks it makes are read by others", false, sceneMake},
		{"a full arena gives no block, and one again once one is free", false, sceneFull},
		{"a loan can end without a block", false, sceneAbort},
		{"blocks of others are read in place", false, sceneRead},
		{"a lease outlives its message", false, sceneLease},
		{"a handle that names nothing is an error", false, sceneStale},
		{"it writes to a block that another has on loan", false, sceneAsked},
		{"another writes to a block that it has on loan", false, sceneAsks},
		{"a state goes from one instance to another", false, sceneState},
		{"a state that is not its own is refused", false, sceneForeignState},
		{"metrics and log reach the host", false, sceneReports},
		{"boundaries and stops reach the host", false, sceneHost},
		{"a failure ends the run with its words", false, sceneFails},
		{"it stops in the middle of traffic", false, sceneStops},
		{"it comes to rest and goes on", false, scenePauses},
		{"a pause that is taken back leaves nothing", false, scenePauseTakenBack},
		{"it ends what it has begun and hands over the rest", false, sceneHandsOver},
		{"a killed process leaves nothing behind and starts again", true, sceneKilled},
		{"a killed process goes on from its state", true, sceneKilledState},
		{"a killed process goes on from a boundary", true, sceneKilledBoundary},
		{"what a killed process had not finished comes again", true, sceneKilledAsks},
		{"the newest message of a mailbox comes again", true, sceneKilledLatest},
		{"kills in the middle of traffic lose nothing that is not counted", true, sceneKilledBusy},
	}
}

// play starts a probe with every port connected.
func play(t testing.TB, h *RuntimeHarness, o StageOptions) *act {
	t.Helper()
	s := NewStage(t, h.New(t), o)
	a := &act{Stage: s, t: t, harness: h}
	block := bus.Options{Mode: bus.All, Depth: 256, Overflow: bus.Block}
	a.numbers, a.blocks = a.To("on_number", false, block), a.To("on_block", false, block)
	a.asks, a.answers = a.To("on_ask", true, block), a.To("on_answer", true, block)
	a.From("numbers", false, block)
	a.From("blocks", true, block)
	return a
}

// tell sends an operation.
func (a *act) tell(op uint16, x, y uint64) {
	a.t.Helper()
	a.emit(a.numbers, hostabi.Message{Kind: op, Inline: [2]uint64{x, y}})
}

func (a *act) emit(s *bus.Signal, m hostabi.Message) {
	a.t.Helper()
	m.Sender = 77
	if err := s.Emit(m); err != nil {
		a.t.Fatalf("emit: %v", err)
	}
}

// ask sends an operation and returns the content of its answer.
func (a *act) ask(op uint16, x, y uint64) [2]uint64 {
	a.t.Helper()
	a.tell(op, x, y)
	m := a.Next("numbers")
	if m.Kind != op {
		a.t.Fatalf("answer of kind %d, want %d", m.Kind, op)
	}
	a.Settle()
	return m.Inline
}

func (a *act) expect(what string, got, want any) {
	a.t.Helper()
	if got != want {
		a.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// idle waits until only n blocks of an arena are held.
func (a *act) idle(x *arena.Arena, n int) {
	a.t.Helper()
	var s arena.Stats
	defer func() {
		if a.t.Failed() {
			a.t.Logf("arena %q: %+v; %d blocks and %d numbers wait", x.Name(), s, a.Waiting("blocks"), a.Waiting("numbers"))
		}
	}()
	a.Until(fmt.Sprintf("%d blocks held", n), func() bool {
		s = x.Stats()
		return s.Write+s.Live+s.Zombie == n
	})
}

// own returns the arena that the probe made.
func (a *act) own() (found *arena.Arena) {
	a.t.Helper()
	a.Arenas.Each(func(x *arena.Arena) {
		if strings.HasSuffix(x.Name(), "probe") {
			found = x
		}
	})
	if found == nil {
		a.t.Fatal("the probe has no arena")
	}
	return found
}

// must ends the test on an error.
func (a *act) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *act) loan(x *arena.Arena) arena.Loan {
	a.t.Helper()
	loan, err := x.Loan()
	a.must(err)
	return loan
}

// fill commits a block of the test whose bytes are all b, and returns its handle with one claim.
func (a *act) fill(x *arena.Arena, b byte) hostabi.Handle {
	a.t.Helper()
	return Commit(a.t, x, func(block []byte) {
		for i := range block {
			block[i] = b
		}
	})
}

// hand sends a block whose bytes are all b, and leaves the only claim on it to the message.
func (a *act) hand(x *arena.Arena, kind uint16, b byte) hostabi.Handle {
	a.t.Helper()
	h := a.fill(x, b)
	a.emit(a.blocks, hostabi.Message{Kind: kind, Handle: h})
	a.Done(h)
	return h
}

// handIfFree sends a block that the probe keeps, unless all are in use.
func (a *act) handIfFree(x *arena.Arena) {
	a.t.Helper()
	if s := x.Stats(); s.Free > 0 {
		a.hand(x, BlockHold, 0)
	}
}

// read returns a copy of a committed block.
func (a *act) read(h hostabi.Handle) []byte {
	a.t.Helper()
	lease, err := a.Arenas.Lease(h)
	a.must(err)
	b := bytes.Clone(lease.Bytes())
	a.must(lease.Release())
	return b
}

// takeBlocks waits for n blocks of the probe and releases them.
func (a *act) takeBlocks(n int) {
	a.t.Helper()
	for range n {
		a.Done(a.Next("blocks").Handle)
	}
}

// sent is a message as its sender gave it to the bus.
func sent(m hostabi.Message) hostabi.Message {
	m.Sequence, m.Signal, m.Slot, m.Ctl = 0, 0, 0, 0
	return m
}

func sceneDescribes(t *testing.T, h *RuntimeHarness) {
	expectPorts(t, h.New(t), NewProbe())
}

// expectPorts checks that a component has the ports of the probe that runs in this process.
func expectPorts(t *testing.T, c, probe component.Component) {
	t.Helper()
	got, want := c.Manifest(), probe.Manifest()
	for _, list := range []struct {
		what      string
		got, want []component.Port
	}{{"signals", got.Signals, want.Signals}, {"slots", got.Slots, want.Slots}} {
		if len(list.got) != len(list.want) {
			t.Fatalf("%d %s, want %d", len(list.got), list.what, len(list.want))
		}
		for i, p := range list.got {
			w := list.want[i]
			if p.Name != w.Name || p.Payload != w.Payload || p.OnLoan != w.OnLoan || p.Schema != w.Schema {
				t.Errorf("%s %d: %+v, want %+v", list.what, i, p, w)
			}
			if p.Doc == "" {
				t.Errorf("%s %q has no sentence about it", list.what, p.Name)
			}
		}
	}
}

func sceneConfig(t *testing.T, h *RuntimeHarness) {
	e := func(key, reason, help, code string) *component.ConfigError {
		return &component.ConfigError{Key: key, Reason: reason, Help: help, Code: code}
	}
	cases := []struct {
		name  string
		table map[string]any
		want  []*component.ConfigError // of Reason "" only the key counts
	}{
		{"empty", nil, nil},
		{"right", map[string]any{"scale": int64(1000), "label": "good", "blocks": int64(64)}, nil},
		{"low", map[string]any{"scale": int64(0)}, []*component.ConfigError{e("scale", "is 0, want 1 to 1000", "", "")}},
		{"high", map[string]any{"blocks": int64(65)}, []*component.ConfigError{e("blocks", "is 65, want 1 to 64", "", "")}},
		{"with help", map[string]any{"label": "bad"}, []*component.ConfigError{e("label", `is "bad"`, "use another word", "E020")}},
		{"several", map[string]any{"scale": int64(-1), "label": "bad", "block_bytes": int64(1)}, []*component.ConfigError{
			e("scale", "is -1, want 1 to 1000", "", ""), e("label", `is "bad"`, "use another word", "E020"),
			e("block_bytes", "is 1, want 64 to 1048576", "", ""),
		}},
		{"wrong type", map[string]any{"scale": "many"}, []*component.ConfigError{e("scale", "", "", "")}},
		{"unknown key", map[string]any{"scael": int64(1)}, []*component.ConfigError{e("scael", "", "", "")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := table.All(h.New(t).Configure(DecodeTable(c.table)))
			if len(got) != len(c.want) {
				t.Fatalf("%d errors %v, want %d", len(got), got, len(c.want))
			}
			for i := range got {
				if w := c.want[i]; got[i].Key != w.Key || w.Reason != "" && *got[i] != *w {
					t.Errorf("error %+v, want %+v", *got[i], *w)
				}
				if got[i].Reason == "" {
					t.Errorf("error about %q has no reason", got[i].Key)
				}
			}
		})
	}
}

func sceneConfigured(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Seed: 1<<63 + 5, Index: 3, Table: map[string]any{
		"scale": int64(7), "label": "größe", "nested": map[string]any{"value": int64(-2)},
	}})
	a.tell(OpConfig, 0, 0)
	m := a.Next("numbers")
	minusTwo := int64(-2)
	a.expect("scale and value", m.Inline, [2]uint64{7, uint64(minusTwo)})
	a.expect("bytes of label", m.T, uint32(len("größe")))
	a.expect("index", m.Split, uint32(3))
	a.expect("seed", m.PolicyVersion, uint64(1<<63+5))
}

func scenePorts(t *testing.T, h *RuntimeHarness) {
	for _, table := range []map[string]any{
		{"inputs": int64(2)}, {"inputs": int64(3), "carries": "word"}, {"inputs": int64(0), "carries": "word"},
	} {
		a, probe := play(t, h, StageOptions{Table: table}), NewProbe()
		if err := probe.Configure(DecodeTable(table)); err != nil {
			t.Fatal(err)
		}
		expectPorts(t, a.Component, probe)
		for i := range int(table["inputs"].(int64)) {
			a.emit(a.To(inputName(i), false, bus.Options{Mode: bus.All, Overflow: bus.Block}), hostabi.Message{Kind: OpEcho})
			a.expect("input", a.Next("numbers").T, uint32(i))
		}
		a.Close()
	}
}

func sceneFailStart(t *testing.T, h *RuntimeHarness) {
	_, err := stage(t, h.New(t), StageOptions{Table: map[string]any{"fail_start": true}})
	if err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("error %v, want one that says: told to fail", err)
	}
}
