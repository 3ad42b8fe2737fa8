package component

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
)

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

// Warming is optional, for a component that learns a policy in chunks whose first rows only warm its state up.
type Warming interface {
	// BurnInRows returns how many rows of each chunk these are, 0 for none, once the component is configured.
	BurnInRows() int
}

// CodeBurnIn is the code of burn-in that a policy has no room for; rlhost explain has its page.
const CodeBurnIn = "E095"

// CheckBurnIn returns what is wrong with so many rows of burn-in of a policy that is learned in chunks of chunk rows, 0 where it keeps no
// state, as the error of their key, or nil.
func CheckBurnIn(rows int, policy string, chunk int) *ConfigError {
	if rows == 0 || rows < chunk {
		return nil
	}
	e := &ConfigError{Code: CodeBurnIn, Key: "burn_in_rows"}
	switch {
	case chunk == 0:
		e.Reason = fmt.Sprintf("is %d, and policy %q keeps no state that rows could warm up", rows, policy)
		e.Help = "leave it out, or give the policy a recurrent layer: net = { core = { kind = \"gru\" } }"
	case chunk == 1:
		e.Reason = fmt.Sprintf("is %d, and policy %q is learned in chunks of one row", rows, policy)
		e.Help = fmt.Sprintf("leave it out, or use net.chunk = %d", 2*rows)
	default:
		e.Reason = fmt.Sprintf("is %d, and policy %q is learned in chunks of %d rows, of which none would be left to learn from", rows, policy, chunk)
		e.Help = fmt.Sprintf("use burn_in_rows = %d, or net.chunk = %d", chunk/2, 2*rows)
	}
	return e
}

// WeightBlocks returns how many versions lie in the memory of a publisher with so many readers, each of which may hold one: the
// publisher keeps one and writes another, and a replaced publisher may still hold its own.
func WeightBlocks(readers int) int { return 3 + readers }
