package trajectory

import (
	"encoding/binary"
	"math"
	"structs"

	"github.com/rlhost/rlhost/hostabi"
)

// Trajectory is a typed view of one block. It owns nothing: it is valid as long as the loan or lease of its
// memory. Views cost nothing; make them where they are needed.
//
// The guest can rewrite its region at any time, committed or not, so code that indexes or branches by a value
// of that region (action, terminated, truncated, mask) must check it where it reads it.
type Trajectory struct {
	Schema *Schema
	Mem    []byte // Schema.Bytes long
}

const metaBytes = 64

// LifeSteps is how many env steps an environment can count until it restarts without a state. On each restart, by a
// resume or a replacement of its component, it counts on from another multiple, so that no step number repeats: actions
// are drawn by it.
const LifeSteps = 1 << 36

// Meta says where a trajectory comes from. It lies in the host's region.
type Meta struct {
	_ structs.HostLayout

	Sequence      uint64 // 0: counts the blocks of one split, from 0
	FirstEnv      uint32 // 8: global index of environment 0 of the block
	Rollout       uint16 // 12: index of the rollout component
	Split         uint16 // 14
	FirstStep     uint64 // 16: env steps that each environment had made before row 0, padding of whole episodes included; see LifeSteps
	ValidRows     uint32 // 24: rows with valid = 1
	_             uint32
	PluginVersion uint64 // 32: first 8 bytes of the plugin file's SHA-256; the newest, if several made the rows
	MinVersion    uint64 // 40: lowest and highest policy version that acted
	MaxVersion    uint64 // 48
	_             uint64
}

// Float32 returns a whole column of dtype f32, or nil if the block has no such column.
func (t Trajectory) Float32(c Column) []float32 {
	l := t.Schema.find(c)
	if l == nil || l.DType != hostabi.F32 {
		return nil
	}
	return view[float32](t.Mem, l.Offset, l.Bytes/4)
}

// Int32 returns a whole column of dtype i32, or nil if the block has no such column.
func (t Trajectory) Int32(c Column) []int32 {
	l := t.Schema.find(c)
	if l == nil || l.DType != hostabi.I32 {
		return nil
	}
	return view[int32](t.Mem, l.Offset, l.Bytes/4)
}

// Uint64 returns a whole column of 8-byte elements, or nil if the block has no such column.
func (t Trajectory) Uint64(c Column) []uint64 {
	l := t.Schema.find(c)
	if l == nil || l.DType.Bytes() != 8 {
		return nil
	}
	return view[uint64](t.Mem, l.Offset, l.Bytes/8)
}

// Bytes returns a whole column as bytes, whatever its dtype, or nil if the block has no such column.
func (t Trajectory) Bytes(c Column) []byte {
	l := t.Schema.find(c)
	if l == nil {
		return nil
	}
	return t.Mem[l.Offset : l.Offset+l.Bytes : l.Offset+l.Bytes]
}

// Meta returns the block's record of origin, in place.
func (t Trajectory) Meta() *Meta {
	l := t.Schema.find(MetaColumn)
	return &view[Meta](t.Mem, l.Offset, 1)[0]
}

// Row returns row r of a column as a strided matrix, one matrix row per environment or agent. The column must exist.
func (t Trajectory) Row(c Column, r int) Matrix { return t.row(t.Schema.find(c), r) }

// RowBytes returns Row(c, r).Data, nil if the block has no such column. It is for code that runs every step, where making a Matrix costs as
// much as reading the row.
func (t Trajectory) RowBytes(c Column, r int) []byte {
	l := t.Schema.find(c)
	if l == nil {
		return nil
	}
	start := l.Offset + r*l.StrideT
	return t.Mem[start : start+l.RowBytes : start+l.RowBytes]
}

// Acts returns which agents act in a row, as bytes of 0 and 1; nil where all always do.
func (t Trajectory) Acts(r int) []byte { return t.RowBytes(Active, r) }

// Policies returns which policy acts for each agent in a row, as places in Shape.Policies; nil where one acts for all.
func (t Trajectory) Policies(r int) []byte { return t.RowBytes(Policy, r) }

// PlayedVersions returns PlayedVersion of a row; nil if the block has no such column.
func (t Trajectory) PlayedVersions(r int) []uint64 {
	if !t.Schema.Has(PlayedVersion) {
		return nil
	}
	n := t.Schema.Rows()
	return t.Uint64(PlayedVersion)[r*n:][:n]
}

// Rows adds row r of every column of a kind to list, in the order of their indices.
func (t Trajectory) Rows(list []Matrix, kind Column, r int) []Matrix {
	for i := 0; ; i++ {
		l := t.Schema.find(kind.At(i))
		if l == nil {
			return list
		}
		list = append(list, t.row(l, r))
	}
}

// Masks adds row r of the mask of every action to list, with 0 rows for an action without one. Where no action has one,
// it adds nothing.
func (t Trajectory) Masks(list []Matrix, r int) []Matrix {
	if !t.Schema.Has(Mask) {
		return list
	}
	for i := 0; t.Schema.Has(Action.At(i)); i++ {
		m := Matrix{}
		if l := t.Schema.MaskOf(i); l != nil {
			m = t.row(l, r)
		}
		list = append(list, m)
	}
	return list
}

// RawActions adds row r of every action's raw samples to list, the zero Matrix for an action that is no Box. Where
// no action is a Box, it adds nothing.
func (t Trajectory) RawActions(list []Matrix, r int) []Matrix {
	n, found := len(list), false
	for i := 0; t.Schema.Has(Action.At(i)); i++ {
		m := Matrix{}
		if l := t.Schema.find(RawAction.At(i)); l != nil {
			m, found = t.row(l, r), true
		}
		list = append(list, m)
	}
	if !found {
		return list[:n]
	}
	return list
}

// at returns row r of a column by its place in the list of columns.
func (t Trajectory) at(c uint8, r int) Matrix { return t.row(&t.Schema.columns[c], r) }

func (t Trajectory) row(l *Layout, r int) Matrix {
	start := l.Offset + r*l.StrideT
	return Matrix{DType: l.DType, Data: t.Mem[start : start+l.RowBytes : start+l.RowBytes],
		Rows: l.Envs, Elems: l.Elems, StrideRow: l.StrideEnv, StrideElem: l.StrideElem}
}

// Matrix is a strided view of Rows rows of Elems elements, in memory owned by another. Strides are in bytes
// and multiples of the element size; Data starts at element (0, 0) and is aligned to its element.
type Matrix struct {
	DType                 hostabi.DType
	Data                  []byte
	Rows, Elems           int
	StrideRow, StrideElem int
}

// Float32 returns the memory of a matrix of dtype f32; element (r, i) is at (r*StrideRow + i*StrideElem)/4.
func (m Matrix) Float32() []float32 { return view[float32](m.Data, 0, len(m.Data)/4) }

// Int32 is the same for a matrix of dtype i32.
func (m Matrix) Int32() []int32 { return view[int32](m.Data, 0, len(m.Data)/4) }

// Bits returns element i of a row as it lies in memory, with zeros above it.
func (m Matrix) Bits(row, i int) uint64 {
	at := m.Data[row*m.StrideRow+i*m.StrideElem:]
	switch m.DType.Bytes() {
	case 1:
		return uint64(at[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(at))
	case 4:
		return uint64(binary.LittleEndian.Uint32(at))
	}
	return binary.LittleEndian.Uint64(at)
}

// Value returns element i of a row as a number, for types that the host runs: integers and f32.
func (m Matrix) Value(row, i int) float64 {
	switch bits := m.Bits(row, i); m.DType {
	case hostabi.I8:
		return float64(int8(bits))
	case hostabi.I16:
		return float64(int16(bits))
	case hostabi.I32:
		return float64(int32(bits))
	case hostabi.I64:
		return float64(int64(bits))
	case hostabi.F32:
		return float64(math.Float32frombits(uint32(bits)))
	default:
		return float64(bits)
	}
}

// Slice returns rows lo to hi of the matrix.
func (m Matrix) Slice(lo, hi int) Matrix {
	m.Data = m.Data[lo*m.StrideRow:]
	m.Rows = hi - lo
	return m
}

// CopyRow copies row r of another matrix of the same shape and layout to row r of this one.
func (m Matrix) CopyRow(r int, from Matrix) { m.SetRow(r, from, r) }

// SetRow copies row k of another matrix of elements of the same size and number to row r of this one.
func (m Matrix) SetRow(r int, from Matrix, k int) {
	size := m.DType.Bytes()
	to, of := m.Data[r*m.StrideRow:], from.Data[k*from.StrideRow:]
	if m.StrideElem == size && from.StrideElem == size {
		copy(to[:size*m.Elems], of)
		return
	}
	for i := range m.Elems {
		copy(to[i*m.StrideElem:][:size], of[i*from.StrideElem:])
	}
}

// spread copies the row of the first agent of a span to the rows of the others, in each environment of so many agents.
func (m Matrix) spread(x span, each int) {
	size := m.DType.Bytes()
	if size == 1 && m.StrideRow == 1 { // flags
		for first := x.first; first < m.Rows; first += each {
			for i := first + 1; i < first+x.agents; i++ {
				m.Data[i] = m.Data[first]
			}
		}
		return
	}
	for first := x.first; first < m.Rows; first += each {
		for i := first + 1; i < first+x.agents; i++ {
			m.SetRow(i, m, first)
		}
	}
}

// fill writes a byte to the rows of a span, in each environment of so many agents.
func (m Matrix) fill(x span, each int, value byte) {
	for first := x.first; first < m.Rows; first += each {
		for i := first; i < first+x.agents; i++ {
			m.Data[i*m.StrideRow] = value
		}
	}
}

// clearRow makes all elements of a row 0.
func (m Matrix) clearRow(r int) {
	size := m.DType.Bytes()
	for i := range m.Elems {
		clear(m.Data[r*m.StrideRow+i*m.StrideElem:][:size])
	}
}
