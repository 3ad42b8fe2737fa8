package component

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// stage is where the host notices an attack.
type stage string

const (
	unnoticed   stage = ""          // nothing is wrong with it as far as the host is concerned
	inLoading   stage = "load"      // the module is refused
	inConfigure stage = "configure" // the component is
	inStart     stage = "start"
	inRun       stage = "run"     // it is restarted, and the run continues
	endsRun     stage = "ends"    // it ends the run
	inSnapshot  stage = "snap"    // there is no snapshot
	inRestore   stage = "restore" // the state is not taken
	inStop      stage = "stop"    // the log tells
)

// attack is a component that means harm.
type attack struct {
	kind, name string
	module     []byte
	grants     []string // nil: everything
	at         stage
	says       []string // the host's words, besides the names of the component and the file
}

// attacks is the hostile set.
func attacks() []attack {
	return slices.Concat(exportAttacks(), answerAttacks(), lengthAttacks(), importAttacks(), slotAttacks(), manifestAttacks(), moduleAttacks(), textAttacks())
}

// deed is something that no call should do.
type deed struct {
	name string
	code asm.Code
	says string
}

// Instructions that are not in asm.
const (
	divide       asm.Code = "\x6e"         // i32.div_u
	callIndirect asm.Code = "\x11\x02\x00" // with the signature of release, through table 0
)

// doing is a guest whose export does a deed. The deed needs WASI, and a table with an entry that is null.
func doing(export string, d deed, results int) []byte {
	code := d.code
	if results > 0 {
		code += asm.Const(0)
	}
	b := built{functions: map[string]asm.Code{export: code}, manifest: described(reads("reward")), wasi: true,
		after: func(m *asm.Module) { m.Table(1) }}
	if d.name == "recurses" {
		b.recurses = export
	}
	return b.bytes()
}

func deeds() []deed {
	loop := func(code asm.Code) asm.Code { return asm.Loop + asm.Void + code + asm.Br(0) + asm.End }
	const stopped, beyond = "stopped after its limit", "out of bounds memory access"
	return []deed{
		{"traps", asm.Unreachable, "unreachable"},
		{"divides by zero", asm.Const(1) + asm.Const(0) + divide + asm.Drop, "integer divide by zero"},
		{"reads beyond", asm.Const(-4) + asm.Load(0) + asm.Drop, beyond},
		{"writes beyond", asm.Const(-4) + asm.Const(1) + asm.Store(0), beyond},
		{"fills beyond", asm.Const(-64) + asm.Const(1) + asm.Const(128) + asm.MemoryFill, beyond},
		{"copies beyond", asm.Const(-64) + asm.Const(0) + asm.Const(128) + asm.MemoryCopy, beyond},
		{"calls nothing", asm.Const(1) + asm.Const(0) + callIndirect + asm.Drop, "invalid table access"},
		{"loops", loop(""), stopped},
		{"loops over a log line", loop(asm.Const(2) + asm.Const(wordsAt) + asm.Const(16) + asm.Call(logLine)), stopped},
		{"loops over emit", loop(asm.Const(0) + asm.Const(sentAt) + asm.Call(emit) + asm.Drop), stopped},
		{"loops over fills", loop(asm.Const(heapAt) + asm.Const(1) + asm.Const(heapAt) + asm.MemoryFill), stopped},
		{"recurses", "", stopped}, // before its stack is full
		{"grows for ever", bomb(), stopped},
		{"eats all memory", asm.Loop + asm.Void + asm.Const(16) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.Eqz + asm.BrIf(0) + asm.End + asm.Unreachable,
			"after the memory limit of 4 MiB was reached"},
		{"exits", asm.Const(7) + asm.Call(exit), "the guest exited with code 7"},
	}
}

// stages says where a deed of an export is noticed.
var stages = map[string]stage{
	hostabi.ExportInitialize: inLoading, hostabi.ExportAlloc: inLoading, hostabi.ExportFree: inConfigure,
	hostabi.ExportHost: inConfigure, hostabi.ExportConfigure: inConfigure, hostabi.ExportManifest: inConfigure, hostabi.ExportStartUp: inStart,
	hostabi.ExportSlot: inRun, hostabi.ExportTimer: inRun, hostabi.ExportPause: inRun, hostabi.ExportResume: inRun,
	hostabi.ExportSnapshot: inSnapshot, hostabi.ExportRestore: inRestore, hostabi.ExportStop: inStop,
	hostabi.ExportLastError: unnoticed, hostabi.ExportComponentABI: unnoticed, hostabi.ExportRequest: unnoticed, // which nothing calls
}

// exportAttacks do each deed in each export.
func exportAttacks() (list []attack) {
	for _, f := range hostabi.ComponentExports() {
		for _, d := range deeds() {
			a := attack{kind: f.Name, name: d.name, module: doing(f.Name, d, len(f.Results)), at: stages[f.Name]}
			if a.at != unnoticed {
				a.says = []string{f.Name, d.says}
			}
			if d.name == "loops over emit" && a.at == inLoading {
				a.says[1] = "stopped" // before there is a component the import does nothing
			}
			list = append(list, a)
		}
	}
	return list
}

// answerAttacks return what no such export should.
func answerAttacks() (list []attack) {
	for _, f := range hostabi.ComponentExports() {
		if len(f.Results) == 0 {
			continue
		}
		for _, v := range []int32{-1, -3, -100, math.MinInt32, 1, 3, math.MaxInt32} {
			b := built{functions: map[string]asm.Code{f.Name: asm.Const(v)}, manifest: described(reads("reward"))}
			a := attack{kind: "answers of " + f.Name, name: fmt.Sprint("says ", v), module: b.bytes()}
			a.at, a.says = answered(f.Name, v)
			list = append(list, a)
		}
	}
	return list
}

// answered says what becomes of an export that only returns a number.
func answered(export string, v int32) (stage, []string) {
	at := stages[export]
	switch {
	case export == hostabi.ExportAlloc:
		return at, []string{export}
	case at == unnoticed:
		return unnoticed, nil
	case v < 0:
		if at == inRun {
			at = endsRun // the guest says itself that it cannot continue
		}
		return at, []string{export, "words of a guest"}
	case export == hostabi.ExportManifest && v < 1<<20:
		return at, []string{"describes itself wrongly"}
	case export == hostabi.ExportManifest, export == hostabi.ExportSnapshot && v > 1<<28:
		return at, []string{export, "needs 2147483647 bytes, at most"}
	case export == hostabi.ExportSnapshot:
		return unnoticed, nil
	}
	return at, []string{export, "a status that there is not"}
}

// lengthAttacks answer two lengths, or longer ones than they have memory for.
func lengthAttacks() (list []attack) {
	for _, export := range []string{hostabi.ExportManifest, hostabi.ExportSnapshot} {
		for _, c := range []struct {
			first, then int32
			says        string
		}{
			{4, 5, "needs 4 bytes at first and 5 then"}, {300, 4, "needs 300 bytes at first and 4 then"}, {4, math.MaxInt32, "needs 4 bytes at first and 2147483647 then"},
			{4, -1, "words of a guest"}, {1 << 20, 0, "needs 1048576 bytes at first and 0 then"}, {1<<28 + 1, 0, "needs 268435457 bytes, at most"},
		} {
			code := asm.Get(1) + asm.If + asm.Void + asm.Const(c.then) + asm.Return + asm.End + asm.Const(c.first)
			b := built{functions: map[string]asm.Code{export: code}}
			list = append(list, attack{kind: "lengths", name: fmt.Sprint(export, " ", c.first, " ", c.then), module: b.bytes(), at: stages[export], says: []string{export, c.says}})
		}
	}
	for _, v := range []int32{0, -1, 1, 4096, math.MaxInt32, math.MinInt32} {
		b := built{functions: map[string]asm.Code{hostabi.ExportLastError: asm.Const(v), hostabi.ExportSlot: asm.Unreachable}}
		list = append(list, attack{kind: "lengths", name: fmt.Sprint("a text of ", v, " bytes"), module: b.bytes(), at: inRun, says: []string{"rl_slot", "unreachable"}})
	}
	big := built{functions: map[string]asm.Code{hostabi.ExportSnapshot: asm.Const(16 << 20)}}
	return append(list, attack{kind: "lengths", name: "a state larger than memory", module: big.bytes(), at: inSnapshot, says: []string{"rl_alloc", "has no 16 MiB to give"}})
}

// f64 pushes a number.
func f64(v float64) asm.Code {
	return asm.Code(binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(v)))
}

// importAttacks call each import with one argument out of its right place.
func importAttacks() (list []attack) {
	places := []int32{0, 1, -1, 5, 77, 65535, 65536, 131071, 131072, math.MaxInt32, math.MinInt32}
	token := asm.Get(1) + asm.Load(0)
	right := map[string][]asm.Code{
		hostabi.ImportEmit: {asm.Const(0), asm.Get(1)}, hostabi.ImportLease: {token}, hostabi.ImportRelease: {token},
		hostabi.ImportColumn:  {token, asm.Const(wordsAt), asm.Const(5), asm.Const(0), asm.Const(columnAt)},
		hostabi.ImportDeclare: {asm.Const(1), asm.Const(wordsAt), asm.Const(5)}, hostabi.ImportReport: {asm.Const(0), f64(1)},
		hostabi.ImportTimer: {asm.Const64(1 << 60), asm.Const64(0)}, hostabi.ImportCancel: {asm.Const(1)}, hostabi.ImportStop: {asm.Const(1)},
		hostabi.ImportLog: {asm.Const(2), asm.Const(wordsAt), asm.Const(16)}, hostabi.ImportLogEnabled: {asm.Const(2)},
		hostabi.ImportAsk: {asm.Const(0), asm.Const(wordsAt), asm.Const(5), asm.Const64(0)},
	}
	for index, f := range hostabi.ComponentImports() {
		for position, kind := range f.Params {
			var wild []asm.Code
			switch kind {
			case hostabi.TypeI32:
				for _, v := range places {
					wild = append(wild, asm.Const(v))
				}
			case hostabi.TypeI64:
				for _, v := range []int64{0, 1, -1, math.MinInt64, math.MaxInt64} {
					wild = append(wild, asm.Const64(v))
				}
			case hostabi.TypeF64:
				for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300} {
					wild = append(wild, f64(v))
				}
			}
			for n, w := range wild {
				args := slices.Clone(right[f.Name])
				args[position] = w
				code := asm.Repeat(1, args...) + asm.Call(uint32(index)) + asm.Repeat(len(f.Results), asm.Drop)
				b := withAsk(slotOf(asm.Const(1)+asm.Const(wordsAt)+asm.Const(5)+asm.Call(declare)+asm.Drop+code, reads("reward")), reads("reward"))
				list = append(list, attack{kind: "import " + f.Name, name: fmt.Sprint("argument ", position, " case ", n), module: b.bytes()})
			}
		}
	}
	return list
}

// withAsk gives a guest a question to others.
func withAsk(b built, columns ...hostabi.ManifestColumn) built {
	m, err := hostabi.ParseManifest(described(columns...))
	if err != nil {
		panic(err)
	}
	m.Asks = []hostabi.Request{{Name: "total"}}
	b.manifest, b.functions[hostabi.ExportAnswer] = m.Describe(), asm.Const(0)
	return b
}

// times does something n times, counting in local 2.
func times(n int32, code asm.Code) asm.Code {
	return asm.Const(n) + asm.Set(2) + asm.Loop + asm.Void + code + asm.Get(2) + asm.Const(-1) + asm.Add + asm.Tee(2) + asm.BrIf(0) + asm.End
}

// sends emits a message of the guest's own with a number at an offset.
func sends(offset int32, value asm.Code) asm.Code {
	return asm.Const(sentAt) + asm.Get(1) + asm.Const(64) + asm.MemoryCopy + asm.Const(sentAt+offset) + value + asm.Store(0) +
		asm.Const(0) + asm.Const(sentAt) + asm.Call(emit) + asm.Drop
}

// slotAttacks misuse the host's functions, in the middle of messages.
func slotAttacks() (list []attack) {
	token := asm.Get(1) + asm.Load(0)
	first := asm.Get(1) + asm.Load(4) + asm.Load(0) // address of the first reward
	leased := token + asm.Call(lease) + asm.Drop
	add := func(name string, at stage, code asm.Code, says ...string) {
		list = append(list, attack{kind: "slot", name: name, module: slotOf(code, reads("reward")).bytes(), at: at, says: says})
	}
	add("a trap after emitting", inRun, passOn()+asm.Unreachable, "rl_slot", "unreachable")
	add("a trap with leases", inRun, times(30, leased)+asm.Unreachable, "rl_slot", "unreachable")
	add("a trap with timers", inRun, times(100, asm.Const64(1<<60)+asm.Const64(1)+asm.Call(timer)+asm.Drop)+asm.Unreachable, "rl_slot", "unreachable")
	add("a trap after growth", inRun, asm.Const(8)+asm.MemoryGrow+asm.Drop+asm.Unreachable, "rl_slot", "unreachable")
	add("leases never given back", inSnapshot, leased, "keeps blocks (")
	add("more leases than anything needs", inRun, times(5000, leased), "it keeps 64 leases of blocks and asks for another")
	add("releases what it has not", unnoticed, times(3, token+asm.Call(release)+asm.Drop)+passOn())
	add("releases twice what it has once", unnoticed, leased+times(2, token+asm.Call(release)+asm.Drop)+passOn())
	add("emits after its release", unnoticed, leased+token+asm.Call(release)+asm.Drop+passOn())
	add("a flood of messages", unnoticed, times(5000, passOn()))
	add("a flood of timers", unnoticed, times(1000, asm.Const64(0)+asm.Const64(1)+asm.Call(timer)+asm.Drop))
	add("a flood of metrics", unnoticed, times(1000, asm.Const(wordsAt)+asm.Get(2)+asm.Const(0x01010101)+asm.Add+asm.Store(0)+
		asm.Const(1)+asm.Const(wordsAt)+asm.Const(4)+asm.Call(declare)+asm.Drop))
	add("a flood of lines", unnoticed, times(1000, asm.Const(0)+asm.Const(wordsAt)+asm.Const(16)+asm.Call(logLine)))
	list = append(list, attack{kind: "slot", name: "a flood of questions", module: withAsk(slotOf(times(5000, askQuestion()+asm.Drop))).bytes(), at: unnoticed})
	add("growth while blocks are mapped", unnoticed, asm.Const(3)+asm.MemoryGrow+asm.Drop+passOn())
	add("writes where it may only read", unnoticed, first+asm.Const(0x3f000000)+asm.Store(0)+passOn())
	add("writes all over its memory", inRun, first+asm.Const(0x5a)+asm.Const(4096)+asm.MemoryFill+
		asm.Const(0)+asm.Const(0x5a)+asm.MemorySize+asm.Const(16)+asm.Shl+asm.MemoryFill, "rl_slot", "out of bounds memory access")
	add("writes before and behind its window", unnoticed, first+asm.Const(-4)+asm.Add+asm.Const(-1)+asm.Store(0)+first+asm.Const(-1)+asm.Store(4096))
	add("asks to stop again and again", unnoticed, times(100, asm.Const(1)+asm.Call(stop)+asm.Drop))
	add("a column for writing that nobody grants", unnoticed, token+asm.Const(wordsAt)+asm.Const(5)+asm.Const(1)+asm.Const(columnAt)+asm.Call(column)+asm.Drop)
	add("a binding over its message", unnoticed, token+asm.Const(wordsAt)+asm.Const(5)+asm.Const(0)+asm.Get(1)+asm.Call(column)+asm.Drop)
	add("calls its timer's host function from a timer's call", unnoticed, asm.Const64(0)+asm.Const64(0)+asm.Call(timer)+asm.Call(cancel)+asm.Drop)
	for offset := int32(0); offset < hostabi.ComponentMessageBytes; offset += 4 {
		for _, v := range []int32{0, -1, 77, math.MinInt32} {
			add(fmt.Sprintf("message with %d at byte %d", v, offset), unnoticed, sends(offset, asm.Const(v)))
		}
	}
	for n, export := range []string{hostabi.ExportConfigure, hostabi.ExportStartUp, hostabi.ExportTimer, hostabi.ExportStop} {
		every := asm.Const(0) + asm.Const(sentAt) + asm.Call(emit) + asm.Drop + asm.Const(513) + asm.Call(lease) + asm.Drop +
			asm.Const64(int64(n)) + asm.Const64(1) + asm.Call(timer) + asm.Drop + asm.Const(1) + asm.Call(stop) + asm.Drop +
			asm.Const(513) + asm.Const(wordsAt) + asm.Const(5) + asm.Const(0) + asm.Const(columnAt) + asm.Call(column) + asm.Drop
		b := built{functions: map[string]asm.Code{export: every + asm.Const(0)}}
		list = append(list, attack{kind: "slot", name: "every import from " + export, module: b.bytes()})
	}
	return list
}

// manifestAttacks have one field of the manifest wrong each.
func manifestAttacks() (list []attack) {
	text := described(reads("reward"))
	const signal, slot, column = hostabi.ComponentSpecBytes, hostabi.ComponentSpecBytes + hostabi.PortBytes, hostabi.ComponentSpecBytes + 2*hostabi.PortBytes
	add := func(name string, at, width int, value uint64) {
		wrong := slices.Clone(text)
		for i := range width {
			wrong[at+i] = byte(value >> (8 * i))
		}
		says := "describes itself wrongly"
		if name == "needs" || name == "abi_major" && value > 1 {
			says = "needs a later host than this rlhost"
		}
		list = append(list, attack{kind: "manifest", name: fmt.Sprint(name, " = ", value), module: built{manifest: wrong}.bytes(), at: inConfigure, says: []string{says}})
	}
	for _, c := range []struct {
		name      string
		at, width int
		values    []uint64
	}{
		{"size", 0, 4, []uint64{0, 95, 97, 1 << 20, math.MaxUint32}}, {"abi_major", 4, 2, []uint64{0, 2, 65535}},
		{"needs", 8, 8, []uint64{1, 1 << 63}}, {"port_bytes", 16, 2, []uint64{0, 39, 65535}}, {"column_bytes", 18, 2, []uint64{0, 23, 65535}},
		{"message_bytes", 20, 2, []uint64{0, 63, 65, 65535}}, {"binding_bytes", 22, 2, []uint64{0, 56, 68, 65535}},
		{"signals", 24, 4, []uint64{257, math.MaxUint32}}, {"slots", 28, 4, []uint64{0, 257, math.MaxUint32}}, {"columns", 32, 4, []uint64{257, math.MaxUint32}},
		{"strings_at", 36, 4, []uint64{1, math.MaxUint32}}, {"strings_len", 40, 4, []uint64{0, math.MaxUint32}},
		{"name", 48, 4, []uint64{0, math.MaxUint32}}, {"version", 52, 4, []uint64{math.MaxUint32}},
		{"doc", 56, 4, []uint64{math.MaxUint32}}, {"licence", 60, 4, []uint64{math.MaxUint32}},
		{"reserved of the head", 72, 4, []uint64{1}}, {"last reserved of the head", 92, 4, []uint64{1 << 31}},
		{"name of the signal", signal, 4, []uint64{0, math.MaxUint32}}, {"payload of the signal", signal + 4, 4, []uint64{0, math.MaxUint32}},
		{"doc of the signal", signal + 8, 4, []uint64{math.MaxUint32}}, {"flags of the signal", signal + 12, 4, []uint64{4, 1 << 31}},
		{"reserved of the signal", signal + 24, 4, []uint64{1}}, {"name of the slot", slot, 4, []uint64{0, math.MaxUint32}},
		{"payload of the slot", slot + 4, 4, []uint64{0, math.MaxUint32}}, {"flags of the slot", slot + 12, 4, []uint64{8}},
		{"reserved of the slot", slot + 36, 4, []uint64{1}}, {"slot of the column", column, 4, []uint64{1, math.MaxUint32}},
		{"name of the column", column + 4, 4, []uint64{0, math.MaxUint32}}, {"flags of the column", column + 8, 4, []uint64{4, 1 << 31}},
		{"dtype of the column", column + 12, 1, []uint64{99, 255}}, {"reserved of the column", column + 13, 1, []uint64{1}},
		{"last reserved of the column", column + 20, 4, []uint64{1}},
	} {
		for _, v := range c.values {
			add(c.name, c.at, c.width, v)
		}
	}
	for name, wrong := range map[string]func(m *hostabi.Manifest){
		"an escape in its name":         func(m *hostabi.Manifest) { m.Name = "\x1b[2J@1" },
		"two lines in its name":         func(m *hostabi.Manifest) { m.Name = "a\nb@1" },
		"its name from right to left":   func(m *hostabi.Manifest) { m.Name = "\u202ea@1" },
		"an escape in its version":      func(m *hostabi.Manifest) { m.Name = "a@\x1b[2J" },
		"an escape in its doc":          func(m *hostabi.Manifest) { m.Doc = "\x1b[2J" },
		"bytes that are no text":        func(m *hostabi.Manifest) { m.Doc = "\xff\xfe" },
		"a doc of a million bytes":      func(m *hostabi.Manifest) { m.Doc = strings.Repeat("d", 900_000) },
		"a name of a port with spaces":  func(m *hostabi.Manifest) { m.Slots[0].Name = "in out" },
		"a payload with an escape":      func(m *hostabi.Manifest) { m.Slots[0].Payload = "\x1b[2J" },
		"a column with an escape":       func(m *hostabi.Manifest) { m.Columns[0].Name = "\x1b[2J" },
		"two slots of one name":         func(m *hostabi.Manifest) { m.Slots = append(m.Slots, m.Slots[0]) },
		"a column twice":                func(m *hostabi.Manifest) { m.Columns = append(m.Columns, m.Columns[0]) },
		"a port more than there may be": func(m *hostabi.Manifest) { m.Signals = slices.Repeat(m.Signals, hostabi.MaxPorts+1) },
	} {
		m, err := hostabi.ParseManifest(text)
		if err != nil {
			panic(err)
		}
		wrong(&m)
		list = append(list, attack{kind: "manifest", name: name, module: built{manifest: m.Describe(), pages: 32}.bytes(), at: inConfigure,
			says: []string{"describes itself wrongly"}})
	}
	slices.SortFunc(list, func(a, b attack) int { return strings.Compare(a.name, b.name) }) // a map has no order
	return list
}

// moduleAttacks are refused before anything of them runs, or as they start.
func moduleAttacks() (list []attack) {
	add := func(name string, b built, says ...string) {
		list = append(list, attack{kind: "module", name: name, module: b.bytes(), at: inLoading, says: says})
	}
	with := func(after func(m *asm.Module)) built { return built{after: after} }
	for _, f := range hostabi.ComponentExports() {
		if f.Required && f.Name != hostabi.ExportComponentABI {
			add("without "+f.Name, built{functions: map[string]asm.Code{f.Name: absent}}, "does not export "+f.Name)
		}
		other := hostabi.Function{Params: []hostabi.ValueType{hostabi.TypeI64}}
		add("another signature of "+f.Name, built{functions: map[string]asm.Code{f.Name: asm.Unreachable},
			signature: map[string]hostabi.Function{f.Name: other}}, "exports "+f.Name+"(i64)")
	}
	add("an import that does not exist", built{imports: func(m *asm.Module) { m.Import(hostabi.ImportComponent, "shell", nil, nil) }}, "rl_component.shell, which this host does not have")
	add("an import of the host's own", built{imports: func(m *asm.Module) { m.Import("rl", "yield", nil, nil) }}, "rl.yield, which is the host's own")
	add("an import of environments", built{imports: func(m *asm.Module) {
		m.Import("rl", "metric_env", []byte{asm.I32, asm.I32, asm.I32, asm.F64, asm.I32}, nil)
	}}, "rl.metric_env, which this host does not have")
	add("an import with a name that steers the terminal", built{imports: func(m *asm.Module) { m.Import("\x1b[2J", "\a", nil, nil) }}, `\x1b[2J`)
	add("an import with another signature", built{imports: func(m *asm.Module) { m.Import(hostabi.ImportComponent, "emit", nil, nil) }}, "imports rl_component.emit()")
	add("an imported memory", built{imports: func(m *asm.Module) { m.ImportMemory("env", "memory") }}, "")
	add("a program", with(func(m *asm.Module) { m.Func("_start", nil, nil, 0) }), "is a command module")
	add("the marker of a later version", built{functions: map[string]asm.Code{hostabi.ExportComponentABI: absent},
		after: func(m *asm.Module) { m.Func("rl_component_v9", nil, nil, 0) }}, "needs ABI 9")
	add("a name of the host's own", with(func(m *asm.Module) { m.Func("__rl_fuel", nil, nil, 0) }), "reserved for the host")
	add("a memory of 4 GiB", built{pages: 65536}, "begins with 4096 MiB of memory, its limit is 4 MiB")
	add("a start function that loops", with(func(m *asm.Module) { m.Start(m.Func("", nil, nil, 0, forever)) }), "its start function", "stopped after its limit")
	add("a start function that traps", with(func(m *asm.Module) { m.Start(m.Func("", nil, nil, 0, asm.Unreachable)) }), "its start function", "unreachable")
	add("a start function that exits", built{wasi: true, after: func(m *asm.Module) { m.Start(m.Func("", nil, nil, 0, asm.Const(0)+asm.Call(exit))) }}, "its start function", "exited")
	add("data beyond its memory", with(func(m *asm.Module) { m.Data(1<<30, []byte("x")) }), "its data segments", "out of bounds")
	add("50,000 locals in each of a thousand functions", with(func(m *asm.Module) {
		for range 1000 {
			m.Func("", nil, nil, 50_000)
		}
	}), "locals")
	add("a table of a billion entries", with(func(m *asm.Module) { m.Table(1 << 30) }), "entries in a table")
	add("a hundred thousand globals", with(func(m *asm.Module) {
		for range 100_000 {
			m.Global(true, 0)
		}
	}), "globals")
	add("a hundred thousand blocks within blocks", with(func(m *asm.Module) {
		m.Func("", nil, nil, 0, asm.Repeat(100_000, asm.Block, asm.Void), asm.Repeat(100_000, asm.End))
	}), "blocks within blocks")
	add("a branch to ten million places", with(func(m *asm.Module) { m.Func("", nil, nil, 0, asm.Const(0)+asm.BrTable(make([]uint32, 10_000_000)...)) }), "targets in tables of branches")
	add("code that is not valid", with(func(m *asm.Module) { m.Func("", nil, nil, 0, asm.Add) }), "")
	for _, cut := range []int{0, 4, 9, 100} {
		list = append(list, attack{kind: "module", name: fmt.Sprint("the first ", cut, " bytes"), module: built{}.bytes()[:cut], at: inLoading})
	}
	for _, f := range []string{module.GrantLog, module.GrantMetric, module.GrantStop} {
		granted := slices.DeleteFunc(slices.Clone(everything), func(g string) bool { return g == f })
		list = append(list, attack{kind: "module", name: "without the grant of " + f, module: built{}.bytes(), grants: granted, at: inLoading, says: []string{"which is not granted"}})
	}
	return list
}

// textAttacks say what would steer a terminal or pass for lines of the host's.
func textAttacks() (list []attack) {
	const escape = "\x1b[2J\x07\u202e\r\nrlhost: all is well\x00"
	n := int32(len(escape))
	words := func(m *asm.Module) { m.Data(wordsAt, []byte(escape)) }
	says := asm.Get(0) + asm.Const(wordsAt) + asm.Const(n) + asm.MemoryCopy + asm.Const(n)
	with := func(export string, code asm.Code) []byte {
		return built{functions: map[string]asm.Code{hostabi.ExportLastError: says, export: code}, after: words}.bytes()
	}
	list = append(list,
		attack{kind: "text", name: "of a trap", module: with(hostabi.ExportSlot, asm.Unreachable), at: inRun, says: []string{"rl_slot", "unreachable"}},
		attack{kind: "text", name: "of a status", module: with(hostabi.ExportSlot, asm.Const(-1)), at: endsRun, says: []string{"rl_slot"}},
		attack{kind: "text", name: "of a refused table", module: with(hostabi.ExportConfigure, asm.Const(int32(hostabi.StatusConfig))), at: inConfigure, says: []string{"refused"}},
		attack{kind: "text", name: "of a failed start", module: with(hostabi.ExportStartUp, asm.Const(-1)), at: inStart, says: []string{"rl_start"}},
		attack{kind: "text", name: "of a line", module: with(hostabi.ExportSlot, asm.Const(3)+asm.Const(wordsAt)+asm.Const(n)+asm.Call(logLine)+asm.Const(0))},
		attack{kind: "text", name: "of a metric", module: with(hostabi.ExportSlot, asm.Const(1)+asm.Const(wordsAt)+asm.Const(n)+asm.Call(declare)+asm.Drop+asm.Const(0))},
	)
	named := built{functions: map[string]asm.Code{hostabi.ExportSlot: asm.Unreachable}, after: func(m *asm.Module) {
		m.Name(slices.Repeat([]string{escape}, len(hostabi.ComponentImports())+len(hostabi.ComponentExports()))...)
	}}
	return append(list, attack{kind: "text", name: "of a function's name", module: named.bytes(), at: inRun, says: []string{"rl_slot", "unreachable"}})
}
