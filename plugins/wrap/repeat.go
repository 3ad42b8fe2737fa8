package wrap

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// stepper is a layer that makes the step of the environments in w.part itself.
type stepper interface {
	// step is Step of the wrapped batch.
	step(t int) error
}

// parted is a wrapper that steps parts of a batch.
type parted interface{ parts() }

// actionRepeat makes a number of steps with one action; their rewards are added up.
type actionRepeat struct {
	Steps int `toml:"action_repeat" doc:"Takes each action this many times and adds up the rewards." range:"2 to 1000" unit:"env steps" default:""`
}

func (c *actionRepeat) parts() {}

func (c *actionRepeat) validate(bad func(key, reason, help string)) {
	if c.Steps < 2 || c.Steps > 1000 {
		bad("action_repeat", fmt.Sprintf("is %d, want 2 to 1000 steps", c.Steps), "")
	}
}

func (c *actionRepeat) describe(s *hostabi.EnvSpec) error { return describeRepeated(s, c.Steps) }

// describeRepeated describes environments of which a step is several.
func describeRepeated(s *hostabi.EnvSpec, steps int) error {
	if s.HasAgents() {
		return errors.New("it has agents")
	}
	if _, has := s.Tensor(hostabi.RoleDiscount); has {
		return errors.New("it has a discount of its own for each step")
	}
	s.EpisodeLimit = (s.EpisodeLimit + steps - 1) / steps
	return nil
}

func (c *actionRepeat) around(w *wrapped) layer { return newRepeatLayer(w, c.Steps) }

func newRepeatLayer(w *wrapped, steps int) *repeatLayer {
	n := w.o.Envs
	l := &repeatLayer{w: w, steps: steps, running: make([]byte, n), over: make([]byte, n), idle: make([]byte, n), spans: make([]env.Span, 0, n)}
	l.sums = []rewardSum{{column: trajectory.Reward, of: make([]float32, n)}}
	if env.Shapes(w.plugin.Plugin) {
		l.sums = append(l.sums, rewardSum{column: trajectory.ShapedReward, of: make([]float32, n)})
	}
	return l
}

// repeatLayer steps the environments whose episodes continue again, in the same row.
type repeatLayer struct {
	plain
	w          *wrapped
	tr         trajectory.Trajectory
	steps      int
	running    []byte // 1 for environments that are stepped again
	over, idle []byte // see ends, of the whole step
	spans      []env.Span
	sums       []rewardSum
	frames     *frames // that a step observes the maximum of; nil: it observes the last one
}

// rewardSum adds up one column.
type rewardSum struct {
	column trajectory.Column
	of     []float32 // by environment
}

func (l *repeatLayer) bind(tr trajectory.Trajectory) {
	if l.tr = tr; l.frames != nil {
		l.frames.bind(tr)
	}
}

func (l *repeatLayer) step(t int) error {
	w := l.w
	copy(l.running, w.part)
	clear(l.over)
	for i := range l.idle {
		l.idle[i] = 1 - w.part[i]
	}
	for _, s := range l.sums {
		clear(s.of)
	}
	if l.frames != nil {
		l.frames.begin(w.part)
	}
	var lost error
	for k := range l.steps {
		if !slices.Contains(l.running, 1) {
			break
		}
		err := l.once(t)
		if err != nil && env.Lost(err) == nil {
			return err
		}
		lost = bothLost(lost, err)
		if l.frames != nil {
			l.frames.step(t, l.running, k == l.steps-1)
		}
	}
	for _, s := range l.sums {
		l.put(s, t)
	}
	copy(w.ends.over, l.over)
	copy(w.ends.idle, l.idle)
	w.lose(lost)
	return lost
}

// once makes one of the steps.
func (l *repeatLayer) once(t int) (err error) {
	w := l.w
	if !slices.Contains(l.running, 0) {
		err = w.inner.Step(t)
	} else {
		err = w.inner.(env.PartStepper).StepParts(t, l.parts())
	}
	if err != nil && env.Lost(err) == nil {
		return err
	}
	w.ends.step(l.tr, t, l.running)
	for _, span := range env.Lost(err) {
		for i := max(span.First, 0); i < min(span.First+span.Count, len(l.running)); i++ {
			l.running[i] = 0
		}
	}
	for _, s := range l.sums {
		if l.tr.Schema.Has(s.column) {
			for i, r := range l.tr.Row(s.column, t).Float32() {
				if l.running[i] != 0 {
					s.of[i] += r
				}
			}
		}
	}
	for i := range l.running {
		if l.running[i] != 0 && w.ends.over[i]|w.ends.idle[i] != 0 {
			l.running[i], l.over[i], l.idle[i] = 0, w.ends.over[i], w.ends.idle[i]
		}
	}
	return err
}

// parts returns the environments that are stepped again.
func (l *repeatLayer) parts() []env.Span {
	l.spans = l.spans[:0]
	for i := 0; i < len(l.running); i++ {
		first := i
		for i < len(l.running) && l.running[i] != 0 {
			i++
		}
		if i > first {
			l.spans = append(l.spans, env.Span{First: first, Count: i - first})
		}
	}
	return l.spans
}

// put writes the sums of the environments that were stepped.
func (l *repeatLayer) put(s rewardSum, t int) {
	if !l.tr.Schema.Has(s.column) {
		return
	}
	rewards := l.tr.Row(s.column, t).Float32()
	for i, part := range l.w.part {
		if part != 0 {
			rewards[i] = s.of[i]
		}
	}
}
