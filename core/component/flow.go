package component

// Flow is what the pipeline needs to know of a configured component to refuse a graph that would starve, and an
// evaluation to play as it does.
type Flow struct {
	Splits    int // trajectory blocks of one instance that are written at the same time
	Blocks    int // trajectory blocks of one instance in circulation, asynchronously; in synchronous mode Splits
	BlockRows int // env steps in one block
	Envs      int // environments of one instance
	// EpisodeLimit is after how many env steps the component ends an episode itself; 0 = never.
	EpisodeLimit int
	// DatasetRows is how many env steps a batcher gathers before it releases any block.
	DatasetRows int
}

// DatasetBlocks is how many lists of datasets a batcher has under way at most.
const DatasetBlocks = 8

// Flowing is optional, for a component that makes or gathers blocks.
type Flowing interface {
	// Flow is called after a Configure without errors.
	Flow() Flow
}
