// Package linear is the memory of guests: address space that never moves, over which the pages of files are mapped while its guest runs.
//
//	mem, err := linear.New(size, limit) // and hand it to wazero as its experimental.MemoryAllocator
//	err = mem.MapShared(fd, offset, at, n)
//	image, err := mem.Image()
//	err = another.Replace(image, nil)
//	defer mem.Release()
//
// It knows pages and images of memories. Whose they are, and when a guest runs, is its user's matter.
package linear
