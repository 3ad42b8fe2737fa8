package ring

import (
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

func headerPointer(mem []byte) unsafe.Pointer { return unsafe.Pointer(&mem[0]) }

func TestHeader_LiesWhereTheLayoutSays(t *testing.T) {
	var h header
	var abi hostabi.RingHeader
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"magic", unsafe.Offsetof(h.magic), unsafe.Offsetof(abi.Magic)},
		{"version", unsafe.Offsetof(h.version), unsafe.Offsetof(abi.Version)},
		{"kind", unsafe.Offsetof(h.kind), unsafe.Offsetof(abi.Kind)},
		{"cells", unsafe.Offsetof(h.cells), unsafe.Offsetof(abi.Cells)},
		{"cellBytes", unsafe.Offsetof(h.cellBytes), unsafe.Offsetof(abi.CellBytes)},
		{"payload", unsafe.Offsetof(h.payload), unsafe.Offsetof(abi.Payload)},
		{"cellsAt", unsafe.Offsetof(h.cellsAt), unsafe.Offsetof(abi.CellsAt)},
		{"total", unsafe.Offsetof(h.total), unsafe.Offsetof(abi.Total)},
		{"tail", unsafe.Offsetof(h.tail), unsafe.Offsetof(abi.Tail)},
		{"head", unsafe.Offsetof(h.head), unsafe.Offsetof(abi.Head)},
		{"notEmpty", unsafe.Offsetof(h.notEmpty), unsafe.Offsetof(abi.NotEmpty)},
		{"notFull", unsafe.Offsetof(h.notFull), unsafe.Offsetof(abi.NotFull)},
		{"closed", unsafe.Offsetof(h.closed), unsafe.Offsetof(abi.Closed)},
		{"emptyWaits", unsafe.Offsetof(h.emptyWaits), unsafe.Offsetof(abi.EmptyWaits)},
		{"fullWakes", unsafe.Offsetof(h.fullWakes), unsafe.Offsetof(abi.FullWakes)},
		{"the whole", unsafe.Sizeof(h), unsafe.Sizeof(abi)},
		{"the page", unsafe.Sizeof(h), hostabi.RingHeaderBytes},
	} {
		if f.got != f.want {
			t.Errorf("%s: at %d, the layout says %d", f.name, f.got, f.want)
		}
	}
}

// FuzzInspect feeds whole headers: whatever is accepted lies within the file.
func FuzzInspect(f *testing.F) {
	for _, g := range []geometry{geometryOf(2), geometryOf(hostabi.MaxRingCells)} {
		mem := make([]byte, hostabi.RingHeaderBytes)
		h := (*hostabi.RingHeader)(headerPointer(mem))
		h.Magic, h.Version, h.Kind = hostabi.RingMagic, hostabi.RingVersion, g.kind
		h.Cells, h.CellBytes, h.Payload = uint32(g.cells), uint32(g.cellBytes), uint32(g.payload)
		h.CellsAt, h.Total = hostabi.RingHeaderBytes, uint64(g.total())
		f.Add(mem[:48], uint16(1))
	}
	f.Fuzz(func(t *testing.T, header []byte, pages uint16) {
		seg, err := shm.Heap(hostabi.RingHeaderBytes * (1 + int(pages)%8))
		if err != nil {
			t.Fatal(err)
		}
		copy(seg.Bytes(), header)
		g, err := inspect(seg.Bytes(), hostabi.RingMessages)
		if err == nil && (g.total() > seg.Size() || g.check() != nil || g.kind != hostabi.RingMessages) {
			t.Errorf("accepted %+v in %d bytes", g, seg.Size())
		}
	})
}
