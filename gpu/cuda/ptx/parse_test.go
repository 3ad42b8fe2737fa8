package ptx

import (
	"errors"
	"strings"
	"testing"
)

// Text that is not PTX, or not supported, is refused when it is read, with its line.
func TestParse_RefusesWhatItDoesNotRun(t *testing.T) {
	t.Parallel()
	regs := ".reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<3>; .reg .pred %p<3>; .reg .b16 %rs<3>;\n"
	for name, c := range map[string]struct {
		text   string
		line   int
		reason string
	}{
		"no target":             {".version 7.8\n", 2, "no .target"},
		"32-bit addresses":      {".version 7.8\n.target sm_80\n.address_size 32", 3, "address size 32"},
		"directive":             {header + ".func f() { }", 4, `".func"`},
		"character":             {header + "\n#", 5, "unexpected character"},
		"string":                {header + `.file 1 "x`, 4, "does not end"},
		"comment":               {header + "/* x", 4, "does not end"},
		"entry without end":     {header + ".entry e() {\n", 5, "does not end"},
		"second entry":          {header + ".entry e() { }\n.entry e() { }", 5, "second entry"},
		"external variable":     {header + ".extern .global .b8 x[4];", 4, `".global"`},
		"opcode":                {header + ".entry e() {" + regs + "wgmma.fence.sync.aligned;\n}", 5, "not an instruction"},
		"call":                  {header + ".entry e() {" + regs + "\ncall.uni f;\n}", 6, "not an instruction"},
		"modifier":              {header + ".entry e() {" + regs + "add.cc.s32 %r1, %r2, %r3; }", 5, `".cc" is not run`},
		"rounding of f64":       {header + ".entry e() { .reg .f64 %d<3>; add.rz.f64 %d1, %d1, %d2; }", 4, `".rz" is not run`},
		"type":                  {header + ".entry e() {" + regs + "add.f16 %rs1, %rs1, %rs2; }", 5, "no type"},
		"operands":              {header + ".entry e() {" + regs + "add.s32 %r1, %r2; }", 5, "2 operands, not 3"},
		"undeclared register":   {header + ".entry e() {" + regs + "add.s32 %r1, %r2, %r4; }", 5, "%r4 is not declared"},
		"register of 64 bits":   {header + ".entry e() {" + regs + "add.s32 %r1, %r2, %rd1; }", 5, "no 32 bits"},
		"no predicate":          {header + ".entry e() {" + regs + "@%r1 bra L; L: }", 5, "not a predicate"},
		"no label":              {header + ".entry e() {" + regs + "bra M; }", 5, "label M"},
		"special register":      {header + ".entry e() {" + regs + "mov.u32 %r1, %clock; }", 5, "%clock is not declared"},
		"wrong space":           {header + ".entry e(.param .u32 x) {" + regs + "ld.shared.u32 %r1, [x]; }", 5, "another space"},
		"vector":                {header + ".entry e() {" + regs + "ld.global.v4.u32 {%r1, %r2}, [%rd1]; }", 5, "a vector"},
		"store of 32 bytes":     {header + ".entry e() {" + regs + "st.global.v4.u64 [%rd1], {%rd1, %rd1, %rd1, %rd1}; }", 5, "more than 16 bytes"},
		"alignment":             {header + ".global .align 3 .b8 x[4];", 4, "power of two"},
		"initialiser":           {header + ".global .u32 x[1] = {1, 2};", 4, "too many values"},
		"rounding of a cvt":     {header + ".entry e() {" + regs + "cvt.s32.f32 %r1, %f1; }", 5, "needs a rounding"},
		"shuffle without sync":  {header + ".entry e() {" + regs + "shfl.up.b32 %r1, %r1, 1, 0; }", 5, "only shfl.sync"},
		"another barrier":       {header + ".entry e() { bar.sync 1; }", 4, "only bar.sync 0"},
		"too much local memory": {header + ".entry e() { .local .b8 x[100000]; }", 4, "more than is run"},
	} {
		_, err := Parse(c.text)
		var refused *SyntaxError
		if !errors.As(err, &refused) || refused.Line != c.line || !strings.Contains(refused.Reason, c.reason) {
			t.Errorf("%s: %v, want line %d: %s", name, err, c.line, c.reason)
		}
	}
}

func TestParse_NamesInBlocksAreTheirOwn(t *testing.T) {
	t.Parallel()
	r := read(t, header+`
.visible .entry e(.param .u64 out) {
	.reg .b32 t; .reg .b64 %rd<2>;
	mov.u32 t, 1;
	{ .reg .b32 t; mov.u32 t, 2; { .reg .b32 t; mov.u32 t, 3; } }
	ld.param.u64 %rd1, [out];
	st.global.u32 [%rd1], t;
}`)
	out := r.memory.Alloc(4)
	r.must("e", line(1, 1), out)
	equal(t, "t", get[uint32](r, out, 1), []uint32{1})
}

// A table of jumps, whose lanes go their ways and meet again at the barrier.
func TestLaunch_IndexedBranches(t *testing.T) {
	t.Parallel()
	r := read(t, header+`
.visible .entry e(.param .u64 out) {
	.reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	and.b32 %r2, %r1, 3;
	ways: .branchtargets zero, one, two, one;
	brx.idx %r2, ways;
two:	mov.u32 %r3, 2;
	bra meet;
one:	mov.u32 %r3, 1;
	bra meet;
zero:	mov.u32 %r3, 0;
meet:	bar.sync 0;
	st.global.u32 [%rd3], %r3;
	ret;
}`)
	out := r.memory.Alloc(4 * 64)
	r.must("e", line(1, 64), out)
	for i, got := range get[uint32](r, out, 64) {
		if want := []uint32{0, 1, 2, 1}[i&3]; got != want {
			t.Fatalf("thread %d went to %d, want %d", i, got, want)
		}
	}
}

// Some threads leave early while others of their warp, after other work, come to the barrier: that is allowed.
// Threads that have work left and come later are waited for.
func TestLaunch_ThreadsThatLeftAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	r := read(t, header+`
.visible .entry e(.param .u64 out) {
	.reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<3>;
	.shared .u32 tile[64];
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	and.b32 %r2, %r1, 7;
	setp.eq.u32 %p1, %r2, 3;
	@%p1 bra early;
	shl.b32 %r3, %r1, 2;
	mov.u32 %r5, tile;
	add.s32 %r3, %r3, %r5;
	st.shared.u32 [%r3], %r1;
	bar.sync 0;
	xor.b32 %r4, %r3, 128;
	ld.shared.u32 %r4, [%r4];
	st.global.u32 [%rd3], %r4;
	ret;
early:	st.global.u32 [%rd3], 1000;
	ret;
}`)
	for seed := range uint64(5) {
		out := r.memory.Alloc(4 * 64)
		l := line(1, 64)
		l.Seed = seed
		r.must("e", l, out)
		for i, got := range get[uint32](r, out, 64) {
			want := uint32(i ^ 32)
			if i&7 == 3 {
				want = 1000
			}
			if got != want {
				t.Fatalf("seed %d: thread %d has %d, want %d", seed, i, got, want)
			}
		}
	}
}

// Predicates that were never set decide nothing where the other one decides: so compilers write "a && b".
func TestLaunch_UndefinedPredicatesAfterADecision(t *testing.T) {
	t.Parallel()
	text := header + `
.visible .entry e(.param .u64 out) {
	.reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<4>;
	ld.param.u64 %rd1, [out];
	setp.OP.u32 %p1, 1, 1;
	and.pred %p3, %p1, %p2;
	selp.u32 %r1, 1, 0, %p3;
	st.global.u32 [%rd1], %r1;
}`
	r := read(t, strings.Replace(text, "OP", "ne", 1))
	r.must("e", line(1, 1), r.memory.Alloc(4))
	r = read(t, strings.Replace(text, "OP", "eq", 1))
	var fault *Fault
	if err := r.launch("e", line(1, 1), r.memory.Alloc(4)); !errors.As(err, &fault) || fault.Kind != Uninitialised {
		t.Errorf("%v, want an uninitialised value", err)
	}
}

func TestArgs_HoldsTypesAgainstParameters(t *testing.T) {
	t.Parallel()
	e := load(t, "kernels.ptx").module.Entry("scale")
	if b, err := e.Args(uint64(1), float32(1), int32(2)); err != nil || len(b) != 16 || b[0] != 1 || b[11] != 0x3f || b[12] != 2 {
		t.Errorf("arguments %v, %v", b, err)
	}
	for _, bad := range [][]any{{uint64(1)}, {uint64(1), 1.0, int32(2)}, {[]byte{1}, float32(1), int32(2)}, {uint64(1), float32(1), "x"}} {
		if _, err := e.Args(bad...); err == nil {
			t.Errorf("arguments %v are taken", bad)
		}
	}
}

func TestMemory_AllocationsAreApart(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	a, b := m.Alloc(100), m.Alloc(100)
	bytes, err := m.View(a, 100)
	if err != nil || bytes[0] != 0xa5 || bytes[3] != 0x7f {
		t.Errorf("fresh memory is %x, %v", bytes[:4], err)
	}
	for _, bad := range []struct {
		address uint64
		n       int
	}{{a, 101}, {a - 1, 1}, {a + 100, 1}, {b + 99, 2}, {a, -1}, {0, 1}, {1 << 63, 1}} {
		if _, err := m.View(bad.address, bad.n); err == nil {
			t.Errorf("%d bytes at %#x are there", bad.n, bad.address)
		}
	}
	if m.Free(a) != nil || m.Free(a) == nil || m.Unregister(b) == nil {
		t.Error("memory is freed twice, or by another way than it came")
	}
	if _, err := m.View(a, 1); err == nil {
		t.Error("freed memory is there")
	}
	host := make([]byte, 64)
	address, err := m.Register(host[:32])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Register(host[31:]); err == nil {
		t.Error("overlapping memory is registered")
	}
	if _, err := m.Register(nil); err == nil {
		t.Error("nothing is registered")
	}
	if seen, err := m.View(address+8, 8); err != nil || &seen[0] != &host[8] {
		t.Errorf("registered memory is elsewhere: %v", err)
	}
	if m.Unregister(address) != nil {
		t.Error("registered memory cannot be unregistered")
	}
}
