package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// actingLayer lets a module write the environments' actions. The policy's actions are put back after the step.
type actingLayer struct {
	moduleLayer
	chosen chosen
	choice []hostabi.Tensor // the actions
	idle   []byte           // 1 for the environments that make no step of an episode
	masks  []trajectory.Matrix
	failed error // of the call before the step, which returns it
}

func (*actingLayer) replaces() {}

func (l *actingLayer) bind(tr trajectory.Trajectory) {
	l.moduleLayer.bind(tr)
	l.chosen.bind(tr)
}

// before calls the module about row t. If the call fails and the step continues, it uses the policy's action.
func (l *actingLayer) before(t int) {
	l.chosen.keep(t)
	for i, part := range l.shape.w.part {
		l.idle[i] = 1 - part | l.shape.w.ends.phantom[i]
	}
	err := l.call(t)
	if err == nil {
		err = l.legal(t)
	}
	if err == nil {
		l.failed = nil
		l.take(t, l.idle)
		return
	}
	l.failed = l.shape.w.fault(l.faultOf(err))
}

func (l *actingLayer) after(t int) error {
	if err := l.chosen.after(t); err != nil {
		return err
	}
	l.follow()
	return l.failed
}

var errNoAction = errors.New("it has written an action that is none")

// legal reports whether the module has written actions that the environments take.
func (l *actingLayer) legal(t int) (err error) {
	l.masks = l.shape.tr.Masks(l.masks[:0], t)
	for i := range l.sources {
		x := &l.sources[i]
		if !x.write || x.column.Kind() != trajectory.Action {
			continue
		}
		k, from := x.column.Index(), l.instance.Column(i)
		l.eachStepped(l.idle, func(row int) {
			if err == nil && l.acts(row, t) {
				err = l.legalRow(k, from[row*x.elems*x.bytes:], row)
			}
		})
	}
	return err
}

// acts reports whether an agent acts in row t.
func (l *actingLayer) acts(row, t int) bool {
	acts := l.shape.tr.Acts(t)
	return acts == nil || acts[row] != 0
}

// legalRow looks at one action of one agent.
func (l *actingLayer) legalRow(k int, action []byte, row int) error {
	space, first := &l.choice[k], 0
	for e := range space.Elems(hostabi.MaxTensorElems) {
		bits := binary.LittleEndian.Uint32(action[4*e:])
		if !space.Discrete() {
			low, high := space.Bounds(e)
			if a := math.Float32frombits(bits); !(a >= low && a <= high && math.Abs(float64(a)) <= math.MaxFloat32) {
				return fmt.Errorf("%w: element %d is %v, want %v to %v", errNoAction, e, a, low, high)
			}
			continue
		}
		n, a := space.Count(e), int64(int32(bits))-int64(space.Start)
		if a < 0 || a >= int64(n) {
			return fmt.Errorf("%w: element %d is %d, want %d to %d", errNoAction, e, int32(bits), space.Start, int64(space.Start)+int64(n)-1)
		}
		if m := l.mask(k); m.Rows > 0 && m.Data[row*m.StrideRow+(first+int(a))*m.StrideElem] == 0 {
			return fmt.Errorf("%w: element %d is %d, which the mask forbids", errNoAction, e, int32(bits))
		}
		first += n
	}
	return nil
}

// mask returns which choices of an action are legal; without rows all are.
func (l *actingLayer) mask(k int) (m trajectory.Matrix) {
	if k < len(l.masks) {
		m = l.masks[k]
	}
	return m
}

// put writes the action of an agent that acts to where the environments read it.
func (l *actingLayer) put(x *source, from []byte, row, t int) {
	if !l.acts(row, t) {
		return
	}
	m := l.shape.tr.Row(x.column, t)
	for e := range x.elems {
		l.copied += uint64(copy(m.Data[row*m.StrideRow+e*m.StrideElem:][:x.bytes], from[(row*x.elems+e)*x.bytes:]))
	}
}
