package testkit

import "github.com/rlhost/rlhost/hostabi"

// Spec describes an environment with an observation of obs f32, one Discrete action of that many values and, with mask,
// an action mask; it offers same-step and next-step autoreset.
func Spec(obs int, actions uint32, mask bool) hostabi.EnvSpec {
	vector := func(role hostabi.Role, dtype hostabi.DType, n uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: dtype, Rank: 1, Shape: [6]uint32{n}}
	}
	s := hostabi.EnvSpec{Name: "test@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep | hostabi.NextStep,
		Caps: hostabi.CapStrides,
		Tensors: []hostabi.Tensor{
			{Role: hostabi.RoleAction, DType: hostabi.I32, N: actions},
			vector(hostabi.RoleObservation, hostabi.F32, uint32(obs)),
			{Role: hostabi.RoleReward, DType: hostabi.F32},
			{Role: hostabi.RoleTerminated, DType: hostabi.U8},
			{Role: hostabi.RoleTruncated, DType: hostabi.U8},
			vector(hostabi.RoleFinalObservation, hostabi.F32, uint32(obs)),
		}}
	if mask {
		s.Tensors = append(s.Tensors, vector(hostabi.RoleActionMask, hostabi.U8, actions))
	}
	return s
}
