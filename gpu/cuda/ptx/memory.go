package ptx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Poison is the word that unwritten memory consists of: a NaN as float32, and twice as float64. A load of such a
// word makes its register uninitialised, so a value that happens to have these bits is taken for one.
const Poison uint32 = 0x7ff7a5a5

const (
	// firstDevice is where device memory begins: no host address is as high, so a host that follows one faults.
	firstDevice = uint64(1) << 48
	// deviceGap lies between allocations, so that a small step beyond one is not a step into the next.
	deviceGap = uint64(1) << 20
)

// Memory is the address space of a device: its own memory and registered memory of the host. All methods may be called
// from several goroutines. A launch sees the memory that is there at its beginning; the memory that it uses must stay until its end.
type Memory struct {
	mu       sync.Mutex // for changes of table and next
	table    atomic.Pointer[[]*allocation]
	next     uint64
	launches atomic.Uint64
	epochs   atomic.Uint64 // times between barriers, of all CTAs
}

// allocation is one range of addresses.
type allocation struct {
	base, size uint64
	bytes      []byte
	host       bool // registered: the host looks at it while a grid runs
	constant   bool // a module's constants
	writes     writers
}

// NewMemory returns an address space without any allocation.
func NewMemory() *Memory {
	m := &Memory{next: firstDevice}
	m.table.Store(new([]*allocation))
	return m
}

// Alloc makes n bytes of device memory, filled with Poison, and returns their address, a multiple of 256. n must be at least 1.
func (m *Memory) Alloc(n int) uint64 {
	b := aligned(n)
	poison(b)
	return m.place(&allocation{bytes: b})
}

// poison overwrites b, which begins at a word.
func poison(b []byte) {
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], Poison)
	n := copy(b, word[:])
	for n > 0 && n < len(b) {
		n += copy(b[n:], b[:n])
	}
}

// place gives an allocation a device address.
func (m *Memory) place(a *allocation) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.base = m.next
	m.next += (uint64(len(a.bytes)) + 2*deviceGap - 1) / deviceGap * deviceGap
	m.insert(a)
	return a.base
}

// Register makes host memory accessible under the address that it has for the host, and keeps it reachable until Unregister.
// It refuses empty ranges and overlaps with registered ones.
func (m *Memory) Register(b []byte) (uint64, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("ptx: register memory: it is empty")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &allocation{base: addressOf(b), bytes: b, host: true}
	if other := m.overlapping(a.base, uint64(len(b))); other != nil {
		return 0, fmt.Errorf("ptx: register memory at %#x, %d bytes: it overlaps with %d bytes registered at %#x", a.base, len(b), other.size, other.base)
	}
	m.insert(a)
	return a.base, nil
}

// insert puts an allocation where its address belongs. The caller holds mu.
func (m *Memory) insert(a *allocation) {
	a.size = uint64(len(a.bytes))
	a.writes = newWriters(a.size)
	table := *m.table.Load()
	at, _ := slices.BinarySearchFunc(table, a.base, func(x *allocation, base uint64) int { return cmp.Compare(x.base, base) })
	changed := slices.Insert(slices.Clone(table), at, a)
	m.table.Store(&changed)
}

func (m *Memory) overlapping(base, size uint64) *allocation {
	for _, a := range *m.table.Load() {
		if a.base < base+size && base < a.base+a.size {
			return a
		}
	}
	return nil
}

// Free ends an allocation that Alloc made. The address must come from Alloc.
func (m *Memory) Free(address uint64) error { return m.remove(address, false) }

// Unregister ends a registration of Register. The address must come from Register.
func (m *Memory) Unregister(address uint64) error { return m.remove(address, true) }

func (m *Memory) remove(address uint64, host bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	table := *m.table.Load()
	at := slices.IndexFunc(table, func(a *allocation) bool { return a.base == address && a.host == host && !a.constant })
	if at < 0 {
		return fmt.Errorf("ptx: nothing of that kind begins at %#x", address)
	}
	changed := slices.Delete(slices.Clone(table), at, at+1)
	m.table.Store(&changed)
	return nil
}

// View returns the n bytes at an address, within one allocation. They are the memory itself, valid until the allocation ends.
func (m *Memory) View(address uint64, n int) ([]byte, error) {
	a := find(*m.table.Load(), address)
	if a == nil || n < 0 || uint64(n) > a.size-(address-a.base) {
		return nil, fmt.Errorf("ptx: %d bytes at %#x are outside every allocation", n, address)
	}
	off := address - a.base
	return a.bytes[off : off+uint64(n) : off+uint64(n)], nil
}

// find returns the allocation that an address lies in, or nil.
func find(table []*allocation, address uint64) *allocation {
	at, exact := slices.BinarySearchFunc(table, address, func(x *allocation, base uint64) int { return cmp.Compare(x.base, base) })
	if !exact {
		at--
	}
	if at < 0 || address-table[at].base >= table[at].size {
		return nil
	}
	return table[at]
}
