package arena

import (
	"fmt"
	"math"
	"structs"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// The segment: header at 0, block headers from 4096, hints behind them, and from the next page on the blocks.
const (
	magic            = 0x414e455241524c52 // "RLRARENA"
	layoutVersion    = 1
	blockHeadersAt   = 4096
	blockHeaderBytes = 64
	hintBlocks       = 64 // blocks per word of hints
)

// header describes the segment to whoever maps it.
type header struct {
	_ structs.HostLayout

	magic      atomic.Uint64 // 0: stored last
	version    uint32        // 8
	arena      uint32        // 12: ID
	blocks     uint64        // 16
	blockBytes uint64        // 24
	stride     uint64        // 32: from block to block
	dataAt     uint64        // 40: offset of block 0
	hintsAt    uint64        // 48
	total      uint64        // 56
	first      uint64        // 64: generation that all blocks began with
	_          [56]byte
	cursor     atomic.Uint32 // 128: the word of hints that had the last block; a wrong value only costs time
	_          [124]byte
}

// blockHeader is a cache line per block, so that blocks do not slow each other down.
type blockHeader struct {
	_ structs.HostLayout

	word   atomic.Uint64 // 0: the truth about the block; written by compare-and-swap of any holder
	aborts atomic.Uint64 // 8: generations that ended without a commit
	_      [48]byte
}

// layout says where everything lies, in bytes from the start of the segment.
type layout struct {
	blocks, blockBytes int
	hintsAt, dataAt    int
	stride, total      int
}

func (l layout) hints() int { return (l.blocks + hintBlocks - 1) / hintBlocks }

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
	l.hintsAt = blockHeadersAt + blocks*blockHeaderBytes
	l.dataAt = roundUp(l.hintsAt+8*l.hints(), page)
	if l.stride > (math.MaxInt-l.dataAt)/blocks {
		return layout{}, fmt.Errorf("%d blocks of %d bytes: more than can be addressed", blocks, blockBytes)
	}
	l.total = l.dataAt + blocks*l.stride
	return l, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// format makes every block free at the given generation.
func (v view) format(l layout, id uint8, generation uint64) {
	h := v.header
	h.version, h.arena = layoutVersion, uint32(id)
	h.blocks, h.blockBytes, h.stride = uint64(l.blocks), uint64(l.blockBytes), uint64(l.stride)
	h.dataAt, h.hintsAt, h.total = uint64(l.dataAt), uint64(l.hintsAt), uint64(l.total)
	h.first = generation
	for b := range v.blocks {
		v.blocks[b].word.Store(uint64(makeWord(generation, stateFree, 0)))
		v.hints[b/hintBlocks].Or(1 << (b % hintBlocks))
	}
	h.magic.Store(magic)
}
