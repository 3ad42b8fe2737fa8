package component

import "iter"

// ActRequest is the content of a message of the payload act_request. It asks for the actions of the component's policy in row T of
// the block, which its sender still writes. The answer is the message itself, on a signal with the payload actions.
type ActRequest struct {
	T         int
	Policy    uint8 // the policy's number in the column policy, if there are several
	ValueOnly bool  // the row after the last step: there is no action to write
}

// ActRequestOf decodes a message of the payload act_request.
func ActRequestOf(m *Message) ActRequest {
	const valueOnly, policyAt = 1 << 32, 34
	return ActRequest{T: int(m.T), Policy: uint8(m.Inline[1] >> policyAt), ValueOnly: m.Inline[1]&valueOnly != 0}
}

// Turns returns each environment that needs an action, in order: active in row T by the column active and, unless policy is the zero
// Column, played by the component's policy. There is none if ValueOnly. With several agents each counts as an environment, as in the
// columns.
func (r ActRequest) Turns(active, policy Column) iter.Seq[int] {
	return func(yield func(env int) bool) {
		for env := range active.Envs {
			waits := !r.ValueOnly && active.Row(r.T, env).Bytes[0] != 0
			own := policy.Bytes == nil || policy.Row(r.T, env).Bytes[0] == r.Policy
			if waits && own && !yield(env) {
				return
			}
		}
	}
}
