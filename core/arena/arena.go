package arena

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// hostHolder is the bit of the host in every holder bitmap.
const hostHolder = 0

// Config describes an arena.
type Config struct {
	ID         uint8  // stands in every handle; Set.Add chooses it
	Name       string // for people, and for /proc/*/maps
	Blocks     int    // 1 to 524288
	BlockBytes int    // size of each; blocks start on page boundaries, so small ones waste memory
	Schema     any    // what the blocks contain, for those who know; the arena does not look at it

	// Segment makes the memory, which then belongs to the arena. nil means shm.Create.
	Segment func(name string, bytes int) (*shm.Segment, error)
}

// Arena is one segment cut into equal blocks.
type Arena struct {
	config Config
	layout layout
	seg    *shm.Segment
	mem    []byte
	view   view
	first  uint64  // generation that all blocks began with
	me     word    // this process's bit in the holder bitmap
	local  []local // what only this process knows about each block

	closing atomic.Bool // set by Close for ever: no more loans
	track   tracker     // stacks of open claims, in invariants builds

	mu     sync.Mutex // sweeping and closing, one at a time
	closed bool       // guarded by mu: Close has succeeded
}

// local is a cache line of this process's own memory per block. It dies with the process.
type local struct {
	claims atomic.Uint64                      // claims of this process; see type claims
	onFree atomic.Pointer[func(block uint32)] // who gets the credit when the block becomes free
	_      [48]byte
}

// New makes an arena with all blocks free. The contents of a block are undefined until its first writer has
// written them. The arena must be closed.
func New(c Config) (*Arena, error) { return newArena(c, 1) }

// newArena starts all blocks at the given generation, so that an arena that takes over an ID rejects the handles
// of the one before.
func newArena(c Config, generation uint64) (*Arena, error) {
	l, err := planLayout(c.Blocks, c.BlockBytes)
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, err)
	}
	create := c.Segment
	if create == nil {
		create = shm.Create
	}
	seg, err := create(c.Name, l.total)
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, err)
	}
	if seg.Size() < l.total || !aligned(seg.Bytes(), shm.PageSize()) {
		_ = seg.Close() // the error that matters is ours
		return nil, fmt.Errorf("arena %q: segment of %d bytes is not %d bytes from a page on", c.Name, seg.Size(), l.total)
	}
	viewOf(seg.Bytes(), l).format(l, c.ID, generation)
	a := over(seg.Bytes(), c, l, hostHolder)
	a.seg = seg
	if invariants {
		poison(a.mem[l.dataAt:l.total])
	}
	return a, nil
}

// over returns a process's view of an arena that lies in mem. Each process has a holder bit of its own.
func over(mem []byte, c Config, l layout, holder int) *Arena {
	v := viewOf(mem, l)
	return &Arena{
		config: c, layout: l, mem: mem, view: v, first: v.header.first,
		me: 1 << holder, local: make([]local, l.blocks),
	}
}

// ID returns the number that stands in the arena's handles.
func (a *Arena) ID() uint8 { return a.config.ID }

// Name returns the configured name.
func (a *Arena) Name() string { return a.config.Name }

// Blocks returns how many blocks there are.
func (a *Arena) Blocks() int { return a.layout.blocks }

// BlockBytes returns the size of each block.
func (a *Arena) BlockBytes() int { return a.layout.blockBytes }

// Schema returns the configured description of a block's contents.
func (a *Arena) Schema() any { return a.config.Schema }

// FD returns the file of the segment, for mapping windows, or -1 if it has none. It belongs to the arena.
func (a *Arena) FD() int { return a.seg.FD() }

// BlockOffset returns where the block starts in the segment, in bytes, a multiple of the page size; or -1 if
// there is no such block. Blocks lie at equal distances, and the pages of one hold nothing of another.
func (a *Arena) BlockOffset(block uint32) int64 {
	if int64(block) >= int64(a.layout.blocks) {
		return -1
	}
	return int64(a.layout.dataAt) + int64(block)*int64(a.layout.stride)
}

// OnFree makes fn the one receiver of the block's credits; nil means none. From then on fn runs each time the
// block becomes free, once, on the goroutine that freed it, with no lock held; it may take the block with
// LoanBlock at once. A block that is free already gives no credit: try LoanBlock after OnFree. A block that
// another process frees gives none here. OnFree panics if there is no such block.
func (a *Arena) OnFree(block uint32, fn func(block uint32)) {
	if fn == nil {
		a.local[block].onFree.Store(nil)
		return
	}
	a.local[block].onFree.Store(&fn)
}

func (a *Arena) word(block uint32) word { return word(a.view.blocks[block].word.Load()) }

func (a *Arena) swap(block uint32, from, to word) bool {
	return a.view.blocks[block].word.CompareAndSwap(uint64(from), uint64(to))
}

// unusedGeneration returns a generation that follows those of all blocks.
func (a *Arena) unusedGeneration() uint64 {
	used := uint64(0)
	for block := range uint32(a.layout.blocks) {
		used = max(used, generationsBetween(a.first, a.word(block).generation()))
	}
	return generationAfter(a.first, used+1)
}

// bytes returns a block's memory, without room for append to reach the next one.
func (a *Arena) bytes(block uint32) []byte {
	at := a.layout.dataAt + int(block)*a.layout.stride
	return a.mem[at : at+a.layout.blockBytes : at+a.layout.blockBytes]
}

// check tells whether h may name a block of this arena, whatever its generation.
func (a *Arena) check(h hostabi.Handle) error {
	if h.Arena() != a.config.ID {
		return ErrForeign
	}
	if int(h.Block()) >= a.layout.blocks {
		return ErrRange
	}
	return nil
}
