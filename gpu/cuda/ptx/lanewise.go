package ptx

import "math/bits"

// What follows makes instructions of functions on the values of one lane. Each leaves a lane's result undefined if one of
// its operands is.

// mapped1 makes dest = f(a).
func mapped1[T word](of func(*warp) *registers[T], dest, a int, f func(T) T) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]
		x, z := &r.rows[a], &r.rows[dest]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			z[l] = f(x[l])
		}
	}
}

// mapped2 makes dest = f(a, b).
func mapped2[T word](of func(*warp) *registers[T], dest, a, b int, f func(x, y T) T) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]&r.defined[b]
		x, y, z := &r.rows[a], &r.rows[b], &r.rows[dest]
		if m == everyone {
			for l := range z {
				z[l] = f(x[l], y[l])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			z[l] = f(x[l], y[l])
		}
	}
}

// mapped3 makes dest = f(a, b, c).
func mapped3[T word](of func(*warp) *registers[T], dest, a, b, c int, f func(x, y, z T) T) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]&r.defined[b]&r.defined[c]
		x, y, v, z := &r.rows[a], &r.rows[b], &r.rows[c], &r.rows[dest]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			z[l] = f(x[l], y[l], v[l])
		}
	}
}

// convert makes dest = f(a) of registers of another file.
func convert[T, U word](from func(*warp) *registers[T], to func(*warp) *registers[U], dest, a int, f func(T) U) exec {
	return func(w *warp, m uint32) {
		r, s := from(w), to(w)
		s.defined[dest] = s.defined[dest]&^m | m&r.defined[a]
		x, z := &r.rows[a], &s.rows[dest]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			z[l] = f(x[l])
		}
	}
}

// compared makes a predicate = f(a, b).
func compared[T word](of func(*warp) *registers[T], dest, a, b int, f func(x, y T) bool) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		x, y := &r.rows[a], &r.rows[b]
		w.p.defined[dest] = w.p.defined[dest]&^m | m&r.defined[a]&r.defined[b]
		value := w.p.rows[dest] &^ m
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			if f(x[l], y[l]) {
				value |= 1 << l
			}
		}
		w.p.rows[dest] = value
	}
}

// chosen makes dest = a where the predicate p is true, else b.
func chosen[T word](of func(*warp) *registers[T], dest, a, b, p int) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		yes := w.p.rows[p]
		r.defined[dest] = r.defined[dest]&^m | m&w.p.defined[p]&(yes&r.defined[a]|^yes&r.defined[b])
		x, y, z := &r.rows[a], &r.rows[b], &r.rows[dest]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			if yes>>l&1 != 0 {
				z[l] = x[l]
			} else {
				z[l] = y[l]
			}
		}
	}
}
