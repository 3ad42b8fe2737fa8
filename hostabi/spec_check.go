//go:build !wasip1

package hostabi

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// HostFeatures are the features that this host runs.
const HostFeatures = FeatureActions | FeatureObservations | FeatureAgents | FeatureInfo | FeatureDiscount | FeatureResetParam | FeatureResetInfo

// Runs is the same in words, for messages with ErrNotYet.
const Runs = "agents, observations of integers and f32, Discrete, MultiDiscrete, MultiBinary and Box actions, action masks, info, info at reset, a discount, reset parameters of f32"

// check reports the first thing in the description that is wrong or, if nothing is, that this host does not run yet.
func (s *EnvSpec) check() error {
	if s.Name == "" || s.Name[0] == '@' {
		return errors.New("it has no name")
	}
	if s.Autoreset == 0 {
		return errors.New("autoreset has no mode that there is: offer next_step (1), same_step (2), disabled (4) or several")
	}
	if err := s.checkFigures(); err != nil {
		return err
	}
	if err := s.checkGroups(); err != nil {
		return err
	}
	for i := range s.Tensors {
		if err := s.checkTensor(&s.Tensors[i]); err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	if err := s.checkRoles(); err != nil {
		return err
	}
	if s.HasAgents() && s.Autoreset&SameStep == 0 {
		return errors.New("agents without autoreset same_step: their episodes end apart, so it must be offered")
	}
	if err := s.checkArgs(); err != nil {
		return err
	}
	return s.notYet()
}

// checkGroups checks how many agents groups have and, where there are several, that their names are unique.
func (s *EnvSpec) checkGroups() error {
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Agents < 1 || g.Agents > MaxAgents {
			return fmt.Errorf("group %d, %q: %d agents, want 1 to %d", i, g.Name, g.Agents, MaxAgents)
		}
		if err := g.checkAgentNames(); err != nil {
			return fmt.Errorf("group %d, %q: %w", i, g.Name, err)
		}
		if len(s.Groups) == 1 {
			continue
		}
		if g.Name == "" || strings.ContainsAny(g.Name, "/ ") {
			return fmt.Errorf("group %d of %d is called %q, want a name without slashes and spaces", i, len(s.Groups), g.Name)
		}
		for k := range s.Groups[:i] {
			if s.Groups[k].Name == g.Name {
				return fmt.Errorf("groups %d and %d are both called %q", k, i, g.Name)
			}
		}
	}
	if n := s.Agents(); n > MaxAllAgents {
		return fmt.Errorf("%d agents in all groups, at most %d", n, MaxAllAgents)
	}
	return nil
}

// checkAgentNames checks that each agent has a name of its own, where they have names.
func (g *Group) checkAgentNames() error {
	if g.AgentNames == "" {
		return nil
	}
	names := strings.Split(g.AgentNames, "\n")
	if len(names) != g.Agents {
		return fmt.Errorf("agent_names has %d names, want one for each of %d agents", len(names), g.Agents)
	}
	for i, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, "/ "):
			return fmt.Errorf("agent %d is called %q, want a name without slashes and spaces", i, name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("two agents are called %q", name)
		}
	}
	return nil
}

// checkFigures checks the description of pictures and rewards.
func (s *EnvSpec) checkFigures() error {
	r := &s.Render
	switch {
	case r.Modes&(RenderRGB|RenderRGBA) != 0 && (r.Width < 1 || r.Height < 1 || r.Width > 1<<14 || r.Height > 1<<14):
		return fmt.Errorf("pictures of %d × %d, want 1 to %d each way", r.Width, r.Height, 1<<14)
	case isNaN(r.FPS) || r.FPS < 0:
		return fmt.Errorf("%v pictures a second, want a number that is not negative", r.FPS)
	case !(s.DT >= 0 && s.DT <= math.MaxFloat32):
		return fmt.Errorf("a step of %v seconds of simulated time, want a finite number that is not negative", s.DT)
	case isNaN(s.Rewards.Low) || isNaN(s.Rewards.High) || s.Rewards.Low > s.Rewards.High:
		return fmt.Errorf("rewards from %v to %v, want numbers, the lower first", s.Rewards.Low, s.Rewards.High)
	}
	return nil
}

func (s *EnvSpec) checkTensor(d *Tensor) error {
	if !d.Role.Known() {
		if d.Flags&TensorCritical != 0 {
			return &tooOld{fmt.Sprintf("%v, which the environment cannot run without, does not exist in ABI %v", d.Role, EnvABI)}
		}
		return d.checkUnknown()
	}
	if !d.DType.ofTensors() {
		return fmt.Errorf("%v: dtype %d does not exist in ABI %v", d.Role, d.DType, EnvABI)
	}
	if d.Elems(MaxTensorElems) == 0 {
		return fmt.Errorf("%v: shape %v of rank %d: rank is at most %d, each dimension at least 1, the product at most %d",
			d.Role, d.Shape, d.Rank, MaxRank, MaxTensorElems)
	}
	for i := int(d.Rank); i < len(d.Shape); i++ {
		if d.Shape[i] != 0 {
			return fmt.Errorf("%v: shape[%d] is %d; beyond rank %d it is reserved and must be 0", d.Role, i, d.Shape[i], d.Rank)
		}
	}
	if groups := max(len(s.Groups), 1); int(d.Group) >= groups {
		return fmt.Errorf("%v: it is of group %d, groups count from 0 to %d", d.Role, d.Group, groups-1)
	}
	if err := d.checkFlags(); err != nil {
		return fmt.Errorf("%v: %w", d.Role, err)
	}
	if err := d.checkValues(); err != nil {
		return fmt.Errorf("%v: %w", d.Role, err)
	}
	return nil
}

// checkUnknown checks a tensor whose role is of a later version: the host gives it memory that it does not read, so it
// must know how much. An optional tensor is left unbound.
func (t *Tensor) checkUnknown() error {
	if t.Flags&TensorOptional == 0 && (!t.DType.ofTensors() || t.Elems(MaxTensorElems) == 0) {
		return fmt.Errorf("%v does not exist in ABI %v, and memory for dtype %d of shape %v cannot be given: let it be optional",
			t.Role, EnvABI, t.DType, t.Shape)
	}
	return nil
}

// tensorFlags are all flags of tensors that there are.
const tensorFlags = TensorPerAgent | TensorTime | TensorOptional | TensorCritical | TensorNoLow | TensorNoHigh | TensorImageHWC |
	TensorImageCHW | TensorBinary | TensorEpisode | TensorGather

// timeNames are the names of the axes of time, as authors of guests write them.
var timeNames = map[TensorFlags]string{TensorAtT: "RL_TENSOR_AT_T", TensorAtT1: "RL_TENSOR_AT_T1", TensorNoTime: "RL_TENSOR_NO_TIME"}

func (t *Tensor) checkFlags() error {
	image := t.Flags & (TensorImageHWC | TensorImageCHW)
	gather := t.Flags & TensorGather
	switch {
	case t.Flags&^tensorFlags != 0:
		return fmt.Errorf("flags have the bits %#x, which mean nothing in ABI %v and must be 0", uint32(t.Flags&^tensorFlags), EnvABI)
	case t.Flags&TensorTime != roleTime[t.Role]:
		return fmt.Errorf("flags are %#x: the axis of time of this role is %s (%#x)", uint32(t.Flags), timeNames[roleTime[t.Role]], uint32(roleTime[t.Role]))
	case image == TensorImageHWC|TensorImageCHW || image != 0 && t.Rank != 3:
		return fmt.Errorf("a picture has rank 3 and one order of its axes, not rank %d and flags %#x", t.Rank, uint32(image))
	case gather&(gather-1) != 0:
		return fmt.Errorf("flags %#x name several ways to gather", uint32(gather))
	case t.Role == RoleResetInfo && t.Flags&(TensorEpisode|TensorGather) != 0:
		return fmt.Errorf("flags %#x: %q has one row in an episode, none says how several become one", uint32(t.Flags&(TensorEpisode|TensorGather)), t.Path)
	case (t.Role == RoleInfo || t.Role == RoleResetInfo) && t.Rank > 1:
		return fmt.Errorf("%q has rank %d, want one number or a list: rank 0 or 1", t.Path, t.Rank)
	}
	return nil
}

// checkValues checks bounds and numbers of choices.
func (t *Tensor) checkValues() error {
	bounded := func(low, high float32) error {
		if isNaN(low) || isNaN(high) || low > high {
			return fmt.Errorf("bounds %g..%g, want numbers, the lower first", low, high)
		}
		return nil
	}
	whole := Tensor{Low: t.Low, High: t.High, Flags: t.Flags}
	if err := bounded(whole.Bounds(0)); err != nil {
		return err
	}
	for i := range t.Lows {
		if err := bounded(t.Bounds(i)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	if isNaN(t.Scale) || math.IsInf(float64(t.Scale), 0) || t.Scale < 0 {
		return fmt.Errorf("scale %v, want a positive number or 0", t.Scale)
	}
	for i, n := range t.Counts {
		if n == 0 {
			return fmt.Errorf("element %d has no values: its count is 0", i)
		}
	}
	if !t.Discrete() {
		return nil
	}
	most := int64(max(t.N, slices.Max(append([]uint32{0}, t.Counts...))))
	first, last := t.DType.values()
	switch {
	case t.DType.Float():
		return fmt.Errorf("choices of type %v, want an integer", t.DType)
	case t.N > 0 && len(t.Counts) > 0:
		return fmt.Errorf("n is %d next to counts of each element", t.N)
	}
	if int64(t.Start) < first || int64(t.Start)+most-1 > last {
		return fmt.Errorf("%d values from %d on, %v has those from %d to %d", most, t.Start, t.DType, first, last)
	}
	return nil
}

// values returns the first and the last number that a choice of an integer type can be. For i64 both are an i32, as start is.
func (d DType) values() (first, last int64) {
	switch d {
	case U8:
		return 0, math.MaxUint8
	case Bool:
		return 0, 1
	case I8:
		return math.MinInt8, math.MaxInt8
	case I16:
		return math.MinInt16, math.MaxInt16
	}
	return math.MinInt32, math.MaxInt32
}

func isNaN(x float32) bool { return math.IsNaN(float64(x)) }

// wanted has the rules of each role: the element type (0 = several), whether it is a scalar, whether there may be several,
// whether it must be there.
var wanted = [lastRole + 1]struct {
	dtype                     DType
	scalar, several, required bool
}{
	RoleAction:           {0, false, true, true},
	RoleObservation:      {0, false, true, true},
	RoleReward:           {F32, true, false, true},
	RoleTerminated:       {U8, true, false, true},
	RoleTruncated:        {U8, true, false, true},
	RoleActionMask:       {U8, false, true, false},
	RoleFinalObservation: {0, false, true, false},
	RoleActive:           {U8, true, false, false},
	RoleInfo:             {F32, false, true, false},
	RoleDiscount:         {F32, true, false, false},
	RoleResetParam:       {0, false, true, false},
	RoleResetInfo:        {F32, false, true, false},
}

// RoleRule is the rule for tensors of a role.
type RoleRule struct {
	DType                     DType       // of their elements, 0 = several are allowed
	Time                      TensorFlags // their axis of time, one of TensorTime
	Scalar, Several, Required bool        // Several: there may be more than one in a group
}

// Rule returns the rule for tensors of a known role.
func (r Role) Rule() RoleRule {
	w := wanted[r]
	return RoleRule{DType: w.dtype, Time: roleTime[r], Scalar: w.scalar, Several: w.several, Required: w.required}
}

// key identifies a tensor.
type key struct {
	role  Role
	group uint16
	path  string
}

func (s *EnvSpec) checkRoles() error {
	seen := map[key]bool{}
	counts := map[key]int{}
	for i := range s.Tensors {
		d := &s.Tensors[i]
		if !d.Role.Known() {
			continue
		}
		want := &wanted[d.Role]
		k := key{d.Role, d.Group, d.Path}
		of := key{role: d.Role, group: d.Group}
		switch {
		case seen[k] && (want.several || d.Path != ""):
			return fmt.Errorf("two tensors with role %v and path %q", d.Role, d.Path)
		case counts[of] > 0 && !want.several:
			return fmt.Errorf("two tensors with role %v", d.Role)
		case int(d.Index) != counts[of]:
			return fmt.Errorf("%v %q has the index %d, want %d: they count up from 0", d.Role, d.Path, d.Index, counts[of])
		case want.required && d.Flags&TensorOptional != 0:
			return fmt.Errorf("%v is optional, and every environment must have one", d.Role)
		case want.dtype != 0 && d.DType != want.dtype:
			return fmt.Errorf("%v has dtype %v, want %v", d.Role, d.DType, want.dtype)
		case d.Role == RoleActive && d.Flags&TensorPerAgent == 0:
			return fmt.Errorf("%v is of the environment, want a row for each agent", d.Role)
		case want.scalar && d.Elems(MaxTensorElems) != 1:
			return fmt.Errorf("%v has shape %v, want a scalar", d.Role, d.Shape[:d.Rank])
		}
		seen[k] = true
		counts[of]++
	}
	for group := range max(len(s.Groups), 1) {
		for role := RoleAction; role <= lastRole; role++ {
			if !wanted[role].required || counts[key{role: role, group: uint16(group)}] > 0 {
				continue
			}
			if len(s.Groups) > 1 {
				return fmt.Errorf("group %q has no tensor with role %v", s.Groups[group].Name, role)
			}
			return fmt.Errorf("no tensor with role %v", role)
		}
	}
	return s.checkPairs()
}

// checkPairs compares tensors that belong together.
func (s *EnvSpec) checkPairs() error {
	paired := map[key]bool{}
	for i := range s.Tensors {
		d := &s.Tensors[i]
		if !d.Role.Known() {
			continue
		}
		of, ok := map[Role]Role{RoleActionMask: RoleAction, RoleFinalObservation: RoleObservation}[d.Role]
		if !ok {
			if d.Pair != 0 {
				return fmt.Errorf("%v has a pair, %d; it is reserved for this role and must be 0", d.Role, d.Pair)
			}
			continue
		}
		other := s.find(of, d.Group, d.Pair)
		switch {
		case other == nil:
			return fmt.Errorf("%v %q belongs to %v %d of its group, which there is none of", d.Role, d.Path, of, d.Pair)
		case paired[key{d.Role, d.Group, other.Path}]:
			return fmt.Errorf("two tensors with role %v belong to %v %d", d.Role, of, d.Pair)
		case d.Role == RoleActionMask && d.Elems(MaxTensorElems) != other.Choices():
			return fmt.Errorf("action_mask has %d elements, the action %d values", d.Elems(MaxTensorElems), other.Choices())
		case d.Role != RoleActionMask && (d.Elems(MaxTensorElems) != other.Elems(MaxTensorElems) || d.DType != other.DType):
			return fmt.Errorf("%v has %d elements of %v, the %v %d of %v", d.Role, d.Elems(MaxTensorElems), d.DType, of,
				other.Elems(MaxTensorElems), other.DType)
		}
		paired[key{d.Role, d.Group, other.Path}] = true
	}
	if s.Autoreset&SameStep == 0 {
		return nil
	}
	for _, o := range s.All(RoleObservation) {
		final := func(d Tensor) bool { return d.Group == o.Group && d.Pair == o.Index }
		if !contains(s.All(RoleFinalObservation), final) {
			return fmt.Errorf("autoreset same_step needs a final_observation tensor for each observation; %q has none", o.Path)
		}
	}
	return nil
}

func contains(list []Tensor, is func(Tensor) bool) bool {
	for _, t := range list {
		if is(t) {
			return true
		}
	}
	return false
}

// find returns a tensor by its role, group and index.
func (s *EnvSpec) find(role Role, group, index uint16) *Tensor {
	for i := range s.Tensors {
		if t := &s.Tensors[i]; t.Role == role && t.Group == group && t.Index == index {
			return t
		}
	}
	return nil
}

// notYet reports the first thing in a valid description that this host does not run. Without it the host may not start.
func (s *EnvSpec) notYet() error {
	for i := range s.Tensors {
		d := &s.Tensors[i]
		if err := s.notYetOfAgents(d); err != nil {
			return err
		}
		switch {
		case d.Role == RoleResetParam && d.DType == F32 && d.Flags&TensorPerAgent == 0:
			continue
		case d.Role == RoleResetParam && d.Flags&TensorOptional == 0:
			return fmt.Errorf("role %v of %v, or of agents, want f32 of the environment: %w", d.Role, d.DType, ErrNotYet)
		case !d.Role.Known() || d.Role == RoleInfo || d.Role == RoleResetInfo || d.Role == RoleDiscount || d.Role == RoleActive || d.Flags&TensorOptional != 0 && d.Role > RoleFinalObservation:
			continue
		case d.Role > RoleFinalObservation:
			return fmt.Errorf("role %v: %w", d.Role, ErrNotYet)
		case d.Role == RoleAction || d.Role == RoleObservation:
			if err := d.notYet(); err != nil {
				return fmt.Errorf("%v: %w", d.Role, err)
			}
		}
	}
	return nil
}

// notYetOfAgents is the same for one tensor of an environment with agents.
func (s *EnvSpec) notYetOfAgents(d *Tensor) error {
	if !s.HasAgents() {
		return nil
	}
	switch d.Role {
	case RoleAction, RoleObservation, RoleActionMask, RoleFinalObservation:
		if _, agents := s.AgentsOf(d.Group); agents > 1 && d.Flags&TensorPerAgent == 0 {
			return fmt.Errorf("%v that %d agents share: %w", d.Role, agents, ErrNotYet)
		}
	case RoleDiscount:
		return fmt.Errorf("%v of agents: %w", d.Role, ErrNotYet)
	}
	return nil
}

// notYet is the same for one action or observation.
func (t *Tensor) notYet() error {
	action := t.Role == RoleAction
	switch {
	case action && t.Discrete() && t.DType != I32:
		return fmt.Errorf("choices of %v, want i32: %w", t.DType, ErrNotYet)
	case action && !t.Discrete() && t.DType != F32:
		return fmt.Errorf("a Box of %v, want f32: %w", t.DType, ErrNotYet)
	case action && t.Choices() > MaxActions:
		return fmt.Errorf("%d values, at most %d: %w", t.Choices(), MaxActions, ErrNotYet)
	}
	return nil
}
