package wasm

import "fmt"

// copyLimit is the size up to which copying an image is cheaper than mapping it and faulting its pages in.
const copyLimit = 256 << 10

// image is the state of an instance that has described itself; environments begin from it. Large ones lie in a
// sealed file, so that instances share the pages that they do not write.
type image struct {
	state
	content []byte // read-only where it is a mapping
	pages   []page // of content that are not zero, where there is no file
	file    *imageFile
}

// takeImage captures the instance, which must have no windows.
func (i *instance) takeImage() (*image, error) {
	img := &image{state: i.state()}
	if img.size <= copyLimit {
		img.content = append(make([]byte, 0, img.size), i.mem.bytes()...)
		img.pages = changedPages(img.content, nil, nil)
		return img, nil
	}
	f, err := newImageFile(i.mem.bytes())
	if err != nil {
		return nil, fmt.Errorf("keep image of %d bytes: %w", img.size, err)
	}
	img.file, img.content = f, f.content
	return img, nil
}

// putInto makes the beginning of a memory equal to the image. The memory must be at least as large.
func (img *image) putInto(mem *linear) error {
	if img.file != nil {
		return mem.mapPrivate(img.file.fd, 0, img.size)
	}
	// Fresh pages first: there may be windows, and copied pages must not appear in them.
	if err := mem.mapZero(0, img.size); err != nil {
		return err
	}
	copyPages(mem.bytes(), img.pages)
	return nil
}

// restoreImage puts a fresh instance into the state of the image.
func (i *instance) restoreImage(img *image) error {
	return i.restoreDelta(img, &delta{state: img.state})
}

func (img *image) close() {
	if img.file != nil {
		img.file.close()
	}
}
