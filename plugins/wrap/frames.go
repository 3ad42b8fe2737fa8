package wrap

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// frameSkip makes a number of steps with one action and observes the maximum of the last two pictures: sprites that flicker are in one
// of them.
type frameSkip struct {
	Steps int `toml:"frame_skip" doc:"Takes each action this many times, adds up the rewards, and observes the maximum of the last two pictures." range:"2 to 1000" unit:"env steps" default:""`
}

func (c *frameSkip) parts() {}

func (c *frameSkip) validate(bad func(key, reason, help string)) {
	if c.Steps < 2 || c.Steps > 1000 {
		bad("frame_skip", fmt.Sprintf("is %d, want 2 to 1000 steps", c.Steps), "4 is that of DQN")
	}
}

func (c *frameSkip) describe(s *hostabi.EnvSpec) error {
	for _, t := range s.All(hostabi.RoleObservation) {
		if _, ok := pictureOf(&t); ok {
			return describeRepeated(s, c.Steps)
		}
	}
	return errors.New("none of its observations is a picture of bytes: use action_repeat")
}

func (c *frameSkip) around(w *wrapped) layer {
	l := newRepeatLayer(w, c.Steps)
	l.frames = &frames{mode: w.o.Autoreset, held: make([]byte, w.o.Envs), stepped: make([]byte, w.o.Envs)}
	for i, t := range w.plugin.inner.All(hostabi.RoleObservation) {
		if _, ok := pictureOf(&t); ok {
			l.frames.columns = append(l.frames.columns, trajectory.Obs.At(i))
		}
	}
	return l
}

// frames keeps the pictures before the newest ones within a step of several.
type frames struct {
	tr      trajectory.Trajectory
	mode    hostabi.Autoreset
	columns []trajectory.Column
	before  []trajectory.Matrix // by column
	held    []byte              // 1 for environments that have a picture in before
	stepped []byte              // 1 for environments that make the step under way
}

func (f *frames) bind(tr trajectory.Trajectory) {
	if f.tr.Schema != tr.Schema {
		f.before = f.before[:0]
		for _, c := range f.columns {
			m := tr.Row(c, 0)
			m.StrideElem, m.StrideRow = 1, m.Elems
			m.Data = make([]byte, m.Rows*m.Elems)
			f.before = append(f.before, m)
		}
	}
	f.tr = tr
}

// begin is for a step of the environments in part.
func (f *frames) begin(part []byte) {
	clear(f.held)
	copy(f.stepped, part)
}

// step takes in one of the steps at t. running says whose episodes continue, last that no other step follows.
func (f *frames) step(t int, running []byte, last bool) {
	for i, stepped := range f.stepped {
		if stepped == 0 {
			continue
		}
		for k, c := range f.columns {
			now := f.tr.Row(c, t+1)
			if running[i] == 0 && f.mode == hostabi.SameStep {
				now = f.tr.Row(trajectory.FinalObs.At(c.Index()), 0)
			}
			switch over := running[i] == 0; {
			case !over && !last:
				f.before[k].CopyRow(i, now)
			case f.held[i] != 0:
				brighten(now, f.before[k], i)
			}
		}
		f.held[i] = running[i]
	}
	copy(f.stepped, running)
}

// brighten makes the elements of a row the maximum of themselves and of another matrix's.
func brighten(m, other trajectory.Matrix, row int) {
	for e := range m.Elems {
		at := &m.Data[row*m.StrideRow+e*m.StrideElem]
		*at = max(*at, other.Data[row*other.StrideRow+e])
	}
}
