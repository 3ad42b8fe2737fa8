//go:build amd64

package kern

import "unsafe"

// The arguments of the assembly: 8 bytes a field, in the order that gen has. Assembly reads them and writes none.
// Pointers are into slices that the caller's description holds, so they stay alive.

type gemmArgs struct {
	k, tiles     int
	a            unsafe.Pointer
	aRow, aCol   int // bytes, like all strides here
	b            unsafe.Pointer
	bRow, bPanel int
	c            unsafe.Pointer
	cRow, cPanel int
	bias         unsafe.Pointer
	start        int // 0: zero, 1: bias, 2: C
	h            unsafe.Pointer
}

type rowsArgs struct {
	rows, bytes int
	x           unsafe.Pointer
	xRow        int
	h           unsafe.Pointer
	hRow        int
}

type headArgs struct {
	rows, k int
	x       unsafe.Pointer
	xRow    int
	w       unsafe.Pointer
	bias    unsafe.Pointer
	out     unsafe.Pointer
}

type sampleArgs struct {
	groups, actions int
	logits          unsafe.Pointer
	ld              int
	scratch         unsafe.Pointer
	action, logProb unsafe.Pointer
	seed, step      uint64
	env, greedy     int
}

type lossArgs struct {
	rows, actions                                            int
	logits                                                   unsafe.Pointer
	ld                                                       int
	scratch                                                  unsafe.Pointer
	action, oldLogProb, oldValue, advantage, ret, newLogProb unsafe.Pointer
	value, sums, numbers                                     unsafe.Pointer
}

type adamArgs struct {
	bytes                       int
	params, m, v, grad, numbers unsafe.Pointer
}

type sumArgs struct {
	bytes     int
	x, result unsafe.Pointer
}

type columnsArgs struct {
	rows, bytes int
	x           unsafe.Pointer
	xRow        int
	out         unsafe.Pointer
}

type transposeArgs struct {
	blocks   int
	from, to unsafe.Pointer
	toBlock  int
}
