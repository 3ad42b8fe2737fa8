package process

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Ports of a probe.
const (
	numbers, blocks, answers, asks     = 0, 1, 2, 3
	onNumber, onBlock, onAsk, onAnswer = 0, 1, 2, 3
)

func probes() Plugin {
	return Plugin{
		Kinds: map[string]func() component.Component{"probe": plugintest.NewProbe},
		Docs:  map[string]string{"probe": "does as it is told"},
	}
}

func number(kind uint16, inline ...uint64) hostabi.Message {
	m := hostabi.Message{Kind: kind, T: 3, Split: 4, PolicyVersion: 5, Sender: 6}
	copy(m.Inline[:], inline)
	return m
}

func TestDescribe_SaysWhatKindsThereAre(t *testing.T) {
	r := newRig(t, probes())
	d, err := call[native.Description](r, native.MethodDescribe, native.Empty{})
	if err != nil || d.ABI != native.ABI || !slices.Equal(d.Capabilities, []string{native.CapSnapshot, native.CapPause}) {
		t.Fatalf("Describe = %+v, %v", d, err)
	}
	k := d.Kinds[0]
	if k.Name != "probe" || k.Doc == "" || len(k.Signals) != 4 || len(k.Slots) != 4 ||
		k.Signals[asks] != (native.Port{Name: "asks", Payload: "ask", Doc: "a row of a block on loan", OnLoan: true}) {
		t.Errorf("kind %+v", k)
	}
}

func TestConfigure_NamesEveryKeyThatIsWrong(t *testing.T) {
	r := newRig(t, probes())
	check := func(table map[string]any) []native.ConfigError {
		answer, err := call[native.Configured](r, native.MethodConfigure,
			native.Configuration{Kind: "probe", Config: table, CheckOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Errors
	}
	got := check(map[string]any{"scale": 0, "label": "bad", "blocks": 65})
	want := []native.ConfigError{
		{Key: "scale", Reason: "is 0, want 1 to 1000"},
		{Key: "label", Reason: `is "bad"`, Help: "use another word", Code: "E020"},
		{Key: "blocks", Reason: "is 65, want 1 to 64"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = check(map[string]any{"scal": 1})
	if len(got) != 1 || got[0].Key != "scal" || !strings.Contains(got[0].Reason, "not a key") {
		t.Errorf("an unknown key: %+v", got)
	}
	got = check(map[string]any{"scale": "x", "nested": map[string]any{"value": true}})
	if len(got) != 2 || got[0].Key != "nested.value" || got[1].Key != "scale" {
		t.Errorf("wrong types: %+v", got)
	}
	if got = check(map[string]any{"scale": 2, "nested": map[string]any{"value": 3}}); len(got) != 0 {
		t.Errorf("a right table: %+v", got)
	}
	_, err := call[native.Configured](r, native.MethodConfigure, native.Configuration{Kind: "other"})
	if codeOf(err) != native.CodeInvalid {
		t.Errorf("another kind: %v", err)
	}
}

func TestCalls_InTheWrongOrderAreRefused(t *testing.T) {
	r := newRig(t, probes())
	for _, method := range []string{native.MethodStart, native.MethodSnapshot, native.MethodRestore} {
		if _, err := call[native.Empty](r, method, native.Empty{}); codeOf(err) != native.CodeOrder {
			t.Errorf("%s first: %v", method, err)
		}
	}
	r.start("probe", nil)
	if _, err := call[native.Empty](r, native.MethodStart, native.Empty{}); codeOf(err) != native.CodeOrder {
		t.Errorf("Start again: %v", err)
	}
	_, err := call[native.Configured](r, native.MethodConfigure, native.Configuration{Kind: "probe"})
	if codeOf(err) != native.CodeOrder {
		t.Errorf("Configure again: %v", err)
	}
	if _, err := call[native.EnvLoaded](r, native.MethodEnvLoad, env.Source{}); codeOf(err) != native.CodeUnsupported {
		t.Errorf("EnvLoad: %v", err)
	}
	if _, err := r.server.call(t.Context(), native.MethodConfigure, []byte("{")); codeOf(err) != native.CodeInvalid {
		t.Errorf("half a document: %v", err)
	}
}

func TestStart_ThatFailsSaysWhy(t *testing.T) {
	r := newRig(t, probes())
	r.configure("probe", map[string]any{"fail_start": true})
	_, err := call[native.Empty](r, native.MethodStart, native.Empty{})
	if err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("Start = %v", err)
	}
	r = newRig(t, probes())
	const refusal = "no memory for it"
	r.locked(func() { r.refuse = refusal })
	r.configure("probe", nil)
	_, err = call[native.Empty](r, native.MethodStart, native.Empty{})
	if err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("Start without its arena = %v", err)
	}
}

func TestComponent_KnowsWhatTheHostKnows(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", map[string]any{"scale": 3, "label": "word", "nested": map[string]any{"value": -1}})
	r.tell(onNumber, number(plugintest.OpConfig))
	m := r.hear(numbers)
	if int64(m.Inline[1]) != -1 || m.Inline[0] != 3 || m.T != 4 || m.Split != 2 || m.PolicyVersion != 42 || m.Sender != 6 {
		t.Errorf("got %+v", m)
	}
	h := r.server.instance.host
	if h.Peers("rollout") != 5 || h.Readers("numbers") != 9 || h.ID != 7 || h.Count != 3 || h.Name != "probe" {
		t.Errorf("host %+v", h)
	}
}

func TestMessages_ArriveInOrderAndOnce(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	const n = 5000 // more than the window and the ring
	r.tell(onNumber, number(plugintest.OpBurst, n))
	for i := range uint64(200) {
		r.tell(onNumber, number(plugintest.OpEcho, i))
	}
	for i := range uint32(n) {
		if m := r.hear(numbers); m.T != i || m.Sequence != uint64(i)+1 {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
	for i := range uint64(200) {
		if m := r.hear(numbers); m.Inline[0] != i || m.T != 3 || m.Split != 4 {
			t.Fatalf("echo %d is %+v", i, m)
		}
	}
}

func TestBlocks_TravelBothWaysAndAreGivenBack(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", map[string]any{"blocks": 2, "block_bytes": 100})
	for round := range uint64(50) {
		r.tell(onNumber, number(plugintest.OpMake, round, 1))
		m := r.hear(blocks)
		l, err := r.arenas.Lease(m.Handle)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range l.Bytes() {
			if b != byte(round+uint64(i)) {
				t.Fatalf("round %d: byte %d is %d", round, i, b)
			}
		}
		sum := m
		sum.Kind = plugintest.BlockSum
		r.tell(onBlock, sum) // the plugin's own block comes back to it
		if got := r.hear(numbers); got.Inline[1] != uint64(m.Handle) || got.Inline[0] == 0 {
			t.Fatalf("sum %+v", got)
		}
		if err := errors.Join(l.Release(), r.arenas.Release(m.Handle)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBlocks_OfTheHostCanBeReadByThePlugin(t *testing.T) {
	r := newRig(t, probes())
	early, err := r.arenas.Add(arena.Config{Name: "early", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	r.announce(early, 0)
	r.start("probe", nil)
	late, err := r.arenas.Add(arena.Config{Name: "late", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range []*arena.Arena{early, late} {
		h := plugintest.Commit(t, a, func(block []byte) {
			clear(block)
			block[0] = byte(i + 1)
		})
		m := number(plugintest.BlockSum)
		m.Handle = h
		r.tell(onBlock, m)
		if a == late { // the message arrives before the announcement
			r.announce(late, 0)
		}
		if got := r.hear(numbers); got.Inline != [2]uint64{uint64(i + 1), uint64(h)} {
			t.Errorf("%s: %+v", a.Name(), got)
		}
		if err := r.arenas.Release(h); err != nil {
			t.Error(err)
		}
	}
}

func TestAsk_IsAnsweredWithoutAClaim(t *testing.T) {
	r := newRig(t, probes())
	a, err := r.arenas.Add(arena.Config{Name: "loans", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	r.announce(a, 0)
	r.start("probe", nil)
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	loan.Bytes()[0] = 20
	m := hostabi.Message{Handle: loan.Handle(), T: 9, Sender: 77}
	r.tell(onAsk, m)
	if got := r.hear(answers); got.Handle != m.Handle || got.T != 9 || got.Sender != 77 || loan.Bytes()[8] != 41 {
		t.Errorf("answer %+v, wrote %v", got, loan.Bytes()[:16])
	}
	if s := r.link.Stats(); s.Open != 0 {
		t.Errorf("stats %+v, want nothing open", s)
	}
	if err := loan.Abort(); err != nil {
		t.Error(err)
	}

	// The other way round: the plugin asks, the host answers.
	r.tell(onNumber, number(plugintest.OpAsk, 20))
	ask := r.hear(asks)
	if r.link.Asked() != 1 {
		t.Errorf("%d requests are open, want 1", r.link.Asked())
	}
	of, err := r.arenas.Of(ask.Handle)
	if err != nil {
		t.Fatal(err)
	}
	b, err := of.Loaned(ask.Handle)
	if err != nil {
		t.Fatal(err)
	}
	b[8] = 41
	r.tell(onAnswer, ask)
	got := r.hear(blocks)
	if got.Inline[0] != 41 || got.Kind != plugintest.OpAsk || r.link.Asked() != 0 {
		t.Errorf("block %+v, %d open", got, r.link.Asked())
	}
	if err := r.arenas.Release(got.Handle); err != nil {
		t.Error(err)
	}
}

func TestState_GoesOutAndComesBack(t *testing.T) {
	first := newRig(t, probes())
	first.start("probe", map[string]any{"label": "word"})
	for i := range uint64(6) {
		first.tell(onNumber, number(plugintest.OpAdd, i))
	}
	first.tell(onNumber, number(plugintest.OpEcho, 100))
	first.hear(numbers)
	size, err := call[native.StateSize](first, native.MethodSnapshot, native.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	first.until("state", func() bool { return first.states[size.Call] != nil })
	var file *os.File
	first.locked(func() { file = first.states[size.Call] })

	second := newRig(t, probes())
	second.configure("probe", map[string]any{"label": "word"})
	if _, err := call[native.Empty](second, native.MethodStart, native.Empty{}); err != nil {
		t.Fatal(err)
	}
	size.Call = 3
	second.send(native.Frame{State: &size}, int(file.Fd()))
	if _, err := call[native.Empty](second, native.MethodRestore, size); err != nil {
		t.Fatal(err)
	}
	second.run()
	second.tell(onNumber, number(plugintest.OpCount))
	if got := second.hear(numbers); got.Inline != [2]uint64{8, 15} {
		t.Errorf("count and sum %v, want 8 and 15", got.Inline)
	}
	second.tell(onNumber, number(plugintest.OpHistory))
	if got := second.hear(numbers); math.Float64frombits(got.Inline[0]) != 5 {
		t.Errorf("history begins with %v, want 5", math.Float64frombits(got.Inline[0]))
	}

	third := newRig(t, probes())
	third.start("probe", map[string]any{"label": "another"})
	third.send(native.Frame{State: &size}, int(file.Fd()))
	if _, err := call[native.Empty](third, native.MethodRestore, size); err == nil || !strings.Contains(err.Error(), "label") {
		t.Errorf("Restore of another label: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestRun_BeginsWithTheFirstMessageAtTheLatest(t *testing.T) {
	r := newRig(t, probes())
	r.configure("probe", nil)
	if _, err := call[native.Empty](r, native.MethodStart, native.Empty{}); err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	r.server.instance.host.Receiver.Post(func(*hostabi.Message) { close(ran) }, hostabi.Message{})
	if _, err := call[native.StateSize](r, native.MethodSnapshot, native.Empty{}); err != nil {
		t.Error(err)
	}
	select {
	case <-ran:
		t.Error("what was posted in Start ran before the run began")
	default:
	}
	r.tell(onNumber, number(plugintest.OpEcho))
	r.hear(numbers)
	<-ran
	r.closeStates(1)
}

func TestBoundary_WaitsAndAnswersMeanwhile(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	r.tell(onNumber, number(plugintest.OpEcho, 1))
	r.tell(onNumber, number(plugintest.OpBoundary, 2))
	r.until("boundary", func() bool { return len(r.control) == 1 })
	r.locked(func() {
		if r.control[0].Slot != hostabi.LinkBoundary || len(r.got[numbers]) != 1 {
			t.Errorf("control %v after %v", r.control, r.got)
		}
	})
	if _, err := call[native.StateSize](r, native.MethodSnapshot, native.Empty{}); err != nil {
		t.Errorf("Snapshot at the boundary: %v", err)
	}
	r.tell(onNumber, number(plugintest.OpEcho, 3))
	r.link.Post(hostabi.Message{Slot: hostabi.LinkBoundaryOver})
	for _, want := range []uint64{1, 2, 3} {
		if got := r.hear(numbers); got.Inline[0] != want {
			t.Errorf("got %d, want %d", got.Inline[0], want)
		}
	}
	r.closeStates(1)
}

func TestStop_EndsABoundaryToo(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	r.tell(onNumber, number(plugintest.OpBoundary))
	r.until("boundary", func() bool { return len(r.control) == 1 })
	if _, err := call[native.Empty](r, native.MethodStop, native.Empty{}); err != nil {
		t.Error(err)
	}
	if _, err := call[native.StateSize](r, native.MethodSnapshot, native.Empty{}); codeOf(err) != native.CodeOrder {
		t.Errorf("Snapshot after Stop: %v", err)
	}
}

func TestStop_GivesBackWhatTheComponentHolds(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	r.tell(onNumber, number(plugintest.OpMake, 1, 2))
	for range 2 {
		m := r.hear(blocks)
		hold := m
		hold.Kind = plugintest.BlockHold
		r.tell(onBlock, hold)
		r.hear(numbers)
		if err := r.arenas.Release(m.Handle); err != nil {
			t.Error(err)
		}
	}
	r.tell(onNumber, number(plugintest.OpKeep))
	r.hear(numbers)
	if _, err := call[native.Empty](r, native.MethodStop, native.Empty{}); err != nil {
		t.Error(err)
	} // the rig closes the arena, which fails if a block is held
}

func TestRun_HostHearsOfTheEndThatAComponentWants(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	r.tell(onNumber, number(plugintest.OpStop, hostabi.LinkStopEnvSteps))
	r.until("stop", func() bool { return len(r.control) == 1 })
	var m hostabi.Message
	if r.locked(func() { m = r.control[0] }); m.Slot != hostabi.LinkStop || m.Kind != hostabi.LinkStopEnvSteps {
		t.Errorf("got %+v", m)
	}
}

func TestFail_TellsTheHostAndEndsTheProcess(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	r.tell(onNumber, number(plugintest.OpFail))
	r.until("exit", func() bool { return len(r.exits) > 0 && len(r.failed) > 0 })
	r.locked(func() {
		if r.failed[0] != "told to fail" || r.exits[0] != exitFailed {
			t.Errorf("failed %q, exits %v", r.failed, r.exits)
		}
	})
}

func TestPanic_TellsTheHostWhere(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", map[string]any{"blocks": 1})
	r.server.instance.host.Receiver.Post(func(*hostabi.Message) { panic("a slot's mistake") }, hostabi.Message{})
	r.until("exit", func() bool { return len(r.exits) > 0 && len(r.failed) > 0 })
	r.locked(func() {
		if !strings.Contains(r.failed[0], "a slot's mistake") || !strings.Contains(r.failed[0], "instance_test.go") {
			t.Errorf("failed %q", r.failed)
		}
	})
}

func TestWire_EndOfTheHostEndsTheProcess(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	if err := r.wire.Close(); err != nil {
		t.Fatal(err)
	}
	r.until("exit", func() bool { return len(r.exits) > 0 })
	r.locked(func() {
		if r.exits[0] != 0 {
			t.Errorf("exits %v, want 0", r.exits)
		}
	})
}

func TestStats_ReachTheHost(t *testing.T) {
	r := newRig(t, probes())
	r.start("probe", nil)
	for _, v := range []float64{1, 2.5} {
		r.tell(onNumber, number(plugintest.OpStat, 3, math.Float64bits(v)))
		r.hear(numbers)
	}
	var h stat.Histogram
	seen := 0
	counter, gauge := uint64(0), 0.0
	r.until("metrics", func() bool {
		for ; seen < len(r.stats); seen++ {
			s := r.stats[seen]
			counter = max(counter, s.Counters["probe/told"])
			if g, ok := s.Gauges["probe/gauge"]; ok {
				gauge = g
			}
			if d, ok := s.Distributions["probe/histogram"]; ok {
				if err := h.Merge(stat.Buckets(d)); err != nil {
					t.Error(err)
				}
			}
		}
		d := h.Snapshot()
		return counter == 6 && gauge == 2.5 && d.Count == 2 && d.Sum == 3.5 && d.Min == 1
	})
}
