package wasm

import (
	"maps"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// description is what built guests say of themselves: two actions, two observed numbers.
func description() []byte {
	spec := hostabi.EnvSpec{Name: "built@1", ABI: hostabi.EnvABI, Autoreset: hostabi.NextStep, Tensors: []hostabi.Tensor{
		{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2},
		{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}},
		{Role: hostabi.RoleReward, DType: hostabi.F32},
		{Role: hostabi.RoleTerminated, DType: hostabi.U8, High: 1},
		{Role: hostabi.RoleTruncated, DType: hostabi.U8, High: 1},
	}}
	return spec.Describe()
}

// Places in the memory of built guests. Their first page is theirs, allocations begin at the second.
const (
	describedAt = 1024
	bindingsAt  = 4096 // the bindings, copied by rl_bind
	counterAt   = 8192 // calls of rl_step
	wordsAt     = 8200 // text for rl_last_error
	heapAt      = 65536
)

// built is a guest under construction. Its functions can be replaced, or left out by an empty string; imports and
// other functions are added by the fields before and after.
type built struct {
	functions map[string]asm.Code
	locals    uint32
	pages     uint32
	before    func(m *asm.Module) // imports
	after     func(m *asm.Module)
}

// allocate is the body of a rl_alloc that never gives anything back: local 0 is the size, 1 the alignment, 2 the
// result. Global 0 is the first free address.
func allocate() asm.Code {
	return asm.GlobalGet(0) + asm.Get(1) + asm.Add + asm.Const(-1) + asm.Add + asm.Const(0) + asm.Get(1) + asm.Sub + asm.And +
		asm.Set(2) + asm.Get(2) + asm.Get(0) + asm.Add + asm.GlobalSet(0) +
		// grow by what is missing, rounded up
		asm.Block + asm.Void + asm.Loop + asm.Void +
		asm.MemorySize + asm.Const(16) + asm.Shl + asm.GlobalGet(0) + asm.GeU + asm.BrIf(1) +
		asm.Const(1) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.If + asm.Void + asm.Const(0) + asm.Return + asm.End +
		asm.Br(0) + asm.End + asm.End + asm.Get(2)
}

// standard is a correct guest: rl_step counts its calls and writes the count as the reward of environment 0.
func standard() map[string]asm.Code {
	copyDescription := asm.Get(3) + asm.Const(int32(len(description()))) + asm.GeU + asm.If + asm.Void +
		asm.Get(2) + asm.Const(describedAt) + asm.Const(int32(len(description()))) + asm.MemoryCopy + asm.End +
		asm.Const(int32(len(description())))
	count := asm.Const(counterAt) + asm.Const(counterAt) + asm.Load(0) + asm.Const(1) + asm.Add + asm.Store(0)
	// rewards are the third tensor: address + t * stride
	reward := asm.Const(bindingsAt) + asm.Load(2*hostabi.BindingBytes) +
		asm.Const(bindingsAt) + asm.Load(2*hostabi.BindingBytes+4) + asm.Get(1) + asm.Mul + asm.Add
	return map[string]asm.Code{
		hostabi.ExportABI:       "",
		hostabi.ExportDescribe:  copyDescription,
		hostabi.ExportAlloc:     allocate(),
		hostabi.ExportFree:      "",
		hostabi.ExportCreate:    asm.Const(0),
		hostabi.ExportBind:      asm.Const(bindingsAt) + asm.Get(1) + asm.Const(5*hostabi.BindingBytes) + asm.MemoryCopy + asm.Const(0),
		hostabi.ExportReset:     asm.Const(0),
		hostabi.ExportStep:      count + reward + asm.Const(counterAt) + asm.Load(0) + asm.Store(0) + asm.Const(0),
		hostabi.ExportLastError: asm.Get(0) + asm.Const(wordsAt) + asm.Const(16) + asm.MemoryCopy + asm.Const(wordsAt) + asm.Load(0) + asm.Eqz + asm.If + "\x7f" + asm.Const(0) + asm.Else + asm.Const(16) + asm.End,
	}
}

// bytes assembles the guest.
func (b built) bytes() []byte {
	m := asm.New(max(b.pages, 1))
	if b.before != nil {
		b.before(m)
	}
	m.Global(true, heapAt)
	functions := standard()
	maps.Copy(functions, b.functions)
	for _, f := range hostabi.EnvExports() {
		code, ok := functions[f.Name]
		if !ok || code == absent {
			continue
		}
		m.Func(f.Name, valueTypes(f.Params), valueTypes(f.Results), 1+b.locals, code)
	}
	m.Data(describedAt, description())
	if b.after != nil {
		b.after(m)
	}
	return m.Bytes()
}

// twoSlices is a limit that ends a call when it has burned its second slice of fuel, whatever else the machine does:
// time counts from the first slice on.
const twoSlices = time.Nanosecond

// absent leaves a function out.
const absent asm.Code = "absent"
