package module

import "github.com/rlhost/rlhost/sdk/component"

// outcomeOf returns the outcome of an emit that was not refused. One of a later version counts as sent.
func outcomeOf(n int32) component.Outcome {
	if n > int32(component.Dropped) {
		return component.Sent
	}
	return component.Outcome(n)
}
