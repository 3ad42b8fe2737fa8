package hostabi

import (
	"fmt"
	"math"
)

// check reports the first thing in the description that this host cannot run.
func (s *EnvSpec) check() error {
	if s.Agents < 1 {
		return fmt.Errorf("%w: %d agents per environment, want 1 or more", ErrSpec, s.Agents)
	}
	if s.Agents != 1 {
		return fmt.Errorf("%w: %d agents per environment: %w", ErrSpec, s.Agents, ErrNotYet)
	}
	if unknown := s.Caps &^ (CapStrides | CapPreferSoA); unknown != 0 {
		return fmt.Errorf("%w: caps has the bits %#x, which mean nothing in ABI %v and must be 0", ErrSpec, uint32(unknown), EnvABI)
	}
	if s.Autoreset == 0 || s.Autoreset&^(NextStep|SameStep|Disabled) != 0 {
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

func checkTensor(d *TensorDesc) error {
	if d.Role < RoleAction || d.Role > RoleInfo {
		return fmt.Errorf("role %d does not exist", d.Role)
	}
	if d.DType.Bytes() == 0 {
		return fmt.Errorf("%v: dtype %d does not exist", d.Role, d.DType)
	}
	if d.Elems(MaxTensorElems) == 0 {
		return fmt.Errorf("%v: shape %v of rank %d: rank is at most %d, each dimension at least 1, the product at most %d",
			d.Role, d.Shape, d.Rank, MaxRank, MaxTensorElems)
	}
	if d.Flags != 0 {
		return fmt.Errorf("%v: flags are %#x; they are reserved and must be 0", d.Role, d.Flags)
	}
	for i := int(d.Rank); i < len(d.Shape); i++ {
		if d.Shape[i] != 0 {
			return fmt.Errorf("%v: shape[%d] is %d; beyond rank %d it is reserved and must be 0", d.Role, i, d.Shape[i], d.Rank)
		}
	}
	if isNaN(d.Low) || isNaN(d.High) || d.Low > d.High {
		return fmt.Errorf("%v: bounds %g..%g", d.Role, d.Low, d.High)
	}
	return nil
}

func isNaN(x float32) bool { return math.IsNaN(float64(x)) }

// wanted has the rules of each role: the element type (0 = several), whether it is a scalar, whether it must be there.
var wanted = map[Role]struct {
	dtype    DType
	scalar   bool
	required bool
}{
	RoleAction:           {0, false, true},
	RoleObservation:      {F32, false, true},
	RoleReward:           {F32, true, true},
	RoleTerminated:       {U8, true, true},
	RoleTruncated:        {U8, true, true},
	RoleActionMask:       {U8, false, false},
	RoleFinalObservation: {F32, false, false},
}

func (s *EnvSpec) checkRoles() error {
	seen := map[Role]int{}
	for i := range s.Tensors {
		d := &s.Tensors[i]
		seen[d.Role]++
		want, ok := wanted[d.Role]
		if !ok {
			return fmt.Errorf("role %v: %w", d.Role, ErrNotYet)
		}
		if seen[d.Role] > 1 {
			return fmt.Errorf("two tensors with role %v: %w", d.Role, ErrNotYet)
		}
		if d.DType != want.dtype && (d.Role == RoleObservation || d.Role == RoleFinalObservation) {
			return fmt.Errorf("%v has dtype %v, want %v: %w", d.Role, d.DType, want.dtype, ErrNotYet)
		}
		if want.dtype != 0 && d.DType != want.dtype {
			return fmt.Errorf("%v has dtype %v, want %v", d.Role, d.DType, want.dtype)
		}
		if want.scalar && d.Elems(MaxTensorElems) != 1 {
			return fmt.Errorf("%v has shape %v, want a scalar", d.Role, d.Shape[:d.Rank])
		}
	}
	for role := RoleAction; role <= RoleInfo; role++ {
		if wanted[role].required && seen[role] == 0 {
			return fmt.Errorf("no tensor with role %v", role)
		}
	}
	return s.checkPairs()
}

// checkPairs compares tensors that belong together.
func (s *EnvSpec) checkPairs() error {
	action, _ := s.Tensor(RoleAction)
	if err := checkAction(&action); err != nil {
		return err
	}
	mask, ok := s.Tensor(RoleActionMask)
	if ok && mask.Elems(MaxTensorElems) != int(action.N) {
		return fmt.Errorf("action_mask has %d elements, the action %d values", mask.Elems(MaxTensorElems), action.N)
	}
	final, ok := s.Tensor(RoleFinalObservation)
	if s.Autoreset&SameStep != 0 && !ok {
		return fmt.Errorf("autoreset same_step needs a final_observation tensor")
	}
	if ok && final.Elems(MaxTensorElems) != s.ObsElems() {
		return fmt.Errorf("final_observation has %d elements, the observation %d",
			final.Elems(MaxTensorElems), s.ObsElems())
	}
	return nil
}

func checkAction(d *TensorDesc) error {
	switch n := d.Elems(MaxTensorElems); {
	case d.N == 0:
		return fmt.Errorf("a Box action: %w", ErrNotYet)
	case n != 1:
		return fmt.Errorf("an action of %d elements, want one Discrete action: %w", n, ErrNotYet)
	case d.DType != I32:
		return fmt.Errorf("an action of %v, want i32: %w", d.DType, ErrNotYet)
	case d.N > MaxActions:
		return fmt.Errorf("an action with %d values, at most %d: %w", d.N, MaxActions, ErrNotYet)
	}
	return nil
}
