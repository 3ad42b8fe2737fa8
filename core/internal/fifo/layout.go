package fifo

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrLayout says that the file is not a ring, or not of this kind or version, or its header and its size disagree.
var ErrLayout = errors.New("not a ring that this version can use")

// Geometry has the sizes of a ring. It is copied from the header once, when that has been checked.
type Geometry struct {
	Kind      uint32
	Cells     int
	CellBytes int
	Payload   int
}

// Total returns how many bytes all of it takes.
func (g Geometry) Total() int { return hostabi.RingHeaderBytes + g.Cells*g.CellBytes }

// RingGeometry says how large the cells of a ring are.
func RingGeometry(cells int) Geometry {
	return Geometry{hostabi.RingMessages, cells, hostabi.MessageBytes, hostabi.MessageBytes}
}

// Check returns an error unless there can be such a ring.
func (g Geometry) Check() error {
	if g.Cells < 2 || g.Cells > hostabi.MaxRingCells || g.Cells&(g.Cells-1) != 0 {
		return fmt.Errorf("%d cells: must be a power of two from 2 to %d", g.Cells, hostabi.MaxRingCells)
	}
	if g.Payload < 1 || g.Payload > hostabi.MaxRingPayload {
		return fmt.Errorf("payload of %d bytes: must be from 1 to %d", g.Payload, hostabi.MaxRingPayload)
	}
	return nil
}

// Create makes a segment and writes the header.
func Create(name string, g Geometry) (*shm.Segment, error) {
	if err := g.Check(); err != nil {
		return nil, fmt.Errorf("ring %q: %w", name, err)
	}
	seg, err := shm.Create(name, g.Total())
	if err != nil {
		return nil, fmt.Errorf("ring: %w", err)
	}
	Format(seg, g)
	return seg, nil
}

// Format makes a ring of a zero segment of at least g.Total() bytes.
func Format(seg *shm.Segment, g Geometry) {
	h := HeaderAt(seg.Bytes())
	h.version, h.kind = hostabi.RingVersion, g.Kind
	h.cells, h.cellBytes, h.payload = uint32(g.Cells), uint32(g.CellBytes), uint32(g.Payload)
	h.cellsAt, h.total = hostabi.RingHeaderBytes, uint64(g.Total())
	h.magic.Store(hostabi.RingMagic)
}

// Open maps a ring made by another process and returns its checked header.
func Open(fd int, kind uint32) (*shm.Segment, Geometry, error) {
	seg, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return nil, Geometry{}, fmt.Errorf("ring: %w", err)
	}
	g, err := Inspect(seg.Bytes(), kind)
	if err != nil {
		return nil, Geometry{}, fmt.Errorf("ring of file %d: %w", fd, errors.Join(err, seg.Close()))
	}
	return seg, g, nil
}

// Inspect reads each field of the header once and checks the copies. The cells' size follows from the payload's, so
// a header has one way to be right.
func Inspect(mem []byte, kind uint32) (Geometry, error) {
	if len(mem) < hostabi.RingHeaderBytes {
		return Geometry{}, fmt.Errorf("%w: %d bytes", ErrLayout, len(mem))
	}
	h := HeaderAt(mem)
	if magic := h.magic.Load(); magic != hostabi.RingMagic {
		return Geometry{}, fmt.Errorf("%w: it begins with %#x", ErrLayout, magic)
	}
	version, gotKind, numCells, cellBytes, payload := h.version, h.kind, h.cells, h.cellBytes, h.payload
	at, total := h.cellsAt, h.total
	if version != hostabi.RingVersion || gotKind != kind {
		return Geometry{}, fmt.Errorf("%w: version %d, kind %d; want %d, %d",
			ErrLayout, version, gotKind, hostabi.RingVersion, kind)
	}
	if payload > hostabi.MaxRingPayload || numCells > hostabi.MaxRingCells {
		return Geometry{}, fmt.Errorf("%w: %d cells of %d bytes", ErrLayout, numCells, payload)
	}
	g := RingGeometry(int(numCells))
	if err := g.Check(); err != nil {
		return Geometry{}, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	if int(cellBytes) != g.CellBytes || int(payload) != g.Payload || at != hostabi.RingHeaderBytes ||
		total != uint64(g.Total()) || total > uint64(len(mem)) {
		return Geometry{}, fmt.Errorf("%w: cells of %d bytes (payload %d) from %d to %d in a file of %d",
			ErrLayout, cellBytes, payload, at, total, len(mem))
	}
	return g, nil
}
