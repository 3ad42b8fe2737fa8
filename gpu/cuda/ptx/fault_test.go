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
	text   string // what the instruction begins with
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
		{name: "shared_beyond", kind: SharedLimit, launch: Launch{Shared: NoOptIn + 1},
			args: func(r *rig) []any { return []any{uint64(0), int32(0)} }},
		{name: "shared_beyond", kind: SharedLimit, launch: Launch{Shared: MaxOptIn + 1, OptIn: MaxOptIn + 1},
			args: func(r *rig) []any { return []any{uint64(0), int32(0)} }},
		{name: "both_write", kind: BadLaunch, launch: Launch{Grid: [3]int{1, 65536}}, args: func(r *rig) []any { return []any{uint64(0)} }},
	}
}

// A fault is found whatever the order of warps and CTAs, and names where it is.
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
