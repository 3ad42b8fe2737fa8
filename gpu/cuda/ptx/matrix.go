package ptx

import "github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"

// compileMatrix compiles mma.sync of bf16: m16n8k16, rows by columns, sums as f32. The order of the sums is not the hardware's,
// which is not stated; so its results are near, not equal.
func compileMatrix(b *binder) exec {
	want := []string{"sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32"}
	for _, m := range want {
		if !b.has(m) {
			b.bad("only mma.%v is run", want)
		}
	}
	b.count(4)
	d, a := b.fragment(0, 4, f32Type), b.fragment(1, 4, b32Type)
	x, c := b.fragment(2, 2, b32Type), b.fragment(3, 4, f32Type)
	return func(w *warp, m uint32) {
		if m != everyone {
			w.raise(m, MissingLanes, 0, "lanes %#x of the warp are elsewhere", ^m)
			return
		}
		defined := everyone
		for _, s := range append(append(append([]int{}, a...), x...), c...) {
			defined &= w.r32.defined[s]
		}
		if defined != everyone {
			w.raise(^defined, Uninitialised, 0, "a part of a matrix%s", w.poisons.origin())
			return
		}
		w.multiply(d, a, x, c)
	}
}

// fragment returns the registers of an operand that is a part of a matrix.
func (b *binder) fragment(i, n int, t dtype) []int {
	o := b.Args[i]
	if o.Kind != syntax.Vector || len(o.List) != n {
		b.bad("operand %d is not a vector of %d", i+1, n)
	}
	rows := make([]int, n)
	for j, e := range o.List {
		if e.Kind != syntax.Register && i == 0 {
			b.bad("operand %d is not of registers", i+1)
		}
		rows[j] = b.sourceOf(e, t)
	}
	return rows
}

// multiply is d = a·x + c of matrices that lie in the registers of all lanes.
func (w *warp) multiply(d, a, x, c []int) {
	var left [16][16]float32
	var right [16][8]float32
	for lane := range lanes {
		g, t := lane>>2, lane&3*2
		for i, row := range a {
			lo, hi := halves(w.r32.rows[row][lane])
			left[g+8*(i&1)][t+8*(i>>1)], left[g+8*(i&1)][t+8*(i>>1)+1] = lo, hi
		}
		for i, row := range x {
			right[t+8*i][g], right[t+8*i+1][g] = halves(w.r32.rows[row][lane])
		}
	}
	for lane := range lanes {
		g, t := lane>>2, lane&3*2
		for i := range c {
			row, column := g+8*(i>>1), t+i&1
			sum := f32(w.r32.rows[c[i]][lane])
			for k := range 16 {
				sum += float32(left[row][k] * right[k][column])
			}
			w.r32.rows[d[i]][lane] = bits32(sum)
		}
	}
	for _, row := range d {
		w.r32.defined[row] = everyone
	}
}

// halves are the two bf16 of a register, the low one first.
func halves(x uint32) (lo, hi float32) { return f32(x << 16), f32(x &^ 0xffff) }
