package queue

import "github.com/rlhost/rlhost/hostabi"

// word is the control word of a cell: position, state, count and owner in one, so that a claim records its
// extent and owner in one step.
type word uint64

const (
	ownerMask    = 1<<hostabi.RingOwnerBits - 1
	countShift   = hostabi.RingOwnerBits
	countMask    = 1<<hostabi.RingCountBits - 1
	stateShift   = countShift + hostabi.RingCountBits
	stateMask    = 1<<hostabi.RingStateBits - 1
	posShift     = stateShift + hostabi.RingStateBits
	positionMask = 1<<hostabi.RingPositionBits - 1
)

// free and ready are the words of unclaimed cells; void is one whose message was never finished.
func free(pos uint64) word  { return word(pos<<posShift | hostabi.RingFree<<stateShift) }
func ready(pos uint64) word { return word(pos<<posShift | hostabi.RingReady<<stateShift) }
func void(pos uint64) word  { return word(pos<<posShift | hostabi.RingVoid<<stateShift) }

// claim is the word of the first of count cells that an owner has claimed.
func claim(pos uint64, state, count uint64, owner uint16) word {
	return word(pos<<posShift | state<<stateShift | count<<countShift | uint64(owner))
}

func (w word) pos() uint64   { return uint64(w) >> posShift }
func (w word) state() uint64 { return uint64(w) >> stateShift & stateMask }
func (w word) count() uint64 { return uint64(w) >> countShift & countMask }
func (w word) owner() uint16 { return uint16(w & ownerMask) }

// ahead returns how far the word's position is ahead of pos: 0 if the cell is in this lap, negative if it is still
// in an earlier one, positive if pos is outdated. Positions count modulo 2^40, so the upper bits must not matter.
func (w word) ahead(pos uint64) int64 { return int64((w.pos() - pos) << posShift) }
