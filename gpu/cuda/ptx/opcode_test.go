package ptx

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// opcode is an instruction with what it must make of its operands. The first type is the result's; operands come and results
// go as 64 bits with zeros above.
type opcode struct {
	name  string
	types string
	want  func(a, b, c uint64) uint64
}

func s32(f func(a, b int32) int32) func(a, b, c uint64) uint64 {
	return func(a, b, _ uint64) uint64 { return uint64(uint32(f(int32(a), int32(b)))) }
}

func u32(f func(a, b, c uint32) uint32) func(a, b, c uint64) uint64 {
	return func(a, b, c uint64) uint64 { return uint64(f(uint32(a), uint32(b), uint32(c))) }
}

func s64(f func(a, b int64) int64) func(a, b, c uint64) uint64 {
	return func(a, b, _ uint64) uint64 { return uint64(f(int64(a), int64(b))) }
}

func floats(f func(a, b float32) float32) func(a, b, c uint64) uint64 {
	return func(a, b, _ uint64) uint64 { return uint64(bits32(f(f32(uint32(a)), f32(uint32(b))))) }
}

func doubles(f func(a, b float64) float64) func(a, b, c uint64) uint64 {
	return func(a, b, _ uint64) uint64 {
		return math.Float64bits(f(math.Float64frombits(a), math.Float64frombits(b)))
	}
}

func truth(f func(a, b uint64) bool) func(a, b, c uint64) uint64 {
	return func(a, b, _ uint64) uint64 {
		if f(a, b) {
			return 1
		}
		return 0
	}
}

// product128 is an exact product.
func product128(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

func high64(a, b int64) int64 { return new(big.Int).Rsh(product128(a, b), 64).Int64() }

func integers() []opcode {
	return []opcode{
		{"add.s32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return a + b })},
		{"sub.s32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return a - b })},
		{"add.s64", "b64 b64 b64", s64(func(a, b int64) int64 { return a + b })},
		{"sub.u64", "b64 b64 b64", s64(func(a, b int64) int64 { return a - b })},
		{"add.s16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint16(a + b)) }},
		{"sub.u16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint16(a - b)) }},
		{"mul.lo.s32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return a * b })},
		{"mul.hi.u32", "b32 b32 b32", func(a, b, _ uint64) uint64 { return a * b >> 32 }},
		{"mul.hi.s32", "b32 b32 b32", func(a, b, _ uint64) uint64 { return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32)) }},
		{"mul.hi.s64", "b64 b64 b64", s64(high64)},
		{"mul.hi.u64", "b64 b64 b64", func(a, b, _ uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }},
		{"mul.lo.s64", "b64 b64 b64", s64(func(a, b int64) int64 { return a * b })},
		{"mul.wide.s32", "b64 b32 b32", func(a, b, _ uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }},
		{"mul.wide.u32", "b64 b32 b32", func(a, b, _ uint64) uint64 { return a * b }},
		{"mul.wide.s16", "b32 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint32(int32(int16(a)) * int32(int16(b)))) }},
		{"mul.wide.u16", "b32 b16 b16", func(a, b, _ uint64) uint64 { return a * b }},
		{"mul.lo.u16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint16(a * b)) }},
		{"mad.lo.s32", "b32 b32 b32 b32", u32(func(a, b, c uint32) uint32 { return a*b + c })},
		{"mad.hi.u32", "b32 b32 b32 b32", func(a, b, c uint64) uint64 { return uint64(uint32(a*b>>32) + uint32(c)) }},
		{"mad.wide.s32", "b64 b32 b32 b64", func(a, b, c uint64) uint64 { return uint64(int64(int32(a))*int64(int32(b))) + c }},
		{"mad.lo.s64", "b64 b64 b64 b64", func(a, b, c uint64) uint64 { return a*b + c }},
		{"mad.lo.u16", "b16 b16 b16 b16", func(a, b, c uint64) uint64 { return uint64(uint16(a*b + c)) }},
		{"div.s32", "b32 b32 b32", s32(quotient)},
		{"div.u32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return quotient(a, b) })},
		{"div.s64", "b64 b64 b64", s64(quotient)},
		{"rem.s32", "b32 b32 b32", s32(remainder)},
		{"rem.u64", "b64 b64 b64", func(a, b, _ uint64) uint64 { return remainder(a, b) }},
		{"rem.s16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint16(remainder(int16(a), int16(b)))) }},
		{"min.s32", "b32 b32 b32", s32(func(a, b int32) int32 { return min(a, b) })},
		{"max.u32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return max(a, b) })},
		{"max.s64", "b64 b64 b64", s64(func(a, b int64) int64 { return max(a, b) })},
		{"min.s16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return uint64(uint16(min(int16(a), int16(b)))) }},
		{"abs.s32", "b32 b32", s32(func(a, _ int32) int32 { return max(a, -a) })},
		{"neg.s32", "b32 b32", s32(func(a, _ int32) int32 { return -a })},
		{"neg.s16", "b16 b16", func(a, _, _ uint64) uint64 { return uint64(-uint16(a)) }},
		{"abs.s64", "b64 b64", s64(func(a, _ int64) int64 { return max(a, -a) })},
	}
}

func bitOps() []opcode {
	return []opcode{
		{"and.b32", "b32 b32 b32", func(a, b, _ uint64) uint64 { return a & b }},
		{"or.b16", "b16 b16 b16", func(a, b, _ uint64) uint64 { return a | b }},
		{"xor.b64", "b64 b64 b64", func(a, b, _ uint64) uint64 { return a ^ b }},
		{"not.b16", "b16 b16", func(a, _, _ uint64) uint64 { return uint64(^uint16(a)) }},
		{"shl.b32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return a << b })},
		{"shl.b16", "b16 b16 b32", func(a, b, _ uint64) uint64 { return uint64(uint16(a) << b) }},
		{"shl.b64", "b64 b64 b32", func(a, b, _ uint64) uint64 { return a << b }},
		{"shr.s32", "b32 b32 b32", func(a, b, _ uint64) uint64 { return uint64(uint32(int32(a) >> b)) }},
		{"shr.u32", "b32 b32 b32", u32(func(a, b, _ uint32) uint32 { return a >> b })},
		{"shr.s16", "b16 b16 b32", func(a, b, _ uint64) uint64 { return uint64(uint16(int16(a) >> b)) }},
		{"shr.s64", "b64 b64 b32", func(a, b, _ uint64) uint64 { return uint64(int64(a) >> b) }},
		{"shf.l.wrap.b32", "b32 b32 b32 b32", u32(func(a, b, c uint32) uint32 { return uint32((uint64(b)<<32 | uint64(a)) << (c & 31) >> 32) })},
		{"shf.r.wrap.b32", "b32 b32 b32 b32", u32(func(a, b, c uint32) uint32 { return uint32((uint64(b)<<32 | uint64(a)) >> (c & 31)) })},
		{"popc.b32", "b32 b32", u32(func(a, _, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) })},
		{"popc.b64", "b32 b64", func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }},
		{"clz.b32", "b32 b32", u32(func(a, _, _ uint32) uint32 { return uint32(bits.LeadingZeros32(a)) })},
		{"clz.b64", "b32 b64", func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }},
		{"brev.b32", "b32 b32", u32(func(a, _, _ uint32) uint32 { return bits.Reverse32(a) })},
		{"bfi.b32", "b32 b32 b32 5 9", u32(func(a, b, _ uint32) uint32 { return b&^(511<<5) | a&511<<5 })},
		{"brev.b64", "b64 b64", func(a, _, _ uint64) uint64 { return bits.Reverse64(a) }},
	}
}

func floatOps() []opcode {
	fma64 := func(a, b, c uint64) uint64 {
		return math.Float64bits(math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
	}
	lower := func(a, b float32) float32 {
		switch {
		case a != a:
			return b
		case b != b:
			return a
		}
		return float32(math.Min(float64(a), float64(b)))
	}
	greater := func(a, b float32) float32 { return -lower(-a, -b) }
	return []opcode{
		{"add.rn.f32", "f32 f32 f32", floats(func(a, b float32) float32 { return a + b })},
		{"add.f32", "f32 f32 f32", floats(func(a, b float32) float32 { return a + b })},
		{"sub.rn.f32", "f32 f32 f32", floats(func(a, b float32) float32 { return a - b })},
		{"mul.rn.f32", "f32 f32 f32", floats(func(a, b float32) float32 { return a * b })},
		{"div.rn.f32", "f32 f32 f32", floats(func(a, b float32) float32 { return a / b })},
		{"rcp.rn.f32", "f32 f32", floats(func(a, _ float32) float32 { return 1 / a })},
		{"sqrt.rn.f32", "f32 f32", floats(func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) })},
		{"min.f32", "f32 f32 f32", floats(lower)},
		{"max.f32", "f32 f32 f32", floats(greater)},
		{"neg.f32", "f32 f32", func(a, _, _ uint64) uint64 { return a ^ 1<<31 }},
		{"abs.f32", "f32 f32", func(a, _, _ uint64) uint64 { return a &^ (1 << 31) }},
		{"add.rn.f64", "f64 f64 f64", doubles(func(a, b float64) float64 { return a + b })},
		{"sub.f64", "f64 f64 f64", doubles(func(a, b float64) float64 { return a - b })},
		{"mul.rn.f64", "f64 f64 f64", doubles(func(a, b float64) float64 { return a * b })},
		{"div.rn.f64", "f64 f64 f64", doubles(func(a, b float64) float64 { return a / b })},
		{"rcp.rn.f64", "f64 f64", doubles(func(a, _ float64) float64 { return 1 / a })},
		{"sqrt.rn.f64", "f64 f64", doubles(func(a, _ float64) float64 { return math.Sqrt(a) })},
		{"fma.rn.f64", "f64 f64 f64 f64", fma64},
		{"neg.f64", "f64 f64", func(a, _, _ uint64) uint64 { return a ^ 1<<63 }},
		{"setp.lt.f32", "pred f32 f32", truth(func(a, b uint64) bool { return f32(uint32(a)) < f32(uint32(b)) })},
		{"setp.geu.f32", "pred f32 f32", truth(func(a, b uint64) bool { return !(f32(uint32(a)) < f32(uint32(b))) })},
		{"setp.ne.f32", "pred f32 f32", truth(func(a, b uint64) bool { x, y := f32(uint32(a)), f32(uint32(b)); return x < y || x > y })},
		{"setp.neu.f32", "pred f32 f32", truth(func(a, b uint64) bool { return f32(uint32(a)) != f32(uint32(b)) })},
		{"setp.nan.f32", "pred f32 f32", truth(func(a, b uint64) bool { return f32(uint32(a)) != f32(uint32(a)) || f32(uint32(b)) != f32(uint32(b)) })},
		{"setp.le.f64", "pred f64 f64", truth(func(a, b uint64) bool { return math.Float64frombits(a) <= math.Float64frombits(b) })},
		{"setp.lt.s32", "pred b32 b32", truth(func(a, b uint64) bool { return int32(a) < int32(b) })},
		{"setp.ge.u32", "pred b32 b32", truth(func(a, b uint64) bool { return a >= b })},
		{"setp.gt.s64", "pred b64 b64", truth(func(a, b uint64) bool { return int64(a) > int64(b) })},
		{"setp.le.s16", "pred b16 b16", truth(func(a, b uint64) bool { return int16(a) <= int16(b) })},
		{"setp.eq.b32", "pred b32 b32", truth(func(a, b uint64) bool { return a == b })},
	}
}

// clamped is a float64 that is a whole number as an integer of some bits.
func clamped(v float64, signed bool, width int, nan uint64) uint64 {
	least, most := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(width))
	if signed {
		most.Rsh(most, 1)
		least.Neg(most)
	}
	most.Sub(most, big.NewInt(1))
	if v != v {
		return nan
	}
	x := new(big.Int).Set(most)
	if v < 0 && math.IsInf(v, 0) {
		x.Set(least)
	} else if !math.IsInf(v, 0) {
		new(big.Float).SetFloat64(v).Int(x)
	}
	if x.Cmp(least) < 0 {
		x = least
	} else if x.Cmp(most) > 0 {
		x = most
	}
	return new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)>>(64-width))).Uint64()
}

func conversions() []opcode {
	to32 := func(round func(float64) float64, signed bool) func(a, b, c uint64) uint64 {
		return func(a, _, _ uint64) uint64 { return clamped(round(float64(f32(uint32(a)))), signed, 32, 0) }
	}
	exact := func(signed bool, width uint) func(a, b, c uint64) uint64 {
		return func(a, _, _ uint64) uint64 {
			x := new(big.Float).SetPrec(64).SetUint64(a)
			if signed {
				x.SetInt64(int64(a<<(64-width)) >> (64 - width))
			}
			if x.Sign() == 0 {
				return 0
			}
			near, _ := x.Float32()
			return uint64(math.Float32bits(near))
		}
	}
	return []opcode{
		{"cvt.rzi.s32.f32", "b32 f32", to32(math.Trunc, true)},
		{"cvt.rni.s32.f32", "b32 f32", to32(math.RoundToEven, true)},
		{"cvt.rmi.s32.f32", "b32 f32", to32(math.Floor, true)},
		{"cvt.rpi.u32.f32", "b32 f32", to32(math.Ceil, false)},
		{"cvt.rzi.u64.f32", "b64 f32", func(a, _, _ uint64) uint64 { return clamped(math.Trunc(float64(f32(uint32(a)))), false, 64, 1<<63) }},
		{"cvt.rzi.s64.f64", "b64 f64", func(a, _, _ uint64) uint64 {
			return clamped(math.Trunc(math.Float64frombits(a)), true, 64, 1<<63)
		}},
		{"cvt.rzi.s32.f64", "b32 f64", func(a, _, _ uint64) uint64 {
			return clamped(math.Trunc(math.Float64frombits(a)), true, 32, 1<<31)
		}},
		{"cvt.rni.f32.f32", "f32 f32", floats(func(a, _ float32) float32 { return float32(math.RoundToEven(float64(a))) })},
		{"cvt.rmi.f32.f32", "f32 f32", floats(func(a, _ float32) float32 { return float32(math.Floor(float64(a))) })},
		{"cvt.rn.f32.s32", "f32 b32", exact(true, 32)},
		{"cvt.rn.f32.u32", "f32 b32", exact(false, 32)},
		{"cvt.rn.f32.s64", "f32 b64", exact(true, 64)},
		{"cvt.rn.f32.u64", "f32 b64", exact(false, 64)},
		{"cvt.rn.f32.s8", "f32 b32", exact(true, 8)},
		{"cvt.rn.f64.s64", "f64 b64", func(a, _, _ uint64) uint64 { return math.Float64bits(float64(int64(a))) }},
		{"cvt.rn.f64.u32", "f64 b32", func(a, _, _ uint64) uint64 { return math.Float64bits(float64(a)) }},
		{"cvt.f64.f32", "f64 f32", func(a, _, _ uint64) uint64 { return math.Float64bits(float64(f32(uint32(a)))) }},
		{"cvt.rn.f32.f64", "f32 f64", func(a, _, _ uint64) uint64 { return uint64(bits32(float32(math.Float64frombits(a)))) }},
		{"cvt.u16.u32", "b16 b32", func(a, _, _ uint64) uint64 { return a & 0xffff }},
		{"cvt.s32.s16", "b32 b16", func(a, _, _ uint64) uint64 { return uint64(uint32(int32(int16(a)))) }},
		{"cvt.s32.s8", "b32 b32", func(a, _, _ uint64) uint64 { return uint64(uint32(int32(int8(a)))) }},
		{"cvt.u32.u8", "b32 b16", func(a, _, _ uint64) uint64 { return a & 255 }},
		{"cvt.s64.s32", "b64 b32", func(a, _, _ uint64) uint64 { return uint64(int64(int32(a))) }},
		{"cvt.u64.u32", "b64 b32", func(a, _, _ uint64) uint64 { return a }},
		{"cvt.u32.u64", "b32 b64", func(a, _, _ uint64) uint64 { return a & (1<<32 - 1) }},
		{"cvt.rn.bf16.f32", "b16 f32", func(a, _, _ uint64) uint64 {
			if x := f32(uint32(a)); x != x {
				return 0x7fff
			}
			return (a + 0x7fff + a>>16&1) >> 16
		}},
		{"cvt.rn.bf16x2.f32", "b32 f32 f32", func(a, b, _ uint64) uint64 { return uint64(bfloat(f32(uint32(a)))<<16 | bfloat(f32(uint32(b)))) }},
	}
}

// source writes an entry that executes an opcode for the operands of its thread, in the lanes that "some" names; the result
// of the other lanes is zero.
func (o opcode) source(name string) string {
	types := strings.Fields(o.types)
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(.param .u64 in, .param .u64 out, .param .u32 some) {\n\t.reg .pred q, on; .reg .b64 d<9>; .reg .b64 x<5>; .reg .u32 i, y;\n", name)
	b.WriteString("\tmov.u32 i, %tid.x; mul.wide.u32 d1, i, 24; mul.wide.u32 d2, i, 8;\n\tld.param.u64 d3, [in]; ld.param.u64 d4, [out]; add.s64 d3, d3, d1; add.s64 d4, d4, d2;\n")
	operands := make([]string, len(types))
	for i, t := range types {
		operands[i] = fmt.Sprint("a", i)
		switch {
		case i > 0 && t[0] >= '0' && t[0] <= '9':
			operands[i] = t
			continue
		case t == "pred":
			operands[i] = "q"
			continue
		}
		fmt.Fprintf(&b, "\t.reg .%s a%d;\n", t, i)
		if i > 0 {
			fmt.Fprintf(&b, "\tld.global.u64 x%d, [d3+%d];\n", i, 8*(i-1))
			switch t[1:] {
			case "16":
				fmt.Fprintf(&b, "\tcvt.u16.u64 a%d, x%d;\n", i, i)
			case "32":
				fmt.Fprintf(&b, "\tcvt.u32.u64 y, x%d; mov.b32 a%d, y;\n", i, i)
			default:
				fmt.Fprintf(&b, "\tmov.b64 a%d, x%d;\n", i, i)
			}
		}
	}
	b.WriteString("\tld.param.u32 y, [some]; mov.u32 i, %laneid; shr.u32 y, y, i; and.b32 y, y, 1; setp.ne.u32 on, y, 0;\n")
	switch types[0] {
	case "pred":
		b.WriteString("\t@!on setp.ne.u32 q, 0, 0;\n")
	case "f32":
		b.WriteString("\t@!on mov.f32 a0, 0f00000000;\n")
	default:
		fmt.Fprintf(&b, "\t@!on mov.b%s a0, 0;\n", types[0][1:])
	}
	fmt.Fprintf(&b, "\t@on %s %s;\n", o.name, strings.Join(operands, ", "))
	switch types[0] {
	case "pred":
		b.WriteString("\tselp.b64 d5, 1, 0, q;\n")
	case "b16":
		b.WriteString("\tcvt.u64.u16 d5, a0;\n")
	case "b32", "f32":
		b.WriteString("\tmov.b32 y, a0; cvt.u64.u32 d5, y;\n")
	default:
		b.WriteString("\tmov.b64 d5, a0;\n")
	}
	b.WriteString("\tst.global.u64 [d4], d5;\n\tret;\n}\n")
	return b.String()
}

// operandOf makes bits of a type: edges and any.
func operandOf(r *rand.Rand, t string) uint64 {
	edges := []uint64{0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 1 << 15, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 63, 1<<63 - 1, ^uint64(0)}
	x := r.Uint64() >> r.IntN(64)
	if r.IntN(2) == 0 {
		x = edges[r.IntN(len(edges))]
	}
	switch t {
	case "f32":
		special := []float32{0, -1, 0.5, 1.5, 2.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0x1p-149, 0x1p31, -0x1p31, 0x1p63, 300}
		if r.IntN(3) == 0 {
			return uint64(math.Float32bits(special[r.IntN(len(special))]))
		}
		return uint64(math.Float32bits(patterns(r)))
	case "f64":
		if r.IntN(2) == 0 {
			return math.Float64bits(r.NormFloat64() * math.Ldexp(1, r.IntN(140)-70))
		}
		return math.Float64bits(float64(patterns(r)))
	case "b16":
		return x & 0xffff
	case "b32":
		return x & (1<<32 - 1)
	}
	return x
}

// comparisons are all of setp for floats, with and without the ones that a NaN makes true.
func comparisons() []opcode {
	var all []opcode
	nan := func(x, y float32) bool { return x != x || y != y }
	for name, f := range map[string]func(x, y float32) bool{
		"eq": func(x, y float32) bool { return x == y }, "ne": func(x, y float32) bool { return x < y || x > y },
		"lt": func(x, y float32) bool { return x < y }, "le": func(x, y float32) bool { return x <= y },
		"gt": func(x, y float32) bool { return x > y }, "ge": func(x, y float32) bool { return x >= y },
	} {
		all = append(all,
			opcode{"setp." + name + ".f32", "pred f32 f32", truth(func(a, b uint64) bool { return f(f32(uint32(a)), f32(uint32(b))) })},
			opcode{"setp." + name + "u.f32", "pred f32 f32", truth(func(a, b uint64) bool {
				x, y := f32(uint32(a)), f32(uint32(b))
				return f(x, y) || nan(x, y)
			})})
	}
	return append(all, opcode{"setp.num.f32", "pred f32 f32", truth(func(a, b uint64) bool { return !nan(f32(uint32(a)), f32(uint32(b))) })})
}

func TestOpcodes_DoWhatTheISASays(t *testing.T) {
	t.Parallel()
	var all []opcode
	for _, list := range [][]opcode{integers(), bitOps(), floatOps(), conversions(), comparisons()} {
		all = append(all, list...)
	}
	var text strings.Builder
	text.WriteString(header)
	for i, o := range all {
		text.WriteString(o.source(fmt.Sprint("e", i)))
	}
	r := read(t, text.String())
	const threads = 1024
	out := r.memory.Alloc(8 * threads)
	for i, o := range all {
		random := rand.New(rand.NewPCG(3, uint64(i)))
		types := strings.Fields(o.types)
		in := make([]uint64, 3*threads)
		for j := range in {
			if j%3+1 < len(types) {
				in[j] = operandOf(random, types[j%3+1])
			}
		}
		address := put(r, in)
		for _, some := range []uint32{everyone, 0x5a0f8c31} {
			r.must(fmt.Sprint("e", i), line(1, threads), address, out, some)
			o.check(t, some, in, get[uint64](r, out, threads))
		}
	}
}

// check holds the results of threads against their operands, three each.
func (o opcode) check(t *testing.T, some uint32, in, results []uint64) {
	t.Helper()
	for j, got := range results {
		a, b, c, want := in[3*j], in[3*j+1], in[3*j+2], uint64(0)
		if some>>(j%lanes)&1 != 0 {
			want = o.want(a, b, c)
		}
		nan := strings.HasPrefix(o.types, "f64") && math.IsNaN(math.Float64frombits(got)) && math.IsNaN(math.Float64frombits(want))
		if got != want && !nan {
			t.Errorf("%s %#x, %#x, %#x = %#x, want %#x, in lane %d of %#x", o.name, a, b, c, got, want, j%lanes, some)
			return
		}
	}
}
