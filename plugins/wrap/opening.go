package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// describeOpening refuses environments in which no steps can be made ahead of the policy's, and leaves same-step autoreset alone: under
// the others an episode begins in a step that the policy makes.
func describeOpening(s *hostabi.EnvSpec) error {
	switch {
	case s.HasAgents():
		return errors.New("it has agents")
	case s.Autoreset&hostabi.SameStep == 0:
		return errors.New("it offers no autoreset same_step")
	}
	for _, t := range s.All(hostabi.RoleAction) {
		if !t.Discrete() {
			return errors.New("not all of its actions are Discrete")
		}
	}
	s.Autoreset = hostabi.SameStep
	return nil
}

// opening makes steps in environments, with one action, before the policy sees what they observe in a row. The row before keeps the
// results of its own step.
type opening struct {
	w      *wrapped
	tr     trajectory.Trajectory
	action int32 // of every element, counted from the smallest
	inner  []hostabi.Tensor
	left   []int // steps to make, by environment
	opened []byte
	spans  []env.Span
	kept   []trajectory.Matrix // of columns
	// made hears of each step of an environment while its results are in the row; it may be nil.
	made func(index, row int)
	// columns of kept.
	columns []trajectory.Column
}

func newOpening(w *wrapped, action int32) opening {
	n := w.o.Envs
	return opening{w: w, action: action, inner: w.plugin.inner.All(hostabi.RoleAction), left: make([]int, n), opened: make([]byte, n), spans: make([]env.Span, 0, n)}
}

func (o *opening) bind(tr trajectory.Trajectory) {
	if o.tr.Schema != tr.Schema {
		o.kept, o.columns = nil, nil
		for _, l := range tr.Schema.Columns() {
			if l.Flags&(trajectory.Outcome|trajectory.Final) == 0 && l.Column.Kind() != trajectory.Action {
				continue
			}
			m := tr.Row(l.Column, 0)
			size := m.DType.Bytes()
			m.StrideElem, m.StrideRow = size, size*m.Elems
			m.Data = make([]byte, m.Rows*m.StrideRow)
			o.kept, o.columns = append(o.kept, m), append(o.columns, l.Column)
		}
	}
	o.tr = tr
}

// rowOf is a row of a kept column.
func (o *opening) rowOf(k, row int) trajectory.Matrix {
	if o.columns[k].Kind() == trajectory.FinalObs {
		row = 0
	}
	return o.tr.Row(o.columns[k], row)
}

// open makes the steps that are left, of environments that observe row t.
func (o *opening) open(t int) error {
	row := max(t-1, 0)
	for i, n := range o.left {
		if o.opened[i] = 0; n > 0 {
			o.opened[i] = 1
			for k := range o.kept {
				o.kept[k].CopyRow(i, o.rowOf(k, row))
			}
			o.choose(i, row)
		}
	}
	var lost error
	for slices.ContainsFunc(o.left, func(n int) bool { return n > 0 }) {
		err := o.w.inner.(env.PartStepper).StepParts(row, o.parts())
		if err != nil && env.Lost(err) == nil {
			return err
		}
		lost = bothLost(lost, err)
		for _, span := range env.Lost(err) {
			clear(o.left[span.First:][:span.Count])
		}
		for i, n := range o.left {
			if n > 0 {
				if o.left[i]--; o.made != nil {
					o.made(i, row)
				}
			}
		}
	}
	for i, opened := range o.opened {
		if opened == 0 {
			continue
		}
		if row == t { // the first of the block: the steps have written the next one
			o.tr.CopyObservedOf(i, t, o.tr, t+1)
		}
		for k := range o.kept {
			o.rowOf(k, row).CopyRow(i, o.kept[k])
		}
	}
	o.w.lose(lost)
	return lost
}

// choose writes the action of an environment.
func (o *opening) choose(index, row int) {
	for k := range o.inner {
		m := o.tr.Row(trajectory.Action.At(k), row)
		values := m.Int32()
		for e := range m.Elems {
			values[(index*m.StrideRow+e*m.StrideElem)/4] = o.inner[k].Start + o.action
		}
	}
}

// parts returns the environments that have steps left.
func (o *opening) parts() []env.Span {
	o.spans = o.spans[:0]
	for i, n := range o.left {
		last := len(o.spans) - 1
		switch {
		case n == 0:
		case last >= 0 && o.spans[last].First+o.spans[last].Count == i:
			o.spans[last].Count++
		default:
			o.spans = append(o.spans, env.Span{First: i, Count: 1})
		}
	}
	return o.spans
}

// noopReset begins episodes with a number of steps of action 0 that is drawn, so that they differ.
type noopReset struct {
	Most int `toml:"noop_reset" doc:"Begins episodes with 1 to this many steps of action 0, which the policy does not see." range:"1 to 1000" unit:"env steps" default:""`
}

func (c *noopReset) parts() {}

func (c *noopReset) validate(bad func(key, reason, help string)) {
	if c.Most < 1 || c.Most > 1000 {
		bad("noop_reset", fmt.Sprintf("is %d, want 1 to 1000 steps", c.Most), "30 is that of DQN")
	}
}

func (c *noopReset) describe(s *hostabi.EnvSpec) error { return describeOpening(s) }

func (c *noopReset) around(w *wrapped) layer {
	l := &noopLayer{beginning: beginning{opening: newOpening(w, 0)}, most: uint64(c.Most), envs: make([]drawn, w.o.Envs)}
	l.steps = l.draw
	for i := range l.envs {
		l.begin(i, env.Seed(w.o.Seed, w.o.FirstEnv+i), true)
	}
	return l
}

// fireReset begins episodes with one step of an action.
type fireReset struct {
	Action int `toml:"fire_reset" doc:"Begins episodes with a step of this action, without which some games do not begin: in Atari's, 1 is FIRE." range:"0 or more" default:""`
}

func (c *fireReset) parts() {}

func (c *fireReset) validate(bad func(key, reason, help string)) {
	if c.Action < 0 {
		bad("fire_reset", fmt.Sprintf("is %d, want an action, which counts from 0", c.Action), "")
	}
}

func (c *fireReset) describe(s *hostabi.EnvSpec) error {
	if err := describeOpening(s); err != nil {
		return err
	}
	list := s.All(hostabi.RoleAction)
	if len(list) != 1 || list[0].Elems(2) != 1 || c.Action >= list[0].Count(0) {
		return fmt.Errorf("it has no action %d: its action is %s", c.Action, s.Spaces(hostabi.RoleAction))
	}
	return nil
}

func (c *fireReset) around(w *wrapped) layer {
	return &beginning{opening: newOpening(w, int32(c.Action)), steps: func(int) int { return 1 }}
}

// beginning is a layer that makes steps where episodes begin.
type beginning struct {
	plain
	opening
	steps func(index int) int // of the episode that begins
}

func (l *beginning) bind(tr trajectory.Trajectory) { l.opening.bind(tr) }

// first opens the episodes that a Reset has begun.
func (l *beginning) first(t int, mask []uint8) error {
	for i, idle := range l.w.ends.idle {
		if l.left[i] = 0; idle == 0 && (mask == nil || mask[i] != 0) {
			l.left[i] = l.steps(i)
		}
	}
	return l.open(t)
}

// after opens the episodes that the step has begun.
func (l *beginning) after(t int) error {
	for i, over := range l.w.ends.over {
		if l.left[i] = 0; over != 0 && l.w.part[i] != 0 {
			l.left[i] = l.steps(i)
		}
	}
	return l.open(t + 1)
}

// noopLayer draws the number of steps from a stream of each environment's own, by the count of its episodes.
type noopLayer struct {
	beginning
	most uint64
	envs []drawn
}

// drawn is the state of an environment's stream.
type drawn struct{ seed, episodes uint64 }

func (l *noopLayer) begin(index int, seed uint64, seeded bool) {
	if seeded {
		l.envs[index] = drawn{seed: env.NoopStream.Seed(seed)}
	}
}

func (l *noopLayer) draw(index int) int {
	s := &l.envs[index]
	s.episodes++
	return 1 + int(env.Seed(s.seed, int(s.episodes))%l.most)
}

func (l *noopLayer) bytes() int { return 16 }

func (l *noopLayer) save(index int, dst []byte) {
	binary.LittleEndian.PutUint64(dst, l.envs[index].seed)
	binary.LittleEndian.PutUint64(dst[8:], l.envs[index].episodes)
}

func (l *noopLayer) load(index int, src []byte) {
	l.envs[index] = drawn{binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])}
}
