package component

import "github.com/rlhost/rlhost/core/trajectory"

// Policy is a policy as the file's [policy.NAME] describes it, for the components that use it; gpu/policy's Of returns
// its contents.
type Policy interface {
	// SameNetwork returns nil if the parameters of this one mean the same in the next one, otherwise an error that
	// shows both specifications.
	SameNetwork(next Policy) error
	// Memory describes the earlier rows that it needs to act on a row. Blocks with its environment's rows keep them.
	Memory() trajectory.Memory
}

// Weighed is optional, for a Policy whose versions lie in shared memory.
type Weighed interface {
	// WeightBytes returns the bytes of one version.
	WeightBytes() int
}

// Sized is optional, for a Policy that knows how much memory its actors and learners will keep.
type Sized interface {
	// ActingBytes returns the least that an instance keeps that acts with it.
	ActingBytes() int64
	// LearningBytes returns the least that an instance keeps that learns it.
	LearningBytes() int64
}

// Doubtful is optional, for a Policy that can be computed and will hardly be learned.
type Doubtful interface {
	// Doubt returns a doubtful setting as the error of its key, or nil.
	Doubt() *ConfigError
}

// WeightBlocks returns how many versions lie in the memory of a publisher with so many readers, each of which may hold one: the
// publisher keeps one and writes another, and a replaced publisher may still hold its own.
func WeightBlocks(readers int) int { return 3 + readers }
