package component

// Flow is what the pipeline needs to know of a configured component to refuse a graph that would starve.
// Components that make or gather blocks return it from a method Flow.
type Flow struct {
	Blocks    int // trajectory blocks in circulation, all splits together
	BlockRows int // env steps in one of them
	Envs      int // environments of one instance
	// DatasetRows is how many env steps a batcher gathers before it lets go of any block.
	DatasetRows int
}
