package wasm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
)

// window is memory that the guest donated for one block, with its bindings.
type window struct {
	block    uint32 // index within its arena
	ptr      uint32
	bytes    uint32
	bindings uint32 // where the binding records of this block are

	// The mapped block; schema is nil if there is none.
	file   linear.Segment
	offset int64
	schema *trajectory.Schema
	stale  bool // the bindings must be written again
}

// MapAhead maps blocks where a later Bind finds them, and calls no guest: Bind then costs no more than for a block that
// was bound before. Blocks whose index Bind has not seen, or saw with another size, are left out. It also has all guest
// memory present, so that CopyFrom reads it at its full speed. Nothing is bound afterwards.
func (e *Env) MapAhead(blocks []env.Block) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	e.rows = 0
	for _, b := range blocks {
		if err := e.checkBlock(b); err != nil {
			return err
		}
		for _, w := range e.windows {
			if w.block != b.Index || int(w.bytes) != b.Schema.GuestBytes {
				continue
			}
			if err := w.mapTo(e, b); err != nil {
				return e.fault(err)
			}
		}
	}
	e.inst.Mem.Touch()
	return nil
}

// window returns the window of a block, mapped.
func (e *Env) window(b env.Block) (*window, error) {
	k := slices.IndexFunc(e.windows, func(w *window) bool { return w.block == b.Index })
	if k >= 0 {
		w := e.windows[k]
		if int(w.bytes) == b.Schema.GuestBytes {
			return w, w.mapTo(e, b)
		}
		if err := w.revoke(e); err != nil {
			return nil, err
		}
		e.windows = slices.Delete(e.windows, k, k+1)
	}
	w, err := e.donate(b.Index, uint32(b.Schema.GuestBytes))
	if err != nil {
		return nil, err
	}
	e.windows = append(e.windows, w)
	return w, w.mapTo(e, b)
}

// donate gets memory for a block from the guest.
func (e *Env) donate(block, bytes uint32) (*window, error) {
	w := &window{block: block, bytes: bytes}
	var err error
	if w.ptr, err = e.inst.Donate(bytes); err != nil {
		return nil, err
	}
	if err := e.checkOverlap(w.ptr, bytes); err != nil {
		return nil, err
	}
	n := e.plugin.bindingsBytes()
	if w.bindings, err = e.inst.Allocate(n, 64); err != nil {
		return nil, err
	}
	if guest.Overlap(w.ptr, bytes, w.bindings, n) {
		return nil, guest.BadMemory(w.bindings, n, "the window that it gave just before")
	}
	return w, e.checkOverlap(w.bindings, n)
}

// checkOverlap refuses memory that the guest gave before for something else.
func (e *Env) checkOverlap(ptr, n uint32) error {
	for _, w := range e.windows {
		if guest.Overlap(ptr, n, w.ptr, w.bytes) {
			return guest.BadMemory(ptr, n, fmt.Sprintf("the window of block %d", w.block))
		}
		if guest.Overlap(ptr, n, w.bindings, e.plugin.bindingsBytes()) {
			return guest.BadMemory(ptr, n, fmt.Sprintf("the bindings of block %d", w.block))
		}
	}
	if guest.Overlap(ptr, n, e.scratch, e.scratchBytes()) || guest.Overlap(ptr, n, e.inst.ErrorPtr, guest.ErrorBytes) {
		return guest.BadMemory(ptr, n, "memory that it gave to the host before")
	}
	return nil
}

// mapTo puts the block's pages over the window unless they are there, and writes the bindings.
func (w *window) mapTo(e *Env, b env.Block) error {
	file, err := linear.SegmentOf(b.FD)
	if err != nil {
		return fmt.Errorf("%w: map block %d: %w", env.ErrUnsupported, b.Index, err)
	}
	if w.schema != nil && w.file == file && w.offset == b.Offset {
		if w.stale || w.schema != b.Schema {
			w.schema = b.Schema
			w.writeBindings(e)
		}
		return nil
	}
	if !e.inst.Mem.Contains(uint64(w.ptr), uint64(w.bytes)) || w.ptr%linear.HostPage != 0 {
		return guest.BadMemory(w.ptr, w.bytes, "the end of its memory")
	}
	if err := linear.Sealed(b.FD, b.Offset+int64(w.bytes)); err != nil {
		return fmt.Errorf("%w: map block %d: %w", env.ErrUnsupported, b.Index, err)
	}
	if err := e.inst.Mem.MapShared(b.FD, b.Offset, uint64(w.ptr), uint64(w.bytes)); err != nil {
		return fmt.Errorf("map block %d: %w", b.Index, err)
	}
	w.file, w.offset, w.schema = file, b.Offset, b.Schema
	w.writeBindings(e)
	return nil
}

// writeBindings writes the place of each described tensor for the guest.
func (w *window) writeBindings(e *Env) {
	w.stale = false
	records := e.inst.View(w.bindings, e.plugin.bindingsBytes())
	clear(records)
	for i := range e.plugin.spec.Tensors {
		l, ok := w.schema.Tensor(i)
		if !ok {
			writeUnread(e, records, i, w.schema.Shape.Steps)
			records = records[e.plugin.spec.BindingBytes:]
			continue
		}
		stride := l.StrideT
		if l.Flags&(trajectory.AtT|trajectory.AtT1) == 0 {
			stride = 0
		}
		le := binary.LittleEndian
		le.PutUint32(records[0:], w.ptr+uint32(l.Offset))
		le.PutUint32(records[4:], uint32(stride))
		le.PutUint32(records[8:], uint32(w.schema.Agents*l.StrideEnv))
		if e.plugin.spec.Tensors[i].Flags&hostabi.TensorPerAgent != 0 {
			le.PutUint32(records[12:], uint32(l.StrideEnv))
		}
		le.PutUint32(records[16:], uint32(l.StrideElem))
		le.PutUint32(records[20:], uint32(l.Rows))
		le.PutUint32(records[24:], guest.RowAlign(l.Offset, l.StrideEnv, l.StrideT, l.Rows))
		records = records[e.plugin.spec.BindingBytes:]
	}
}

// writeUnread binds a tensor that the host never reads: an optional one not at all, any other to memory that all times and
// environments share, because every write must go somewhere.
func writeUnread(e *Env, record []byte, tensor, steps int) {
	d := &e.plugin.spec.Tensors[tensor]
	if d.Flags&hostabi.TensorOptional != 0 {
		return
	}
	rows := 1
	switch {
	case d.Flags&hostabi.TensorAtT != 0:
		rows = steps
	case d.Flags&hostabi.TensorAtT1 != 0:
		rows = steps + 1
	}
	le := binary.LittleEndian
	le.PutUint32(record[0:], e.scratch+alignUp(uint32(e.options.Envs)*9, unreadAlign))
	le.PutUint32(record[16:], uint32(d.DType.Bytes()))
	le.PutUint32(record[20:], uint32(rows))
	le.PutUint32(record[24:], unreadAlign)
}

// unreadAlign is where memory of tensors begins.
const unreadAlign = 64

func alignUp(n, to uint32) uint32 { return (n + to - 1) / to * to }

// unreadBytes is the size of the largest tensor that the host never reads and must bind nevertheless.
func unreadBytes(spec *hostabi.EnvSpec) uint32 {
	most := 0
	for i := range spec.Tensors {
		d := &spec.Tensors[i]
		if !d.Role.Known() && d.Flags&hostabi.TensorOptional == 0 {
			most = max(most, d.Elems(hostabi.MaxTensorElems)*d.DType.Bytes())
		}
	}
	return uint32(most)
}

// revoke takes a window back and returns its memory to the guest.
func (w *window) revoke(e *Env) error {
	if err := e.inst.Mem.MapZero(uint64(w.ptr), uint64(w.bytes)); err != nil {
		return fmt.Errorf("revoke window of block %d: %w", w.block, err)
	}
	w.schema = nil
	e.inst.TakeBack(w.bytes)
	for _, piece := range [][2]uint32{{w.ptr, w.bytes}, {w.bindings, e.plugin.bindingsBytes()}} {
		if _, err := e.inst.Call(hostabi.ExportFree, e.plugin.file.Config.Init,
			uint64(piece[0]), uint64(piece[1])); err != nil {
			return err
		}
	}
	return nil
}
