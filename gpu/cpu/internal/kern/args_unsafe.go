//go:build amd64

package kern

import "unsafe"

// The arguments of the assembly, 8 bytes a field, which reads them and writes none; gen takes their places from here.
// Pointers are into slices that the caller's description holds, so they stay alive.

type gemmArgs struct {
	k, runs      int // of k each
	tiles        int
	a            unsafe.Pointer
	aRun         int // from the end of one run to the next
	aRow, aCol   int // bytes, like all strides here
	b            unsafe.Pointer
	bRow, bPanel int
	c            unsafe.Pointer
	cRow, cPanel int
	bias         unsafe.Pointer
	start        int            // 0: zero, 1: bias, 2: C
	end          int            // 0: C, 1: ReLU of it, 2: times the derivative of ReLU at H, 3: times that of tanh
	h            unsafe.Pointer // laid out as C
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
	env             int
	places          unsafe.Pointer // of eight rows, counted from env
	nextEnv         int            // from eight rows to the next
	nextPlaces      int            // the same, in bytes
	greedy, draw    int
}

type lossArgs struct {
	rows, actions                                            int
	logits                                                   unsafe.Pointer
	ld                                                       int
	scratch                                                  unsafe.Pointer
	action, oldLogProb, oldValue, advantage, ret, newLogProb unsafe.Pointer
	value, sums, numbers                                     unsafe.Pointer // of a Loss: Sums, and what begins with Low
}

type surrogateArgs struct {
	rows                                                               int
	oldLogProb, oldValue, advantage, ret, newLogProb, entropies, slope unsafe.Pointer
	value, sums, numbers                                               unsafe.Pointer // as in lossArgs
}

type normalArgs struct {
	rows, n                          int
	mean, log                        unsafe.Pointer
	ld                               int
	raw                              unsafe.Pointer
	rawLD                            int
	logProb, entropy, slope, numbers unsafe.Pointer // numbers: the entropy's coefficient
	weight                           unsafe.Pointer
	tanh                             int // 0 or 1
}

type choiceArgs struct {
	rows, actions                                 int
	logits                                        unsafe.Pointer
	ld                                            int
	scratch                                       unsafe.Pointer
	action, logProb, entropy, own, slope, numbers unsafe.Pointer // numbers: the entropy's coefficient
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

type widenArgs struct {
	rows, n int // columns, a multiple of 8
	from    unsafe.Pointer
	fromRow int
	to      unsafe.Pointer
	toRow   int
	scale   unsafe.Pointer
}

type poolArgs struct {
	places, high, wide int
	bytes              int // of a place's channels, a multiple of 32
	x                  unsafe.Pointer
	step, xRow         int
	out, d, dx         unsafe.Pointer
}

type tilesInArgs struct {
	tiles, runs, bytes int // bytes of a run
	x                  unsafe.Pointer
	step               int
	run                int // from the end of one run to the next
	pixel, row         int
	v                  unsafe.Pointer
	part               int
}

type tilesOutArgs struct {
	tiles, bytes int
	m            unsafe.Pointer
	part         int
	bias         unsafe.Pointer
	out          unsafe.Pointer
	step         int // from the end of one tile's channels to the next tile
	pixel, row   int
	floor        unsafe.Pointer // of the outputs
}

type normArgs struct {
	rows, n        int
	bytes, broken  int // of a row: bytes of its whole panels, elements of a broken one after them
	x              unsafe.Pointer
	xRow           int
	weight, bias   unsafe.Pointer
	out            unsafe.Pointer
	outRow         int
	moments        unsafe.Pointer
	d              unsafe.Pointer
	dRow           int
	dx             unsafe.Pointer // or nil, with a stride of 0
	dxRow          int
	dWeight, dBias unsafe.Pointer
}

type cellArgs struct {
	rows, bytes int // bytes of a gate
	x           unsafe.Pointer
	xNext       int // from the end of its gate 0 to the next row
	s           unsafe.Pointer
	sNext       int
	h           unsafe.Pointer
	hNext       int
	out         unsafe.Pointer
	outNext     int
	d           unsafe.Pointer
	dNext       int
	dh          unsafe.Pointer
	dhNext      int
}
