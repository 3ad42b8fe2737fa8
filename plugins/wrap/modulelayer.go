package wrap

import (
	"bytes"
	"errors"
	"math"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// metricFaults is the metric of the calls in which a module has failed.
const metricFaults = "wrapper_faults"

// moduleLayer lets a module write shaped rewards. The host keeps the module's state of each environment, so that it is saved and
// copied environment by environment as other wrappers' states are.
type moduleLayer struct {
	plain
	shape    shapeLayer
	instance ModuleInstance
	sources  []source     // of the columns that the module looks at
	each     int          // agents of an environment
	begins   []byte       // 1 for agents whose next step is the first of an episode
	episodes bool         // the module looks at begins
	state    []byte       // of all agents
	record   int          // bytes of an agent's
	use      string       // path of the module
	calls    uint64       // of the instance
	copied   uint64       // bytes, to where the module reads and from where it writes
	acting   *actingLayer // that this is part of, or nil

	probed     bool     // the module is watched for writes to columns that it only reads
	kept       [][]byte // those columns before a call
	trespassed string   // one of them in which it has written
}

func (l *moduleLayer) copiedBytes() uint64 { return l.copied }

// Close ends the instance.
func (l *moduleLayer) Close() error { return l.instance.Close() }

func (l *moduleLayer) bind(tr trajectory.Trajectory) { l.shape.bind(tr) }

func (l *moduleLayer) begin(index int, _ uint64, seeded bool) {
	for row := index * l.each; row < (index+1)*l.each; row++ {
		l.begins[row] = 1
	}
	if seeded {
		n := l.each * l.record
		clear(l.state[index*n:][:n])
	}
}

// after writes the rewards as they are, and then the module's values for steps of episodes. If the call fails and the step continues,
// it keeps the former.
func (l *moduleLayer) after(t int) error {
	if !l.shape.tr.Schema.Has(trajectory.ShapedReward) {
		return nil
	}
	if err := l.shape.after(t); err != nil {
		return err
	}
	err := l.call(t)
	if err == nil && !l.finite() {
		err = errNoNumber
	}
	if err == nil {
		l.take(t, l.shape.w.ends.idle)
	} else if err := l.shape.w.fault(l.faultOf(err)); err != nil {
		return err
	}
	l.follow()
	return nil
}

// call has the module look at row t.
func (l *moduleLayer) call(t int) error {
	for i := range l.sources {
		l.fill(i, t)
	}
	return l.ask()
}

// ask calls the instance.
func (l *moduleLayer) ask() error {
	l.calls++
	if !l.probed {
		return l.instance.Call()
	}
	for i := range l.sources {
		l.kept[i] = append(l.kept[i][:0], l.instance.Column(i)...)
	}
	err := l.instance.Call()
	for i := range l.sources {
		if x := &l.sources[i]; err == nil && !x.write && !bytes.Equal(l.kept[i], l.instance.Column(i)) {
			l.trespassed = x.name
		}
	}
	return err
}

// probe reports the module's trespasses since the last call, and watches it from now on.
func (l *moduleLayer) probe() (trespass string) {
	if l.trespassed != "" {
		trespass = "writes into the column " + l.trespassed + ", which it may only read: nobody but it sees that"
	}
	l.probed, l.trespassed, l.kept = true, "", make([][]byte, len(l.sources))
	return trespass
}

// follow notes which agents begin an episode with their next step.
func (l *moduleLayer) follow() {
	for i, idle := range l.shape.w.ends.idle {
		for row := i * l.each; idle == 0 && row < (i+1)*l.each; row++ {
			l.begins[row] = 0
			if !l.shape.w.ends.running(i, row) {
				l.begins[row] = 1
			}
		}
	}
}

var errNoNumber = errors.New("it has written a reward that is no number")

// faultOf is a call that has failed, as a fault of the environments.
func (l *moduleLayer) faultOf(err error) *env.Fault {
	f := &env.Fault{Kind: env.FaultTrap, Name: l.shape.w.o.Name, Source: l.use, Call: hostabi.ExportSlot, Env: -1, Step: l.calls, Component: true, Err: err}
	var guest *env.Fault
	switch {
	case errors.As(err, &guest):
		f.Kind, f.Err = guest.Kind, guest.Err
	case errors.Is(err, errNoNumber), errors.Is(err, errNoAction), errors.Is(err, errNoObservation):
		f.Kind = env.FaultOutput
	}
	return f
}

// fill copies a column of step t to where the module reads it.
func (l *moduleLayer) fill(i, t int) {
	x := &l.sources[i]
	to := l.instance.Column(i)
	l.copied += uint64(len(to))
	switch {
	case x.rows == 0:
	case x.state >= 0:
		for agent := range l.shape.w.o.Envs * l.each {
			copy(to[agent*x.bytes:][:x.bytes], l.state[agent*l.record+x.state:])
		}
	case x.name == columnBegins:
		copy(to, l.begins)
	default:
		for row := range x.rows {
			to = to[dense(to, l.shape.tr.Row(x.column, t+row)):]
		}
	}
}

// dense copies a matrix without gaps and returns how many bytes it has.
func dense(to []byte, m trajectory.Matrix) int {
	size := m.DType.Bytes()
	if m.StrideElem == size && m.StrideRow == m.Elems*size {
		return copy(to, m.Data[:m.Rows*m.StrideRow])
	}
	n := 0
	for row := range m.Rows {
		for e := range m.Elems {
			n += copy(to[n:], m.Data[row*m.StrideRow+e*m.StrideElem:][:size])
		}
	}
	return n
}

// finite reports whether the module has written numbers.
func (l *moduleLayer) finite() bool {
	for i := range l.sources {
		if l.sources[i].column != trajectory.ShapedReward {
			continue
		}
		for agent, r := range floats(l.instance.Column(i)) {
			if l.shape.w.ends.idle[agent/l.each] == 0 && !(math.Abs(float64(r)) <= math.MaxFloat32) {
				return false
			}
		}
	}
	return true
}

// take copies the module's output for environments that make a step of an episode.
func (l *moduleLayer) take(t int, idle []byte) {
	for i := range l.sources {
		x, from := &l.sources[i], l.instance.Column(i)
		switch {
		case x.state >= 0:
			l.eachStepped(idle, func(agent int) {
				l.copied += uint64(copy(l.state[agent*l.record+x.state:][:x.bytes], from[agent*x.bytes:]))
			})
		case x.write && x.column == trajectory.ShapedReward:
			shaped, values := l.shape.tr.Row(trajectory.ShapedReward, t).Float32(), floats(from)
			l.eachStepped(idle, func(agent int) {
				shaped[agent] = values[agent]
				l.copied += uint64(x.bytes)
			})
		case x.write && l.acting != nil:
			l.eachStepped(idle, func(agent int) { l.acting.put(x, from, agent, t) })
		}
	}
}

// eachStepped calls a function for the agents of the environments that are not idle.
func (l *moduleLayer) eachStepped(idle []byte, do func(agent int)) {
	for i, idle := range idle {
		for agent := i * l.each; idle == 0 && agent < (i+1)*l.each; agent++ {
			do(agent)
		}
	}
}

// floats returns a column of f32.
func floats(b []byte) []float32 {
	return trajectory.Matrix{Data: b}.Float32()
}

func (l *moduleLayer) bytes() int {
	if l.record == 0 && !l.episodes {
		return 0
	}
	return l.each * (1 + l.record)
}

func (l *moduleLayer) save(index int, dst []byte) {
	n := l.each * l.record
	copy(dst, l.begins[index*l.each:][:l.each])
	copy(dst[l.each:], l.state[index*n:][:n])
}

func (l *moduleLayer) load(index int, src []byte) {
	n := l.each * l.record
	copy(l.begins[index*l.each:][:l.each], src)
	copy(l.state[index*n:][:n], src[l.each:])
}
