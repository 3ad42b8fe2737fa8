package component

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// twoSlices is a limit that ends a call when it has burned its second slice of fuel, whatever else the machine does.
const twoSlices = time.Nanosecond

// everything is all that a component can be granted.
var everything = []string{module.GrantLog, module.GrantMetric, module.GrantStop}

// hostile is a source with short limits.
func hostile(t testing.TB, b built) Source {
	s := source(file(t, b.bytes()), everything...)
	s.Step, s.Init, s.Memory = twoSlices, twoSlices, 4<<20
	return s
}

// scene is a rig around a built guest, with blocks.
type scene struct {
	*plugintest.Rig
	*blocks
	g   *component
	got []hostabi.Message
}

func newScene(t testing.TB, s Source, grants map[string][]string) *scene {
	t.Helper()
	r, g := started(t, s, plugintest.RigOptions{Grants: grants}, nil)
	x := &scene{Rig: r, g: g, blocks: newBlocks(t, r.Host.Arenas, 4, trajectory.Shape{Steps: 2, Envs: 2})}
	r.From("out", func(m *hostabi.Message) { x.got = append(x.got, *m) })
	return x
}

// send sends a block and gives up its own claim on it.
func (x *scene) send(rewards ...float32) error {
	x.t.Helper()
	h := x.with(rewards...)
	must(x.t, x.To("in").Emit(hostabi.Message{Handle: h}))
	must(x.t, x.arena.Release(h))
	return x.Settle()
}

// counted returns how many messages the guest says that it has handled.
func (x *scene) counted() byte {
	x.t.Helper()
	return x.g.run.View(noteAt, 1)[0]
}

// A slot's misdeeds: the message is lost or not, the next one is handled, and nothing leaks, which the rig and the arenas say
// at the end.
func TestSlot_CannotKillTheHost(t *testing.T) {
	own := func(token asm.Code) asm.Code { // emits a message of the guest's own that names a block
		return asm.Const(sentAt) + token + asm.Store(0) + asm.Const(0) + asm.Const(sentAt) + asm.Call(emit) + asm.Drop
	}
	token := asm.Get(1) + asm.Load(0)
	leases := times(300, token+asm.Call(lease)+asm.Drop)
	ask := func(name, n, access, to int32) asm.Code {
		return token + asm.Const(name) + asm.Const(n) + asm.Const(access) + asm.Const(to) + asm.Call(column) + asm.Drop
	}
	for name, c := range map[string]struct {
		code  asm.Code
		fault bool
		sent  int // of two
	}{
		"nothing":                     {"", false, 0},
		"passes on":                   {passOn(), false, 2},
		"a trap":                      {asm.Unreachable, true, 0},
		"a trap after emitting":       {passOn() + asm.Unreachable, true, 2},
		"a loop":                      {forever, true, 0},
		"a memory bomb":               {bomb(), true, 0},
		"growth":                      {asm.Const(3) + asm.MemoryGrow + asm.Drop + passOn(), false, 2},
		"a forged token":              {own(asm.Const(77)), false, 0},
		"a token that is all ones":    {own(asm.Const(-1)), false, 0},
		"no block":                    {own(asm.Const(0)), false, 0},
		"its own token":               {own(token), false, 2},
		"an unknown signal":           {asm.Const(9) + asm.Get(1) + asm.Call(emit) + asm.Drop, false, 0},
		"a message beyond memory":     {asm.Const(0) + asm.Const(-8) + asm.Call(emit) + asm.Drop, false, 0},
		"leases kept":                 {token + asm.Call(lease) + asm.Drop, false, 0},
		"too many leases":             {leases, true, 0},
		"leases and a trap":           {times(30, token+asm.Call(lease)+asm.Drop) + asm.Unreachable, true, 0},
		"releases too many":           {token + asm.Call(lease) + asm.Drop + times(3, token+asm.Call(release)+asm.Drop), false, 0},
		"releases what is not leased": {times(3, token+asm.Call(release)+asm.Drop) + passOn(), false, 2},
		"emits after its release":     {token + asm.Call(lease) + asm.Drop + token + asm.Call(release) + asm.Drop + passOn(), false, 2},
		"a column's name beyond":      {ask(-4, 8, 0, columnAt), false, 0},
		"a column's name too long":    {ask(wordsAt, 1<<20, 0, columnAt), false, 0},
		"a column's name empty":       {ask(wordsAt, 0, 0, columnAt), false, 0},
		"a binding beyond memory":     {ask(wordsAt, 5, 0, -16), false, 0},
		"an unknown column":           {ask(wordsAt, 5, 0, columnAt), false, 0},
		"unknown access":              {ask(wordsAt, 5, 0x7f, columnAt), false, 0},
		"a timer in the past":         {asm.Const64(-5) + asm.Const64(0) + asm.Call(timer) + asm.Drop, false, 0},
		"a timer for ever":            {asm.Const64(-1) + asm.Const64(-1) + asm.Call(timer) + asm.Drop, false, 0},
		"many timers":                 {times(1000, asm.Const64(1<<60)+asm.Const64(1)+asm.Call(timer)+asm.Drop), false, 0},
		"cancels no timer":            {asm.Const(1234) + asm.Call(cancel) + asm.Drop, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := slotOf(c.code, reads("reward"))
			x := newScene(t, hostile(t, b), nil)
			for range 2 {
				if err := x.send(1, 2, 3, 4); err != nil {
					t.Fatal(err)
				}
			}
			want, handled := uint64(0), byte(2)
			if c.fault {
				want, handled = 2, 0 // what it counted is undone
			}
			if n := x.g.faults.Value(); n != want || x.g.lost.Value() != want {
				t.Errorf("%d faults, %d messages lost, want %d; log: %s", n, x.g.lost.Value(), want, x.Log.String())
			}
			if n := x.counted(); n != handled {
				t.Errorf("the guest has counted %d messages, want %d", n, handled)
			}
			if len(x.got) != c.sent {
				t.Errorf("%d messages sent, want %d", len(x.got), c.sent)
			}
			if c.fault && !strings.Contains(x.Log.String(), "guest.wasm") {
				t.Errorf("the log does not name the culprit: %s", x.Log.String())
			}
		})
	}
}

// A guest that faults too often ends the run, and is named.
func TestFaults_EndTheRunWhenTheBudgetIsSpent(t *testing.T) {
	x := newScene(t, hostile(t, slotOf(asm.Unreachable)), nil)
	var err error
	for i := 0; err == nil && i < 10; i++ {
		err = x.send(1)
	}
	if err == nil || !strings.Contains(err.Error(), "restarted 3 times already (max_restarts)") || !strings.Contains(err.Error(), "rl_slot") {
		t.Errorf("the run ends with %v", err)
	}
}

// A negative status is the guest's own word that it cannot continue.
func TestStatus_EndsTheRunWithTheGuestsWords(t *testing.T) {
	b := built{functions: map[string]asm.Code{hostabi.ExportSlot: asm.Const(int32(hostabi.StatusInternal))}}
	x := newScene(t, hostile(t, b), nil)
	if err := x.send(1); err == nil || !strings.Contains(err.Error(), `"words of a guest"`) {
		t.Errorf("the run ends with %v", err)
	}
}

// Memory that a guest gives must be its own, aligned, and not given before.
func TestAlloc_GivesNothingThatIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		code asm.Code
		want string
	}{
		"nothing":     {asm.Const(0), "has no"},
		"misaligned":  {asm.Const(heapAt + 1), "not aligned"},
		"beyond":      {asm.Const(-65536), "outside of its memory"},
		"always same": {asm.Const(heapAt), "overlap memory that it gave to the host before"},
	} {
		t.Run(name, func(t *testing.T) {
			b := built{functions: map[string]asm.Code{hostabi.ExportAlloc: c.code}}
			m, err := modules(t).Component(source(file(t, b.bytes()), everything...))
			if err == nil {
				err = m.Configure(plugintest.DecodeTable(map[string]any{"key": "value"}))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

// Each byte of a manifest may be any other: the host refuses it or runs it.
func TestManifest_AnyByteMayBeWrong(t *testing.T) {
	l := modules(t)
	text := described(reads("reward"), hostabi.ManifestColumn{Name: "obs", Flags: hostabi.ColumnOptional})
	refused := 0
	for i := range text {
		for _, v := range []byte{0xff, text[i] ^ 0x40} {
			wrong := append([]byte(nil), text...)
			wrong[i] = v
			if _, err := hostabi.ParseManifest(wrong); err != nil {
				refused++
				if !errors.Is(err, hostabi.ErrManifest) {
					t.Errorf("byte %d = %#x: %v is no ErrManifest", i, v, err)
				}
				continue
			}
			if i%8 != 0 {
				continue // as good as its neighbours, and each takes a separate module
			}
			c, err := l.Component(source(file(t, built{manifest: wrong}.bytes()), everything...))
			must(t, err)
			if err := c.Configure(plugintest.DecodeTable(nil)); err != nil {
				t.Errorf("byte %d = %#x is accepted by ParseManifest, and then: %v", i, v, err)
			}
		}
	}
	if refused < len(text)/2 {
		t.Errorf("%d of %d wrong manifests refused", refused, 2*len(text))
	}
}

// A guest alone sees its writes where it may only read.
func TestWindow_WritesStayInTheGuest(t *testing.T) {
	first := asm.Get(1) + asm.Load(4) + asm.Load(0) // the address of the first reward
	seen := asm.Const(noteAt) + first + asm.Load(0) + asm.Store(0)
	x := newScene(t, hostile(t, slotOf(first+asm.Const(0x3f000000)+asm.Store(0)+seen+passOn(), reads("reward"))), nil)
	h := x.with(1, 2, 3, 4)
	must(t, x.To("in").Emit(hostabi.Message{Handle: h}))
	x.MustSettle()
	if got := x.rewards(h); got[0] != 1 {
		t.Errorf("the block has %v, want what its maker wrote", got)
	}
	s, err := x.g.Snapshot()
	must(t, err)
	if got := fmt.Sprintf("%x", s.Blobs[core.OpaqueBlob]); got != "0000003f" {
		t.Errorf("the guest reads %s, want what it wrote", got)
	}
	if got := x.g.Altered(); len(got) != 1 || got[0] != "reward" {
		t.Errorf("it has written into %v without a grant, want the rewards", got)
	}
	must(t, x.arena.Release(h))
	if copied := x.g.copied.Value(); copied != 0 {
		t.Errorf("%d bytes copied", copied)
	}
}

// A window is the block's pages: the writes of others appear there, and its bytes are in the arena's file.
func TestWindow_IsTheBlockItself(t *testing.T) {
	first := asm.Get(1) + asm.Load(4) + asm.Load(0)
	x := newScene(t, hostile(t, slotOf(asm.Const(noteAt)+first+asm.Load(0)+asm.Store(0), reads("reward"))), nil)
	for _, want := range []float32{1, 2} {
		must(t, x.send(want))
	}
	w := x.g.windows.list[0]
	b := x.g.run.View(w.at, w.bytes)
	mem, err := x.arena.Lease(x.with(0))
	must(t, err)
	if !sameFile(t, b, mem.Bytes()) {
		t.Error("the window's pages are not those of the arena")
	}
	must(t, mem.Release())
	must(t, x.arena.Release(mem.Handle()))
	if len(x.g.windows.list) != 1 {
		t.Errorf("%d windows for one block, which came twice", len(x.g.windows.list))
	}
}
