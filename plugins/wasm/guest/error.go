package guest

import "github.com/rlhost/rlhost/core/env"

// Error is a call that did not return, or that returned unusable memory.
type Error struct {
	Kind   env.FaultKind
	Call   string // the export
	Reason string
	Wrong  bool // of memory: the guest gave what it must not give, under any limit
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }
