package linear

import (
	"bytes"
	"fmt"
)

// Image is the content of a memory, with which others begin. A large one is a sealed file, so that memories share the pages that they
// do not write.
type Image struct {
	content []byte // read-only where it is a mapping
	pages   []Page // of content that are not zero, where there is no file
	file    *imageFile
}

// copyLimit is the size up to which copying an image is cheaper than mapping it and faulting its pages in.
const copyLimit = 256 << 10

// Image captures the memory, which must have no windows. The image must be closed.
func (m *Memory) Image() (*Image, error) {
	if m.Size <= copyLimit {
		content := append(make([]byte, 0, m.Size), m.Bytes()...)
		return &Image{content: content, pages: changedPages(content, nil, nil)}, nil
	}
	f, err := newImageFile(m.Bytes())
	if err != nil {
		return nil, fmt.Errorf("keep image of %d bytes: %w", m.Size, err)
	}
	return &Image{file: f, content: f.content}, nil
}

func (img *Image) size() uint64 { return uint64(len(img.content)) }

// putInto makes the beginning of a memory equal to the image. The memory must be at least as large.
func (img *Image) putInto(m *Memory) error {
	if img.file != nil {
		return m.mapImage(img.file.fd, 0, img.size())
	}
	// Fresh pages first: there may be windows, and copied pages must not appear in them.
	if err := m.MapZero(0, img.size()); err != nil {
		return err
	}
	copyPages(m.Bytes(), img.pages)
	return nil
}

// Close releases the image. Memories that began from it do not change.
func (img *Image) Close() {
	if img.file != nil {
		img.file.close()
	}
}

// Replace makes the memory equal to an image, which may be nil and must not be larger, with other pages in it. Beyond the image it is zero.
// Nothing is mapped there afterwards.
func (m *Memory) Replace(base *Image, pages []Page) error {
	common := uint64(0)
	if base != nil {
		common = base.size()
		if err := base.putInto(m); err != nil {
			return err
		}
	}
	if err := m.MapZero(common, m.Size-common); err != nil {
		return err
	}
	copyPages(m.Bytes(), pages)
	return nil
}

// Changed returns the pages, as views of the memory, that differ from the image that it began with; nil: from zero. It reads only
// pages that may have been written, and takes places where skip returns true for zero.
func (m *Memory) Changed(base *Image, skip func(offset uint64) bool) []Page {
	mem := m.Bytes()
	if base == nil {
		return changedPages(mem, nil, skip)
	}
	if base.file == nil { // smaller than what it takes to ask
		return changedPages(mem, base.content, skip)
	}
	var changed []Page
	for number, untouched := range m.untouched() {
		offset := uint64(number) * HostPage
		if untouched && (offset < m.imaged || offset >= base.size()) && (skip == nil || !skip(offset)) {
			continue
		}
		if p, ok := changedPage(mem, base.content, int(offset), skip); ok {
			changed = append(changed, p)
		}
	}
	return changed
}

// Span is a piece of a memory: where it begins and how many bytes it has.
type Span struct{ At, N uint64 }

// CopyFrom makes the memory equal to another one, which is as large, where it differs. base and other are the images that the two began
// with, nil if there are none. Where the other one has a window the memory becomes zero, or with stay does not change.
func (m *Memory) CopyFrom(o *Memory, base, other *Image, windows []Span, stay bool) {
	to, from, same := m.Bytes(), o.Bytes(), m.unchanged(o, base, other)
	for at := uint64(0); at < uint64(len(from)); {
		end := uint64(len(from))
		inside := false // of a window
		for _, w := range windows {
			if at < w.At {
				end = min(end, w.At)
			} else if at-w.At < w.N {
				inside, end = true, w.At+w.N
				break
			}
		}
		switch {
		case !inside:
			copyChanged(to[at:end], from[at:end], same[at/HostPage:])
		case !stay:
			clearChanged(to[at:end])
		}
		at = end
	}
}

// unchanged reports of each page whether both memories have it as both began, so that the two need not be compared.
func (m *Memory) unchanged(o *Memory, a, b *Image) []bool {
	same := make([]bool, o.Size/HostPage)
	if a == nil || b == nil || a.file == nil || b.file == nil || a.file.sum != b.file.sum {
		return same
	}
	imaged, untouched := min(m.imaged, o.imaged), m.untouched()
	for i, also := range o.untouched() {
		offset := uint64(i) * HostPage
		same[i] = also && untouched[i] && (offset < imaged || offset >= a.size())
	}
	return same
}

// copyChanged copies the pages that differ; both are whole pages and equally long. same marks pages that do not differ.
func copyChanged(to, from []byte, same []bool) {
	for at := 0; at+HostPage <= len(from); at += HostPage {
		if now := from[at : at+HostPage]; !same[at/HostPage] && !bytes.Equal(to[at:at+HostPage], now) {
			copy(to[at:], now)
		}
	}
}

// clearChanged clears the pages that are not zero.
func clearChanged(to []byte) {
	var zero [HostPage]byte
	for at := 0; at+HostPage <= len(to); at += HostPage {
		if page := to[at : at+HostPage]; !bytes.Equal(page, zero[:]) {
			clear(page)
		}
	}
}
