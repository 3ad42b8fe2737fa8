package ptx

import (
	"math"
	"math/bits"
)

// The functions below make instructions of functions on whole registers: the ones that kernels spend their time with, which have no
// use for a call a lane. They compute all lanes with any mask, since a lane that takes no part cannot fault in them.

// row is a register: a value a lane.
type row[T word] = [lanes]T

// rows1 makes dest = f(a).
func rows1[T word](of func(*warp) *registers[T], dest, a int, f func(z, x *row[T])) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]
		if m == everyone {
			f(&r.rows[dest], &r.rows[a])
			return
		}
		var z row[T]
		f(&z, &r.rows[a])
		merge(&r.rows[dest], &z, m)
	}
}

// rows2 makes dest = f(a, b).
func rows2[T word](of func(*warp) *registers[T], dest, a, b int, f func(z, x, y *row[T])) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]&r.defined[b]
		if m == everyone {
			f(&r.rows[dest], &r.rows[a], &r.rows[b])
			return
		}
		var z row[T]
		f(&z, &r.rows[a], &r.rows[b])
		merge(&r.rows[dest], &z, m)
	}
}

// rows3 makes dest = f(a, b, c).
func rows3[T word](of func(*warp) *registers[T], dest, a, b, c int, f func(z, x, y, v *row[T])) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]&r.defined[b]&r.defined[c]
		if m == everyone {
			f(&r.rows[dest], &r.rows[a], &r.rows[b], &r.rows[c])
			return
		}
		var z row[T]
		f(&z, &r.rows[a], &r.rows[b], &r.rows[c])
		merge(&r.rows[dest], &z, m)
	}
}

// shiftRows makes dest = f(a, b) where b has 32 bits whatever a has.
func shiftRows[T word](of func(*warp) *registers[T], dest, a, b int, f func(z, x *row[T], y *row[uint32])) exec {
	return func(w *warp, m uint32) {
		r := of(w)
		r.defined[dest] = r.defined[dest]&^m | m&r.defined[a]&w.r32.defined[b]
		if m == everyone {
			f(&r.rows[dest], &r.rows[a], &w.r32.rows[b])
			return
		}
		var z row[T]
		f(&z, &r.rows[a], &w.r32.rows[b])
		merge(&r.rows[dest], &z, m)
	}
}

// convertRows makes dest = f(a) of registers of another file.
func convertRows[T, U word](from func(*warp) *registers[T], to func(*warp) *registers[U], dest, a int, f func(z *row[U], x *row[T])) exec {
	return func(w *warp, m uint32) {
		r, s := from(w), to(w)
		s.defined[dest] = s.defined[dest]&^m | m&r.defined[a]
		if m == everyone {
			f(&s.rows[dest], &r.rows[a])
			return
		}
		var z row[U]
		f(&z, &r.rows[a])
		merge(&s.rows[dest], &z, m)
	}
}

// wideRows makes dest of 64 bits = f(a, b) of 32.
func wideRows(dest, a, b int, f func(z *row[uint64], x, y *row[uint32])) exec {
	return func(w *warp, m uint32) {
		w.r64.defined[dest] = w.r64.defined[dest]&^m | m&w.r32.defined[a]&w.r32.defined[b]
		if m == everyone {
			f(&w.r64.rows[dest], &w.r32.rows[a], &w.r32.rows[b])
			return
		}
		var z row[uint64]
		f(&z, &w.r32.rows[a], &w.r32.rows[b])
		merge(&w.r64.rows[dest], &z, m)
	}
}

// compareRows makes a predicate = f(a, b), of all lanes; negated turns it around.
func compareRows[T word](of func(*warp) *registers[T], dest, a, b int, f func(x, y *row[T]) uint32, negated bool) exec {
	flip := uint32(0)
	if negated {
		flip = everyone
	}
	return func(w *warp, m uint32) {
		r := of(w)
		w.p.defined[dest] = w.p.defined[dest]&^m | m&r.defined[a]&r.defined[b]
		w.p.rows[dest] = w.p.rows[dest]&^m | m&(f(&r.rows[a], &r.rows[b])^flip)
	}
}

// merge copies the lanes of a mask.
func merge[T word](to, from *row[T], m uint32) {
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		to[l] = from[l]
	}
}

func copyRow[T word](z, x *row[T]) { *z = *x }

func addRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] + y[l]
	}
}

func subRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] - y[l]
	}
}

func mulRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] * y[l]
	}
}

func madRows[T word](z, x, y, v *row[T]) {
	for l := range z {
		z[l] = x[l]*y[l] + v[l]
	}
}

func andRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] & y[l]
	}
}

func orRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] | y[l]
	}
}

func xorRows[T word](z, x, y *row[T]) {
	for l := range z {
		z[l] = x[l] ^ y[l]
	}
}

func shlRows[T word](z, x *row[T], y *row[uint32]) {
	for l := range z {
		z[l] = x[l] << y[l]
	}
}

func shrRows[T word](z, x *row[T], y *row[uint32]) {
	for l := range z {
		z[l] = x[l] >> y[l]
	}
}

// sarRows shifts with the sign of S, which is as wide as T.
func sarRows[T word, S int32 | int64](z, x *row[T], y *row[uint32]) {
	for l := range z {
		z[l] = T(S(x[l]) >> y[l])
	}
}

func mulWideSigned(z *row[uint64], x, y *row[uint32]) {
	for l := range z {
		z[l] = uint64(int64(int32(x[l])) * int64(int32(y[l])))
	}
}

func mulWideUnsigned(z *row[uint64], x, y *row[uint32]) {
	for l := range z {
		z[l] = uint64(x[l]) * uint64(y[l])
	}
}

// lessRows and equalRows compare as S does, which is as wide as T.
func lessRows[T word, S int32 | uint32 | int64 | uint64](x, y *row[T]) (less uint32) {
	for l := range x {
		less |= bit(S(x[l]) < S(y[l])) << l
	}
	return less
}

func equalRows[T word](x, y *row[T]) (equal uint32) {
	for l := range x {
		equal |= bit(x[l] == y[l]) << l
	}
	return equal
}

// bit is 1 for true.
func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func addFloatRows(z, x, y *row[uint32]) {
	for l := range z {
		z[l] = bits32(f32(x[l]) + f32(y[l]))
	}
}

func mulFloatRows(z, x, y *row[uint32]) {
	for l := range z {
		z[l] = bits32(f32(x[l]) * f32(y[l]))
	}
}

func addDoubleRows(z, x, y *row[uint64]) {
	for l := range z {
		z[l] = math.Float64bits(math.Float64frombits(x[l]) + math.Float64frombits(y[l]))
	}
}

// fmaRows is most of a kernel's work. The float64 sum is rounded a second time only where that is exact: where it is zero, or
// no tie between two float32 and the result no denormal; elsewhere fused32 rounds once.
func fmaRows(z, x, y, v *row[uint32]) {
	for l := range z {
		s := float64(f32(x[l]))*float64(f32(y[l])) + float64(f32(v[l]))
		u := math.Float64bits(s)
		if u<<35 != 1<<63 && u>>52&2047-firstNormal < normals || u<<1 == 0 {
			z[l] = math.Float32bits(float32(s))
			continue
		}
		z[l] = bits32(fused32(f32(x[l]), f32(y[l]), f32(v[l])))
	}
}

// Exponents of float64 whose values are normal float32, or round to infinity.
const (
	firstNormal = 1023 - 126
	normals     = 254
)
