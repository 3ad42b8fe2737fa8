package guest

import "github.com/rlhost/rlhost/core/env"

// Error is a call that did not return, or that returned unusable memory.
type Error struct {
	Kind   env.FaultKind
	Call   string // the export
	Reason string
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }
