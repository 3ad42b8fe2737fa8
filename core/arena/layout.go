package arena

import (
	"fmt"
	"math"
	"structs"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// header is hostabi.ArenaHeader with its one moving field atomic. It describes the arena to processes that
// attach; the host never reads it back, because every process that maps the words can write it.
type header struct {
	_ structs.HostLayout

	magic      atomic.Uint64 // stored last
	version    uint32
	arena      uint32
	blocks     uint64
	blockBytes uint64
	stride     uint64
	hintsAt    uint64
	wordsTotal uint64
	dataTotal  uint64
	first      uint64
	_          [56]byte
	cursor     atomic.Uint32
	_          [124]byte
}

// blockHeader is hostabi.ArenaBlock with atomic fields: a cache line per block, so that blocks do not slow each
// other down.
type blockHeader struct {
	_ structs.HostLayout

	word     atomic.Uint64 // the truth about the block; written by compare-and-swap of any holder
	aborts   atomic.Uint64 // generations that ended without a commit
	creditor atomic.Uint32 // holder to notify when the block becomes free, plus 1; 0 = none
	_        [4]byte
	marks    [MarkWords]atomic.Uint64 // bits on one use of the block, below the lower half of its generation; see Mark
	_        [16]byte
}

// layout says where everything lies, in bytes from the start of its segment.
type layout struct {
	blocks, blockBytes int
	hintsAt, words     int // words segment: header, block words, hints
	stride, data       int // data segment: blocks
}

func (l layout) hints() int {
	return (l.blocks + hostabi.ArenaHintBlocks - 1) / hostabi.ArenaHintBlocks
}

// planLayout checks sizes that come from a configuration.
func planLayout(blocks, blockBytes int) (layout, error) {
	page := shm.PageSize()
	if blocks < 1 || blocks > hostabi.MaxBlock+1 {
		return layout{}, fmt.Errorf("%d blocks: must be between 1 and %d", blocks, hostabi.MaxBlock+1)
	}
	if blockBytes < 1 || blockBytes > math.MaxInt-page {
		return layout{}, fmt.Errorf("blocks of %d bytes: must be positive and addressable", blockBytes)
	}
	l := layout{blocks: blocks, blockBytes: blockBytes, stride: roundUp(blockBytes, page)}
	l.hintsAt = hostabi.ArenaBlocksAt + blocks*hostabi.ArenaBlockBytes
	l.words = roundUp(l.hintsAt+8*l.hints(), page)
	if l.stride > (math.MaxInt-l.words)/blocks {
		return layout{}, fmt.Errorf("%d blocks of %d bytes: more than can be addressed", blocks, blockBytes)
	}
	l.data = blocks * l.stride
	return l, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// format makes every block free at the given generation.
func (v view) format(l layout, id uint8, generation uint64) {
	for b := range v.blocks {
		v.blocks[b].word.Store(uint64(makeWord(generation, stateFree, 0)))
		v.hints[b/hostabi.ArenaHintBlocks].Or(hintBit(uint32(b)))
	}
	v.describe(l, id, generation)
}

// describe writes the header.
func (v view) describe(l layout, id uint8, first uint64) {
	h := v.header
	h.version, h.arena, h.first = hostabi.ArenaVersion, uint32(id), first
	h.blocks, h.blockBytes, h.stride = uint64(l.blocks), uint64(l.blockBytes), uint64(l.stride)
	h.hintsAt, h.wordsTotal, h.dataTotal = uint64(l.hintsAt), uint64(l.words), uint64(l.data)
	h.magic.Store(hostabi.ArenaMagic)
}

// checkDescribed reports whether the header is that of an arena with the layout that was announced.
func (v view) checkDescribed(l layout, id uint8) error {
	h := v.header
	if magic := h.magic.Load(); magic != hostabi.ArenaMagic {
		return fmt.Errorf("%w: no arena: begins with %#x", ErrLayout, magic)
	}
	if h.version != hostabi.ArenaVersion {
		return fmt.Errorf("%w: version %d, this program speaks %d", ErrLayout, h.version, hostabi.ArenaVersion)
	}
	if h.first < 1 || h.first > hostabi.MaxGeneration {
		return fmt.Errorf("%w: first generation %d", ErrLayout, h.first)
	}
	for _, f := range []struct {
		name       string
		has, wants uint64
	}{
		{"id", uint64(h.arena), uint64(id)},
		{"blocks", h.blocks, uint64(l.blocks)},
		{"block bytes", h.blockBytes, uint64(l.blockBytes)},
		{"stride", h.stride, uint64(l.stride)},
		{"place of hints", h.hintsAt, uint64(l.hintsAt)},
		{"bytes of words", h.wordsTotal, uint64(l.words)},
		{"bytes of data", h.dataTotal, uint64(l.data)},
	} {
		if f.has != f.wants {
			return fmt.Errorf("%w: %s is %d, announced were %d", ErrLayout, f.name, f.has, f.wants)
		}
	}
	return nil
}
