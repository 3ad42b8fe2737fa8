package env

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Alone steps environments one by one, for callers that do not wait for the slowest of a batch. Actions are taken from row 0 of
// its block, where results go too; observations are in row 1. It belongs to one goroutine.
type Alone struct {
	driver   *Driver
	separate Separate // nil: steps are made at once, as parts
	parts    PartStepper
	each     []trajectory.Trajectory
	over     func(index int, ended trajectory.Ended, err error)
	spans    []Span
}

// NewAlone makes environments of one agent each. over is called at the end of each step, from any goroutine, possibly within Step; an error of
// other environments than index is a Fault of kind Lost. The error wraps ErrUnsupported where environments cannot be stepped one by one. The
// caller must close it.
func NewAlone(p Plugin, o Options, over func(index int, ended trajectory.Ended, err error)) (*Alone, error) {
	d, err := NewDriver(p, DriverOptions{Options: o, Rows: 1})
	if err != nil {
		return nil, err
	}
	a := &Alone{driver: d, over: over, each: make([]trajectory.Trajectory, o.Envs)}
	d.t = 1
	if err := a.prepare(p); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return a, nil
}

func (a *Alone) prepare(p Plugin) error {
	spec := a.driver.Schema().Spec
	if agents := a.driver.Schema().Agents; agents > 1 {
		return fmt.Errorf("%w: %s has %d agents, which act together", ErrUnsupported, spec.Name, agents)
	}
	for i := range a.each {
		schema, err := a.driver.tr.Schema.Slice(i, 1)
		if err != nil {
			return err
		}
		a.each[i] = trajectory.Trajectory{Schema: schema, Mem: a.driver.tr.Mem}
	}
	if separate, ok := a.driver.Env.(Separate); ok && separate.StepsAlone(a.stepped) == nil {
		a.separate = separate
		return nil
	}
	if parts, ok := a.driver.Env.(PartStepper); ok && StepsParts(p) {
		a.parts = parts
		return nil
	}
	return fmt.Errorf("%w: %s is stepped in whole batches", ErrUnsupported, spec.Name)
}

// Block returns the block, for another process that reads and writes it.
func (a *Alone) Block() Block { return a.driver.Block() }

// Env returns the environments.
func (a *Alone) Env() Env { return a.driver.Env }

// Schema returns how the block is laid out.
func (a *Alone) Schema() *trajectory.Schema { return a.driver.Schema() }

// Reset starts new episodes, everywhere or where mask is not 0, and checks the observations. No environment may be in a step.
func (a *Alone) Reset(mask []uint8, seeds []uint64) error { return a.driver.Reset(mask, seeds) }

// Step begins a step of each of some environments, which are in none. After an error it has begun none of those from the one on whose index it
// returns; over is not called for them.
func (a *Alone) Step(indices []int32) (begun int, err error) {
	for k, index := range indices {
		if index < 0 || int(index) >= len(a.each) {
			return k, fmt.Errorf("%w: environment %d of %d", ErrUnsupported, index, len(a.each))
		}
		a.each[index].Execute(0)
		if a.separate == nil {
			continue
		}
		if err := a.separate.StepAlone(0, int(index)); err != nil {
			return k, err
		}
	}
	if a.separate == nil {
		a.stepParts(indices)
	}
	return len(indices), nil
}

// stepParts makes the steps at once.
func (a *Alone) stepParts(indices []int32) {
	a.spans = a.spans[:0]
	for _, index := range indices {
		if n := len(a.spans); n > 0 && a.spans[n-1].First+a.spans[n-1].Count == int(index) {
			a.spans[n-1].Count++
			continue
		}
		a.spans = append(a.spans, Span{First: int(index), Count: 1})
	}
	err := a.parts.StepParts(0, a.spans)
	for _, index := range indices {
		a.stepped(int(index), err)
	}
}

// stepped checks the output of a step that has ended.
func (a *Alone) stepped(index int, err error) {
	if err != nil {
		a.over(index, 0, err)
		return
	}
	ended, err := a.check(index)
	if err != nil {
		err = fmt.Errorf("env %d after %s: %w", index, hostabi.ExportStep, err)
	}
	a.over(index, ended, err)
}

func (a *Alone) check(index int) (trajectory.Ended, error) {
	tr := a.each[index]
	ended, _, err := tr.CheckStep(0, a.driver.mode)
	if err != nil || ended == 0 || a.driver.mode != hostabi.SameStep {
		return ended, err
	}
	for i := range a.driver.born {
		if _, err := tr.CheckBegun(&a.driver.born[i], 1, func(int) bool { return true }); err != nil {
			return 0, err
		}
	}
	return ended, nil
}

// Close closes the environments and frees the block.
func (a *Alone) Close() error { return a.driver.Close() }
