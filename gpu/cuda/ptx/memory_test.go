package ptx

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// signedLess compares values of some bits.
func signedLess(a, b uint64, width int) bool { return int64(a<<(64-width)) < int64(b<<(64-width)) }

// atomics are the operations with what becomes of an old value, in types of 32 and 64 bits.
func atomics() map[string]func(old, x, y uint64, width int) uint64 {
	pick := func(first bool, a, b uint64) uint64 {
		if first {
			return a
		}
		return b
	}
	return map[string]func(old, x, y uint64, width int) uint64{
		"add.u":  func(old, x, _ uint64, _ int) uint64 { return old + x },
		"min.s":  func(old, x, _ uint64, width int) uint64 { return pick(signedLess(x, old, width), x, old) },
		"max.s":  func(old, x, _ uint64, width int) uint64 { return pick(signedLess(x, old, width), old, x) },
		"min.u":  func(old, x, _ uint64, _ int) uint64 { return min(old, x) },
		"max.u":  func(old, x, _ uint64, _ int) uint64 { return max(old, x) },
		"exch.b": func(_, x, _ uint64, _ int) uint64 { return x },
		"cas.b":  func(old, x, y uint64, _ int) uint64 { return pick(old == x, y, old) },
	}
}

func TestAtomics_ChangeMemoryAndReturnWhatWasThere(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 1))
	for name, want := range atomics() {
		for _, width := range []int{32, 64} {
			operands := "%rd4"
			if strings.HasPrefix(name, "cas") {
				operands = "%rd4, %rd5"
			}
			op := fmt.Sprint(name, width)
			text := header + `
.visible .entry e(.param .u64 in, .param .u64 out) {
	.reg .b64 %rd<9>; .reg .b32 %r<9>; .shared .align 8 .b64 tile;
	ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
	ld.global.u64 %rd3, [%rd1]; ld.global.u64 %rd4, [%rd1+8]; ld.global.u64 %rd5, [%rd1+16];
	st.global.u64 [%rd2], %rd3; st.shared.u64 [tile], %rd3;
	cvt.u32.u64 %r4, %rd4; cvt.u32.u64 %r5, %rd5;
	mov.u64 %rd6, 0; mov.u32 %r6, 0;
	atom.global.` + op + ` %rd6, [%rd2], OPS;
	red.shared.` + op + ` [tile], OPS;
	cvt.u64.u32 %rd7, %r6; or.b64 %rd6, %rd6, %rd7;
	ld.shared.u64 %rd8, [tile]; st.global.u64 [%rd2+8], %rd8; st.global.u64 [%rd2+16], %rd6;
}`
			text = strings.ReplaceAll(text, "OPS", operands)
			if width == 32 {
				text = strings.ReplaceAll(strings.ReplaceAll(text, " %rd6, [%rd2], %rd4", " %r6, [%rd2], %r4"), "[tile], %rd4", "[tile], %r4")
				text = strings.ReplaceAll(text, "%r4, %rd5;", "%r4, %r5;")
				text = strings.ReplaceAll(text, "cvt.u32.u64 %r4, %r5", "cvt.u32.u64 %r4, %rd5")
			}
			r := read(t, text)
			for range 40 {
				kind := fmt.Sprint("b", width)
				in := []uint64{operandOf(random, kind), operandOf(random, kind), operandOf(random, kind)}
				if random.IntN(2) == 0 {
					in[1] = in[0]
				}
				if in[0] == uint64(Poison) {
					continue
				}
				out := r.memory.Alloc(24)
				r.must("e", line(1, 1), put(r, in), out)
				got, mask := get[uint64](r, out, 3), ^uint64(0)>>(64-width)
				expected := want(in[0], in[1], in[2], width) & mask
				if got[0] != expected || got[1] != expected || got[2] != in[0] {
					t.Fatalf("%s of %#x, %#x, %#x: %#x in global, %#x in shared memory, returned %#x; want %#x", op, in[0], in[1], in[2], got[0], got[1], got[2], expected)
				}
			}
		}
	}
}

// Every width and sign through every space, alone and in vectors.
func TestTransfers_KeepWidthsAndSigns(t *testing.T) {
	t.Parallel()
	r := read(t, header+`
.visible .entry e(.param .u64 in, .param .u64 out) {
	.reg .b64 %rd<20>; .reg .b32 %r<20>; .reg .b16 %rs<9>;
	.shared .align 16 .b8 tile[32]; .local .align 16 .b8 own[32];
	ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
	ld.global.s8 %r1, [%rd1]; st.global.u32 [%rd2], %r1;
	ld.global.u8 %r1, [%rd1]; st.global.u32 [%rd2+4], %r1;
	ld.global.s16 %rd3, [%rd1]; st.global.u64 [%rd2+8], %rd3;
	ld.global.s8 %rs1, [%rd1]; mov.b32 %r2, {%rs1, %rs1}; st.global.u32 [%rd2+16], %r2;
	ld.global.s32 %rd4, [%rd1+4]; st.global.u64 [%rd2+24], %rd4;
	ld.global.v2.u64 {%rd5, %rd6}, [%rd1]; st.shared.v2.u64 [tile+16], {%rd6, %rd5};
	ld.shared.v4.u32 {%r3, _, %r5, %r6}, [tile+16]; st.local.v2.u32 [own+8], {%r6, %r3};
	mov.u64 %rd7, own; cvta.local.u64 %rd7, %rd7;
	ld.v2.u16 {%rs2, %rs3}, [%rd7+12]; cvt.u32.u16 %r7, %rs3; st.global.u32 [%rd2+20], %r7;
	ld.u64 %rd8, [%rd7+8]; st.global.u64 [%rd2+32], %rd8;
	mov.u32 %r8, 1; mov.u32 %r9, 0;
	st.global.v2.u32 [%rd2+40], {%r8, %r9};
	st.global.u8 [%rd2+48], %rd5; st.global.u8 [%rd2+49], %r1; st.global.u16 [%rd2+50], %rs1; st.global.u32 [%rd2+52], %r5;
	mov.b64 {%r10, %r11}, %rd5; mov.b64 {%rs4, %rs5, %rs6, %rs7}, %rd5; mov.b64 %rd9, {%rs7, %rs6, %rs5, %rs4}; st.global.u64 [%rd2+56], %rd9;
}`)
	in := []byte{0x85, 0x96, 0x03, 0x04, 0xf5, 0x06, 0x07, 0x88, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	out := r.memory.Alloc(64)
	r.must("e", line(1, 1), put(r, in), out)
	want := []uint64{
		0x85<<32 | 0xffffff85, 0xffff_ffff_ffff_9685, 0x1413<<32 | 0xff85ff85, 0xffff_ffff_8807_06f5,
		0x14131211_880706f5, 1, 0x04039685<<32 | 0xff85<<16 | 0x85<<8 | 0x85, 0x9685_0403_06f5_8807,
	}
	for i, got := range get[uint64](r, out, 8) {
		if got != want[i] {
			t.Errorf("word %d is %#x, want %#x", i, got, want[i])
		}
	}
}

// Words go to and from the places that lanes name, whether lanes name the same place or not and whichever lanes take part.
func TestTransfers_OfWordsOfSomeLanes(t *testing.T) {
	t.Parallel()
	const n = 64 // words, two for each place
	r := read(t, header+`
.visible .entry pick(.param .u64 x, .param .u64 place, .param .u64 out, .param .u32 some) {
	.reg .pred on; .reg .u32 i, y, a, b, at; .reg .b64 d<5>;
	.shared .align 8 .b8 words[256];
	ld.param.u64 d1, [x]; ld.param.u64 d2, [place]; ld.param.u64 d3, [out]; ld.param.u32 y, [some];
	mov.u32 i, %tid.x; shr.u32 y, y, i; and.b32 y, y, 1; setp.ne.u32 on, y, 0;
	mul.wide.u32 d4, i, 8; add.s64 d1, d1, d4; add.s64 d3, d3, d4;
	ld.global.v2.u32 {a, b}, [d1];
	mov.u32 at, words; shl.b32 y, i, 3; add.s32 y, y, at;
	st.shared.v2.u32 [y], {a, b};
	bar.sync 0;
	mul.wide.u32 d4, i, 4; add.s64 d2, d2, d4;
	mov.u32 a, 0; mov.u32 b, 0;
	@on ld.global.u32 i, [d2];
	@on shl.b32 i, i, 3;
	@on add.s32 at, at, i;
	@on ld.shared.v2.u32 {a, b}, [at];
	@on st.global.v2.u32 [d3], {b, a};
	ret;
}
`)
	random := rand.New(rand.NewPCG(5, 5))
	x := make([]uint32, n)
	for i := range x {
		x[i] = random.Uint32() >> 1
	}
	for _, places := range []int{1, 2, 3, lanes} {
		for _, some := range []uint32{everyone, 0xffff0000, 0x80000001, 0x7ba1f0c6, random.Uint32()} {
			place, want := make([]uint32, lanes), make([]uint32, n)
			for i := range place {
				place[i] = uint32(random.IntN(places))
				if random.IntN(2) == 0 && i > 0 {
					place[i] = place[i-1]
				}
				if some>>i&1 != 0 {
					want[2*i], want[2*i+1] = x[2*place[i]+1], x[2*place[i]]
				}
			}
			out := put(r, make([]uint32, n))
			r.must("pick", line(1, lanes), put(r, x), put(r, place), out, some)
			equal(t, fmt.Sprintf("lanes %#x at %v", some, place), get[uint32](r, out, n), want)
		}
	}
}
