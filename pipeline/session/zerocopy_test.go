package session_test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// witness remembers where the memory lies that each part of a pipeline is given.
type witness struct {
	env.Plugin

	mu     sync.Mutex
	blocks map[uintptr]env.Block // that environments were bound to, by address
	mapped map[string][]uintptr  // addresses at which each block's guest region is mapped, by place in its file
	// Addresses outside of these blocks.
	actedElsewhere, learnedElsewhere int
	acted, learned                   int // requests and blocks looked at
}

func (w *witness) NewEnv(o env.Options) (env.Env, error) {
	e, err := w.Plugin.NewEnv(o)
	return &witnessed{e, w}, err
}

func (w *witness) Close() error { return nil }

type witnessed struct {
	env.Env
	w *witness
}

func (e *witnessed) Bind(b env.Block) error {
	err := e.Env.Bind(b)
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.blocks[uintptrOf(b.Mem)] = b
	if e.w.mapped != nil && err == nil {
		err = e.w.lookAtMaps(b)
	}
	return err
}

var mapsLine = regexp.MustCompile(`^([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) [0-9a-f:]+ ([0-9]+)`)

// lookAtMaps notes every place where this process has mapped the beginning of a block, shared and writable.
func (w *witness) lookAtMaps(b env.Block) error {
	file, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", b.FD))
	if err != nil {
		return err
	}
	inode := inodeOf(file)
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()
	place := fmt.Sprint(inode, " ", b.Offset)
	w.mapped[place] = nil
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		m := mapsLine.FindStringSubmatch(lines.Text())
		if m == nil || m[5] != strconv.FormatUint(inode, 10) || m[3] != "rw-s" {
			continue
		}
		start, offset, end := hex(m[1]), hex(m[4]), hex(m[2])
		if at := uint64(b.Offset); at >= offset && at+uint64(b.Schema.GuestBytes) <= offset+end-start {
			w.mapped[place] = append(w.mapped[place], uintptr(start+at-offset))
		}
	}
	return nil
}

func hex(s string) uint64 {
	v, _ := strconv.ParseUint(s, 16, 64)
	return v
}

// inBlock reports whether memory lies in a block that an environment was bound to.
func (w *witness) inBlock(b []byte) bool {
	at := uintptrOf(b)
	for start, block := range w.blocks {
		if at >= start && at < start+uintptr(len(block.Mem)) {
			return true
		}
	}
	return false
}

func (w *witness) wrap(b policy.Backend) policy.Backend {
	return &spy{Backend: b,
		acted: func(requests []policy.Request) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, r := range requests {
				w.acted++
				elsewhere := slices.ContainsFunc(r.Obs, func(m trajectory.Matrix) bool { return !w.inBlock(m.Data) })
				if elsewhere || !w.inBlock(bytesOf(r.Value)) || r.Action != nil && !w.inBlock(bytesOf(r.LogProb)) {
					w.actedElsewhere++
				}
			}
		},
		updates: func(d *policy.Dataset) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, tr := range d.Blocks {
				w.learned++
				if _, ok := w.blocks[uintptrOf(tr.Mem)]; !ok {
					w.learnedElsewhere++
				}
			}
		}}
}

// Inference and learner read the guest's output where it lies: the same addresses, and under a guest in
// WebAssembly the same pages of the same file, mapped a second time into its memory.
func TestZeroCopy_EverybodyWorksInTheSameBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		plugin env.Plugin
		wasm   bool
	}{"native": {plugintest.New(uneven()), false}, "wasm": {builtinEnv(t, "cartpole@1"), true}} {
		for _, mode := range []string{"sync", "async"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				w := &witness{Plugin: c.plugin, blocks: map[uintptr]env.Block{}}
				if c.wasm {
					w.mapped = map[string][]uintptr{}
				}
				o := experiment{plugin: w, backend: w.wrap, sets: []string{fmt.Sprintf("train.mode=%q", mode)}}.must(t)
				want := map[string]int{"sync": 2, "async": 4}[mode]
				if len(w.blocks) != want || w.acted < 100 || w.learned < 8 {
					t.Errorf("%d blocks, %d requests, %d blocks learned from; want %d blocks and some of each", len(w.blocks),
						w.acted, w.learned, want)
				}
				if w.actedElsewhere+w.learnedElsewhere > 0 {
					t.Errorf("%d of %d requests and %d of %d blocks lie outside of what the environments write", w.actedElsewhere,
						w.acted, w.learnedElsewhere, w.learned)
				}
				for place, at := range w.mapped {
					if len(at) != 2 {
						t.Errorf("inode and offset %s: mapped at %x, want at two places: the host's and the guest's", place, at)
					}
				}
				countCopies(t, o, w)
			})
		}
	}
}

// A guest's pictures are read where it draws them, stacked ones too: no frame is copied before it is gathered, except the
// rows that a block carries over to the next, and it is gathered as plain bytes.
func TestZeroCopy_Pictures(t *testing.T) {
	const stack, frame = 4, 84 * 84
	w := &witness{Plugin: builtinEnv(t, "squash@1"), blocks: map[uintptr]env.Block{}, mapped: map[string][]uintptr{}}
	o := experiment{plugin: w, backend: w.wrap, sets: []string{"component.rollout.horizon=16", "component.batcher.dataset_rows=128",
		fmt.Sprintf("policy.main.encoder.obs.stack=%d", stack),
		`policy.main.net={nodes=[{name="trunk",in=["obs"],conv2d={out=4,kernel=12,stride=12}}]}`}}.must(t)
	if w.acted < 30 || w.learned < 4 || w.actedElsewhere+w.learnedElsewhere > 0 {
		t.Errorf("%d of %d requests and %d of %d blocks lie outside of what the environments write", w.actedElsewhere, w.acted,
			w.learnedElsewhere, w.learned)
	}
	for place, at := range w.mapped {
		if len(at) != 2 {
			t.Errorf("inode and offset %s: mapped at %x, want at two places: the host's and the guest's", place, at)
		}
	}
	envs := 0
	for _, b := range w.blocks {
		envs = b.Schema.Shape.Envs
	}
	seam := float64(stack * frame * envs) // the next row, and the rows that its stack reads
	if n := o.stats["rollout/carried_bytes"] / seam; n < float64(len(o.blocks)-2) || n > 1.01*float64(len(o.blocks)+2) {
		t.Errorf("%v bytes carried, %v times the frames of a seam, for %d blocks", o.stats["rollout/carried_bytes"], n, len(o.blocks))
	}
	checkGathered(t, o, stack*frame)
}

// countCopies checks the counters of the two copies that there are: the row carried from block to block, and the
// observations that the learner gathers into minibatches.
func countCopies(t *testing.T, o *outcome, w *witness) {
	t.Helper()
	var row, obs int
	for _, b := range w.blocks {
		l, _ := b.Schema.Layout(trajectory.Obs)
		row, obs = l.StrideT, 4*l.Elems
	}
	carried := o.stats["rollout/carried_bytes"]
	if n := carried / float64(row); n != float64(int(n)) || n < float64(len(o.blocks)-2) || n > float64(len(o.blocks)+2) {
		t.Errorf("%v bytes carried, rows of %d bytes, for %d blocks: want one row each", carried, row, len(o.blocks))
	}
	checkGathered(t, o, obs)
}

// checkGathered checks the counter of the learner's copy, given the bytes of a row.
func checkGathered(t *testing.T, o *outcome, row int) {
	t.Helper()
	learned := 0.0
	for _, n := range o.reported("losses/valid_rows") {
		learned += n
	}
	const epochs = 2
	if want := learned * epochs * float64(row); o.stats["learner/gathered_bytes"] != want {
		t.Errorf("%v bytes gathered, want %v: each valid row once an epoch", o.stats["learner/gathered_bytes"], want)
	}
}
