package items

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// align is what arrays begin at a multiple of.
const align = 64

// Block returns an item as rlhost.channel in Python has a dict of arrays: a head, the table of the arrays, the dict, the arrays.
func Block(t trajectory.Trajectory, version uint64) []byte {
	columns := t.Schema.Columns()
	values := Values{{"policy_version", version}}
	var table strings.Builder
	at := 0
	for i := range columns {
		l := &columns[i]
		values = append(values, value{l.Column.String(), place(i)})
		fmt.Fprintf(&table, "('%s', %s, %d), ", dtypeOf(l.DType), shapeOf(l), at)
		at = up(at + l.Rows*l.Envs*l.Elems*l.DType.Bytes())
	}
	text, dict := "["+table.String()+"]", values.AppendPlain(nil)
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

// PlainBlock returns the dict of columns as rlhost.plain has it, with the arrays in it.
func PlainBlock(t trajectory.Trajectory) []byte {
	columns := t.Schema.Columns()
	data := binary.LittleEndian.AppendUint32([]byte{'{'}, uint32(len(columns)))
	for i := range columns {
		l := &columns[i]
		data = appendText(data, l.Column.String())
		dtype := dtypeOf(l.DType)
		data = binary.LittleEndian.AppendUint32(append(data, 'a'), uint32(len(dtype)))
		data = append(append(data, dtype...), byte(2+len(l.Shape)))
		for _, n := range append([]int{l.Rows, l.Envs}, l.Shape...) {
			data = binary.LittleEndian.AppendUint64(data, uint64(n))
		}
		from := len(data)
		data = append(data, make([]byte, l.Rows*l.Envs*l.Elems*l.DType.Bytes())...)
		copyColumn(data[from:], t.Mem, l)
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
