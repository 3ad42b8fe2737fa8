package ring

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrLayout says that the file is not a ring, or not of this kind or version, or its header and its size disagree.
var ErrLayout = errors.New("not a ring that this version can use")

// geometry has the sizes of a ring. It is copied from the header once, when that has been checked.
type geometry struct {
	kind      uint32
	cells     int
	cellBytes int
	payload   int
}

// total returns how many bytes all of it takes.
func (g geometry) total() int { return hostabi.RingHeaderBytes + g.cells*g.cellBytes }

// geometryOf says how large the cells of a ring are.
func geometryOf(cells int) geometry {
	return geometry{hostabi.RingMessages, cells, hostabi.MessageBytes, hostabi.MessageBytes}
}

// check returns an error unless there can be such a ring.
func (g geometry) check() error {
	if g.cells < 2 || g.cells > hostabi.MaxRingCells || g.cells&(g.cells-1) != 0 {
		return fmt.Errorf("%d cells: must be a power of two from 2 to %d", g.cells, hostabi.MaxRingCells)
	}
	if g.payload < 1 || g.payload > hostabi.MaxRingPayload {
		return fmt.Errorf("payload of %d bytes: must be from 1 to %d", g.payload, hostabi.MaxRingPayload)
	}
	return nil
}

// createSegment makes a segment and writes the header.
func createSegment(name string, g geometry) (*shm.Segment, error) {
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("ring %q: %w", name, err)
	}
	seg, err := shm.Create(name, g.total())
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	format(seg, g)
	return seg, nil
}

// format makes a ring of a zero segment of at least g.total() bytes.
func format(seg *shm.Segment, g geometry) {
	h := headerAt(seg.Bytes())
	h.version, h.kind = hostabi.RingVersion, g.kind
	h.cells, h.cellBytes, h.payload = uint32(g.cells), uint32(g.cellBytes), uint32(g.payload)
	h.cellsAt, h.total = hostabi.RingHeaderBytes, uint64(g.total())
	h.magic.Store(hostabi.RingMagic)
}

// openSegment maps a ring made by another process and returns its checked header.
func openSegment(fd int, kind uint32) (*shm.Segment, geometry, error) {
	seg, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return nil, geometry{}, fmt.Errorf("ring: %w", err)
	}
	g, err := inspect(seg.Bytes(), kind)
	if err != nil {
		return nil, geometry{}, fmt.Errorf("ring of file %d: %w", fd, errors.Join(err, seg.Close()))
	}
	return seg, g, nil
}

// inspect reads each field of the header once and checks the copies. The cells' size follows from the payload's, so
// a header has one way to be right.
func inspect(mem []byte, kind uint32) (geometry, error) {
	if len(mem) < hostabi.RingHeaderBytes {
		return geometry{}, fmt.Errorf("%w: %d bytes", ErrLayout, len(mem))
	}
	h := headerAt(mem)
	if magic := h.magic.Load(); magic != hostabi.RingMagic {
		return geometry{}, fmt.Errorf("%w: it begins with %#x", ErrLayout, magic)
	}
	version, gotKind, numCells, cellBytes, payload := h.version, h.kind, h.cells, h.cellBytes, h.payload
	at, total := h.cellsAt, h.total
	if version != hostabi.RingVersion || gotKind != kind {
		return geometry{}, fmt.Errorf("%w: version %d, kind %d; want %d, %d",
			ErrLayout, version, gotKind, hostabi.RingVersion, kind)
	}
	if payload > hostabi.MaxRingPayload || numCells > hostabi.MaxRingCells {
		return geometry{}, fmt.Errorf("%w: %d cells of %d bytes", ErrLayout, numCells, payload)
	}
	g := geometryOf(int(numCells))
	if err := g.check(); err != nil {
		return geometry{}, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	if int(cellBytes) != g.cellBytes || int(payload) != g.payload || at != hostabi.RingHeaderBytes ||
		total != uint64(g.total()) || total > uint64(len(mem)) {
		return geometry{}, fmt.Errorf("%w: cells of %d bytes (payload %d) from %d to %d in a file of %d",
			ErrLayout, cellBytes, payload, at, total, len(mem))
	}
	return g, nil
}
