package plugintest

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// scripted is a batch of scripted environments. It implements env.Env.
type scripted struct {
	plugin   *Plugin
	options  env.Options
	states   []state
	block    env.Block
	bound    bool
	calls    uint64
	renewals int
	poisoned bool
	closed   bool
	garbage  *[64]byte
	obs      [ObsElems]float32 // while it is written
	acted    []float32         // all elements of the actions of the step
	told     []float32         // the figures of the step
	shown    []float64         // the elements of Script.Observations, while they are written
}

var (
	_ env.Env    = (*scripted)(nil)
	_ env.Stater = (*scripted)(nil)
)

// state is the whole state of one environment.
type state struct {
	Episode int64 // -1 before the first one
	Step    int64
	Stream  uint64
	Chance  float32
	Actions float32
	Ended   bool // and no new episode has begun
}

func (e *scripted) create() {
	e.states = make([]state, e.options.Envs)
	for i := range e.states {
		e.states[i] = state{Episode: -1, Stream: uint64(i + 1), Ended: true}
	}
	e.bound, e.calls, e.poisoned = false, 0, false
	e.told, e.shown = nil, nil
	for _, info := range e.plugin.script.Infos {
		e.told = append(e.told, make([]float32, info.Elems(hostabi.MaxTensorElems))...)
	}
	for _, obs := range e.plugin.script.Observations {
		e.shown = append(e.shown, make([]float64, obs.Elems(hostabi.MaxTensorElems))...)
	}
}

// Spec returns the plugin's description.
func (e *scripted) Spec() *hostabi.EnvSpec { return &e.plugin.spec }

// usable returns why no call is possible now.
func (e *scripted) usable() error {
	switch {
	case e.closed:
		return fmt.Errorf("%w: %s is closed", env.ErrUnsupported, e.options.Name)
	case e.poisoned:
		return fmt.Errorf("%s: %w", e.options.Name, env.ErrPoisoned)
	}
	return nil
}

// Bind takes the block to write to.
func (e *scripted) Bind(b env.Block) error {
	if err := e.usable(); err != nil {
		return err
	}
	if b.Schema == nil || b.Schema.Shape.Envs != e.options.Envs || len(b.Mem) < b.Schema.Bytes {
		return fmt.Errorf("%w: %s: block %d has another shape", env.ErrUnsupported, e.options.Name, b.Index)
	}
	if !e.bound || !e.plugin.script.Flaws.FirstBlock {
		e.block, e.bound = b, true
	}
	return nil
}

// Reset starts new episodes.
func (e *scripted) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.usable(); err != nil {
		return err
	}
	n := e.options.Envs
	if !e.bound || t < 0 || t > e.block.Schema.Shape.Steps || mask != nil && len(mask) != n || seeds != nil && len(seeds) != n {
		return fmt.Errorf("%w: %s: reset at row %d", env.ErrUnsupported, e.options.Name, t)
	}
	for i := range e.states {
		if mask != nil && mask[i] == 0 {
			continue
		}
		s := &e.states[i]
		if seeds != nil && !e.plugin.script.Flaws.IgnoresSeeds {
			s.Stream = seeds[i]
			if e.plugin.script.Flaws.FirstSeed {
				s.Stream = seeds[0]
			}
		}
		if seeds != nil && !e.plugin.script.Flaws.Leftover {
			s.Episode = -1
		}
		e.begin(i)
		at := e.at(i)
		at.Reset = true
		cue := e.plugin.script.Cue(at)
		if err := e.fault(cue, hostabi.ExportReset, i); err != nil {
			return err
		}
		e.observe(i, t, trajectory.Obs)
		e.mask(i, t)
		e.spoil(cue, i, t-1)
	}
	return nil
}

// StepParts makes a step of some environments.
func (e *scripted) StepParts(t int, parts []env.Span) error {
	if err := e.usable(); err != nil {
		return err
	}
	e.calls++
	for _, p := range parts {
		for i := p.First; i < p.First+p.Count; i++ {
			if err := e.step(i, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Step makes a step of every environment.
func (e *scripted) Step(t int) error {
	if err := e.usable(); err != nil {
		return err
	}
	if !e.bound || t < 0 || t >= e.block.Schema.Shape.Steps {
		return fmt.Errorf("%w: %s: step at row %d", env.ErrUnsupported, e.options.Name, t)
	}
	e.calls++
	if e.plugin.script.Flaws.Allocates {
		e.garbage = new([64]byte)
	}
	for i := range e.states {
		if err := e.step(i, t); err != nil {
			return err
		}
	}
	return nil
}

func (e *scripted) step(i, t int) error {
	s := &e.states[i]
	script := &e.plugin.script
	if s.Ended {
		return e.stepEnded(i, t)
	}
	if err := e.act(i, t); err != nil {
		return e.newFault(env.FaultStatus, hostabi.ExportStep, i, fmt.Errorf("%v: %w", hostabi.StatusAction, err))
	}
	at := e.at(i)
	at.Action, at.Actions = int32(e.acted[0]), e.acted
	cue := script.Cue(at)
	if err := e.fault(cue, hostabi.ExportStep, i); err != nil {
		return err
	}
	s.Step++
	s.Actions += e.sum()
	s.Chance = e.draw(i)
	var how End
	if int(s.Step) >= script.Length(at.Env, at.Episode) {
		how = script.Ends(at.Env, at.Episode)
	}
	e.write(i, t, script.Reward(at), how&Terminates != 0, how&Truncates != 0)
	if script.Discount != nil {
		e.setFloat32(trajectory.Discount, i, t, 0, script.Discount(at))
	}
	if clear(e.told); script.Tell != nil {
		script.Tell(at, e.told)
	}
	e.tell(i, t, how != 0)
	if how != 0 {
		e.end(i, t)
	}
	e.observe(i, t+1, trajectory.Obs)
	e.mask(i, t+1)
	e.spoil(cue, i, t)
	e.report(at)
	return nil
}

// stepEnded is a step after the end of an episode.
func (e *scripted) stepEnded(i, t int) error {
	flaws := &e.plugin.script.Flaws
	if e.options.Autoreset == hostabi.SameStep || e.states[i].Episode < 0 || flaws.NoWaiting && e.options.Autoreset == hostabi.Disabled {
		return e.newFault(env.FaultStatus, hostabi.ExportStep, i, errors.New("no episode has begun: reset it first"))
	}
	if e.options.Autoreset == hostabi.NextStep {
		e.begin(i)
	} else if flaws.WaitingMoves {
		e.states[i].Step++
	} else if flaws.WaitingDraws {
		e.draw(i)
	}
	e.write(i, t, flaws.PhantomReward, false, false)
	clear(e.told)
	e.tell(i, t, false)
	e.observe(i, t+1, trajectory.Obs)
	e.mask(i, t+1)
	return nil
}

// end handles the end of an episode by the autoreset mode.
func (e *scripted) end(i, t int) {
	e.states[i].Ended = true
	if e.options.Autoreset != hostabi.SameStep {
		return
	}
	if !e.plugin.script.Flaws.NoFinalObs || e.states[i].Episode == 0 {
		e.observe(i, 0, trajectory.FinalObs)
	}
	e.begin(i)
}

// begin starts an episode.
func (e *scripted) begin(i int) {
	s := &e.states[i]
	s.Episode++
	s.Step, s.Actions, s.Ended = 0, 0, false
	s.Chance = e.draw(i)
}

// draw returns the next number of an environment's stream: splitmix64.
func (e *scripted) draw(i int) float32 {
	if e.plugin.script.Flaws.SharedChance {
		i = 0
	}
	s := &e.states[i]
	s.Stream += 0x9E3779B97F4A7C15
	z := s.Stream
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return float32((z^z>>31)>>40) * 0x1p-24
}

func (e *scripted) at(i int) At {
	s := &e.states[i]
	return At{Env: e.options.FirstEnv + i, Episode: int(s.Episode), Step: int(s.Step), Sum: s.Actions, Calls: e.calls, Renewals: e.renewals}
}

func (e *scripted) report(at At) {
	if e.plugin.script.Metric == nil || e.options.Metric == nil {
		return
	}
	if name, value := e.plugin.script.Metric(at); name != "" {
		e.options.Metric(env.Metric{Env: at.Env - e.options.FirstEnv, Name: name, Value: value, Gather: hostabi.TensorMean})
	}
}

// fault returns the fault of a cue.
func (e *scripted) fault(c Cue, call string, i int) error {
	switch c {
	case Trap:
		return e.newFault(env.FaultTrap, call, i, errors.New("trap on cue"))
	case Deadline:
		return e.newFault(env.FaultDeadline, call, i, errors.New("late on cue"))
	case ErrorStatus:
		return e.newFault(env.FaultStatus, call, i, errors.New("error on cue"))
	}
	return nil
}

func (e *scripted) newFault(kind env.FaultKind, call string, i int, err error) error {
	f := &env.Fault{Kind: kind, Name: e.options.Name, Source: e.plugin.script.Name, Call: call,
		Env: e.options.FirstEnv + i, Step: e.calls, Err: err}
	e.poisoned = f.Poisons()
	return f
}

// Renew makes the batch again.
func (e *scripted) Renew() error {
	if e.closed {
		return e.usable()
	}
	e.create()
	e.renewals++
	return nil
}

// Close ends the batch.
func (e *scripted) Close() error {
	if !e.closed {
		e.closed = true
		e.plugin.open.Add(-1)
	}
	return nil
}
