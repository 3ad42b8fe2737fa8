package wrap

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// describeObserved changes a description into that of environments whose observations the module has written: they have the type and the
// shape that they had, and no bounds.
func (c *moduleWrapper) describeObserved(s *hostabi.EnvSpec) error {
	if s.HasAgents() {
		return errors.New("it writes observations, and those of several agents are no wrapper's to write")
	}
	s.Tensors = slices.Clone(s.Tensors)
	found := false
	for i := range s.Tensors {
		t := &s.Tensors[i]
		of := t.Index
		if t.Role == hostabi.RoleFinalObservation {
			of = t.Pair
		}
		if t.Role != hostabi.RoleObservation && t.Role != hostabi.RoleFinalObservation || !c.writesObs(int(of)) {
			continue
		}
		if t.Discrete() {
			return fmt.Errorf("it writes %v, which is one of %d: there is nothing else that it could be", trajectory.Obs.At(int(of)), t.N)
		}
		if t.DType.Float() {
			t.Low, t.High, t.Lows, t.Highs = 0, 0, nil, nil
			t.Flags |= hostabi.TensorNoLow | hostabi.TensorNoHigh
		}
		found = true
	}
	if !found {
		return errors.New("it writes no observation: its column obs must have RL_COLUMN_WRITE")
	}
	return nil
}

// writesObs reports whether the module writes an observation.
func (c *moduleWrapper) writesObs(index int) bool {
	return slices.ContainsFunc(c.module.Columns(), func(m hostabi.ManifestColumn) bool {
		column, ok := trajectory.ParseColumn(m.Name)
		return ok && column == trajectory.Obs.At(index) && m.Flags&hostabi.ColumnWrite != 0
	})
}

// apart returns environments that find their observations unchanged, whatever the module makes of them.
func (c *moduleWrapper) apart(inner env.Plugin) env.Plugin {
	e := &echo{}
	spec := inner.Spec()
	for i := range spec.All(hostabi.RoleObservation) {
		e.written = append(e.written, c.writesObs(i))
	}
	return &paintedPlugin{&plugin{Plugin: inner, wrapper: e, spec: spec, inner: spec, text: fmt.Sprintf("apart %v", e.written)}, e}
}

// echo copies observations to another place.
type echo struct{ written []bool }

func (e *echo) validate(func(key, reason, help string)) {}
func (e *echo) describe(*hostabi.EnvSpec) error         { return nil }

func (e *echo) paints(index int, _ *hostabi.Tensor) (brush, bool) { return nil, e.written[index] }

// observingLayer lets a module write the observations of each row: after a step the next observation, in an episode's last step
// under same-step autoreset the final one, and in separate calls the first observations of episodes.
type observingLayer struct {
	moduleLayer
	idle []byte // 1 for the environments that a call is not about
	last []byte // 1 for environments whose final observation it is about
}

func (l *observingLayer) after(t int) error {
	w := l.shape.w
	sameStep := w.o.Autoreset == hostabi.SameStep
	clear(l.last)
	for i, part := range w.part {
		l.idle[i] = 1 - part | w.ends.idle[i]
		if sameStep && l.idle[i] == 0 {
			l.last[i] = w.ends.over[i]
		}
	}
	if err := l.look(t+1, 0); err != nil {
		return err
	}
	for i, part := range w.part {
		begins := part & (w.ends.idle[i] | l.last[i])
		l.idle[i] = 1 - begins
	}
	clear(l.last)
	return l.look(t+1, 1)
}

// first is for episodes that begin in row t.
func (l *observingLayer) first(t int, mask []uint8) error {
	for i := range l.idle {
		l.idle[i] = 0
		if mask != nil && mask[i] == 0 {
			l.idle[i] = 1
		}
	}
	clear(l.last)
	return l.look(t, 1)
}

// look calls the module about row t of the environments that are not idle. begins is 1 for the first row of an episode. If the call
// fails and the environments continue, the observations stay as they were.
func (l *observingLayer) look(t int, begins byte) error {
	if !slices.Contains(l.idle, 0) {
		return nil
	}
	for i := range l.begins {
		l.begins[i] = begins
	}
	for i := range l.sources {
		if x := &l.sources[i]; x.column == 0 {
			l.fill(i, t)
		} else {
			l.fillObs(i, t)
		}
	}
	err := l.ask()
	if err == nil && !l.numbers() {
		err = errNoObservation
	}
	if err != nil {
		return l.shape.w.fault(l.faultOf(err))
	}
	l.tell(t)
	return nil
}

var errNoObservation = errors.New("it has written an observation that is no number")

// rowOf returns where an observation of an environment lies.
func (l *observingLayer) rowOf(c trajectory.Column, index, t int) trajectory.Matrix {
	if l.last[index] != 0 {
		return l.shape.tr.Row(trajectory.FinalObs.At(c.Index()), 0)
	}
	return l.shape.tr.Row(c, t)
}

// dense is a column of the module's as a matrix.
func (l *observingLayer) dense(i int) trajectory.Matrix {
	x := &l.sources[i]
	from := l.shape.tr.Row(x.column, 0)
	return trajectory.Matrix{Data: l.instance.Column(i), Rows: from.Rows, Elems: x.elems, DType: from.DType, StrideRow: x.elems * x.bytes, StrideElem: x.bytes}
}

// fillObs copies an observation to where the module reads it.
func (l *observingLayer) fillObs(i, t int) {
	to := l.dense(i)
	for index := range to.Rows {
		to.CopyRow(index, l.rowOf(l.sources[i].column, index, t))
	}
	l.copied += uint64(len(to.Data))
}

// numbers reports whether the module has written numbers.
func (l *observingLayer) numbers() bool {
	for i := range l.sources {
		x := &l.sources[i]
		if !x.write || x.column == 0 {
			continue
		}
		m := l.dense(i)
		if !m.DType.Float() {
			continue
		}
		for index, idle := range l.idle {
			for e := 0; idle == 0 && e < m.Elems; e++ {
				if v := m.Value(index, e); math.IsNaN(v) || math.IsInf(v, 0) {
					return false
				}
			}
		}
	}
	return true
}

// tell copies the module's output for the environments that the call was about.
func (l *observingLayer) tell(t int) {
	l.take(t, l.idle) // its state
	for i := range l.sources {
		x := &l.sources[i]
		if !x.write || x.column == 0 {
			continue
		}
		from := l.dense(i)
		for index, idle := range l.idle {
			if idle == 0 {
				l.rowOf(x.column, index, t).CopyRow(index, from)
				l.copied += uint64(x.elems * x.bytes)
			}
		}
	}
}
