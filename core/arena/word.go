package arena

import "github.com/rlhost/rlhost/hostabi"

// state is what a block is for at the moment.
type state uint8

const (
	stateFree   state = hostabi.ArenaFree
	stateWrite  state = hostabi.ArenaWrite
	stateLive   state = hostabi.ArenaLive
	stateZombie state = hostabi.ArenaZombie
	stateClosed state = hostabi.ArenaClosed
)

const (
	stateShift     = hostabi.ArenaHolderBits
	generationFrom = hostabi.ArenaHolderBits + hostabi.ArenaStateBits
	holderMask     = 1<<hostabi.ArenaHolderBits - 1
)

// word is the whole state of a block: generation:37 | state:3 | holders:24, a holder being a process.
type word uint64

func makeWord(generation uint64, s state, holders word) word {
	return word(generation)<<generationFrom | word(s)<<stateShift | holders
}

func (w word) generation() uint64 { return uint64(w >> generationFrom) }
func (w word) state() state       { return state(w >> stateShift & (1<<hostabi.ArenaStateBits - 1)) }
func (w word) holders() word      { return w & holderMask }

// is reports whether w is generation g in state s.
func (w word) is(g uint64, s state) bool { return w>>stateShift == makeWord(g, s, 0)>>stateShift }

// held reports whether w is a committed block of generation g that bit holds.
func (w word) held(g uint64, bit word) bool {
	return (w.is(g, stateLive) || w.is(g, stateZombie)) && w&bit != 0
}

// freed is the word of the block's next use, waiting for a writer.
func (w word) freed() word { return makeWord(nextGeneration(w.generation()), stateFree, 0) }

// nextGeneration skips 0, so that the zero handle never names anything.
func nextGeneration(g uint64) uint64 {
	if g >= hostabi.MaxGeneration {
		return 1
	}
	return g + 1
}

// previousGeneration is the inverse of nextGeneration.
func previousGeneration(g uint64) uint64 {
	if g <= 1 {
		return hostabi.MaxGeneration
	}
	return g - 1
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

// generationJump is more uses than a block has between two claims of this process: 9 hours of a million a second. A
// word that says otherwise was not written by an arena: either it jumped, or it went back, which is a jump the long
// way round.
const generationJump = 1 << 35

// follows reports whether g may be the generation of a word when floor was claimed before, or is claimed.
func follows(g, floor uint64) bool { return g != 0 && generationsBetween(floor, g) < generationJump }

// claims counts this process's claims on one generation of a block: generation:37 | over:1 | closing:1 | loan:1 | count:24.
// It is memory of this process alone, so it stays correct whatever others write into the word. A value of an older generation
// than the word's means no claims. While closing is set, one goroutine is between the counter and the word, and others wait
// for it. loan is the open loan; count is then 0. over is set once this process has seen the end of the generation.
type claims uint64

const (
	claimBits    = 24
	claimMax     = 1<<claimBits - 1
	claimLoan    = claims(1) << claimBits
	claimClosing = claimLoan << 1
	claimOver    = claimClosing << 1
	claimGenFrom = claimBits + 3
)

func makeClaims(generation uint64, n claims) claims { return claims(generation)<<claimGenFrom | n }

func (c claims) generation() uint64 { return uint64(c >> claimGenFrom) }
func (c claims) closing() bool      { return c&claimClosing != 0 }
func (c claims) loan() bool         { return c&claimLoan != 0 }
func (c claims) over() bool         { return c&claimOver != 0 }
func (c claims) count() int         { return int(c & claimMax) }

// precedes reports whether a committed block may have generation g while c has all the claims on it.
func (c claims) precedes(g uint64) bool {
	return follows(g, c.generation()) && !(c.over() && g == c.generation())
}

// holds reports whether this process has the block on loan or a claim on it.
func (c claims) holds() bool { return c&(claimLoan|claimMax) != 0 }

// none reports whether c says nothing but that its generation was claimed before.
func (c claims) none() bool { return c&(claimOver-1) == 0 }
