package hostabi

import "structs"

// ArenaMagic begins the words segment of every arena: "RLRARENA". It is stored last.
const ArenaMagic = 0x414e455241524c52

// ArenaVersion is the version of the layout of arena segments.
const ArenaVersion = 2

// Sizes and places in an arena's words segment. The blocks lie in a separate segment, from its start on, Stride
// bytes apart, so that a process can be given read-only access to them.
const (
	ArenaBlocksAt   = 4096 // ArenaBlock of block 0
	ArenaBlockBytes = 64
	ArenaHintBlocks = 64 // blocks in one word of hints
)

// ArenaHeader is the first page of an arena's words segment. All but Cursor is constant.
type ArenaHeader struct {
	_ structs.HostLayout

	Magic      uint64 // 0: ArenaMagic, stored last
	Version    uint32 // 8
	Arena      uint32 // 12: ID that stands in handles
	Blocks     uint64 // 16
	BlockBytes uint64 // 24
	Stride     uint64 // 32: from block to block in the data segment
	HintsAt    uint64 // 40: one bit for each block: it was free at the last look
	WordsTotal uint64 // 48: bytes of the words segment
	DataTotal  uint64 // 56: bytes of the data segment
	First      uint64 // 64: generation that all blocks began with
	_          [56]byte
	Cursor     uint32 // 128: the word of hints that had the last block; a wrong value only costs time
	_          [124]byte
}

// ArenaBlock is the part of the words segment for each block, a cache line.
type ArenaBlock struct {
	_ structs.HostLayout

	Word     uint64 // 0: generation:37 | state:3 | holders:24; every change is one compare-and-swap
	Aborts   uint64 // 8: generations that ended without a commit
	Creditor uint32 // 16: holder to notify when the block becomes free, plus 1; 0 = none
	_        [4]byte
	Marks    [3]uint64 // 24: bits that holders set on one use of the block, below the lower half of its generation
	_        [16]byte
}

// Fields of ArenaBlock.Word.
const (
	ArenaHolderBits = 24
	ArenaStateBits  = 3
)

// States of a block.
const (
	ArenaFree   = 0 // not held
	ArenaWrite  = 1 // on loan to its one holder
	ArenaLive   = 2 // committed; readable with its handle
	ArenaZombie = 3 // revoked; readable by its holders, and freed by the last of them
	ArenaClosed = 4 // withdrawn for good
)

// ArenaHost is the host's bit among the holders; other processes have 1 to MaxHolder.
const (
	ArenaHost = 0
	MaxHolder = ArenaHolderBits - 1
)
