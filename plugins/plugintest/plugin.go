package plugintest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// Plugin makes scripted environments.
type Plugin struct {
	script Script
	spec   hostabi.EnvSpec
	spaces []hostabi.Tensor // of the actions
	masks  int              // how many of them have a mask
	open   atomic.Int32     // batches that are not closed
	closed atomic.Bool
}

var _ env.Plugin = (*Plugin)(nil)

// New returns a plugin whose environments follow a script.
func New(s Script) *Plugin {
	s = s.withDefaults()
	p := &Plugin{script: s, spec: s.spec()}
	p.spaces, p.masks = p.spec.All(hostabi.RoleAction), len(p.spec.All(hostabi.RoleActionMask))
	return p
}

// spec is the result of rl_describe.
func (s *Script) spec() hostabi.EnvSpec {
	scalar := func(role hostabi.Role, d hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: d}
	}
	observed := s.observations()
	spec := hostabi.EnvSpec{
		Name: s.Name, ABI: hostabi.EnvABI, Caps: s.Caps, MaxEnvs: s.MaxEnvs, EpisodeLimit: s.EpisodeLimit,
		Autoreset: s.Autoreset,
		Tensors: append(s.actions(), observed[0],
			scalar(hostabi.RoleReward, hostabi.F32), scalar(hostabi.RoleTerminated, hostabi.U8),
			scalar(hostabi.RoleTruncated, hostabi.U8), finalOf(observed[0])),
	}
	for _, obs := range observed[1:] {
		spec.Tensors = append(spec.Tensors, obs, finalOf(obs))
	}
	if s.Discount != nil {
		spec.Needs |= hostabi.FeatureDiscount
		spec.Tensors = append(spec.Tensors, scalar(hostabi.RoleDiscount, hostabi.F32))
	}
	for i, info := range s.Infos {
		info.Role, info.Index, info.DType = hostabi.RoleInfo, uint16(i), hostabi.F32
		spec.Tensors = append(spec.Tensors, info)
	}
	if s.Legal == nil {
		return spec
	}
	for i, a := range spec.All(hostabi.RoleAction) {
		if a.Discrete() {
			spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleActionMask, Index: uint16(len(spec.All(hostabi.RoleActionMask))),
				Pair: uint16(i), Path: a.Path, DType: hostabi.U8, Rank: 1, Shape: [hostabi.MaxRank]uint32{uint32(a.Choices())}})
		}
	}
	return spec
}

// observations describes the observations.
func (s *Script) observations() []hostabi.Tensor {
	list := slices.Clone(s.Observations)
	if len(list) == 0 {
		obs := hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{ObsElems},
			Flags: hostabi.TensorNoLow | hostabi.TensorNoHigh}
		if s.Flaws.OutOfBounds {
			obs.Low, obs.High, obs.Flags = -1, 1, 0
		}
		list = append(list, obs)
		if s.Picture {
			list = append(list, hostabi.Tensor{Path: "picture", DType: hostabi.U8, Rank: 3,
				Shape: [hostabi.MaxRank]uint32{2, 3, 1}, High: 255, Flags: hostabi.TensorImageHWC})
		}
	}
	for i := range list {
		list[i].Role, list[i].Index = hostabi.RoleObservation, uint16(i)
	}
	return list
}

// finalOf describes the last observations of episodes.
func finalOf(obs hostabi.Tensor) hostabi.Tensor {
	obs.Role, obs.Pair = hostabi.RoleFinalObservation, obs.Index
	return obs
}

// actions describes the actions.
func (s *Script) actions() []hostabi.Tensor {
	if len(s.Spaces) == 0 {
		return []hostabi.Tensor{{Role: hostabi.RoleAction, DType: hostabi.I32, N: uint32(s.Actions)}}
	}
	list := slices.Clone(s.Spaces)
	for i := range list {
		list[i].Role, list[i].Index = hostabi.RoleAction, uint16(i)
		if i > 0 && list[i].Path == "" {
			list[i].Path = fmt.Sprint(i)
		}
	}
	return list
}

// Spec returns the script's description.
func (p *Plugin) Spec() hostabi.EnvSpec { return p.spec }

// Hash returns the SHA-256 of the name.
func (p *Plugin) Hash() string {
	sum := sha256.Sum256([]byte(p.script.Name))
	return hex.EncodeToString(sum[:])
}

// NewEnv makes a batch of environments.
func (p *Plugin) NewEnv(o env.Options) (env.Env, error) {
	if p.closed.Load() {
		return nil, fmt.Errorf("%w: the plugin is closed", env.ErrUnsupported)
	}
	if o.Envs < 1 || p.spec.MaxEnvs > 0 && o.Envs > p.spec.MaxEnvs {
		return nil, fmt.Errorf("%w: %d environments", env.ErrUnsupported, o.Envs)
	}
	if o.Autoreset&p.spec.Autoreset == 0 || o.Autoreset&(o.Autoreset-1) != 0 {
		return nil, fmt.Errorf("%w: autoreset %v", env.ErrUnsupported, o.Autoreset)
	}
	p.open.Add(1)
	e := &scripted{plugin: p, options: o}
	e.create()
	return e, nil
}

// StepsParts reports that environments can be stepped one by one.
func (p *Plugin) StepsParts() bool { return true }

// Open returns how many batches have been made and not closed.
func (p *Plugin) Open() int { return int(p.open.Load()) }

// Close makes the plugin refuse new batches.
func (p *Plugin) Close() error {
	p.closed.Store(true)
	return nil
}
