package ptx

import "fmt"

// Kind is the kind of a launch's fault.
type Kind uint8

// The kinds of faults. The first group is found before anything runs.
const (
	// BadLaunch is a grid, a block or arguments that the entry cannot have.
	BadLaunch Kind = iota + 1
	// TooManyThreads is a block of more threads than a processor or the entry's .maxntid allows.
	TooManyThreads
	// SharedLimit is more shared memory than a CTA has.
	SharedLimit

	// BadAddress is an access outside every allocation.
	BadAddress
	// Misaligned is an address that is not a multiple of the bytes accessed.
	Misaligned
	// SharedBounds is an access beyond the shared memory of the launch.
	SharedBounds
	// LocalBounds is an access beyond the local memory of the thread.
	LocalBounds
	// ParamBounds is an access beyond the parameters, or a write to them.
	ParamBounds
	// ReadOnly is a store to constant memory, or a load that promises that its memory is not written, from words that this launch wrote.
	ReadOnly
	// Uninitialised is something decided, addressed or kept by a value that was never written.
	Uninitialised
	// MissingLanes is a warp instruction without a lane that it names.
	MissingLanes
	// SharedRace is two threads at one byte of shared memory, one of them writing, without a barrier between them.
	SharedRace
	// GlobalRace is two threads at one place in global memory, one of them writing: of one CTA without a barrier between them, of
	// two, at one word that one of them has written before, without a fence and an atomic.
	GlobalRace
	// Divergence is a barrier that not all threads reach together.
	Divergence
	// Unfenced is a word that tells the host that the grid is done while writes of the grid are not fenced.
	Unfenced
	// StepLimit is a warp that executed more instructions than the launch allows.
	StepLimit
	// Trap is a trap instruction.
	Trap
)

var kinds = [...]string{
	BadLaunch: "bad launch", TooManyThreads: "too many threads", SharedLimit: "too much shared memory",
	BadAddress: "bad address", Misaligned: "misaligned address", SharedBounds: "shared memory out of bounds",
	LocalBounds: "local memory out of bounds", ParamBounds: "parameter out of bounds", ReadOnly: "read-only memory",
	Uninitialised: "uninitialised value", MissingLanes: "missing lanes", SharedRace: "race in shared memory",
	GlobalRace: "race in global memory", Divergence: "divergent barrier", Unfenced: "done without a fence",
	StepLimit: "step limit", Trap: "trap",
}

// String names the kind in words.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k] != "" {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Fault is why a launch ended early. Faults found before anything runs have no line, CTA or thread.
type Fault struct {
	Kind    Kind
	Entry   string
	Line    int    // of the PTX text, 1 is the first; 0: none
	Text    string // the instruction
	CTA     [3]int // x, y, z
	Thread  [3]int // x, y, z within the CTA
	Address uint64 // of a memory access: generic address, or offset in its space; else 0
	Detail  string
}

// Error implements error: kind, place and reason on one line.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("ptx: %s: %v: %s", f.Entry, f.Kind, f.Detail)
	}
	return fmt.Sprintf("ptx: %s: line %d: %v: %s; CTA %v, thread %v: %s", f.Entry, f.Line, f.Kind, f.Detail, f.CTA, f.Thread, f.Text)
}
