package wire

import (
	"encoding/binary"
	"fmt"
)

// reader parses a frame. After the first failure it returns only zeros, and end returns the failure.
type reader struct {
	rest []byte
	err  error
}

// take returns the next n bytes, or n zeros for small n after a failure.
func (in *reader) take(n int) []byte {
	if in.err == nil && (n < 0 || n > len(in.rest)) {
		in.err = fmt.Errorf("%w: %d bytes missing", ErrFrame, n-len(in.rest))
	}
	if in.err != nil {
		return make([]byte, min(max(n, 0), 8))
	}
	b := in.rest[:n]
	in.rest = in.rest[n:]
	return b
}

func (in *reader) u8() byte          { return in.take(1)[0] }
func (in *reader) u32() uint32       { return binary.LittleEndian.Uint32(in.take(4)) }
func (in *reader) u64() uint64       { return binary.LittleEndian.Uint64(in.take(8)) }
func (in *reader) text(n int) string { return string(in.take(n)) }

// end returns the first failure, or an error if bytes are left.
func (in *reader) end() error {
	if in.err == nil && len(in.rest) > 0 {
		in.err = fmt.Errorf("%w: %d bytes too many", ErrFrame, len(in.rest))
	}
	return in.err
}

// valueHeadBytes precede the dimensions of a value: dtype 0, rank 1, zeros.
const valueHeadBytes = 8

func appendValues(b []byte, values []Value) []byte {
	for i := range values {
		v := &values[i]
		b = append(b, byte(v.DType), v.Rank, 0, 0, 0, 0, 0, 0)
		for _, dim := range v.Shape[:min(v.Rank, MaxRank)] {
			b = binary.LittleEndian.AppendUint64(b, dim)
		}
	}
	return b
}

// values appends n values to to.
func (in *reader) values(to []Value, n int) []Value {
	if n > len(in.rest)/valueHeadBytes && in.err == nil {
		in.err = fmt.Errorf("%d values: %w", n, ErrFrame)
	}
	for i := 0; i < n && in.err == nil; i++ {
		head := in.take(valueHeadBytes)
		v := Value{DType: DType(head[0]), Rank: head[1]}
		if v.Rank > MaxRank {
			in.err = fmt.Errorf("%d dimensions: %w: at most %d", v.Rank, ErrFrame, MaxRank)
			break
		}
		for d := range v.Shape[:v.Rank] {
			v.Shape[d] = in.u64()
		}
		to = append(to, v)
	}
	return to
}

func appendConfig(b []byte, c *Config) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Capacity))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Spares))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.Tracks)))
	for _, t := range c.Tracks {
		b = appendTrack(b, t)
	}
	return b
}

func (in *reader) config() Config {
	c := Config{Capacity: int(in.u64()), Spares: int(in.u64())}
	n := int(in.u32())
	for i := 0; i < n && in.err == nil; i++ {
		c.Tracks = append(c.Tracks, in.track())
	}
	return c
}

func appendTrack(b []byte, t Track) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Bytes))
	b = append(b, byte(t.DType), byte(min(len(t.Name), 255)))
	return append(b, t.Name[:min(len(t.Name), 255)]...)
}

func (in *reader) track() Track {
	t := Track{Bytes: int(in.u64()), DType: DType(in.u8())}
	t.Name = in.text(int(in.u8()))
	return t
}
