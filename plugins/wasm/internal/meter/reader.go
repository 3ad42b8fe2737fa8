package meter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kinds of Error.
var (
	ErrFormat  = errors.New("damaged module")      // the bytes are no module
	ErrFeature = errors.New("unsupported feature") // the module needs something the runtime does not offer
	ErrBound   = errors.New("too large")           // the module holds more of something than is accepted
)

// Error describes a problem at a byte of a file.
type Error struct {
	Kind   error // ErrFormat, ErrFeature or ErrBound
	Offset int
	What   string
	// Of ErrBound: how many of What the module holds, or at least holds, and how many are accepted.
	Number, Bound uint64
}

// Error tells everything in one line.
func (e *Error) Error() string {
	what := e.What
	if errors.Is(e.Kind, ErrBound) {
		what = fmt.Sprintf("%d %s, at most %d are accepted", e.Number, e.What, e.Bound)
	}
	return fmt.Sprintf("%v at offset %#x: %s", e.Kind, e.Offset, what)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// reader walks over bytes of a module. The first error stays; after it every read returns zero.
type reader struct {
	b    []byte
	p    int
	base int // offset of b within the file, for messages
	err  error
}

func (r *reader) more() bool { return r.err == nil && r.p < len(r.b) }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Kind: ErrFormat, Offset: r.base + r.p, What: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) unsupported(feature string) {
	if r.err == nil {
		r.err = &Error{Kind: ErrFeature, Offset: r.base + r.p, What: feature}
	}
}

func (r *reader) u8() byte {
	if r.err != nil {
		return 0
	}
	if r.p >= len(r.b) {
		r.fail("it ends too early")
		return 0
	}
	v := r.b[r.p]
	r.p++
	return v
}

// u32 reads an unsigned LEB128 number of 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.u8()
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("number longer than 32 bits")
	return 0
}

// signed reads a signed LEB128 number of that many bits; the compiler checks the bits beyond.
func (r *reader) signed(bits int) int64 {
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		c := r.u8()
		v |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail("number longer than %d bits", bits)
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// fixed32 reads a number of four bytes.
func (r *reader) fixed32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// take returns the next n bytes.
func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.b)-r.p) {
		r.fail("it ends too early: %d bytes wanted, %d left", n, len(r.b)-r.p)
		return nil
	}
	b := r.b[r.p : r.p+int(n) : r.p+int(n)]
	r.p += int(n)
	return b
}

// name reads a name; symbol one of an import or export, which is bounded.
func (r *reader) name() string { return string(r.take(r.u32())) }

func (r *reader) symbol() string {
	n := r.u32()
	r.within(uint64(n), maxNameBytes, "bytes in a name")
	return string(r.take(n))
}

// count reads the length of a vector whose elements have at least size bytes each.
func (r *reader) count(size int) int {
	n := r.u32()
	if r.err == nil && uint64(n)*uint64(size) > uint64(len(r.b)-r.p) {
		r.fail("it ends too early: %d elements in %d bytes", n, len(r.b)-r.p)
		return 0
	}
	return int(n)
}

// sub returns a reader of the next n bytes.
func (r *reader) sub(n uint32) *reader {
	base := r.base + r.p
	return &reader{b: r.take(n), base: base, err: r.err}
}

// appendU32 appends an unsigned LEB128 number.
func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}
