package session_test

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// spy is a backend that looks at the inputs of its actors and learners, on the calling goroutine.
type spy struct {
	policy.Backend
	compiled func(n *policy.Network)
	loaded   func(w policy.Weights)          // by actors
	acted    func(requests []policy.Request) // after acting
	updates  func(d *policy.Dataset)         // before learning
}

func (s *spy) Compile(n *policy.Network) (policy.Program, error) {
	if s.compiled != nil {
		s.compiled(n)
	}
	p, err := s.Backend.Compile(n)
	return &spyProgram{p, s}, err
}

type spyProgram struct {
	policy.Program
	spy *spy
}

func (p *spyProgram) NewActor(maxRows int) (policy.Actor, error) {
	a, err := p.Program.NewActor(maxRows)
	return &spyActor{a, p.spy}, err
}

func (p *spyProgram) NewLearner(params []float32, c ppo.Config) (ppo.Learner, error) {
	l, err := p.Program.(ppo.Program).NewLearner(params, c)
	return &spyLearner{l, p.spy}, err
}

type spyActor struct {
	policy.Actor
	spy *spy
}

func (a *spyActor) Load(w policy.Weights) error {
	if a.spy.loaded != nil {
		a.spy.loaded(w)
	}
	return a.Actor.Load(w)
}

func (a *spyActor) Act(requests []policy.Request) error {
	err := a.Actor.Act(requests)
	if err == nil && a.spy.acted != nil {
		a.spy.acted(requests)
	}
	return err
}

type spyLearner struct {
	ppo.Learner
	spy *spy
}

func (l *spyLearner) Update(d *policy.Dataset, r ppo.Rates) (ppo.Stats, error) {
	if l.spy.updates != nil {
		l.spy.updates(d)
	}
	return l.Learner.Update(d, r)
}

// valued has the policy's value of every observation that it was shown.
type valued struct {
	mu     sync.Mutex
	values map[[plugintest.ObsElems]float32][]float32 // newest last
}

// wrap returns a backend that fills v.
func (v *valued) wrap(b policy.Backend) policy.Backend {
	v.values = map[[plugintest.ObsElems]float32][]float32{}
	return &spy{Backend: b, acted: func(requests []policy.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, r := range requests {
			for row := range r.Len() {
				obs := elements(r.Obs[0], row)
				v.values[obs] = append(v.values[obs], r.Value[row])
			}
		}
	}}
}

// elements returns one row of observations.
func elements(m trajectory.Matrix, row int) (obs [plugintest.ObsElems]float32) {
	for i := range obs {
		at := row*m.StrideRow + i*m.StrideElem
		obs[i] = math.Float32frombits(binary.LittleEndian.Uint32(m.Data[at:]))
	}
	return obs
}
