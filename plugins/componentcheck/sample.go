package componentcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Contents of made-up blocks.
const (
	sampleSteps  = 16
	sampleEnvs   = 4
	sampleAgents = 2
	sampleElems  = 256 // of an observation: the boards of most games fit
	sampleValues = 8   // of a choice
)

// otherPolicy plays where the component's does not.
const otherPolicy = "other"

// sampleFor returns the layout of made up blocks: two agents that take turns, two policies if the component plays one by name, and each column that the component says it looks at,
// of the type that it wants, on pages that can be granted.
func sampleFor(looks []hostabi.ManifestColumn, policy string) (*trajectory.Schema, error) {
	wants := map[trajectory.Column]hostabi.DType{}
	for _, c := range looks {
		if column, ok := trajectory.ParseColumn(c.Name); ok {
			wants[column] = c.DType
		}
	}
	spec := hostabi.EnvSpec{Name: "sample@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Caps: hostabi.CapStrides, Needs: hostabi.FeatureAgents,
		Flags: hostabi.SpecDynamicAgents, Groups: []hostabi.Group{{Name: "agents", Agents: sampleAgents}}}
	add := func(t hostabi.Tensor) {
		if t.Role != hostabi.RoleResetParam && t.Role != hostabi.RoleInfo {
			t.Flags |= hostabi.TensorPerAgent
		}
		for _, before := range spec.Tensors {
			if before.Role == t.Role {
				t.Index++
			}
		}
		spec.Tensors = append(spec.Tensors, t)
	}
	addTo(add, wants)
	shape := trajectory.Shape{Steps: sampleSteps, Envs: sampleEnvs, Granted: "action reset_param reward shaped_reward"}
	if policy != "" {
		names := []string{policy, otherPolicy + strings.Repeat("s", len(policy))}
		slices.Sort(names)
		shape.Policies = strings.Join(names, " ")
	}
	s, err := trajectory.NewSchema(spec, shape)
	if err != nil {
		return nil, fmt.Errorf("no blocks can be made up for the columns that it looks at, so give it a recording: %w", err)
	}
	return s, nil
}

// addTo adds tensors to the description of the environment of made up blocks.
func addTo(add func(hostabi.Tensor), wants map[trajectory.Column]hostabi.DType) {
	tensor := func(role hostabi.Role, dtype hostabi.DType, elems uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: dtype, Rank: 1, Shape: [hostabi.MaxRank]uint32{elems}}
	}
	scalar := func(role hostabi.Role, dtype hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: dtype}
	}
	typeOf := func(c trajectory.Column, usual hostabi.DType) hostabi.DType {
		if d := wants[c]; d != 0 {
			return d
		}
		return usual
	}
	action := scalar(hostabi.RoleAction, typeOf(trajectory.Action, hostabi.I32))
	mask := tensor(hostabi.RoleActionMask, hostabi.U8, sampleValues)
	if action.N = sampleValues; action.DType.Float() {
		action.N, action.Flags = 0, hostabi.TensorNoLow|hostabi.TensorNoHigh
	}
	if add(action); action.N > 0 {
		add(mask)
	}
	for i := 0; i == 0 || has(wants, trajectory.Obs.At(i)); i++ {
		dtype := typeOf(trajectory.Obs.At(i), hostabi.F32)
		last := tensor(hostabi.RoleFinalObservation, dtype, sampleElems)
		last.Pair = uint16(i)
		add(tensor(hostabi.RoleObservation, dtype, sampleElems))
		add(last)
	}
	add(scalar(hostabi.RoleReward, hostabi.F32))
	add(scalar(hostabi.RoleTerminated, hostabi.U8))
	add(scalar(hostabi.RoleTruncated, hostabi.U8))
	add(scalar(hostabi.RoleActive, hostabi.U8))
	for i := 0; i == 0 || has(wants, trajectory.ResetParam.At(i)); i++ {
		add(tensor(hostabi.RoleResetParam, hostabi.F32, 1))
	}
	for i := 0; has(wants, trajectory.Info.At(i)); i++ {
		add(scalar(hostabi.RoleInfo, hostabi.F32))
	}
}

func has(wants map[trajectory.Column]hostabi.DType, c trajectory.Column) bool {
	_, ok := wants[c]
	return ok
}

// blockOf makes up steps, in which the agents take turns.
func blockOf(s *trajectory.Schema, i int) []byte {
	t := trajectory.Trajectory{Schema: s, Mem: make([]byte, s.Bytes)}
	for _, l := range s.Columns() {
		if l.Column.Kind() == trajectory.Obs {
			fillObs(t, &l)
		}
	}
	rewards, valid := t.Float32(trajectory.Reward), t.Bytes(trajectory.Valid)
	for k := range rewards {
		rewards[k], valid[k] = float32((k+3*i)%5)/4, 1
	}
	copy(t.Float32(trajectory.ShapedReward), rewards)
	for row, active := range slices.Collect(slices.Chunk(t.Bytes(trajectory.Active), s.Rows())) {
		for k := row % sampleAgents; k < len(active); k += sampleAgents {
			active[k] = 1
		}
	}
	policies := t.Bytes(trajectory.Policy) // each plays both agents
	for k := range policies {
		row, env := k/s.Rows(), k%s.Rows()/sampleAgents
		policies[k] = byte((row/sampleAgents + env) % 2)
	}
	if s.Has(trajectory.Mask) {
		mask := t.Bytes(trajectory.Mask)
		for k := range mask {
			mask[k] = 1
		}
	}
	return t.Mem
}

// fillObs makes up observations of the two usual types; all else stays 0.
func fillObs(t trajectory.Trajectory, l *trajectory.Layout) {
	switch l.DType {
	case hostabi.F32:
		obs := t.Float32(l.Column)
		for k := range obs {
			obs[k] = float32(k%17) / 17
		}
	case hostabi.U8:
		obs := t.Bytes(l.Column)
		for k := range obs {
			obs[k] = byte(k % 17)
		}
	}
}
