package channel

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// field is a value of an item with its name: a uint64, a float64 or a bool.
type field struct {
	name  string
	value any
}

// appendDict appends values as rlhost.plain in Python has a dict.
func appendDict(data []byte, values []field) []byte {
	data = binary.LittleEndian.AppendUint32(append(data, '{'), uint32(len(values)))
	for _, f := range values {
		data = appendText(data, f.name)
		switch v := f.value.(type) {
		case uint64:
			data = binary.LittleEndian.AppendUint64(append(data, 'i'), v)
		case float64:
			data = binary.LittleEndian.AppendUint64(append(data, 'f'), math.Float64bits(v))
		case place:
			data = binary.LittleEndian.AppendUint32(append(data, 'p'), uint32(v))
		case bool:
			if v {
				data = append(data, 'T')
			} else {
				data = append(data, 'F')
			}
		}
	}
	return data
}

func appendText(data []byte, text string) []byte {
	data = binary.LittleEndian.AppendUint32(append(data, 's'), uint32(len(text)))
	return append(data, text...)
}

// place stands for an array that is kept apart: its number among them.
type place uint32

// align is what arrays begin at a multiple of.
const align = 64

// encodeBlock returns an item as rlhost.channel in Python has a dict of arrays: a head, the table of the arrays, the dict, the arrays.
func encodeBlock(t trajectory.Trajectory, version uint64) []byte {
	columns := t.Schema.Columns()
	values := []field{{"policy_version", version}}
	var table strings.Builder
	at := 0
	for i := range columns {
		l := &columns[i]
		values = append(values, field{l.Column.String(), place(i)})
		fmt.Fprintf(&table, "('%s', %s, %d), ", dtypeOf(l.DType), shapeOf(l), at)
		at = up(at + l.Rows*l.Envs*l.Elems*l.DType.Bytes())
	}
	text, dict := "["+table.String()+"]", appendDict(nil, values)
	data := binary.LittleEndian.AppendUint32([]byte{'A', 0, 0, 0}, uint32(len(text)))
	data = binary.LittleEndian.AppendUint32(data, uint32(len(dict)))
	data = append(append(data, text...), dict...)
	begin := up(len(data))
	data = append(data, make([]byte, begin-len(data)+at)...)
	at = begin
	for i := range columns {
		at += up(copyColumn(data[at:], t.Mem, &columns[i]))
	}
	return data
}

func up(n int) int { return (n + align - 1) / align * align }

// copyColumn copies a column without the gaps between its elements and returns its length.
func copyColumn(into, block []byte, l *trajectory.Layout) int {
	size, n := l.DType.Bytes(), 0
	for r := range l.Rows {
		for e := range l.Envs {
			from := l.Offset + r*l.StrideT + e*l.StrideEnv
			if l.StrideElem == size {
				n += copy(into[n:], block[from:from+l.Elems*size])
				continue
			}
			for i := range l.Elems {
				n += copy(into[n:], block[from+i*l.StrideElem:][:size])
			}
		}
	}
	return n
}

// dtypeOf returns NumPy's name of a type.
func dtypeOf(d hostabi.DType) string {
	name := d.String() // such as f32
	order := "<"
	if d.Bytes() == 1 {
		order = "|"
	}
	return fmt.Sprintf("%s%c%d", order, name[0], d.Bytes())
}

// shapeOf returns the shape of a column as Python has a tuple.
func shapeOf(l *trajectory.Layout) string {
	shape := fmt.Sprintf("(%d, %d, ", l.Rows, l.Envs)
	for _, n := range l.Shape {
		shape += fmt.Sprintf("%d, ", n)
	}
	return shape + ")"
}
