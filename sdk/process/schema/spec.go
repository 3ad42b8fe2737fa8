package schema

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/process/protocol"
)

// EncodeSpec returns the document for an environment's description.
func EncodeSpec(s *hostabi.EnvSpec) *protocol.EnvSpec {
	return &protocol.EnvSpec{Describe: s.Describe()}
}

// DecodeSpec checks an environment's description. Errors wrap hostabi.ErrSpec.
func DecodeSpec(doc *protocol.EnvSpec) (hostabi.EnvSpec, error) {
	return hostabi.ParseSpec(doc.Describe)
}

// observation returns the shape of one environment's observation.
func observation(s *hostabi.EnvSpec) ([]uint32, bool) {
	d, ok := s.Tensor(hostabi.RoleObservation)
	if !ok || int(d.Rank) > len(d.Shape) {
		return nil, false
	}
	return d.Shape[:d.Rank], true
}

// dtypeBytes returns the size of the type with that name, or 0 if there is none.
func dtypeBytes(name string) int {
	for d := hostabi.U8; d <= hostabi.Bool; d++ {
		if d.String() == name {
			return d.Bytes()
		}
	}
	return 0
}
