package component

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// askQuestion asks the first question without arguments.
func askQuestion() asm.Code {
	return asm.Const(0) + asm.Const(0) + asm.Const(0) + asm.Const64(0) + asm.Call(askOther)
}

// curious is a guest that asks one question in rl_start and one in each slot. rl_answer notes the fault of each answer, and does that.
func curious(answered asm.Code) built {
	m := hostabi.Manifest{Name: "curious@1", Asks: []hostabi.Request{{Name: "total"}}, Slots: []hostabi.ManifestPort{{Name: "in", Payload: "note"}}}
	fault := asm.Get(0) + asm.Load(12)
	return built{manifest: m.Describe(), functions: map[string]asm.Code{
		hostabi.ExportStartUp: askQuestion() + asm.Drop + asm.Const(0),
		hostabi.ExportSlot:    askQuestion() + asm.Drop + asm.Const(0),
		hostabi.ExportAnswer:  asm.Const(noteAt) + fault + asm.Store(0) + answered + asm.Const(0),
	}}
}

// curiousRig has a curious guest, and the questions that have no answer.
type curiousRig struct {
	*plugintest.Rig
	g    *component
	open []func(json.RawMessage, error)
}

func curiousIn(t *testing.T, s Source) *curiousRig {
	x := &curiousRig{}
	x.Rig, x.g = started(t, s, plugintest.RigOptions{AskOther: func(_ string, _ json.RawMessage, _ time.Duration, answer func(json.RawMessage, error)) {
		x.open = append(x.open, answer)
	}}, nil)
	return x
}

func (x *curiousRig) noted() uint32 { return uint32(x.g.run.View(noteAt, 4)[0]) }

// A guest that has a fault after it got an answer goes back to a state that waits for it: it is told that the answer is lost, once. What it asked
// since is forgotten.
func TestAsk_AnAnswerThatAFaultHasUndoneIsLost(t *testing.T) {
	trapAt7 := asm.Get(0) + asm.Load(20) + asm.Const(7) + asm.Eq + asm.If + asm.Void + asm.Unreachable + asm.End // by the length of the answer
	x := curiousIn(t, source(file(t, curious(trapAt7).bytes()), everything...))
	in := x.To("in")
	must(t, in.Emit(hostabi.Message{}))
	must(t, x.Settle())
	x.open[0](json.RawMessage("1"), nil)
	must(t, x.Settle())
	x.open[1](json.RawMessage("1234567"), nil)
	must(t, x.Settle())
	if x.g.faults.Value() != 1 || x.noted() != uint32(hostabi.AnswerLost) {
		t.Errorf("after %d faults it notes %d, want that the answer is lost", x.g.faults.Value(), x.noted())
	}
	if len(x.g.asking.open) != 0 || len(x.open) != 2 {
		t.Errorf("%v have no answer, %d were asked", x.g.asking.open, len(x.open))
	}
	must(t, in.Emit(hostabi.Message{}))
	must(t, x.Settle())
	x.open[2](json.RawMessage("12"), nil)
	must(t, x.Settle())
	if x.noted() != 0 || x.g.faults.Value() != 1 {
		t.Errorf("then it notes %d after %d faults", x.noted(), x.g.faults.Value())
	}
}

// A guest whose every answer is a fault spends its restarts, and the run ends.
func TestAsk_FaultsInAnswersSpendTheRestarts(t *testing.T) {
	x := curiousIn(t, source(file(t, curious(asm.Unreachable).bytes()), everything...))
	x.open[0](json.RawMessage("1"), nil)
	if err := x.Settle(); err == nil || !strings.Contains(err.Error(), "rl_answer") || !strings.Contains(err.Error(), "max_restarts") {
		t.Errorf("the run ends with %v", err)
	}
}

// The memory for an answer is given back.
func TestAsk_AnswersCostNoMemory(t *testing.T) {
	x := curiousIn(t, source(file(t, curious("").bytes()), everything...))
	in, given := x.To("in"), len(x.g.run.given)
	for i := range 1000 {
		x.open[i](json.RawMessage("1"), nil)
		must(t, in.Emit(hostabi.Message{}))
		must(t, x.Settle())
	}
	if len(x.g.run.given) != given || len(x.g.asking.open) != 1 {
		t.Errorf("%d pieces of memory, %d at first; %d questions open", len(x.g.run.given), given, len(x.g.asking.open))
	}
}

// A module that asks others cannot stand around environments, and one without rl_answer cannot ask.
func TestAsk_IsNotForWrappers(t *testing.T) {
	b := curious("")
	b.manifest = (&hostabi.Manifest{Name: "curious@1", Flags: hostabi.ComponentStateless, Asks: []hostabi.Request{{Name: "total"}},
		Slots: []hostabi.ManifestPort{{Name: "in", Payload: "reward_request"}}, Signals: []hostabi.ManifestPort{{Name: "out", Payload: "shaped_rewards"}}}).Describe()
	if _, err := modules(t).Wrapper(source(file(t, b.bytes()), everything...), nil); err == nil || !strings.Contains(err.Error(), "it asks other components total") {
		t.Errorf("Wrapper = %v", err)
	}
	delete(b.functions, hostabi.ExportAnswer)
	if err := made(t, source(file(t, b.bytes()), everything...)).Configure(plugintest.DecodeTable(nil)); err == nil || !strings.Contains(err.Error(), "does not export rl_answer") {
		t.Errorf("Configure = %v", err)
	}
}
