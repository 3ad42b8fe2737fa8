package linear

import "bytes"

// WasmPage is the unit of growth of linear memory, Addressable its largest size; in bytes.
const (
	WasmPage    = 65536
	Addressable = 1 << 32
)

// HostPage is the smallest unit of a mapping that this host knows, in bytes.
const HostPage = 4096

// Page is a page of memory that differs from the base.
type Page struct {
	Number uint32 // counted from address 0, in units of HostPage
	Data   []byte // HostPage long
}

// changedPages returns the pages of mem, as views, that differ from base, which is zero beyond its end, except pages
// for which skip returns true.
func changedPages(mem, base []byte, skip func(offset uint64) bool) []Page {
	var changed []Page
	for offset := 0; offset+HostPage <= len(mem); offset += HostPage {
		if p, ok := changedPage(mem, base, offset, skip); ok {
			changed = append(changed, p)
		}
	}
	return changed
}

// changedPage compares the page that begins at offset.
func changedPage(mem, base []byte, offset int, skip func(offset uint64) bool) (p Page, changed bool) {
	was := zeroPage[:]
	if offset+HostPage <= len(base) {
		was = base[offset : offset+HostPage]
	}
	now := mem[offset : offset+HostPage]
	if skip != nil && skip(uint64(offset)) {
		now = zeroPage[:]
	}
	return Page{Number: uint32(offset / HostPage), Data: now}, !bytes.Equal(now, was)
}

var zeroPage [HostPage]byte

// copyPages puts pages into their places.
func copyPages(mem []byte, pages []Page) {
	for _, p := range pages {
		copy(mem[uint64(p.Number)*HostPage:], p.Data)
	}
}

// Keep copies the contents of pages, which are views of a memory, and returns the pages. It writes over the contents of others, if there
// are any, which must not be used afterwards.
func Keep(pages, others []Page) []Page {
	for k := range pages {
		if k < len(others) {
			copy(others[k].Data, pages[k].Data)
			pages[k].Data = others[k].Data
		} else {
			pages[k].Data = bytes.Clone(pages[k].Data)
		}
	}
	return pages
}
