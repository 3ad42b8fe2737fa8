package ptx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// seeded is a launch with one fault.
type seeded struct {
	name   string // of the entry
	kind   Kind
	launch Launch
	args   func(r *rig) []any
	thread int    // that faults, -1: any
	text   string // the beginning of the instruction
}

func host(r *rig, n int) uint64 {
	address, err := r.memory.Register(aligned(n))
	if err != nil {
		r.Fatal(err)
	}
	return address
}

func ints(n int, f func(i int) int32) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

func faults() []seeded {
	return []seeded{
		{name: "beyond", kind: BadAddress, launch: line(1, 32), thread: 31, text: "ld.global",
			args: func(r *rig) []any { return []any{put(r, make([]float32, 31)), r.memory.Alloc(4 * 32), int32(31)} }},
		{name: "beyond", kind: BadAddress, launch: line(1, 32), thread: 31, text: "st.global",
			args: func(r *rig) []any { return []any{put(r, make([]float32, 32)), r.memory.Alloc(4 * 31), int32(31)} }},
		{name: "beyond", kind: BadAddress, launch: line(1, 32), thread: 0, text: "ld.global",
			args: func(r *rig) []any { return []any{uint64(0), r.memory.Alloc(4), int32(3)} }},
		{name: "misaligned", kind: Misaligned, launch: line(1, 32), thread: 1, text: "ld.global",
			args: func(r *rig) []any { return []any{put(r, make([]float32, 64)), r.memory.Alloc(4 * 32)} }},
		{name: "shared_beyond", kind: SharedBounds, launch: Launch{Block: [3]int{32}, Shared: 128}, thread: 31, text: "st.shared",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 32), int32(1)} }},
		{name: "unwritten_shared", kind: Uninitialised, launch: line(1, 32), thread: 28, text: "st.global",
			args: func(r *rig) []any { return []any{put(r, make([]float32, 32)), r.memory.Alloc(4 * 32)} }},
		{name: "unwritten_branch", kind: Uninitialised, launch: line(1, 32), thread: 0, text: "@",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 32), r.memory.Alloc(4 * 32)} }},
		{name: "unwritten_address", kind: Uninitialised, launch: line(1, 32), thread: 0, text: "st.global",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 32), r.memory.Alloc(4 * 32)} }},
		{name: "missing_lanes", kind: MissingLanes, launch: line(1, 32), thread: 3, text: "shfl.sync",
			args: func(r *rig) []any {
				return []any{put(r, ints(32, func(i int) int32 { return int32(i) })), r.memory.Alloc(4 * 32)}
			}},
		{name: "no_barrier", kind: SharedRace, launch: line(1, 64), thread: -1,
			args: func(r *rig) []any {
				return []any{put(r, ints(64, func(i int) int32 { return int32(i + 1) })), r.memory.Alloc(4 * 64)}
			}},
		{name: "no_second_barrier", kind: SharedRace, launch: line(1, 64), thread: -1,
			args: func(r *rig) []any { return []any{put(r, make([]float32, 64)), r.memory.Alloc(4 * 64), int32(3)} }},
		{name: "no_warp_barrier", kind: SharedRace, launch: line(1, 32), thread: 0, text: "ld.shared",
			args: func(r *rig) []any { return []any{put(r, make([]float32, 32)), r.memory.Alloc(4 * 32)} }},
		{name: "both_write", kind: GlobalRace, launch: line(2, 32), thread: 0, text: "st.global",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 32)} }},
		{name: "no_publication", kind: GlobalRace, launch: line(3, 32), thread: 0, text: "ld.global",
			args: func(r *rig) []any { return []any{r.memory.Alloc(12), r.memory.Alloc(4), put(r, []uint32{0})} }},
		{name: "half_at_barrier", kind: Divergence, launch: line(1, 64), thread: -1, text: "bar.sync",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 64)} }},
		{name: "warp_not_at_barrier", kind: Divergence, launch: line(1, 64), thread: -1, text: "bar.sync",
			args: func(r *rig) []any {
				return []any{put(r, ints(64, func(i int) int32 { return int32(i / 32) })), r.memory.Alloc(4 * 64)}
			}},
		{name: "no_fence", kind: Unfenced, launch: line(1, 64), thread: 0, text: "st.volatile",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 64), host(r, 4)} }},
		{name: "weak_fence", kind: Unfenced, launch: line(1, 64), thread: 0, text: "st.volatile",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 64), host(r, 4)} }},
		{name: "no_wait", kind: Unfenced, launch: line(1, 1024), thread: 0, text: "st.volatile",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 1024), host(r, 4)} }},
		{name: "no_count", kind: Unfenced, launch: line(4, 64), thread: 0, text: "st.volatile",
			args: func(r *rig) []any { return []any{r.memory.Alloc(4 * 256), host(r, 4)} }},
		{name: "forever", kind: StepLimit, launch: Launch{Block: [3]int{32}, Steps: 10000}, thread: 0,
			args: func(r *rig) []any { return []any{put(r, []int32{0})} }},
		{name: "stops", kind: Trap, launch: line(1, 32), thread: 4,
			args: func(r *rig) []any { return []any{put(r, ints(32, func(i int) int32 { return int32(i) }))} }},
		{name: "read_only", kind: ReadOnly, launch: line(1, 32), thread: 0, text: "ld.global.nc",
			args: func(r *rig) []any { x := r.memory.Alloc(4 * 64); return []any{x, x} }},
		{name: "local_beyond", kind: LocalBounds, launch: line(1, 32), thread: 0, text: "st.local",
			args: func(r *rig) []any { return []any{put(r, make([]int32, 32)), int32(5)} }},
		{name: "small", kind: TooManyThreads, launch: line(1, 65), args: func(r *rig) []any { return []any{uint64(0)} }},
		{name: "both_write", kind: TooManyThreads, launch: line(1, 1025), args: func(r *rig) []any { return []any{uint64(0)} }},
		{name: "shared_beyond", kind: SharedLimit, launch: Launch{Shared: MaxShared + 1},
			args: func(r *rig) []any { return []any{uint64(0), int32(0)} }},
		{name: "both_write", kind: BadLaunch, launch: Launch{Grid: [3]int{1, 65536}}, args: func(r *rig) []any { return []any{uint64(0)} }},
	}
}

// A fault is found in any order of warps and CTAs, and names its place.
func TestLaunch_FindsTheFault(t *testing.T) {
	t.Parallel()
	for i, s := range faults() {
		t.Run(fmt.Sprint(i, s.name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
				r := load(t, "faults.ptx")
				l := s.launch
				l.Seed, l.Workers = seed, int(seed%3)
				err := r.launch(s.name, l, s.args(r)...)
				var f *Fault
				if !errors.As(err, &f) || f.Kind != s.kind || f.Entry != s.name {
					t.Fatalf("seed %d: %v, want %v in %s", seed, err, s.kind, s.name)
				}
				if s.kind == TooManyThreads || s.kind == SharedLimit || s.kind == BadLaunch {
					continue
				}
				if lines := strings.Split(r.text, "\n"); f.Line == 0 || f.Line > len(lines) ||
					!strings.HasPrefix(f.Text, s.text) && s.kind != Divergence {
					t.Errorf("seed %d: line %d, %s: want %q", seed, f.Line, f.Text, s.text)
				} else if words := strings.Fields(lines[f.Line-1]); !slices.Equal(words, strings.Fields(f.Text+";")) {
					t.Errorf("seed %d: line %d is %q, not %q", seed, f.Line, lines[f.Line-1], f.Text)
				}
				if s.thread >= 0 && f.Thread != [3]int{s.thread} {
					t.Errorf("seed %d: thread %v, want %d", seed, f.Thread, s.thread)
				}
			}
		})
	}
}

// What nvcc does not write, or not so that the fault would stay.
func TestLaunch_FindsTheFaultOfOneInstruction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   Kind
		thread int
		text   string
	}{
		"register":            {Uninitialised, 0, "st.global.u32 [%rd1], %r9;"},
		"part of a register":  {Uninitialised, 0, "mov.b64 %rd3, {%r1, %r9}; st.global.u64 [%rd1], %rd3;"},
		"address":             {Uninitialised, 0, "ld.global.u32 %r2, [%rd9];"},
		"sum":                 {Uninitialised, 0, "add.s32 %r2, %r1, %r9; setp.eq.s32 %p1, %r2, 0; @%p1 bra end;"},
		"choice":              {Uninitialised, 0, "selp.b32 %r2, %r1, %r1, %p9; st.global.u32 [%rd1], %r2;"},
		"operand of atomic":   {Uninitialised, 0, "red.global.add.u32 [%rd1], %r9;"},
		"atomic on poison":    {Uninitialised, 0, "red.global.add.u32 [%rd1], 1;"},
		"byte":                {Uninitialised, 0, "ld.global.u8 %r2, [%rd1+5]; st.global.u32 [%rd1], %r2;"},
		"half":                {Uninitialised, 0, "ld.global.u64 %rd2, [%rd1+8]; st.global.u64 [%rd1], %rd2;"},
		"copy through shared": {Uninitialised, 0, "setp.eq.s32 %p1, %r4, 0; @%p1 st.shared.u32 [tile], %r9; @%p1 ld.shared.u32 %r2, [tile]; @%p1 st.global.u32 [%rd1], %r2;"},
		"lane to read":        {Uninitialised, 0, "shfl.sync.idx.b32 %r2, %r1, %r9, 31, -1;"},
		"index of a jump":     {Uninitialised, 0, "brx.idx %r9, ways;"},
		"jump beyond":         {BadAddress, 2, "brx.idx %r1, ways;"},
		"parameter":           {ParamBounds, 0, "ld.param.u32 %r2, [out+16];"},
		"parameter written":   {ReadOnly, 0, "mov.u64 %rd2, out; cvta.param.u64 %rd2, %rd2; st.u32 [%rd2], %r1;"},
		"constant written":    {ReadOnly, 0, "mov.u64 %rd2, fixed; cvta.const.u64 %rd2, %rd2; st.const.u32 [%rd2], %r1;"},
		"generic shared":      {SharedBounds, 0, "mov.u64 %rd2, tile; cvta.shared.u64 %rd2, %rd2; ld.u32 %r2, [%rd2+128];"},
		"below shared":        {SharedBounds, 0, "ld.shared.u32 %r2, [tile+-4];"},
		"misaligned vector":   {Misaligned, 0, "ld.shared.v2.u32 {%r2, %r3}, [tile+4];"},
		"misaligned atomic":   {Misaligned, 0, "red.global.add.u32 [%rd1+2], 1;"},
		"last byte":           {BadAddress, 0, "ld.global.u64 %rd2, [%rd1+128];"},
		"around":              {BadAddress, 0, "ld.global.u64 %rd2, [-8];"},
		"mask without itself": {MissingLanes, 1, "bar.warp.sync 0xfffffffd;"},
		"warp barrier":        {MissingLanes, 0, "setp.lt.u32 %p1, %r1, 7; @%p1 bar.warp.sync -1;"},
		"matrix":              {MissingLanes, 0, "setp.lt.u32 %p1, %r1, 7; @%p1 mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f1,%f1,%f1}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};"},
		"guarded barrier":     {Divergence, 0, "setp.lt.u32 %p1, %r1, 7; @%p1 bar.sync 0; st.global.u32 [%rd1], %r1;"},
		"other barrier":       {Divergence, -1, "setp.lt.u32 %p1, %r4, 32; @%p1 bra one; bar.sync 0; bra end; one: bar.sync 0;"},
		"atomic of local":     {BadAddress, 0, "mov.u64 %rd2, own; cvta.local.u64 %rd2, %rd2; st.u32 [%rd2], 0; atom.add.u32 %r2, [%rd2], 1;"},
		"one word two lanes":  {SharedRace, 1, "st.shared.u32 [tile], %r1;"},
		"one word of global":  {GlobalRace, 1, "st.global.u32 [%rd1], %r1;"},
		"one word two warps":  {GlobalRace, -1, "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r1;"},
		"read by a warp":      {GlobalRace, -1, "setp.lt.u32 %p1, %r4, 32; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1; @%p1 st.global.u32 [%rd2], %r1; @!%p1 ld.global.u32 %r2, [%rd2];"},
		"read by a lane":      {GlobalRace, -1, "mul.wide.u32 %rd2, %r4, 2; add.s64 %rd2, %rd2, %rd1; st.global.u16 [%rd2], %r1; xor.b32 %r2, %r4, 2; mul.wide.u32 %rd2, %r2, 2; add.s64 %rd2, %rd2, %rd1; ld.global.u16 %r2, [%rd2];"},
		"written after told":  {Unfenced, -1, "setp.ne.u32 %p1, %r4, 0; @%p1 bra end; membar.sys; st.volatile.global.u32 [%rd4], 1; st.global.u32 [%rd1], 1;"},
	} {
		r := read(t, header+`
.const .u32 fixed = 3;
.visible .entry e(.param .u64 out, .param .u64 told) {
	.reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<10>; .reg .f32 %f<3>;
	.shared .u32 tile[32]; .local .u32 own[2];
	ways: .branchtargets end, end;
	ld.param.u64 %rd1, [out];
	ld.param.u64 %rd4, [told];
	mov.u32 %r1, %laneid;
	mov.u32 %r4, %tid.x;
	mov.f32 %f1, 0f00000000;
`+strings.ReplaceAll(c.text, "; ", ";\n")+"\nend: ret;\n}")
		var f *Fault
		err := r.launch("e", line(1, 64), r.memory.Alloc(132), host(r, 8))
		if !errors.As(err, &f) || f.Kind != c.kind || c.thread >= 0 && f.Thread[0]&31 != c.thread || f.Line == 0 {
			t.Errorf("%s: %v, want %v of thread %d", name, err, c.kind, c.thread)
		}
	}
}

// A thread that reads its own word with two widths and then writes it races with no other.
func TestLaunch_OneThreadReadsAWordWithTwoWidths(t *testing.T) {
	t.Parallel()
	for _, reads := range []string{"ld.global.u32 %r2, [%rd2]; ld.global.u8 %r3, [%rd2+1];", "ld.global.u8 %r3, [%rd2]; ld.global.u16 %r3, [%rd2]; ld.global.u32 %r2, [%rd2];"} {
		r := read(t, header+`
.visible .entry e(.param .u64 out) {
	.reg .b32 %r<9>; .reg .b64 %rd<9>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1;
	`+reads+`
	st.global.u32 [%rd2], %r1;
	ret;
}`)
		if err := r.launch("e", line(1, 64), r.memory.Alloc(256)); err != nil {
			t.Errorf("%s: %v", reads, err)
		}
	}
}

// Threads of a CTA may read each other's global memory after a barrier, and write it again after another one.
func TestLaunch_BarriersOrderGlobalMemory(t *testing.T) {
	t.Parallel()
	r := read(t, header+`
.visible .entry e(.param .u64 out) {
	.reg .b32 %r<9>; .reg .b64 %rd<9>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x; xor.b32 %r2, %r1, 32; xor.b32 %r3, %r1, 1;
	mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1;
	mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd3, %rd1;
	mul.wide.u32 %rd4, %r3, 4; add.s64 %rd4, %rd4, %rd1;
	st.global.u32 [%rd2], %r1;
	bar.sync 0;
	ld.global.u32 %r4, [%rd3];
	bar.sync 0;
	add.u32 %r4, %r4, 64;
	st.global.u32 [%rd2], %r4;
	bar.warp.sync -1;
	ld.global.u32 %r4, [%rd4];
	bar.warp.sync -1;
	st.global.u32 [%rd4], %r4;
	st.global.u8 [%rd4], %r1;
	ret;
}
`)
	for seed := range uint64(8) {
		out := r.memory.Alloc(4 * 64)
		l := line(1, 64)
		l.Seed = seed
		if err := r.launch("e", l, out); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, got := range get[uint32](r, out, 64) {
			if want := uint32(i ^ 1); got != want {
				t.Fatalf("seed %d: word %d is %d, want %d", seed, i, got, want)
			}
		}
	}
}
