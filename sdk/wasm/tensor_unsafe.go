package wasm

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// tensor is the place of one tensor. Packed rows are used in place; others go through a scratch of packed rows.
type tensor[T any] struct {
	elems   int            // of an environment
	row     int            // elements of an agent
	base    unsafe.Pointer // memory that rl_alloc donated; the donation keeps it alive
	strideT uintptr
	env     uintptr
	agent   uintptr
	elem    uintptr
	packed  bool
	envs    int
	scratch []T // [envs, elems], made when rows first turn out not to be packed

	rowBase      unsafe.Pointer // where packed rows are: in the bound memory, or in the scratch
	rowT, rowEnv uintptr
}

func newTensor[T any](d described, envs int) tensor[T] {
	n := 1
	for _, dim := range d.Shape[:d.Rank] {
		n *= int(dim)
	}
	return tensor[T]{elems: n * d.agents, row: n, envs: envs}
}

// bind takes the place of the tensor, none where the host does not want it; false if it is misaligned, or missing though it is needed.
func (x *tensor[T]) bind(b hostabi.Binding, needed bool) bool {
	size := uint32(unsafe.Sizeof(*new(T)))
	if (b.Ptr|b.StrideT|b.StrideEnv|b.StrideAgent|b.StrideElem)&(size-1) != 0 || (needed && b.Ptr == 0) {
		return false
	}
	if b.Ptr == 0 {
		x.base = nil
		return true
	}
	x.base = pointer(b.Ptr)
	x.strideT, x.env, x.elem = uintptr(b.StrideT), uintptr(b.StrideEnv), uintptr(b.StrideElem)
	x.packed = b.StrideEnv == size*uint32(x.elems) && (b.StrideElem == size || x.row == 1)
	if x.elems > x.row {
		x.agent = uintptr(b.StrideAgent)
		x.packed = x.packed && b.StrideAgent == size*uint32(x.row)
	}
	if x.packed {
		x.rowBase, x.rowT, x.rowEnv = x.base, x.strideT, x.env
		return true
	}
	if x.scratch == nil {
		x.scratch = make([]T, x.envs*x.elems)
	}
	x.rowBase, x.rowT, x.rowEnv = unsafe.Pointer(unsafe.SliceData(x.scratch)), 0, uintptr(size)*uintptr(x.elems)
	return true
}

// at returns the place of an element. The host binds only places within memory that it holds.
func (x *tensor[T]) at(t uint32, env, elem int) *T {
	place := uintptr(t)*x.strideT + uintptr(env)*x.env
	if x.elems > x.row {
		place += uintptr(elem/x.row) * x.agent
		elem %= x.row
	}
	return (*T)(unsafe.Add(x.base, place+uintptr(elem)*x.elem))
}

// rows returns count packed rows from environment first on. If they are not in the bound memory, read fills them from there, and write
// copies them back. It is small enough to be inlined.
func (x *tensor[T]) rows(t uint32, first, count int) []T {
	return unsafe.Slice((*T)(unsafe.Add(x.rowBase, uintptr(t)*x.rowT+uintptr(first)*x.rowEnv)), count*x.elems)
}

// read fills packed rows from the bound memory, also if it has them at another time.
func (x *tensor[T]) read(t uint32, first int, rows []T) {
	for k := range rows {
		rows[k] = *x.at(t, first+k/x.elems, k%x.elems)
	}
}

// write puts packed rows into the bound memory, unless they are in it already.
func (x *tensor[T]) write(t uint32, first int, rows []T) {
	if x.packed {
		return
	}
	for k := range rows {
		*x.at(t, first+k/x.elems, k%x.elems) = rows[k]
	}
}

// keep writes the rows of agents from … to-1 of an environment, out of rows of all its agents, at time 0.
func (x *tensor[T]) keep(env, from, to int, rows []T) {
	first, end := from*x.row, to*x.row
	if x.packed {
		copy(unsafe.Slice(x.at(0, env, 0), x.elems)[first:end], rows[first:end])
		return
	}
	for k := first; k < end; k++ {
		*x.at(0, env, k) = rows[k]
	}
}

// eight returns flags i to i+7, which must be there, as one number.
func eight(flags []uint8, i int) uint64 {
	return *(*uint64)(unsafe.Pointer(&flags[i]))
}

// together returns the bits of all choices. They are read in pairs: a round of a loop costs a guest in Go as much as eight reads.
func together(choices []uint32) (all uint32) {
	var pairs uint64
	for ; len(choices) >= 16; choices = choices[16:] {
		p := (*[8]uint64)(unsafe.Pointer(unsafe.SliceData(choices)))
		pairs |= p[0] | p[1] | p[2] | p[3] | p[4] | p[5] | p[6] | p[7]
	}
	for _, a := range choices {
		all |= a
	}
	return all | uint32(pairs) | uint32(pairs>>32)
}

// asUint32 views discrete actions; A is int32 wherever it is called.
func asUint32[A any](actions []A) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(actions))), len(actions))
}

// bytesOf views a struct of the ABI, which has no padding and no pointers, as bytes in memory.
func bytesOf[T hostabi.Spec | hostabi.GroupDesc | hostabi.TensorDesc | hostabi.ArgDesc](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}
