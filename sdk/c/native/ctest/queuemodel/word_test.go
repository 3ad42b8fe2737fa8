package queuemodel

import "github.com/rlhost/rlhost/hostabi"

// word is the control word of a cell: position, state, count and owner.
type word uint64

const (
	countShift = hostabi.RingOwnerBits
	stateShift = countShift + hostabi.RingCountBits
	posShift   = stateShift + hostabi.RingStateBits
)

func free(pos uint64) word  { return claim(pos, hostabi.RingFree, 0, 0) }
func ready(pos uint64) word { return claim(pos, hostabi.RingReady, 0, 0) }
func void(pos uint64) word  { return claim(pos, hostabi.RingVoid, 0, 0) }

// claim is the word of the first of count cells that an owner has claimed.
func claim(pos, state, count uint64, owner uint16) word {
	return word(pos<<posShift | state<<stateShift | count<<countShift | uint64(owner))
}

// wordOfBytes returns the word that means the same as one of a queue for messages of any size.
func wordOfBytes(w uint64) word {
	const state = hostabi.RingOwnerBits + hostabi.RingBytesCountBits
	count := w >> hostabi.RingOwnerBits & (1<<hostabi.RingBytesCountBits - 1)
	return claim(w>>(64-hostabi.RingBytesPositionBits), w>>state&(1<<hostabi.RingStateBits-1), count, uint16(w&(1<<hostabi.RingOwnerBits-1)))
}

func (w word) pos() uint64   { return uint64(w) >> posShift }
func (w word) state() uint64 { return uint64(w) >> stateShift & (1<<hostabi.RingStateBits - 1) }
func (w word) count() uint64 { return uint64(w) >> countShift & (1<<hostabi.RingCountBits - 1) }
func (w word) owner() uint16 { return uint16(w & (1<<hostabi.RingOwnerBits - 1)) }

// ahead returns how far the word's position is ahead of pos: 0 if the cell is in this lap, negative if it is still in
// an earlier one, positive if pos is outdated.
func (w word) ahead(pos uint64) int64 { return int64((w.pos() - pos) << posShift) }
