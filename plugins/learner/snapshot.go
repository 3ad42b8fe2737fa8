package learner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// saved is the small part of a learner's state.
type saved struct {
	Network          policy.Network     `json:"network"`
	Version          uint64             `json:"policy_version"`
	EnvSteps         uint64             `json:"env_steps"`
	OptimizerSteps   uint64             `json:"optimizer_steps"`
	Index            uint64             `json:"datasets"`
	AdamSteps        uint64             `json:"adam_steps"`
	LRAnnealEnvSteps uint64             `json:"anneal_env_steps"`
	Normalizer       *policy.Normalizer `json:"normalizer,omitempty"`
	// The value of the parameters is in the unit of these statistics; without them it is as it is.
	Returns      *ppo.Returns `json:"returns,omitempty"`
	LearningRate float32      `json:"learning_rate,omitempty"` // where it follows the divergence
	// Begins: a run begins with this state. Different cores of its network start from scratch.
	Begins bool `json:"begins,omitempty"`
}

// raw returns the statistics of a value that is as it is.
func raw() *ppo.Returns {
	r := ppo.RawReturns()
	return &r
}

// unit is the unit of the value in the saved parameters.
func (s *saved) unit() (ppo.Unit, error) {
	if s.Returns == nil {
		return ppo.Raw, nil
	}
	return s.Returns.Unit(), s.Returns.Validate()
}

// Prefixes of the tensors of a snapshot; the parameters themselves have none.
const (
	adamM = "adam_m."
	adamV = "adam_v."
)

// Snapshot saves parameters, optimiser, normaliser and counters.
func (l *Learner) Snapshot() (component.State, error) {
	s, err := l.backend.State()
	if err != nil {
		return component.State{}, err
	}
	n := l.definition.Network
	meta := saved{
		Network: n, Version: l.version, EnvSteps: l.envSteps, OptimizerSteps: l.optimizerSteps, Index: l.index,
		AdamSteps: s.AdamSteps, LRAnnealEnvSteps: l.config.LRAnnealEnvSteps, Normalizer: clone(l.normalizer),
		LearningRate: s.LearningRate,
	}
	if l.config.NormalizeReturns {
		meta.Returns = &s.Returns
	}
	state := component.State{Meta: meta, Tensors: map[string]component.Tensor{}}
	name(&n, "", s.Params, state.Tensors)
	name(&n, adamM, s.AdamM, state.Tensors)
	name(&n, adamV, s.AdamV, state.Tensors)
	return state, nil
}

// SnapshotApart is Snapshot off the loop; see component.Apart.
func (l *Learner) SnapshotApart() (state component.State, ok bool, err error) {
	if !l.changing.TryLock() {
		return component.State{}, false, nil
	}
	defer l.changing.Unlock()
	if l.backend == nil {
		return component.State{}, false, nil
	}
	state, err = l.Snapshot()
	return state, true, err
}

// clone copies a normaliser's state, so that a snapshot does not change with the run.
func clone(z *policy.Normalizer) *policy.Normalizer {
	if z == nil {
		return nil
	}
	return &policy.Normalizer{Count: z.Count, Mean: slices.Clone(z.Mean), M2: slices.Clone(z.M2)}
}

// name cuts a canonical vector into named tensors.
func name(n *policy.Network, prefix string, vector []float32, tensors map[string]component.Tensor) {
	for _, p := range n.Params() {
		tensors[prefix+p.Name] = component.Tensor{Shape: p.Shape, Data: slices.Clone(vector[p.Offset : p.Offset+p.Rows*p.Cols])}
	}
}

// vector is the inverse of name.
func vector(n *policy.Network, prefix string, tensors map[string]component.Tensor) ([]float32, error) {
	if err := fits(n, prefix, tensors); err != nil {
		return nil, err
	}
	v := make([]float32, n.ParamCount())
	for _, p := range n.Params() {
		copy(v[p.Offset:], tensors[prefix+p.Name].Data)
	}
	return v, nil
}

// fits checks that the tensors fit the network. Their size bounds the network's: its description comes from a file, as
// they do, and could ask for more memory than there is.
func fits(n *policy.Network, prefix string, tensors map[string]component.Tensor) error {
	for _, p := range n.Params() {
		t, ok := tensors[prefix+p.Name]
		if !ok {
			return fmt.Errorf("saved state has no tensor %q", prefix+p.Name)
		}
		if len(t.Data)%p.Rows != 0 || len(t.Data)/p.Rows != p.Cols {
			return fmt.Errorf("saved tensor %q has %d elements, the network %d × %d", prefix+p.Name, len(t.Data), p.Rows, p.Cols)
		}
	}
	return nil
}

// Restore continues from a snapshot. Schedules continue from its env steps.
func (l *Learner) Restore(state component.State) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	var from saved
	if err := state.Decode(&from); err != nil {
		return err
	}
	if err := from.Network.Validate(); err != nil {
		return err
	}
	n := &l.definition.Network
	if from.Begins && from.Network.Hash() != n.Hash() && from.Network.SameBesideCores(n) {
		l.h.Log.Warn("the recurrent layers of the saved policy are others: they begin from scratch", "saved", fmt.Sprint(from.Network.Cores()), "now", fmt.Sprint(n.Cores()))
		state.Tensors = otherCores(&from, n, l.h.Run.Seed, state.Tensors)
	}
	if err := policy.SameParameters(&from.Network, n); err != nil {
		return err
	}
	if n.NormalizeObs() && from.Normalizer == nil {
		return fmt.Errorf("saved state has no normaliser for its network")
	}
	s := ppo.State{AdamSteps: from.AdamSteps, LearningRate: from.LearningRate}
	if from.Returns != nil {
		s.Returns = *from.Returns
	}
	var err error
	if s.Params, err = vector(n, "", state.Tensors); err != nil {
		return err
	}
	if s.AdamM, err = vector(n, adamM, state.Tensors); err != nil {
		return err
	}
	if s.AdamV, err = vector(n, adamV, state.Tensors); err != nil {
		return err
	}
	if err := l.backend.SetState(s); err != nil {
		return err
	}
	if n.NormalizeObs() {
		if len(from.Normalizer.Mean) != n.Stats() || len(from.Normalizer.M2) != n.Stats() {
			return fmt.Errorf("saved normaliser has %d elements, the network %d", len(from.Normalizer.Mean), n.Stats())
		}
		l.normalizer = from.Normalizer
		l.normalizer.Weights(l.obsMean, l.obsScale)
	}
	if from.EnvSteps > 0 && from.LRAnnealEnvSteps != l.config.LRAnnealEnvSteps {
		l.h.Log.Warn("the schedule of the learning rate is not that of the saved run",
			"lr_anneal_env_steps", l.config.LRAnnealEnvSteps, "saved", from.LRAnnealEnvSteps)
	}
	if end := l.config.LRAnnealEnvSteps; end > 0 && from.EnvSteps >= end {
		l.h.Log.Warn("the learning rate is 0 from here on: its schedule has ended, and nothing more is learned", "env_steps", from.EnvSteps,
			"lr_anneal_env_steps", end, "help", "set lr_anneal_env_steps of "+l.h.Name+" to more env steps than the run is to make, or to 0 for a rate that stays")
	}
	l.version, l.envSteps = from.Version, from.EnvSteps
	l.optimizerSteps, l.index = from.OptimizerSteps, from.Index
	return nil
}

// otherCores turns saved parameters into a network's with other cores, whose parameters are initialised by that seed. The
// optimiser is reset: it counts the steps of all parameters at once.
func otherCores(from *saved, n *policy.Network, seed uint64, tensors map[string]component.Tensor) map[string]component.Tensor {
	made := map[string]component.Tensor{}
	name(n, "", policy.Init(n, seed), made)
	for _, p := range n.ParamsBesideCores() {
		made[p.Name] = tensors[p.Name]
	}
	from.Network = *n
	resetOptimizer(from, made)
	return made
}

// Weights returns the policy of a snapshot, for evaluation, and the network it is for.
func Weights(state component.State) (policy.Network, policy.Weights, error) {
	var from saved
	if err := state.Decode(&from); err != nil {
		return policy.Network{}, policy.Weights{}, err
	}
	if err := from.Network.Validate(); err != nil {
		return policy.Network{}, policy.Weights{}, err
	}
	params, err := vector(&from.Network, "", state.Tensors)
	unit, statistics := from.unit()
	if err = errors.Join(err, statistics); err == nil {
		err = unit.Denormalise(&from.Network, params)
	}
	w := policy.Weights{Version: from.Version, Params: params}
	if err == nil && from.Network.NormalizeObs() {
		if from.Normalizer == nil || len(from.Normalizer.Mean) != from.Network.Stats() || len(from.Normalizer.M2) != from.Network.Stats() {
			return policy.Network{}, policy.Weights{}, fmt.Errorf("saved state has no normaliser for its network")
		}
		w.ObsMean, w.ObsScale = make([]float32, from.Network.Stats()), make([]float32, from.Network.Stats())
		from.Normalizer.Weights(w.ObsMean, w.ObsScale)
	}
	return from.Network, w, err
}

// Weights is the function of that name; see session.Learner.
func (l *Learner) Weights(state component.State) (policy.Network, policy.Weights, error) {
	return Weights(state)
}

// Progress returns the policy version and the env steps of a snapshot; see session.Learner.
func (l *Learner) Progress(state component.State) (policyVersion, envSteps uint64, err error) {
	var from saved
	err = state.Decode(&from)
	return from.Version, from.EnvSteps, err
}

// StartFrom is the function of that name; see session.Learner.
func (l *Learner) StartFrom(state component.State, seed uint64, reset []string) (component.State, error) {
	return StartFrom(state, seed, reset)
}

// Parts of a snapshot that a new run may reset.
const (
	ResetOptimizer  = "optimizer"
	ResetValue      = "value"
	ResetNormalizer = "normalizer"
)

// StartFrom turns a snapshot of an old run into the beginning of a new one: same policy, counters at zero, and
// the parts named in reset as in a new run with that seed.
func StartFrom(state component.State, seed uint64, reset []string) (component.State, error) {
	var from saved
	if err := state.Decode(&from); err != nil {
		return component.State{}, err
	}
	n := &from.Network
	if err := n.Validate(); err != nil {
		return component.State{}, err
	}
	if err := fits(n, "", state.Tensors); err != nil {
		return component.State{}, err
	}
	from.Version, from.EnvSteps, from.OptimizerSteps, from.Index, from.LearningRate, from.Begins = 0, 0, 0, 0, 0, true
	tensors := maps.Clone(state.Tensors)
	if from.Returns == nil {
		from.Returns = raw()
	}
	for _, part := range reset {
		switch part {
		case ResetOptimizer:
			resetOptimizer(&from, tensors)
		case ResetValue:
			// Adam counts its steps for all parameters at once. With that count, moments of zero would make the first
			// thousand steps of a new critic up to 6.6 times too large.
			resetOptimizer(&from, tensors)
			from.Returns = nil
			fresh := map[string]component.Tensor{}
			name(n, "", policy.Init(n, seed), fresh)
			for key, tensor := range fresh {
				if strings.HasPrefix(key, "critic.") {
					tensors[key] = tensor
				}
			}
		case ResetNormalizer:
			if n.NormalizeObs() {
				from.Normalizer = policy.NewNormalizer(n.Stats())
			}
		default:
			return component.State{}, fmt.Errorf("reset %q: want %s, %s or %s", part, ResetOptimizer, ResetValue, ResetNormalizer)
		}
	}
	return component.State{Meta: from, Tensors: tensors}, nil
}

// FromTensors is the function of that name; see session.Learner.
func (l *Learner) FromTensors(n policy.Network, tensors map[string]component.Tensor) (component.State, error) {
	return FromTensors(n, tensors)
}

// Names of the tensors of an exported normaliser, and how many rows it counts for when training continues with it.
const (
	meanTensor     = "obs_mean"
	scaleTensor    = "obs_scale"
	normalizerRows = 10_000
)

// FromTensors is the state that a new run begins with to have these weights, named as in an export; other tensors are left
// out. A network that normalises observations begins with new statistics if obs_mean and obs_scale are missing.
func FromTensors(n policy.Network, tensors map[string]component.Tensor) (component.State, error) {
	if err := fits(&n, "", tensors); err != nil {
		return component.State{}, err
	}
	state := component.State{Tensors: map[string]component.Tensor{}}
	for _, p := range n.Params() {
		state.Tensors[p.Name] = component.Tensor{Shape: p.Shape, Data: tensors[p.Name].Data}
	}
	s := saved{Network: n, Returns: raw()}
	resetOptimizer(&s, state.Tensors)
	if n.NormalizeObs() {
		s.Normalizer = policy.NewNormalizer(n.Stats())
		mean, scale := tensors[meanTensor].Data, tensors[scaleTensor].Data
		switch {
		case len(mean) == n.Stats() && len(scale) == n.Stats():
			s.Normalizer.Set(mean, scale, normalizerRows)
		case len(mean) > 0 || len(scale) > 0:
			return component.State{}, fmt.Errorf("tensors %s and %s have %d and %d elements, the network normalises %d", meanTensor, scaleTensor, len(mean), len(scale), n.Stats())
		}
	}
	state.Meta = s
	return state, nil
}

// resetOptimizer puts Adam's moments and its count of steps at zero.
func resetOptimizer(s *saved, tensors map[string]component.Tensor) {
	s.AdamSteps = 0
	zero := make([]float32, s.Network.ParamCount())
	name(&s.Network, adamM, zero, tensors)
	name(&s.Network, adamV, zero, tensors)
}
