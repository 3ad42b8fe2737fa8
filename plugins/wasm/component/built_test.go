package component

import (
	"maps"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// Places in the memory of built guests. Their first page is theirs, allocations begin at the second.
const (
	manifestAt = 1024
	sentAt     = 8192  // a ComponentMessage of the guest's own
	columnAt   = 12288 // a separate ColumnBinding
	noteAt     = 16384 // what it counts
	wordsAt    = 20480 // text for rl_last_error
	heapAt     = 65536
)

// The host's functions that built guests import, by their index.
const (
	emit = iota
	lease
	release
	column
	declare
	report
	timer
	cancel
	stop
	logLine
	logEnabled
	askOther
	exit // of WASI, for guests that have it
)

// built is a guest under construction. Its functions can be replaced, or left out.
type built struct {
	functions map[string]asm.Code
	manifest  []byte
	locals    uint32
	wasi      bool
	recurses  string                      // export whose first act is to call itself
	pages     uint32                      // of memory at the beginning, 0: two
	imports   func(m *asm.Module)         // adds imports
	after     func(m *asm.Module)         // adds anything else
	signature map[string]hostabi.Function // of exports, where it is not as it should be
}

// absent leaves a function out.
const absent asm.Code = "absent"

// described returns the manifest of a guest with a signal out and a slot in, which looks at those columns.
func described(columns ...hostabi.ManifestColumn) []byte {
	m := hostabi.Manifest{Name: "built@1", Columns: columns,
		Signals: []hostabi.ManifestPort{{Name: "out", Payload: "trajectory", Doc: "what came"}},
		Slots:   []hostabi.ManifestPort{{Name: "in", Payload: "trajectory", Doc: "what comes"}}}
	return m.Describe()
}

// reads is the description of a column that is read.
func reads(name string) hostabi.ManifestColumn { return hostabi.ManifestColumn{Name: name} }

// allocate is the body of a rl_alloc that never gives anything back: local 0 is the size, 1 the alignment, 2 the result.
// Global 0 is the first free address.
func allocate() asm.Code {
	return asm.GlobalGet(0) + asm.Get(1) + asm.Add + asm.Const(-1) + asm.Add + asm.Const(0) + asm.Get(1) + asm.Sub + asm.And +
		asm.Set(2) + asm.Get(2) + asm.Get(0) + asm.Add + asm.GlobalSet(0) +
		asm.Block + asm.Void + asm.Loop + asm.Void +
		asm.MemorySize + asm.Const(16) + asm.Shl + asm.GlobalGet(0) + asm.GeU + asm.BrIf(1) +
		asm.Const(1) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.If + asm.Void + asm.Const(0) + asm.Return + asm.End +
		asm.Br(0) + asm.End + asm.End + asm.Get(2)
}

// count adds one to the guest's counter.
func count() asm.Code {
	return asm.Const(noteAt) + asm.Const(noteAt) + asm.Load(0) + asm.Const(1) + asm.Add + asm.Store(0)
}

// passOn emits the message that came.
func passOn() asm.Code { return asm.Const(0) + asm.Get(1) + asm.Call(emit) + asm.Drop }

// standard is a correct guest: it counts its messages and passes them on. Its state is the count.
func standard(manifest []byte) map[string]asm.Code {
	n := int32(len(manifest))
	return map[string]asm.Code{
		hostabi.ExportComponentABI: "",
		hostabi.ExportAlloc:        allocate(),
		hostabi.ExportFree:         "",
		hostabi.ExportConfigure:    asm.Const(0),
		hostabi.ExportManifest: asm.Get(1) + asm.Const(n) + asm.GeU + asm.If + asm.Void +
			asm.Get(0) + asm.Const(manifestAt) + asm.Const(n) + asm.MemoryCopy + asm.End + asm.Const(n),
		hostabi.ExportStartUp: asm.Const(0),
		hostabi.ExportSlot:    count() + passOn() + asm.Const(0),
		hostabi.ExportTimer:   asm.Const(0),
		hostabi.ExportSnapshot: asm.Get(1) + asm.Const(4) + asm.GeU + asm.If + asm.Void +
			asm.Get(0) + asm.Const(noteAt) + asm.Const(4) + asm.MemoryCopy + asm.End + asm.Const(4),
		hostabi.ExportRestore:   asm.Const(noteAt) + asm.Get(0) + asm.Const(4) + asm.MemoryCopy + asm.Const(0),
		hostabi.ExportStop:      asm.Const(0),
		hostabi.ExportLastError: asm.Get(0) + asm.Const(wordsAt) + asm.Const(16) + asm.MemoryCopy + asm.Const(16),
	}
}

// bytes assembles the guest.
func (b built) bytes() []byte {
	m := asm.New(max(b.pages, 2))
	for _, f := range hostabi.ComponentImports() {
		m.Import(hostabi.ImportComponent, f.Name, valueTypes(f.Params), valueTypes(f.Results))
	}
	next := uint32(len(hostabi.ComponentImports()))
	if b.wasi {
		m.Import("wasi_snapshot_preview1", "proc_exit", asm.I32s(1), nil)
		next++
	}
	if b.imports != nil {
		b.imports(m)
	}
	m.Global(true, heapAt)
	manifest := b.manifest
	if manifest == nil {
		manifest = described()
	}
	functions := standard(manifest)
	maps.Copy(functions, b.functions)
	for _, f := range hostabi.ComponentExports() {
		code, ok := functions[f.Name]
		if !ok || code == absent {
			continue
		}
		if f.Name == b.recurses {
			code = again(next, f) + code
		}
		if other, ok := b.signature[f.Name]; ok {
			f.Params, f.Results = other.Params, other.Results
		}
		m.Func(f.Name, valueTypes(f.Params), valueTypes(f.Results), 1+b.locals, code)
		next++
	}
	m.Data(manifestAt, manifest)
	m.Data(wordsAt, []byte("words of a guest"))
	if b.after != nil {
		b.after(m)
	}
	return m.Bytes()
}

// again calls a function with the arguments of its caller, which has the same signature.
func again(index uint32, f hostabi.Function) (code asm.Code) {
	for i := range f.Params {
		code += asm.Get(uint32(i))
	}
	code += asm.Call(index)
	if len(f.Results) > 0 {
		code += asm.Drop
	}
	return code
}

func valueTypes(types []hostabi.ValueType) []byte {
	out := make([]byte, len(types))
	for i, t := range types {
		out[i] = byte(t)
	}
	return out
}

// slotOf returns a guest whose rl_slot does that and returns 0.
func slotOf(code asm.Code, columns ...hostabi.ManifestColumn) built {
	return built{functions: map[string]asm.Code{hostabi.ExportSlot: count() + code + asm.Const(0)}, manifest: described(columns...)}
}

// forever is a loop without an end, bomb grows the memory until that fails, and again.
const forever = asm.Loop + asm.Void + "\x0c\x00" + asm.End

func bomb() asm.Code {
	return asm.Loop + asm.Void + asm.Const(64) + asm.MemoryGrow + asm.Drop + asm.Br(0) + asm.End
}
