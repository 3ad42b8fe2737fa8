package hostabi

import "strconv"

// Widths of the three fields of a Handle; together they fill 64 bits.
const (
	ArenaBits      = 8
	BlockBits      = 19
	GenerationBits = 37
)

// Largest value of each field of a Handle.
const (
	MaxArena      = 1<<ArenaBits - 1
	MaxBlock      = 1<<BlockBits - 1
	MaxGeneration = 1<<GenerationBits - 1
)

// Handle names one use of one block: arena (bits 63..56), block (55..37), generation (36..0). It is a number,
// not a reference: holding one keeps nothing alive, and the arena rejects it once the block has been reused.
// The zero Handle names nothing, because generations start at 1.
type Handle uint64

// MakeHandle packs its arguments; each must be within its field's maximum.
func MakeHandle(arena uint8, block uint32, generation uint64) Handle {
	return Handle(uint64(arena)<<(BlockBits+GenerationBits) |
		uint64(block&MaxBlock)<<GenerationBits | generation&MaxGeneration)
}

// Arena returns the arena that the handle belongs to.
func (h Handle) Arena() uint8 { return uint8(h >> (BlockBits + GenerationBits)) }

// Block returns the index of the block within its arena. The index of a handle from outside is not checked.
func (h Handle) Block() uint32 { return uint32(h>>GenerationBits) & MaxBlock }

// Generation returns which use of the block the handle names.
func (h Handle) Generation() uint64 { return uint64(h) & MaxGeneration }

// String returns the handle as arena:block@generation.
func (h Handle) String() string {
	return strconv.Itoa(int(h.Arena())) + ":" + strconv.Itoa(int(h.Block())) + "@" + strconv.FormatUint(h.Generation(), 10)
}
