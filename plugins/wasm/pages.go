package wasm

import "bytes"

// wasmPage is the unit of linear memory, addressable is where it ends.
const (
	wasmPage    = 65536
	addressable = 1 << 32
)

// hostPage is the smallest unit of a mapping that this host knows.
const hostPage = 4096

// page is a page of memory that differs from what it is compared with.
type page struct {
	number uint32
	data   []byte // hostPage long
}

// changedPages returns the pages of mem, as views of it, that differ from base, which is zero beyond its end, except
// those for which skip returns true.
func changedPages(mem, base []byte, skip func(offset uint64) bool) []page {
	var changed []page
	for offset := 0; offset+hostPage <= len(mem); offset += hostPage {
		if p, ok := changedPage(mem, base, offset, skip); ok {
			changed = append(changed, p)
		}
	}
	return changed
}

// changedPage compares the page that begins at offset.
func changedPage(mem, base []byte, offset int, skip func(offset uint64) bool) (p page, changed bool) {
	was := zeroPage[:]
	if offset+hostPage <= len(base) {
		was = base[offset : offset+hostPage]
	}
	now := mem[offset : offset+hostPage]
	if skip != nil && skip(uint64(offset)) {
		now = zeroPage[:]
	}
	return page{number: uint32(offset / hostPage), data: now}, !bytes.Equal(now, was)
}

var zeroPage [hostPage]byte

// copyPages puts pages into their places.
func copyPages(mem []byte, pages []page) {
	for _, p := range pages {
		copy(mem[uint64(p.number)*hostPage:], p.data)
	}
}

// copied returns pages with contents of their own, as far as it goes in the memory of others.
func copied(pages, others []page) []page {
	for k := range pages {
		if k < len(others) {
			copy(others[k].data, pages[k].data)
			pages[k].data = others[k].data
		} else {
			pages[k].data = bytes.Clone(pages[k].data)
		}
	}
	return pages
}
