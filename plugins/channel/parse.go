package channel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

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
