package ptx

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, name := range []string{"kernels.ptx", "faults.ptx"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
		for part := range strings.SplitSeq(string(text), ".visible") {
			f.Add(header + ".visible" + part)
		}
	}
	f.Add(header + ".global .align 8 .b8 x[12] = {1, 0x2, -3};\n.const .f32 y[2] = {0f3F800000, 1.5};")
	f.Add(header + ".entry e() { .reg .b32 %r<3>; { .reg .b32 t; mov.u32 t, 1; mov.u32 %r1, t; } L: T: .branchtargets L; brx.idx %r1, T; }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		var refused *SyntaxError
		if err != nil && (!errors.As(err, &refused) || refused.Line < 1) {
			t.Fatalf("%v", err)
		}
		if err != nil {
			return
		}
		for _, e := range m.Entries() {
			if e.Shared > 4096 || e.Local > 1024 {
				continue
			}
			run(t, e)
		}
	})
}

// run launches an entry on arguments of zeros, with little time: it may fault, and nothing else.
func run(t *testing.T, e *Entry) {
	t.Helper()
	block := [3]int{1, 1, 1}
	if e.MaxThreads == 0 {
		block = [3]int{40, 1, 1}
	}
	err := e.Launch(NewMemory(), &Launch{Grid: [3]int{2, 1, 1}, Block: block, Args: make([]byte, e.ParamBytes), Shared: 64, Steps: 2000})
	var fault *Fault
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("%v", err)
	}
}

// shapes are instructions whose operands %d come from the fuzzed bytes: registers of the kind of the letter before them,
// labels and numbers.
var shapes = []string{
	"add.s32 r%d, r%d, r%d;", "sub.u32 r%d, r%d, %d;", "mul.lo.s32 r%d, r%d, r%d;", "mad.lo.s32 r%d, r%d, r%d, r%d;", "div.s32 r%d, r%d, r%d;",
	"rem.u32 r%d, r%d, r%d;", "shl.b32 r%d, r%d, r%d;", "shr.s32 r%d, r%d, %d;", "and.b32 r%d, r%d, r%d;", "popc.b32 r%d, r%d;", "bfi.b32 r%d, r%d, r%d, r%d, r%d;",
	"fma.rn.f32 f%d, f%d, f%d, f%d;", "div.rn.f32 f%d, f%d, f%d;", "cvt.rzi.s32.f32 r%d, f%d;", "cvt.rn.f32.s32 f%d, r%d;", "mov.b32 f%d, r%d;",
	"cvt.u64.u32 d%d, r%d;", "add.s64 d%d, d%d, d%d;", "mov.b64 d%d, {r%d, r%d};", "mov.b64 {r%d, r%d}, d%d;", "mul.wide.s32 d%d, r%d, r%d;",
	"setp.lt.s32 p%d, r%d, r%d;", "setp.neu.f32 p%d, f%d, f%d;", "selp.b32 r%d, r%d, r%d, p%d;", "and.pred p%d, p%d, p%d;",
	"@p%d bra L%d;", "bra L%d;", "@p%d brx.idx r%d, T;", "@!p%d exit;", "bar.sync 0;", "@p%d bar.sync 0;",
	"mov.u32 r%d, %%tid.x;", "mov.u32 r%d, %%ctaid.x;", "mov.u32 r%d, %d;", "mov.f32 f%d, 0f3FC00000;", "mov.u64 d%d, buffer;",
	"ld.shared.u32 r%d, [r%d];", "st.shared.u32 [tile+%d], r%d;", "ld.shared.v2.f32 {f%d, f%d}, [tile];", "st.local.u8 [own+%d], r%d;", "ld.local.s8 r%d, [own+%d];",
	"ld.global.u32 r%d, [d%d];", "st.global.f32 [d%d+4], f%d;", "st.volatile.global.u32 [d%d], r%d;", "ld.u32 r%d, [d%d];", "cvta.shared.u64 d%d, d%d;",
	"atom.shared.add.u32 r%d, [tile], r%d;", "atom.global.cas.b32 r%d, [d%d], r%d, r%d;", "red.global.max.s32 [d%d], r%d;", "membar.sys;",
	"shfl.sync.idx.b32 r%d|p%d, r%d, r%d, r%d, %d;", "bar.warp.sync %d;",
}

// wrap makes a module of bytes: each line is a label and an instruction.
func wrap(data []byte) string {
	var b strings.Builder
	b.WriteString(header + ".global .align 8 .u32 buffer[64];\n.visible .entry e() {\n\t.reg .b32 r<8>;\n\t.reg .f32 f<8>;\n\t.reg .b64 d<8>;\n\t.reg .pred p<8>;\n")
	b.WriteString("\t.shared .align 8 .b8 tile[64];\n\t.local .b8 own[16];\n\tT: .branchtargets L0, L1, L2;\n")
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		n := data[0]
		data = data[1:]
		return int(n)
	}
	for i := 0; i < 24; i++ {
		shape := shapes[next()%len(shapes)]
		if i < 3 {
			shape = []string{"mov.u32 r1, %%tid.x;", "mov.u64 d1, buffer;", "setp.lt.u32 p1, r1, 7;"}[i]
		}
		args := make([]any, strings.Count(strings.ReplaceAll(shape, "%%", ""), "%d"))
		for j := range args {
			args[j] = next() % 8
		}
		fmt.Fprintf(&b, "L%d:\t"+shape+"\n", append([]any{i}, args...)...)
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

func FuzzLaunch(f *testing.F) {
	f.Add([]byte{})
	for i := range shapes {
		f.Add(slices.Repeat([]byte{byte(i), 1, 1, 1}, 10))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(wrap(data))
		if err != nil {
			t.Fatalf("%v\n%s", err, wrap(data))
		}
		run(t, m.Entry("e"))
	})
}
