package component

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
)

// place is where a column lies in a block, as ColumnBinding tells it.
type place struct {
	dtype         hostabi.DType
	offset, bytes uint32 // of the piece that has all its elements
	apart         bool   // it shares its pages with nothing
	words         [9]uint32
}

// words of a ColumnBinding after Ptr.
const (
	strideT = iota
	strideEnv
	strideAgent
	strideElem
	rows
	rowAlign
	envs
	agents
	elems
)

// write writes a ColumnBinding for a column whose first element is at an address.
func (p *place) write(b []byte, at uint32, writable bool) {
	le := binary.LittleEndian
	le.PutUint32(b, at)
	for i, v := range p.words {
		le.PutUint32(b[4+4*i:], v)
	}
	clear(b[40:])
	b[40] = byte(p.dtype)
	if writable {
		b[41] = 1
	}
}

// placesOf returns the columns of blocks with a schema, by name: none for a schema that says nothing.
func placesOf(schema arena.Schema) map[string]*place {
	places := map[string]*place{}
	if s, ok := schema.(*trajectory.Schema); ok {
		for _, l := range s.Columns() {
			places[l.Column.String()] = ofTrajectory(s, &l)
		}
		return places
	}
	doc := arena.Document(schema)
	if doc == nil {
		return places
	}
	for i := range doc.Columns {
		c := &doc.Columns[i]
		places[c.Name] = newPlace(c)
	}
	for i, name := range doc.Names {
		places[name] = newPlace(&native.Column{DType: hostabi.F64.String(), Rows: 1, Envs: 1, Elems: 1, Offset: 8 * i})
	}
	return places
}

// ofTrajectory tells agents from environments.
func ofTrajectory(s *trajectory.Schema, l *trajectory.Layout) *place {
	p := newPlace(&native.Column{DType: l.DType.String(), Rows: l.Rows, Envs: l.Envs, Elems: l.Elems, Offset: l.Offset,
		StrideT: l.StrideT, StrideEnv: l.StrideEnv, StrideElem: l.StrideElem})
	p.apart = l.Apart
	if l.Flags&(trajectory.AtT|trajectory.AtT1) == 0 && l.Rows == 1 {
		p.words[strideT] = 0
	}
	if s.Agents > 1 && l.Flags&trajectory.PerEnv != 0 {
		p.words[envs], p.words[agents] = uint32(l.Envs/s.Agents), uint32(s.Agents)
		p.words[strideAgent], p.words[strideEnv] = uint32(l.StrideEnv), uint32(l.StrideEnv*s.Agents)
	}
	return p
}

func newPlace(c *native.Column) *place {
	dtype := native.DTypeOf(c.DType)
	last := (c.Rows-1)*c.StrideT + (c.Envs-1)*c.StrideEnv + (c.Elems-1)*c.StrideElem
	p := &place{dtype: dtype, offset: uint32(c.Offset), bytes: uint32(last + dtype.Bytes())}
	p.words = [...]uint32{strideT: uint32(c.StrideT), strideEnv: uint32(c.StrideEnv), strideElem: uint32(c.StrideElem),
		rows: uint32(c.Rows), rowAlign: guest.RowAlign(c.Offset, c.StrideEnv, c.StrideT, c.Rows), envs: uint32(c.Envs), agents: 1, elems: uint32(c.Elems)}
	return p
}
