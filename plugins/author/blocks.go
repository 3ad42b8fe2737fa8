package author

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	sdk "github.com/rlhost/rlhost/sdk/component"
)

// errSpent is the error for a token that no longer names anything.
var errSpent = errors.New("the block was released, or the slot that it came to has returned")

// token is the part of a Block that the author does not see.
type token interface{ handle() hostabi.Handle }

// block is the block of a message while its slot runs. It is leased when it is first looked at, unless it is on loan to who asked.
type block struct {
	host  *host
	slot  string // empty: it may not be written
	h     hostabi.Handle
	lease arena.Lease // zero of one on loan
	view  view
}

// errOnLoan is the error for a claim on a block that is still being written.
var errOnLoan = errors.New("who sent the request still writes the block: it can be used in the slot alone")

func (b *block) handle() hostabi.Handle { return b.h }

func (b *block) Column(name string) (sdk.Column, error) {
	if err := b.look(); err != nil {
		return sdk.Column{}, err
	}
	return b.view.column(name)
}

func (b *block) Writable(name string) (sdk.Column, error) {
	if b.slot == "" {
		return sdk.Column{}, fmt.Errorf("column %s can only be written in the slot that the block comes to", name)
	}
	if err := b.host.wide.Granted(b.slot, name); err != nil {
		return sdk.Column{}, err
	}
	return b.Column(name)
}

func (b *block) Lease() (sdk.Lease, error) {
	l := &lease{block{host: b.host, h: b.h}}
	if err := l.look(); err != nil {
		return nil, err
	}
	if l.lease.Handle() == 0 {
		return nil, errOnLoan
	}
	b.host.open[l] = struct{}{}
	return l, nil
}

// look leases the block, once.
func (b *block) look() error {
	if b.view.mem != nil {
		return nil
	}
	if b.h == 0 {
		return errSpent
	}
	a, err := b.host.wide.Arenas.Of(b.h)
	if err != nil {
		return err
	}
	var mem []byte
	b.lease, err = a.Lease(b.h)
	if mem = b.lease.Bytes(); errors.Is(err, arena.ErrState) {
		mem, err = a.Loaned(b.h)
	}
	if err == nil {
		b.view = b.host.view(a, mem)
	}
	return err
}

// end makes the token name nothing.
func (b *block) end() error {
	held := b.lease
	b.h, b.view, b.lease = 0, view{}, arena.Lease{}
	if held.Handle() == 0 {
		return nil
	}
	return held.Release()
}

// lease is a block that outlives its slot.
type lease struct{ block }

func (l *lease) Release() error {
	if l.h == 0 {
		return errSpent
	}
	delete(l.host.open, l)
	return l.end()
}

// loan is a block that is being written.
type loan struct {
	host *host
	loan arena.Loan
	view view
}

func (l *loan) Column(name string) (sdk.Column, error) {
	if l.loan.Bytes() == nil {
		return sdk.Column{}, errSpent
	}
	return l.view.column(name)
}

func (l *loan) Commit() (sdk.Lease, error) {
	h, err := l.loan.Commit()
	if err != nil {
		return nil, err
	}
	delete(l.host.open, l)
	made := &lease{block{host: l.host, h: h}}
	if err := made.look(); err != nil {
		return nil, err
	}
	l.host.open[made] = struct{}{}
	return made, l.view.arena.Release(h) // the lease has its own claim
}

func (l *loan) Abort() error {
	delete(l.host.open, l)
	return l.loan.Abort()
}

func (l *loan) end() error { return l.loan.Abort() }

// own is an arena of the component's.
type own struct {
	host  *host
	arena *arena.Arena
}

func (o *own) Loan() (sdk.Loan, bool) {
	lent, err := o.arena.Loan()
	if err != nil {
		return nil, false
	}
	l := &loan{o.host, lent, o.host.view(o.arena, lent.Bytes())}
	o.host.open[l] = struct{}{}
	return l, true
}

// view is a block's memory and the places of its columns.
type view struct {
	arena *arena.Arena
	mem   []byte
	known map[string]place
}

// place is a column without its memory, and where that lies.
type place struct {
	column   sdk.Column
	from, to int
}

func (v *view) column(name string) (sdk.Column, error) {
	p, ok := v.known[name]
	if !ok {
		return sdk.Column{}, fmt.Errorf("blocks of %s have no column %s", v.arena.Name(), name)
	}
	p.column.Bytes = v.mem[p.from:p.to:p.to]
	return p.column, nil
}

// view returns the view of a block. The columns of an arena are kept by its ID, which a later one may have.
func (h *host) view(a *arena.Arena, mem []byte) view {
	v := h.views[a.ID()]
	if v.arena != a {
		v = view{arena: a, known: places(a.Schema())}
		h.views[a.ID()] = v
	}
	v.mem = mem
	return v
}

// places returns the columns of a schema, without any that are not aligned to their elements.
func places(schema arena.Schema) map[string]place {
	doc, known := arena.Document(schema), map[string]place{}
	if doc == nil {
		return known
	}
	columns := doc.Columns
	for i, name := range doc.Names {
		columns = append(columns, native.Column{Name: name, DType: hostabi.F64.String(), Rows: 1, Envs: 1, Elems: 1, Offset: 8 * i})
	}
	for _, l := range columns {
		d := native.DTypeOf(l.DType)
		size := d.Bytes()
		if (l.Offset|l.StrideT|l.StrideEnv|l.StrideElem)%size != 0 {
			continue
		}
		last := l.Offset + (l.Rows-1)*l.StrideT + (l.Envs-1)*l.StrideEnv + (l.Elems-1)*l.StrideElem
		known[l.Name] = place{sdk.Column{
			Name: l.Name, DType: d, Rows: l.Rows, Envs: l.Envs, Elems: l.Elems, Shape: l.Shape,
			StrideT: l.StrideT / size, StrideEnv: l.StrideEnv / size, StrideElem: l.StrideElem / size,
		}, l.Offset, last + size}
	}
	return known
}
