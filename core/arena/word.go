package arena

import "github.com/rlhost/rlhost/hostabi"

// state is what a block is for at the moment.
type state uint8

const (
	stateFree   state = iota // nobody's
	stateWrite               // on loan to its one holder
	stateLive                // committed; readable by whoever has its handle
	stateZombie              // revoked; readable by those who hold it, and freed by the last of them
	stateClosed              // withdrawn by Close; nobody's, for ever
)

const (
	holderBits     = 24
	stateBits      = 3
	stateShift     = holderBits
	generationFrom = holderBits + stateBits
	holderMask     = 1<<holderBits - 1
)

// word is all there is to know about a block: generation:37 | state:3 | holders:24, a holder being a process.
type word uint64

func makeWord(generation uint64, s state, holders word) word {
	return word(generation)<<generationFrom | word(s)<<stateShift | holders
}

func (w word) generation() uint64 { return uint64(w >> generationFrom) }
func (w word) state() state       { return state(w >> stateShift & (1<<stateBits - 1)) }
func (w word) holders() word      { return w & holderMask }

// is tells whether w is generation g in state s.
func (w word) is(g uint64, s state) bool { return w>>stateShift == makeWord(g, s, 0)>>stateShift }

// freed is the word of the block's next use, waiting for a writer.
func (w word) freed() word { return makeWord(nextGeneration(w.generation()), stateFree, 0) }

// nextGeneration skips 0, so that the zero handle never names anything.
func nextGeneration(g uint64) uint64 {
	if g >= hostabi.MaxGeneration {
		return 1
	}
	return g + 1
}

// generationsBetween counts the uses from one generation of a block to a later one, less than a whole round.
func generationsBetween(from, to uint64) uint64 {
	if to >= from {
		return to - from
	}
	return to + hostabi.MaxGeneration - from
}

// generationAfter returns the generation n uses after g.
func generationAfter(g, n uint64) uint64 { return (g-1+n)%hostabi.MaxGeneration + 1 }

// claims counts what this process holds of one generation of a block: generation:37 | closing:1 | count:26. A
// value of an older generation than the block's word means no claims. While closing is set, one goroutine is
// between the counter and the word, and others wait for it.
type claims uint64

const (
	claimBits    = 26
	claimMax     = 1<<claimBits - 1
	claimClosing = claims(1) << claimBits
	claimGenFrom = claimBits + 1
)

func makeClaims(generation uint64, n claims) claims { return claims(generation)<<claimGenFrom | n }

func (c claims) generation() uint64 { return uint64(c >> claimGenFrom) }
func (c claims) closing() bool      { return c&claimClosing != 0 }
func (c claims) count() int         { return int(c & claimMax) }
