package rollout

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// check reports the first thing in the description that this host cannot run.
func (s *EnvSpec) check() error {
	if s.Agents != 1 {
		return fmt.Errorf("%w: %d agents per environment, this host runs 1", ErrSpec, s.Agents)
	}
	if s.Autoreset == 0 || s.Autoreset&^(hostabi.NextStep|hostabi.SameStep|hostabi.Disabled) != 0 {
		return fmt.Errorf("%w: autoreset bits %#x: offer next_step (1), same_step (2), disabled (4) or several",
			ErrSpec, uint32(s.Autoreset))
	}
	for i := range s.Tensors {
		if err := checkTensor(&s.Tensors[i]); err != nil {
			return fmt.Errorf("%w: tensor %d: %w", ErrSpec, i, err)
		}
	}
	if err := s.checkRoles(); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return nil
}

func checkTensor(d *hostabi.TensorDesc) error {
	if d.Role < hostabi.RoleAction || d.Role > hostabi.RoleInfo {
		return fmt.Errorf("role %d does not exist", d.Role)
	}
	if d.DType.Bytes() == 0 {
		return fmt.Errorf("%v: dtype %d does not exist", d.Role, d.DType)
	}
	if d.Elems(MaxTensorElems) == 0 {
		return fmt.Errorf("%v: shape %v of rank %d: rank is at most %d, each dimension at least 1, the product at most %d",
			d.Role, d.Shape, d.Rank, hostabi.MaxRank, MaxTensorElems)
	}
	if isNaN(d.Low) || isNaN(d.High) || d.Low > d.High {
		return fmt.Errorf("%v: bounds %g..%g", d.Role, d.Low, d.High)
	}
	return nil
}

func isNaN(x float32) bool { return math.IsNaN(float64(x)) }

// wanted is what each role must look like: its element type (0 = several) and whether it is one scalar.
var wanted = map[hostabi.Role]struct {
	dtype    hostabi.DType
	scalar   bool
	required bool
}{
	hostabi.RoleAction:           {0, false, true},
	hostabi.RoleObservation:      {hostabi.F32, false, true},
	hostabi.RoleReward:           {hostabi.F32, true, true},
	hostabi.RoleTerminated:       {hostabi.U8, true, true},
	hostabi.RoleTruncated:        {hostabi.U8, true, true},
	hostabi.RoleActionMask:       {hostabi.U8, false, false},
	hostabi.RoleFinalObservation: {hostabi.F32, false, false},
}

func (s *EnvSpec) checkRoles() error {
	seen := map[hostabi.Role]int{}
	for i := range s.Tensors {
		d := &s.Tensors[i]
		seen[d.Role]++
		want, ok := wanted[d.Role]
		if !ok {
			return fmt.Errorf("role %v is not supported by this host", d.Role)
		}
		if seen[d.Role] > 1 {
			return fmt.Errorf("two tensors with role %v, this host takes one", d.Role)
		}
		if want.dtype != 0 && d.DType != want.dtype {
			return fmt.Errorf("%v has dtype %v, want %v", d.Role, d.DType, want.dtype)
		}
		if want.scalar && d.Elems(MaxTensorElems) != 1 {
			return fmt.Errorf("%v has shape %v, want a scalar", d.Role, d.Shape[:d.Rank])
		}
	}
	for role := hostabi.RoleAction; role <= hostabi.RoleInfo; role++ {
		if wanted[role].required && seen[role] == 0 {
			return fmt.Errorf("no tensor with role %v", role)
		}
	}
	return s.checkPairs()
}

// checkPairs holds tensors that belong together against each other.
func (s *EnvSpec) checkPairs() error {
	action, _ := s.Tensor(hostabi.RoleAction)
	if action.N == 0 || action.N > MaxActions || action.DType != hostabi.I32 || action.Elems(MaxTensorElems) != 1 {
		return fmt.Errorf("action: this host runs one Discrete action of dtype i32 with 1 to %d values", MaxActions)
	}
	mask, ok := s.Tensor(hostabi.RoleActionMask)
	if ok && mask.Elems(MaxTensorElems) != int(action.N) {
		return fmt.Errorf("action_mask has %d elements, the action %d values", mask.Elems(MaxTensorElems), action.N)
	}
	final, ok := s.Tensor(hostabi.RoleFinalObservation)
	if s.Autoreset&hostabi.SameStep != 0 && !ok {
		return fmt.Errorf("autoreset same_step needs a final_observation tensor")
	}
	if ok && final.Elems(MaxTensorElems) != s.ObsElems() {
		return fmt.Errorf("final_observation has %d elements, the observation %d",
			final.Elems(MaxTensorElems), s.ObsElems())
	}
	return nil
}
