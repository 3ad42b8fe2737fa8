//go:build amd64

package kern

import "unsafe"

// The arguments of the assembly, 8 bytes a field, which reads them and writes none; gen takes their places from here.
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
	start        int            // 0: zero, 1: bias, 2: C
	h            unsafe.Pointer // laid out as C; nil unless C is to be multiplied with 1 - H²
}

type rowsArgs struct {
	rows, bytes int
	x           unsafe.Pointer
	xRow        int
	h           unsafe.Pointer
	hRow        int
}

type headArgs struct {
	rows, k int // multiples of 8, but for the rows of head1
	x       unsafe.Pointer
	xRow    int
	w       unsafe.Pointer
	bias    unsafe.Pointer
	out     unsafe.Pointer
}

type sampleArgs struct {
	groups, actions int // of eight rows; 1 or more
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
	value, sums, numbers                                     unsafe.Pointer // of a Loss: Sums, and what begins with Low
}

type adamArgs struct {
	bytes                       int            // a multiple of 64
	params, m, v, grad, numbers unsafe.Pointer // numbers: what begins with Rate in Adam
}

type sumArgs struct {
	bytes     int // a multiple of 64
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
	toBlock  int // bytes from one block to the next
}
