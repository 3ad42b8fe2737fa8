package process

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// What every runtime promises of its components is tested in plugins/process/proxy, with this package in the process.

// Ports of a probe.
const (
	numbers, blocks   = 0, 1
	onNumber, onBlock = 0, 1
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
	_, err = call[native.Configured](r, native.MethodConfigure, native.Configuration{Kind: "other", CheckOnly: true})
	if codeOf(err) != native.CodeInvalid {
		t.Errorf("another kind: %v", err)
	}
	if _, err := r.server.call(t.Context(), "OfALaterVersion", []byte("{}")); codeOf(err) != native.CodeUnsupported {
		t.Errorf("a call of a later version: %v", err)
	}
	if _, err := r.server.call(t.Context(), native.MethodConfigure, []byte("{")); codeOf(err) != native.CodeInvalid {
		t.Errorf("half a document: %v", err)
	}
}

// later is a field that no document has.
const later = `"of_a_later_version":{"a":[1,{"b":null}],"kind":"x"}`

func TestDocuments_FieldsOfALaterVersionAreIgnored(t *testing.T) {
	r := newRig(t, probes())
	m := probes().Kinds["probe"]().Manifest()
	for _, step := range []struct{ method, doc string }{
		{native.MethodDescribe, "{" + later + "}"},
		{native.MethodConfigure, fmt.Sprintf(`{"kind":"probe","name":"probe","holder":%d,"run":{"seed":"18446744073709551615",%s},%s}`, r.holder, later, later)},
		{native.MethodStart, "{" + later + "}"},
	} {
		if _, err := r.server.call(t.Context(), step.method, []byte(step.doc)); err != nil {
			t.Fatalf("%s: %v", step.method, err)
		}
	}
	if seed := r.server.instance.host.Run.Seed; seed != math.MaxUint64 {
		t.Errorf("seed %d", seed)
	}
	r.join(m)
	r.run()
	a, err := r.arenas.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	sh := a.Share()
	frame := fmt.Sprintf(`{"arena":{"id":%d,"name":"blocks","blocks":1,"block_bytes":64,%s},%s}`, sh.ID, later, later)
	for doc, files := range map[string][]int{frame: {sh.WordsFD, sh.DataFD}, "{" + later + "}": nil} {
		if err := r.wire.Send([]byte(doc), files...); err != nil {
			t.Fatal(err)
		}
	}
	r.link.Post(hostabi.Message{Slot: hostabi.LinkRun + 1}) // a control message of a later version, ignored, too
	sum := number(plugintest.BlockSum)
	sum.Handle = plugintest.Commit(t, a, func(block []byte) {
		clear(block)
		block[0] = 7
	})
	r.tell(onBlock, sum)
	if got := r.hear(numbers); got.Inline[0] != 7 {
		t.Errorf("got %+v", got)
	}
	if err := a.Release(sum.Handle); err != nil {
		t.Error(err)
	}
	if _, err := r.server.call(t.Context(), native.MethodPause, []byte(`{"number":1,`+later+"}")); err != nil {
		t.Error(err)
	}
}

func TestDocuments_FieldsOfALaterVersionAreIgnoredByEnvironments(t *testing.T) {
	doc := []byte("{" + later + "}")
	for name, read := range map[string]func() error{
		"Source":       func() error { _, err := read[env.Source](doc); return err },
		"EnvBatch":     func() error { _, err := read[native.EnvBatch](doc); return err },
		"EnvStateCall": func() error { _, err := read[native.EnvStateCall](doc); return err },
		"StateSize":    func() error { _, err := read[native.StateSize](doc); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
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

// A plugin says of which release its ports of rlhost's own payloads are.
func TestDescription_SaysWhatRlhostsOwnPayloadsCarry(t *testing.T) {
	dataset := component.PayloadOf(component.PayloadDataset)
	got := ports([]component.Port{{Payload: component.PayloadDataset}, {Payload: component.PayloadDataset, Schema: 7}, {Payload: component.PayloadTrajectory}})
	for i, want := range []uint64{dataset.Schema(), 7, 0} {
		if uint64(got[i].Schema) != want {
			t.Errorf("%s has schema %#x, want %#x", got[i].Payload, uint64(got[i].Schema), want)
		}
	}
}
