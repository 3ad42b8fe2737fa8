package component

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// An act is a record that the scripted guest carries out: what to do, then five arguments.
const (
	actBytes = 24
	scriptAt = 0x9000 // in its memory, ended by an act beyond the last
	mostActs = 64
)

// Acts besides the calls of imports, which have their indexes.
const (
	actTrap  = iota + askOther + 1
	actGrow  // by pages
	actFill  // address, byte, length
	actStore // address, value
	actKeep  // the token of this message, for later ones
	acts
)

// Arguments that stand for values given to the guest.
const (
	argToken   = 0xfffffff0 + iota // of the message
	argKept                        // token that it has kept
	argMessage                     // address of the message
	argColumn                      // address of the first column's first element
)

// Instructions that are not in asm.
const (
	load64  asm.Code = "\x29\x03"
	loadF64 asm.Code = "\x2b\x03"
)

// scripted is a guest whose slot, timer, rl_answer, rl_pause and rl_resume carry out the acts in its memory. But for the slot they have no message.
func scripted() []byte {
	const message, at, value, kept = 1, 2, 3, 28 // locals, and an address
	const locals = 3                             // besides the one that every function has, for those without a parameter
	given := func(arg uint32, code asm.Code) asm.Code {
		return asm.Get(value) + asm.Const(int32(arg)) + asm.Eq + asm.If + asm.Void + code + asm.Set(value) + asm.End
	}
	arg := func(i uint32) asm.Code { // pushes an argument
		return asm.Get(at) + asm.Load(4+4*i) + asm.Set(value) +
			given(argToken, asm.Get(message)+asm.Load(0)) + given(argKept, asm.Const(kept)+asm.Load(0)) + given(argMessage, asm.Get(message)) +
			given(argColumn, asm.Get(message)+asm.Load(4)+asm.Load(0)) + asm.Get(value)
	}
	wide := func(op asm.Code, i uint32) asm.Code { return asm.Get(at) + op + asm.Code([]byte{byte(4 + 4*i)}) }
	on := func(act uint32, code asm.Code) asm.Code {
		return asm.Get(at) + asm.Load(0) + asm.Const(int32(act)) + asm.Eq + asm.If + asm.Void + code + asm.End
	}
	var body asm.Code
	for index, f := range hostabi.ComponentImports() {
		var call asm.Code
		next := uint32(0)
		for _, kind := range f.Params {
			switch kind {
			case hostabi.TypeI64:
				call += wide(load64, next)
				next += 2
			case hostabi.TypeF64:
				call += wide(loadF64, next)
				next += 2
			default:
				call += arg(next)
				next++
			}
		}
		body += on(uint32(index), call+asm.Call(uint32(index))+asm.Repeat(len(f.Results), asm.Drop))
	}
	body += on(actTrap, asm.Unreachable) + on(actGrow, arg(0)+asm.Const(15)+asm.And+asm.MemoryGrow+asm.Drop) +
		on(actFill, arg(0)+arg(1)+arg(2)+asm.MemoryFill) + on(actStore, arg(0)+arg(1)+asm.Store(0)) +
		on(actKeep, asm.Const(kept)+asm.Get(message)+asm.Load(0)+asm.Store(0))
	script := asm.Const(scriptAt) + asm.Set(at) + asm.Block + asm.Void + asm.Loop + asm.Void +
		asm.Get(at) + asm.Load(0) + asm.Const(acts) + asm.GeU + asm.BrIf(1) + body +
		asm.Get(at) + asm.Const(actBytes) + asm.Add + asm.Set(at) + asm.Br(0) + asm.End + asm.End
	m := hostabi.Manifest{Name: "scripted@1",
		Signals: []hostabi.ManifestPort{{Name: "out", Payload: "trajectory"}, {Name: "note", Payload: "note"}},
		Slots:   []hostabi.ManifestPort{{Name: "in", Payload: "trajectory", Flags: hostabi.PortBlocks}, {Name: "bare", Payload: "note"}},
		Columns: []hostabi.ManifestColumn{reads("reward")}, Asks: []hostabi.Request{{Name: "total"}, {Name: "level"}}}
	functions := map[string]asm.Code{}
	for _, export := range []string{hostabi.ExportSlot, hostabi.ExportTimer, hostabi.ExportAnswer, hostabi.ExportPause, hostabi.ExportResume} {
		functions[export] = script + asm.Const(0)
	}
	return built{functions: functions, locals: locals, manifest: m.Describe()}.bytes()
}

// act encodes an act.
func act(what uint32, args ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, what)
	for i := range 5 {
		v := uint32(0)
		if i < len(args) {
			v = args[i]
		}
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// The host's calls of the scripted guest, by the low bits of a byte; the next bit is the block of a message.
const (
	askMessage = iota
	askBare    // a message of a payload without blocks
	askNothing // a message without a block
	askSaved   // a snapshot, then a message
	askPause
	askResume
	askRestore // the newest snapshot
	askTimer
	asks
)

// FuzzImports has a guest call the host's functions in any order with any arguments, in its own messages, timers, pauses and resumes: the
// first byte is the host's call, then come the acts. The host refuses or does each, no block changes, nothing leaks, and it faults in
// nothing but traps.
func FuzzImports(f *testing.F) {
	message := func(kind byte, list ...[]byte) []byte {
		return append([]byte{kind, byte(len(list))}, bytes.Join(list, nil)...)
	}
	for _, seed := range [][]byte{
		message(askMessage, act(emit, 0, argMessage), act(lease, argToken), act(actKeep)),
		bytes.Join([][]byte{message(askMessage, act(lease, argToken), act(actKeep)), message(askBare, act(column, argKept, wordsAt, 5, 0, columnAt), act(release, argKept))}, nil),
		message(askMessage, act(declare, 1, wordsAt, 5), act(report, 0, 0, 0x40080000), act(timer, 0, 0, 1, 0), act(cancel, 1)),
		message(askMessage, act(actStore, argColumn, 7), act(actFill, argColumn, 9, 64), act(emit, 0, argMessage), act(actTrap)),
		message(askNothing, act(emit, 1, argMessage), act(logLine, 3, wordsAt, 16), act(logEnabled, 1), act(stop, 1)),
		bytes.Repeat(message(askSaved, act(actGrow, 2), act(lease, argToken), act(emit, 0, argMessage)), 6),
		bytes.Repeat(message(askMessage, act(actTrap)), 4),
		bytes.Join([][]byte{message(askMessage, act(lease, argToken), act(actKeep)), message(askPause, act(emit, 0, argMessage), act(column, argKept, wordsAt, 5, 0, columnAt)),
			message(askResume, act(release, argKept), act(release, argKept), act(timer, 0, 0, 0, 0)), message(askMessage, act(emit, 0, argMessage))}, nil),
		bytes.Repeat(bytes.Join([][]byte{message(askPause, act(lease, 513), act(actTrap)), message(askSaved), message(askResume, act(actTrap))}, nil), 2),
		bytes.Join([][]byte{message(askSaved, act(actGrow, 3), act(emit, 0, argMessage)), message(askPause, act(timer, 0, 0, 1, 0), act(stop, 1)), message(askTimer, act(emit, 0, argMessage),
			act(actFill, 0, 90, 32768)), message(askRestore, act(actTrap)), message(askResume, act(declare, 1, wordsAt, 5), act(cancel, 1))}, nil),
		bytes.Repeat(message(askMessage, act(askOther, 0, wordsAt, 5, 0, 0), act(askOther, 1, 0, 0, 1, 0), act(lease, argToken), act(actTrap)), 3),
		message(askNothing, act(askOther, 0, 0, 0, 0, 0), act(askOther, 0, 0xfffffff0, 32, 0, 0), act(askOther, 2, 0, 0, 0, 0)),
	} {
		f.Add(seed)
	}
	l := modules(f)
	s := source(file(f, scripted()), everything...)
	s.Step, s.Init, s.Memory = twoSlices, twoSlices, 4<<20
	f.Fuzz(func(t *testing.T, script []byte) {
		c, err := l.Component(s)
		must(t, err)
		g := c.(*component)
		answers := 0
		r := plugintest.NewRig(t, g, plugintest.RigOptions{Name: "guest", AskOther: func(_ string, args json.RawMessage, _ time.Duration, answer func(json.RawMessage, error)) {
			if answers++; answers > 64 || len(args)%3 == 1 { // a script may ask in each answer
				return
			}
			if len(args)%3 == 2 {
				answer(nil, &core.Raised{Type: "ValueError", Text: string(args)})
				return
			}
			answer(args, nil)
		}}, plugintest.DecodeTable(nil))
		x := &scene{Rig: r, g: g, blocks: newBlocks(t, r.Host.Arenas, 3, trajectory.Shape{Steps: 2, Envs: 2})}
		r.From("out", func(*hostabi.Message) {})
		all := []hostabi.Handle{x.with(1, 2, 3, 4), x.with(5, 6, 7, 8)}
		var saved core.State
		was := [][]byte{x.content(all[0]), x.content(all[1])}
		for n := 0; len(script) > 1 && n < 16; n++ {
			kind, count := script[0], min(int(script[1]), mostActs, (len(script)-2)/actBytes)
			list := script[2 : 2+count*actBytes]
			script = script[2+count*actBytes:]
			if err := x.plays(kind, list, all, &saved); err != nil {
				var fault *env.Fault
				if !errors.As(err, &fault) || g.restarts.All() < s.MaxRestarts {
					t.Errorf("the run ends with %v", err)
				}
				break
			}
		}
		for k, h := range all {
			if !bytes.Equal(x.content(h), was[k]) {
				t.Errorf("block %d has changed", k)
			}
			must(t, x.arena.Release(h))
		}
	})
}

// plays gives the guest acts and makes the call that does them.
func (x *scene) plays(kind byte, list []byte, all []hostabi.Handle, saved *core.State) (err error) {
	if to := x.g.run.View(scriptAt, uint32(len(list)+actBytes)); to != nil {
		binary.LittleEndian.PutUint32(to[copy(to, list):], acts)
	}
	m, slot := hostabi.Message{Handle: all[kind/asks%2]}, "in"
	switch kind % asks {
	case askBare:
		slot = "bare"
	case askNothing:
		m.Handle = 0
	case askSaved:
		if *saved, err = x.g.Snapshot(); err != nil && !errors.Is(err, core.ErrNoSnapshot) {
			return err
		}
	case askPause:
		x.g.Pause(func() {})
		return x.Settle()
	case askResume:
		x.g.Resume()
		return x.Settle()
	case askRestore:
		return errors.Join(x.g.Restore(*saved), x.Settle())
	case askTimer:
		x.g.fire(1)
		return x.Settle()
	}
	if err := x.To(slot).Emit(m); err != nil {
		return err
	}
	return x.Settle()
}

// FuzzComponent gives modules of any kind to the host and takes the loadable ones through a component's life. Their ends are errors of the
// known kinds; nothing leaks.
func FuzzComponent(f *testing.F) {
	for _, name := range []string{"shaper", "episodes"} {
		module, err := os.ReadFile(example(name))
		must(f, err)
		f.Add(module)
	}
	f.Add(built{}.bytes())
	f.Add(scripted())
	f.Add(slotOf(passOn(), reads("reward")).bytes())
	f.Add(built{functions: map[string]asm.Code{hostabi.ExportSlot: asm.Unreachable}, wasi: true}.bytes())
	r, err := wasm.New(wasm.Options{CacheDir: os.DevNull}) // the code of what it finds would fill the disk
	must(f, err)
	f.Cleanup(func() { must(f, r.Close()) })
	path := filepath.Join(f.TempDir(), "fuzz.wasm")
	limits := env.Limits{Memory: 4 << 20, Step: twoSlices, Init: twoSlices}
	f.Fuzz(func(t *testing.T, module []byte) {
		must(t, os.WriteFile(path, module, 0o600))
		l := NewModules(r)
		defer func() { must(t, l.Close()) }()
		c, err := l.Component(Source{Source: env.Source{Name: "fuzz", Use: path, Grants: everything, Limits: limits}, MaxRestarts: 2})
		if err != nil {
			var load *table.Error
			if !errors.As(err, &load) || load.Code == "" || load.Reason == "" || load.Help == "" {
				t.Errorf("Component = %v, want all of a table.Error", err)
			}
			return
		}
		t.Run("life", func(t *testing.T) { lives(t, c.(*component)) })
	})
}

// lives takes a guest as far through its life as it gets. The arenas' Close reports leaks.
func lives(t *testing.T, g *component) {
	t.Helper()
	grants := map[string][]string{}
	_ = g.Configure(plugintest.DecodeTable(nil)) // TryRig says what is wrong
	for _, p := range g.Manifest().Slots {
		grants[p.Name] = []string{"reward", "shaped_reward"}
	}
	rig, err := plugintest.TryRig(t, g, plugintest.RigOptions{Name: "fuzz", Grants: grants}, plugintest.DecodeTable(nil))
	if err != nil {
		return
	}
	x := newBlocks(t, rig.Host.Arenas, 2, trajectory.Shape{Steps: 2, Envs: 2, Granted: "reward shaped_reward"})
	for range 2 {
		h := x.with(1, 2, 3, 4)
		loan, err := x.arena.Loan()
		must(t, err)
		for _, s := range g.slots[:min(len(g.slots), 4)] {
			m := hostabi.Message{Handle: h}
			if s.payload.OnLoan {
				m.Handle = loan.Handle()
			}
			g.handle(s, &m)
			if !g.dead && g.run.in.OverLimit() {
				t.Errorf("it has a memory of %d bytes, more than its limit and its windows", g.run.in.Mem.Size)
			}
		}
		must(t, loan.Abort())
		must(t, x.arena.Release(h))
	}
	if g.run.Has(hostabi.ExportTimer) {
		g.fire(1)
	}
	g.Pause(func() {})
	g.Resume()
	if state, err := g.Snapshot(); err == nil {
		_ = g.Restore(state) // what matters is that the host lives
	}
}
