package hostabi

import "structs"

// RingMagic begins every ring segment: "RLRING1" and a zero byte. It is stored last.
const RingMagic = 0x0031474e49524c52

// RingVersion is the version of the layout of ring segments.
const RingVersion = 1

// Kinds of rings.
const (
	// RingMessages: one producer, one consumer, cells are Messages. Message.Ctl belongs to the two ends: each
	// message has the number of the other direction's messages that its sender has handled (see LinkAck).
	RingMessages = 1
	// RingQueue: any number of producers and consumers that may die at any moment, cells are RingCells.
	RingQueue = 2
	// RingBytes: a RingQueue whose messages may have any size up to the ring's. A message takes as many
	// adjacent cells as its bytes need, in one claim; Len of the first is that of the message. All cells of a message
	// are in the state of its first, or, once a consumer is done with them, free.
	RingBytes = 3
)

// Sizes and places of a ring segment.
const (
	RingHeaderBytes   = 4096 // cells begin here
	RingCellHeadBytes = 16   // of a RingCell
	MaxRingCells      = 1 << 20
	MaxRingPayload    = 1 << 20 // of one RingCell
	MaxRingBatch      = 255     // messages that one claim can take
	MaxRingLimit      = 65535   // cells of a RingBytes that one claim can take
)

// RingHeader is the first page of a ring segment. Fields of different writers lie 128 bytes apart, because
// hardware fetches cache lines in pairs. An attaching process copies the constant fields once, checks them against
// the size of the file, and trusts nothing that it reads later: Tail and Head of the other end are clamped.
type RingHeader struct {
	_ structs.HostLayout

	Magic     uint64 // 0: RingMagic, stored last
	Version   uint32 // 8
	Kind      uint32 // 12
	Cells     uint32 // 16: power of two, 2 or more
	CellBytes uint32 // 20: from cell to cell
	Payload   uint32 // 24: most bytes of one message
	_         uint32
	CellsAt   uint64 // 32
	Total     uint64 // 40: bytes of the segment
	Limit     uint32 // 48: of a RingBytes: most cells in use at a time, up to MaxRingLimit; else 0
	_         [76]byte
	Tail      uint64 // 128: cells ever claimed by producers
	_         [120]byte
	Head      uint64 // 256: cells ever claimed by consumers
	_         [120]byte
	// NotEmpty is the futex of consumers: bit 0 says that a consumer sleeps, bits 1..31 are the epoch. A producer clears
	// bit 0 and wakes one sleeper of a RingQueue, all of a RingMessages; a consumer that was woken sets bit 0 again
	// once its wait is over, because others may still sleep. Sleeps on a RingQueue last 8 ms at most, so a lost wake-up costs no more.
	NotEmpty uint32 // 384
	_        [124]byte
	NotFull  uint32 // 512: futex of producers
	_        [124]byte
	Closed   uint32 // 640: not 0: nothing more is put
	_        [124]byte
	// Counters of system calls, for measurements; anybody may add to them.
	EmptyWaits uint64 // 768
	FullWaits  uint64 // 776
	EmptyWakes uint64 // 784
	FullWakes  uint64 // 792
	_          [96]byte
	_          [3200]byte
}

// RingCell is the head of a cell of a RingQueue or RingBytes; Len bytes of payload follow it. A cell with room for 16 bytes
// takes 32, any other a multiple of 64.
type RingCell struct {
	_ structs.HostLayout

	// Ctl is position:40 | state:4 | count:8 | owner:12. position counts the cells ever used, modulo 2^40; count
	// is how many cells the claim that begins here takes. In a RingBytes position has 32 bits and count 16.
	Ctl  uint64 // 0
	Len  uint32 // 8: bytes of payload
	Kind uint32 // 12: for the users of the queue
}

// Fields of RingCell.Ctl.
const (
	RingOwnerBits    = 12
	RingCountBits    = 8
	RingStateBits    = 4
	RingPositionBits = 40

	RingBytesCountBits    = 16
	RingBytesPositionBits = 32
)

// States of a RingCell.
const (
	RingFree    = 0 // waits for a producer
	RingWriting = 1 // claimed by a producer
	RingReady   = 2 // waits for a consumer
	RingReading = 3 // claimed by a consumer
	RingVoid    = 4 // its producer died before it was ready
	RingVoiding = 5 // claimed by a consumer that skips it
)
