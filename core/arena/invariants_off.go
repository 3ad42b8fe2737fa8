//go:build !invariants

package arena

import "github.com/rlhost/rlhost/hostabi"

const invariants = false

// ticket and tracker know nothing in this build and cost nothing.
type (
	ticket  struct{}
	tracker struct{}
)

func (*tracker) loaned(hostabi.Handle)                {}
func (*tracker) endLoan(hostabi.Handle) bool          { return true }
func (*tracker) leased(hostabi.Handle) ticket         { return ticket{} }
func (*tracker) endLease(hostabi.Handle, ticket) bool { return true }
func (*tracker) retained(hostabi.Handle)              {}
func (*tracker) endClaim(hostabi.Handle) bool         { return true }
func (*tracker) report() string                       { return "" }
