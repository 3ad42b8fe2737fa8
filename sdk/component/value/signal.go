package value

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// Payload is the payload of ports whose messages carry values.
const Payload = "value"

// CodeTooLong is the code of errors about a value that is too long; rlhost explain has a page for it.
const CodeTooLong = "E096"

const (
	column = "value" // of the blocks: the bytes of a value, as many as the first inline word says
	blocks = 130     // of a signal: a wire's depth is 64 where it does not say
)

// Signal sends values.
type Signal struct {
	name  string
	to    component.Signal
	arena component.Arena
	most  int
	bytes []byte // of the newest value
}

// Bind returns a signal of the manifest, with the payload "value", for values of up to most bytes. It has memory for 130 of them, which
// suits wires of a depth up to 128. Call it when the component starts.
func Bind(h component.Host, name string, most int) (*Signal, error) {
	arena, err := h.Arena(name, blocks, component.Tensor{Name: column, DType: hostabi.U8, Shape: []int{most}})
	return &Signal{name: h.Identity().Name + "." + name, to: h.Signal(name), arena: arena, most: most}, err
}

// ErrNoBlock is the error of a signal whose receivers still have claims on all of its values, 130.
var ErrNoBlock = errors.New("no block is free: receivers still have claims on all values")

// Emit sends a value to the connected slots. A value that is dropped because a wire is full, as its on_full says, is no error.
func (s *Signal) Emit(v Value) error {
	s.bytes = v.Append(s.bytes[:0])
	if len(s.bytes) > s.most {
		return fmt.Errorf("%s signal %s: a value of %d bytes, at most %d; value.Bind says how many", CodeTooLong, s.name, len(s.bytes), s.most)
	}
	loan, free := s.arena.Loan()
	if !free {
		return fmt.Errorf("signal %s: %w", s.name, ErrNoBlock)
	}
	c, err := loan.Column(column)
	if err != nil {
		return errors.Join(err, loan.Abort())
	}
	copy(c.Bytes, s.bytes)
	block, err := loan.Commit()
	if err != nil {
		return err
	}
	_, err = s.to.Emit(component.Message{Block: block, Inline: [2]uint64{uint64(len(s.bytes))}})
	return errors.Join(err, block.Release())
}

// Of returns the value of a message that has come to a slot with the payload "value".
func Of(m *component.Message) (Value, error) {
	if m.Block == nil {
		return Value{}, fmt.Errorf("a message without a block: %w", ErrFormat)
	}
	c, err := m.Block.Column(column)
	if err != nil {
		return Value{}, err
	}
	if m.Inline[0] > uint64(len(c.Bytes)) {
		return Value{}, fmt.Errorf("%d bytes in a block of %d: %w", m.Inline[0], len(c.Bytes), ErrFormat)
	}
	return Parse(c.Bytes[:m.Inline[0]])
}
