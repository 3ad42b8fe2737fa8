package channel

import (
	"cmp"
	"encoding/binary"
	"errors"
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

var errItem = errors.New("the item is not what rlhost.plain in Python makes of this")

// parser reads what rlhost.plain in Python has written: numbers, bytes and text.
type parser struct {
	data []byte
	err  error
}

// take returns the next n bytes, and zeros where there are fewer.
func (p *parser) take(n int) []byte {
	if p.err == nil && n <= len(p.data) {
		taken := p.data[:n]
		p.data = p.data[n:]
		return taken
	}
	p.err = cmp.Or(p.err, fmt.Errorf("%w: it ends", errItem))
	return make([]byte, min(n, 8))
}

func (p *parser) sized() []byte {
	n := binary.LittleEndian.Uint32(p.take(4))
	if int64(n) > int64(len(p.data)) {
		n = uint32(len(p.data)) + 1 // which take refuses, without that much memory
	}
	return p.take(int(n))
}

// value reads an int64, a float64, a bool, bytes or a string.
func (p *parser) value() any {
	switch kind := p.take(1)[0]; kind {
	case 'i':
		return int64(binary.LittleEndian.Uint64(p.take(8)))
	case 'f':
		return math.Float64frombits(binary.LittleEndian.Uint64(p.take(8)))
	case 'T', 'F':
		return kind == 'T'
	case 'b':
		return p.sized()
	case 's':
		return string(p.sized())
	}
	p.err = cmp.Or(p.err, fmt.Errorf("%w: an int, a float, a bool, bytes or a str", errItem))
	return nil
}

// end returns the error of what was read: there must be no more.
func (p *parser) end() error {
	if p.err == nil && len(p.data) > 0 {
		return fmt.Errorf("%w: there are %d bytes more", errItem, len(p.data))
	}
	return p.err
}

func parseValue(data []byte) (any, error) {
	p := parser{data: data}
	value := p.value()
	return value, p.end()
}

// parseDict reads a dict of values.
func parseDict(data []byte) (map[string]any, error) {
	p := parser{data: data}
	values := map[string]any{}
	if p.take(1)[0] != '{' {
		return nil, fmt.Errorf("%w: a dict", errItem)
	}
	for n := binary.LittleEndian.Uint32(p.take(4)); n > 0 && p.err == nil; n-- {
		name, ok := p.value().(string)
		if p.err == nil && !ok {
			return nil, fmt.Errorf("%w: a dict whose keys are str", errItem)
		}
		values[name] = p.value()
	}
	return values, p.end()
}

// inlineOf returns up to 16 bytes as a message has them.
func inlineOf(data []byte) (inline [2]uint64, err error) {
	if len(data) > 16 {
		return inline, fmt.Errorf("a message has 16 bytes, the item %d", len(data))
	}
	var whole [16]byte
	copy(whole[:], data)
	return [2]uint64{binary.LittleEndian.Uint64(whole[:]), binary.LittleEndian.Uint64(whole[8:])}, nil
}

// reader takes the values of an item out of a map, and keeps the first error.
type reader struct {
	values map[string]any
	err    error
}

func (r *reader) fail(format string, args ...any) {
	r.err = cmp.Or(r.err, fmt.Errorf(format, args...))
}

// number returns a number of which neither it nor its negative is more than most.
func (r *reader) number(name string, must bool, most float64) (n float64) {
	value, found := r.values[name]
	delete(r.values, name)
	switch v := value.(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		if found || must {
			r.fail("%s is %v, want a number", name, value)
		}
	}
	if !(math.Abs(n) <= most) { // also what is no number
		r.fail("%s is %v, want a number up to %v", name, n, most)
		return 0
	}
	return n
}

// whole returns a number without a fraction, from 0.
func (r *reader) whole(name string, must bool, most float64) uint64 {
	n := r.number(name, must, most)
	if n < 0 || n != math.Trunc(n) {
		r.fail("%s is %v, want a whole number from 0", name, n)
		return 0
	}
	return uint64(n)
}

func (r *reader) truth(name string) bool {
	value, found := r.values[name]
	delete(r.values, name)
	yes, ok := value.(bool)
	if found && !ok {
		r.fail("%s is %v, want True or False", name, value)
	}
	return yes
}
