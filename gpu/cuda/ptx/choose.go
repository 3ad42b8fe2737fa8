package ptx

import (
	"cmp"
	"math"
)

// compileCompare compiles setp with one result.
func compileCompare(b *binder) exec {
	t := b.dtype()
	b.count(3)
	d, x, y := b.dest(0, predType), b.source(1, t), b.source(2, t)
	if t.Kind == 'p' || t.Bits == 8 {
		b.bad("not for this type")
	}
	op := b.oneOf("eq", "ne", "lt", "le", "gt", "ge",
		"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
	if run := integerCompare(op, t, d, x, y); run != nil {
		return run
	}
	switch {
	case t.Float() && t.Bits == 32:
		f := orderOf[float32](b, op)
		return compared(of32, d, x, y, func(x, y uint32) bool { return f(f32(x), f32(y)) })
	case t.Float():
		f := orderOf[float64](b, op)
		return compared(of64, d, x, y, func(x, y uint64) bool { return f(math.Float64frombits(x), math.Float64frombits(y)) })
	case t.Signed():
		f := orderOf[int64](b, op)
		return comparedAs(b, t, d, x, y, func(x, y uint64) bool { return f(int64(t.Extend(x)), int64(t.Extend(y))) })
	}
	f := orderOf[uint64](b, op)
	return comparedAs(b, t, d, x, y, f)
}

// integerCompare compares integers of whole registers; nil if it has no such comparison.
func integerCompare(op string, t dtype, d, x, y int) exec {
	switch {
	case t.Float() || t.Bits < 32:
		return nil
	case t.Bits == 64 && t.Signed():
		return comparison[uint64, int64](of64, op, d, x, y)
	case t.Bits == 64:
		return comparison[uint64, uint64](of64, op, d, x, y)
	case t.Signed():
		return comparison[uint32, int32](of32, op, d, x, y)
	}
	return comparison[uint32, uint32](of32, op, d, x, y)
}

// comparison compares registers as S, which is as wide as T.
func comparison[T word, S int32 | uint32 | int64 | uint64](of func(*warp) *registers[T], op string, d, x, y int) exec {
	switch op {
	case "eq":
		return compareRows(of, d, x, y, equalRows[T], false)
	case "ne":
		return compareRows(of, d, x, y, equalRows[T], true)
	case "lt":
		return compareRows(of, d, x, y, lessRows[T, S], false)
	case "ge":
		return compareRows(of, d, x, y, lessRows[T, S], true)
	case "gt":
		return compareRows(of, d, y, x, lessRows[T, S], false)
	case "le":
		return compareRows(of, d, y, x, lessRows[T, S], true)
	}
	return nil
}

func comparedAs(b *binder, t dtype, d, x, y int, f func(x, y uint64) bool) exec {
	if t.Bits == 64 {
		return compared(of64, d, x, y, f)
	}
	return compared(of32, d, x, y, func(x, y uint32) bool { return f(uint64(x), uint64(y)) })
}

// orderOf returns a comparison by its name. With "u" after it, it is also true if one operand is a NaN.
func orderOf[T cmp.Ordered](b *binder, op string) func(x, y T) bool {
	nan := func(x, y T) bool { return x != x || y != y }
	switch op {
	case "eq":
		return func(x, y T) bool { return x == y }
	case "ne":
		return func(x, y T) bool { return x != y && !nan(x, y) }
	case "lt":
		return func(x, y T) bool { return x < y }
	case "le":
		return func(x, y T) bool { return x <= y }
	case "gt":
		return func(x, y T) bool { return x > y }
	case "ge":
		return func(x, y T) bool { return x >= y }
	case "equ":
		return func(x, y T) bool { return x == y || nan(x, y) }
	case "neu":
		return func(x, y T) bool { return x != y }
	case "ltu":
		return func(x, y T) bool { return !(x >= y) }
	case "leu":
		return func(x, y T) bool { return !(x > y) }
	case "gtu":
		return func(x, y T) bool { return !(x <= y) }
	case "geu":
		return func(x, y T) bool { return !(x < y) }
	case "num":
		return func(x, y T) bool { return !nan(x, y) }
	case "nan":
		return nan
	}
	b.bad("not a comparison that is run")
	return nil
}

// compileChoose compiles selp.
func compileChoose(b *binder) exec {
	t := b.dtype()
	b.count(4)
	if t.Kind == 'p' || t.Bits == 8 {
		b.bad("not for this type")
	}
	d, x, y, p := b.dest(0, t), b.source(1, t), b.source(2, t), b.source(3, predType)
	if t.Bits == 64 {
		return chosen(of64, d, x, y, p)
	}
	return chosen(of32, d, x, y, p)
}
