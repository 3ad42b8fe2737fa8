package component

// ActRequest is what a message of the payload act_request asks: that the actions of the component's policy be written into row T of
// the block, which its sender still writes. The answer is the message itself, on a signal with the payload actions.
type ActRequest struct {
	T         int
	Policy    uint8 // what the column policy has where it acts, if there are several
	ValueOnly bool  // the row behind the last step: there is no action to write
}

// ActRequestOf decodes a message of the payload act_request.
func ActRequestOf(m *Message) ActRequest {
	const valueOnly, policyAt = 1 << 32, 34
	return ActRequest{T: int(m.T), Policy: uint8(m.Inline[1] >> policyAt), ValueOnly: m.Inline[1]&valueOnly != 0}
}
