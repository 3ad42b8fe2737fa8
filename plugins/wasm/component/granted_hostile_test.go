package component

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// grantedCase is a component that is granted a column of what comes to its only slot.
type grantedCase struct{ slot, payload, signal, answer, column string }

var grantedCases = []grantedCase{
	{"asked", "reward_request", "shaped", "shaped_rewards", "shaped_reward"},
	{"in", "trajectory", "out", "trajectory", "reward"},
}

// harms is that component: it writes, does a deed before the write, after it or after its answer, and answers.
func (c *grantedCase) harms(d deed, when string) built {
	m := hostabi.Manifest{Name: "built@1", Flags: hostabi.ComponentStateless, Columns: []hostabi.ManifestColumn{{Name: c.column, Flags: hostabi.ColumnWrite}},
		Signals: []hostabi.ManifestPort{{Name: c.signal, Payload: c.answer}}, Slots: []hostabi.ManifestPort{{Name: c.slot, Payload: c.payload}}}
	write := asm.Get(1) + asm.Load(4) + asm.Load(0) + asm.Const(0x3f000000) + asm.Store(0)
	code := map[string]asm.Code{"before it writes": d.code + write + passOn(), "behind its write": write + d.code + passOn(), "behind its answer": write + passOn() + d.code}[when]
	b := built{functions: map[string]asm.Code{hostabi.ExportSlot: code + asm.Const(0)}, manifest: m.Describe(), wasi: true, after: func(m *asm.Module) { m.Table(1) }}
	if d.name == "recurses" {
		b.recurses = hostabi.ExportSlot
	}
	return b
}

// A component that may write, into full blocks and into blocks on loan to the asker, and misbehaves: the block has the writes of a
// call that answered and no other change in any column, and the error names the culprit.
func TestHostile_GrantedComponentsHarmNobody(t *testing.T) {
	for _, d := range deeds() {
		for _, when := range []string{"before it writes", "behind its write", "behind its answer"} {
			for _, c := range grantedCases {
				t.Run(fmt.Sprintf("%s/%s %s", c.slot, d.name, when), func(t *testing.T) { c.judge(t, d, when) })
			}
		}
	}
}

func (c *grantedCase) judge(t *testing.T, d deed, when string) {
	r, g := started(t, hostile(t, c.harms(d, when)), plugintest.RigOptions{Grants: map[string][]string{c.slot: {c.column}}}, nil)
	x := newBlocks(t, r.Host.Arenas, 1, trajectory.Shape{Steps: 2, Envs: 2, Granted: "reward shaped_reward"})
	loan, err := x.arena.Loan()
	must(t, err)
	mem := loan.Bytes()
	want := slices.Clone(mem)
	send, m := r.ToOnLoan, hostabi.Message{Handle: loan.Handle()}
	if c.slot == "in" {
		send = r.To
		m.Handle, err = loan.Commit()
		must(t, err)
	}
	must(t, send(c.slot).Emit(m))
	err = r.Settle()
	answered := when == "behind its answer" && d.name != "recurses" // which does so before all else
	if answered {
		copy(want[placesOf(x.schema)[c.column].offset:], []byte{0, 0, 0, 0x3f})
	}
	if !bytes.Equal(mem, want) {
		t.Error("the block has other contents than those of before and of what it answered with")
	}
	if fails := c.slot == "asked" && !answered; (err != nil) != fails { // who asks waits, so it is asked until it is given up
		t.Errorf("the run ends with %v", err)
	}
	if said := fmt.Sprint(r.Log.String(), err); !strings.Contains(said, "guest.wasm") || !strings.Contains(said, d.says) || g.faults.Value() == 0 {
		t.Errorf("%d faults, and it is said %s; want guest.wasm and %q", g.faults.Value(), said, d.says)
	}
	if c.slot == "in" {
		must(t, x.arena.Release(m.Handle))
		return
	}
	must(t, loan.Abort())
}

// wrapping is a module around environments that does that in its slot, with a state of a type.
func wrapping(code asm.Code, state hostabi.DType) built {
	m := hostabi.Manifest{Name: "built@1", Flags: hostabi.ComponentStateless,
		Columns: []hostabi.ManifestColumn{{Name: "shaped_reward", Flags: hostabi.ColumnWrite}, {Name: "wrapper_state", DType: state, Flags: hostabi.ColumnWrite}},
		Signals: []hostabi.ManifestPort{{Name: "shaped", Payload: "shaped_rewards"}, {Name: "other", Payload: "note"}}, Slots: []hostabi.ManifestPort{{Name: "asked", Payload: "reward_request"}}}
	return built{functions: map[string]asm.Code{hostabi.ExportSlot: code + asm.Const(0)}, manifest: m.Describe(), wasi: true, after: func(m *asm.Module) { m.Table(1) }}
}

// A module around environments that does what no call should, forges what it answers with, or asks for what wrappers are refused: the
// call fails with its name, the next one finds the guest as it began, and its columns are where they were.
func TestHostile_WrappersHarmNobody(t *testing.T) {
	own := func(token int32) asm.Code {
		return asm.Const(sentAt) + asm.Const(token) + asm.Store(0) + asm.Const(0) + asm.Const(sentAt) + asm.Call(emit) + asm.Drop
	}
	token := asm.Get(1) + asm.Load(0)
	const unanswered, fine = "did not answer the request", ""
	list := []deed{
		{"answers nothing", "", unanswered}, {"forges a token", own(2), unanswered}, {"forges all bits", own(-1), unanswered}, {"names no block", own(0), unanswered},
		{"answers on another signal", asm.Const(1) + asm.Get(1) + asm.Call(emit) + asm.Drop, unanswered},
		{"answers on no signal", asm.Const(99) + asm.Get(1) + asm.Call(emit) + asm.Drop, unanswered},
		{"answers from nowhere", asm.Const(0) + asm.Const(-8) + asm.Call(emit) + asm.Drop, unanswered},
		{"answers twice", passOn() + passOn(), fine}, {"guesses the token", own(rowToken), fine},
		{"leases", token + asm.Call(lease) + asm.Drop + token + asm.Call(release) + asm.Drop + passOn(), fine},
		{"begins a timer", asm.Const64(1) + asm.Const64(1) + asm.Call(timer) + asm.Drop + asm.Const(1) + asm.Call(cancel) + asm.Drop + passOn(), fine},
		{"looks for columns", token + asm.Const(manifestAt) + asm.Const(6) + asm.Const(0) + asm.Const(columnAt) + asm.Call(column) + asm.Drop + passOn(), fine},
		{"stops the run", asm.Const(1) + asm.Call(stop) + asm.Drop + passOn(), fine},
		{"declares a metric", asm.Const(1) + asm.Const(manifestAt) + asm.Const(6) + asm.Call(declare) + asm.Drop + passOn(), fine},
		{"says that it failed", asm.Const(-3) + asm.Return, "words of a guest"},
	}
	l := modules(t)
	judge := func(t *testing.T, d deed, b built) {
		s := hostile(t, b)
		w, err := l.Wrapper(s, nil)
		must(t, err)
		shape := Shape{Envs: 2, Agents: 1, Columns: []ShapeOf{{DType: hostabi.F32, Rows: 1, Elems: 1, Write: true}, {DType: w.Columns()[1].DType, Rows: 1, Elems: 3, Write: true}}}
		x, err := w.New(WrapperOptions{Name: "wrapper", Seed: 1, Shape: shape})
		must(t, err)
		var first string
		for range 2 {
			err := x.Call()
			if d.says == fine && err != nil || d.says != fine && (err == nil || !strings.Contains(err.Error(), d.says) || !strings.Contains(err.Error(), "guest.wasm")) {
				t.Errorf("Call = %v, want guest.wasm and %q", err, d.says)
			}
			if text := fmt.Sprint(err); first == "" {
				first = text
			} else if text != first {
				t.Errorf("at second %s, at first %s", text, first)
			}
			for i, c := range shape.Columns {
				if got, want := len(x.Column(i)), shape.Envs*c.Elems*c.DType.Bytes(); got != want {
					t.Errorf("column %d has %d bytes, want %d", i, got, want)
				}
			}
		}
		must(t, x.Close())
	}
	for _, d := range list {
		t.Run(d.name, func(t *testing.T) { judge(t, d, wrapping(d.code, hostabi.F32)) })
	}
	for _, d := range deeds() {
		b := wrapping(d.code, hostabi.F32)
		if d.name == "recurses" {
			b.recurses = hostabi.ExportSlot
		}
		t.Run(d.name, func(t *testing.T) { judge(t, d, b) })
	}
	for state := hostabi.U8; state <= hostabi.Bool; state++ {
		if state.Bytes() == 0 {
			continue
		}
		t.Run(fmt.Sprintf("a state of %v", state), func(t *testing.T) { judge(t, deed{says: fine}, wrapping(passOn(), state)) })
	}
}
