// Package wasmtest makes guests for tests of the packages around.
package wasmtest

import (
	"maps"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// Description is what built guests say of themselves: two actions, two observed numbers.
func Description() []byte {
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
	DescribedAt = 1024
	BindingsAt  = 4096 // the bindings, copied by rl_bind
	CounterAt   = 8192 // calls of rl_step
	WordsAt     = 8200 // text for rl_last_error
	HeapAt      = 65536
)

// Guest is a guest under construction. Its functions can be replaced, or left out by an empty string; imports and
// other functions are added by the fields Before and After.
type Guest struct {
	Functions map[string]asm.Code
	Locals    uint32              // of each function, besides its first
	Pages     uint32              // of memory, 1 at least
	Before    func(m *asm.Module) // imports
	After     func(m *asm.Module)
}

// Allocate is the body of a rl_alloc that never gives anything back: local 0 is the size, 1 the alignment, 2 the
// result. Global 0 is the first free address.
func Allocate() asm.Code {
	return asm.GlobalGet(0) + asm.Get(1) + asm.Add + asm.Const(-1) + asm.Add + asm.Const(0) + asm.Get(1) + asm.Sub + asm.And +
		asm.Set(2) + asm.Get(2) + asm.Get(0) + asm.Add + asm.GlobalSet(0) +
		// grow by the missing bytes, rounded up
		asm.Block + asm.Void + asm.Loop + asm.Void +
		asm.MemorySize + asm.Const(16) + asm.Shl + asm.GlobalGet(0) + asm.GeU + asm.BrIf(1) +
		asm.Const(1) + asm.MemoryGrow + asm.Const(-1) + asm.Eq + asm.If + asm.Void + asm.Const(0) + asm.Return + asm.End +
		asm.Br(0) + asm.End + asm.End + asm.Get(2)
}

// Standard is the code of a correct guest's functions: rl_step counts its calls and writes the count as the reward of environment 0.
func Standard() map[string]asm.Code {
	copyDescription := asm.Get(3) + asm.Const(int32(len(Description()))) + asm.GeU + asm.If + asm.Void +
		asm.Get(2) + asm.Const(DescribedAt) + asm.Const(int32(len(Description()))) + asm.MemoryCopy + asm.End +
		asm.Const(int32(len(Description())))
	count := asm.Const(CounterAt) + asm.Const(CounterAt) + asm.Load(0) + asm.Const(1) + asm.Add + asm.Store(0)
	// rewards are the third tensor: address + t * stride
	reward := asm.Const(BindingsAt) + asm.Load(2*hostabi.BindingBytes) +
		asm.Const(BindingsAt) + asm.Load(2*hostabi.BindingBytes+4) + asm.Get(1) + asm.Mul + asm.Add
	return map[string]asm.Code{
		hostabi.ExportABI:       "",
		hostabi.ExportDescribe:  copyDescription,
		hostabi.ExportAlloc:     Allocate(),
		hostabi.ExportFree:      "",
		hostabi.ExportCreate:    asm.Const(0),
		hostabi.ExportBind:      asm.Const(BindingsAt) + asm.Get(1) + asm.Const(5*hostabi.BindingBytes) + asm.MemoryCopy + asm.Const(0),
		hostabi.ExportReset:     asm.Const(0),
		hostabi.ExportStep:      count + reward + asm.Const(CounterAt) + asm.Load(0) + asm.Store(0) + asm.Const(0),
		hostabi.ExportLastError: asm.Get(0) + asm.Const(WordsAt) + asm.Const(16) + asm.MemoryCopy + asm.Const(WordsAt) + asm.Load(0) + asm.Eqz + asm.If + "\x7f" + asm.Const(0) + asm.Else + asm.Const(16) + asm.End,
	}
}

// Bytes assembles the guest.
func (b Guest) Bytes() []byte {
	m := asm.New(max(b.Pages, 1))
	if b.Before != nil {
		b.Before(m)
	}
	m.Global(true, HeapAt)
	functions := Standard()
	maps.Copy(functions, b.Functions)
	for _, f := range hostabi.EnvExports() {
		code, ok := functions[f.Name]
		if !ok || code == Absent {
			continue
		}
		m.Func(f.Name, encoded(f.Params), encoded(f.Results), 1+b.Locals, code)
	}
	m.Data(DescribedAt, Description())
	if b.After != nil {
		b.After(m)
	}
	return m.Bytes()
}

func encoded(types []hostabi.ValueType) (b []byte) {
	for _, t := range types {
		b = append(b, byte(t))
	}
	return b
}

// TwoSlices is a limit that ends a call when it has burned its second slice of fuel, whatever else the machine does:
// time counts from the first slice on.
const TwoSlices = time.Nanosecond

// Absent leaves a function out.
const Absent asm.Code = "Absent"
