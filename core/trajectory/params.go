package trajectory

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// ParamBytes returns how many bytes the reset parameters of a block have; 0 where its environments take none.
func (s *Schema) ParamBytes() (n int) {
	for i := range s.columns {
		if l := &s.columns[i]; l.Column.Kind() == ResetParam {
			n += l.Bytes
		}
	}
	return n
}

// Params are the reset parameters of a block. They may be none.
type Params struct{ Trajectory }

// Save copies them to a buffer of Schema.ParamBytes bytes.
func (t Params) Save(to []byte) {
	t.each(func(_ *Layout, column []byte) { to = to[copy(to, column):] })
}

// Load is the inverse of Save.
func (t Params) Load(from []byte) {
	t.each(func(_ *Layout, column []byte) { from = from[copy(column, from):] })
}

// Clear sets them to NaN, the value of parameters that nobody gives.
func (t Params) Clear() {
	t.each(func(_ *Layout, column []byte) { ClearParams(column) })
}

// ClearParams fills a buffer of saved parameters with NaN.
func ClearParams(b []byte) {
	for ; len(b) >= 4; b = b[4:] {
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(math.NaN())))
	}
}

// Copy copies the parameters of another block of the same layout.
func (t Params) Copy(from Trajectory) {
	t.each(func(l *Layout, column []byte) { copy(column, from.Mem[l.Offset:]) })
}

func (t Params) each(fn func(l *Layout, column []byte)) {
	for i := range t.Schema.columns {
		if l := &t.Schema.columns[i]; l.Column.Kind() == ResetParam {
			fn(l, t.Mem[l.Offset:l.Offset+l.Bytes])
		}
	}
}

// Check returns an error, and the environment, for a reset parameter that is neither NaN nor a number within its bounds.
func (t Params) Check() (env int, err error) {
	t.each(func(l *Layout, _ []byte) {
		d := t.Schema.Spec.All(hostabi.RoleResetParam)[l.Column.Index()]
		row := t.row(l, 0)
		for i := range row.Rows * row.Elems {
			at, elem := i/row.Elems, i%row.Elems
			if at%t.Schema.Agents != 0 || err != nil { // an environment's are in the row of its first agent
				continue
			}
			v := float32(row.Value(at, elem))
			low, high := d.Bounds(elem)
			if v != v || v >= low && v <= high && !math.IsInf(float64(v), 0) {
				continue
			}
			env, err = at/t.Schema.Agents, fmt.Errorf("%w: %v %q of environment %d is %g, want %g to %g, or NaN where nobody gives one", ErrOutput, l.Column, d.Path, at/t.Schema.Agents, v, low, high)
		}
	})
	return env, err
}
