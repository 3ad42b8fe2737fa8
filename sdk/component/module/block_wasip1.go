package module

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/internal/linear"
)

// errSpent is the error for a token that no longer names anything.
var errSpent = errors.New("the block was released, or the slot that it came to has returned")

// named is the part of a Block that the author does not see.
type named interface{ number() uint32 }

// block is the block of a message while its slot runs.
type block struct {
	host     *host
	token    uint32
	wants    []component.Want // that are bound
	bindings []hostabi.ColumnBinding
}

func (b *block) number() uint32 { return b.token }

func (b *block) Column(name string) (component.Column, error) { return b.column(name, 0) }

func (b *block) Writable(name string) (component.Column, error) {
	return b.column(name, hostabi.ColumnWrite)
}

func (b *block) column(name string, access hostabi.ColumnFlags) (component.Column, error) {
	if b.token == 0 {
		return component.Column{}, errSpent
	}
	for i := range b.wants {
		if w := &b.wants[i]; w.Name == name && w.Write == (access != 0) {
			if b.bindings[i].Ptr == 0 {
				return component.Column{}, fmt.Errorf("the block has no column %s", name)
			}
			return columnOf(name, &b.bindings[i]), nil
		}
	}
	var at hostabi.ColumnBinding
	switch s := column(b.token, name, access, &at); s {
	case hostabi.StatusOK:
		return columnOf(name, &at), nil
	case hostabi.StatusUnsupported:
		return component.Column{}, fmt.Errorf("the block has no column %s", name)
	case hostabi.StatusDenied:
		return component.Column{}, fmt.Errorf("may not write %s: no wire grants it; add write = [%q] to each [[wire]] with that slot", name, name)
	case hostabi.StatusState:
		return component.Column{}, fmt.Errorf("column %s can only be written in the slot that the block comes to, before it is emitted", name)
	default:
		return component.Column{}, fmt.Errorf("column %s: %v", name, s)
	}
}

// columnOf is a column where the host has bound it. Agents are consecutive rows.
func columnOf(name string, b *hostabi.ColumnBinding) component.Column {
	size := uint32(b.DType.Bytes())
	c := component.Column{Name: name, DType: b.DType, Rows: int(b.Rows), Envs: int(b.Envs * b.Agents), Elems: int(b.Elems)}
	env := b.StrideEnv
	if b.Agents > 1 {
		env = b.StrideAgent
	}
	c.StrideT, c.StrideEnv, c.StrideElem = int(b.StrideT/size), int(env/size), int(b.StrideElem/size)
	if c.Elems > 1 {
		c.Shape = []int{c.Elems}
	}
	last := (b.Rows-1)*b.StrideT + (b.Envs*b.Agents-1)*env + (b.Elems-1)*b.StrideElem
	c.Bytes = linear.Bytes(b.Ptr, last+size)
	return c
}

func (b *block) Lease() (component.Lease, error) {
	if b.token == 0 {
		return nil, errSpent
	}
	if s := hostabi.Status(hostLease(b.token)); s != 0 {
		return nil, fmt.Errorf("lease: %v", s)
	}
	return &lease{block{host: b.host, token: b.token}}, nil
}

// lease is a block that outlives its slot.
type lease struct{ block }

func (l *lease) Writable(name string) (component.Column, error) {
	return component.Column{}, fmt.Errorf("column %s can only be written in the slot that the block comes to", name)
}

func (l *lease) Release() error {
	if l.token == 0 {
		return errSpent
	}
	s := hostabi.Status(hostRelease(l.token))
	if l.token = 0; s != 0 {
		return fmt.Errorf("release: %v", s)
	}
	return nil
}

// signal is an output.
type signal struct {
	host  *host
	index uint32
}

func (s signal) Emit(m component.Message) (component.Outcome, error) {
	out := &s.host.out
	*out = hostabi.ComponentMessage{T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Inline: m.Inline, Kind: m.Kind, Sender: uint32(m.Sender)}
	if m.Block != nil {
		b, ok := m.Block.(named)
		if !ok || b.number() == 0 {
			return component.Dropped, errSpent
		}
		out.Block = b.number()
	}
	n := hostEmit(s.index, out)
	if n < 0 {
		return component.Dropped, fmt.Errorf("emit: %v", hostabi.Status(n))
	}
	return outcomeOf(n), nil
}
