package meter

// Bounds on the contents of a module. The cost of compiling grows faster than some of these numbers, and every process
// that runs a module keeps something for each of them, so a file of a few kilobytes could ask for gigabytes. What
// compilers write stays far below, except for data segments, of which Go's linker writes as many as are allowed here.
const (
	maxTypes         = 10_000
	maxParams        = 1_000 // of one signature
	maxResults       = 64    // of one signature
	maxImports       = 10_000
	maxFunctions     = 100_000
	maxTables        = 4
	maxTableEntries  = 1 << 18 // of 8 bytes each, in one table and in all segments for tables
	maxGlobals       = 10_000
	maxExports       = 10_000
	maxNameBytes     = 1_024 // of one import or export
	maxElements      = 10_000
	maxData          = 100_000
	maxLocals        = 50_000  // of one function
	maxAllLocals     = 4 << 20 // of all
	maxLocalsBlocks  = 8 << 20 // locals times blocks of one function: the compiler follows each local through each block
	maxDepth         = 50_000  // of blocks within blocks
	maxBranchTargets = 1 << 20 // in all tables of branches
	maxOperands      = 1 << 25 // of all calls and blocks
)

// within rejects more of something than is accepted.
func (r *reader) within(n, most uint64, what string) {
	if r.err == nil && n > most {
		r.err = &Error{Kind: ErrBound, Offset: r.base + r.p, What: what, Number: n, Bound: most}
	}
}

// counted reads the length of a vector like count and bounds it.
func (r *reader) counted(size int, most uint64, what string) int {
	n := r.count(size)
	if r.within(uint64(n), most, what); r.err != nil {
		return 0
	}
	return n
}

// totals adds up the numbers that are bounded over all functions of a module.
type totals struct{ locals, targets, operands, entries uint64 }
