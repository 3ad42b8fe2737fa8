package remote

import (
	"errors"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/shm"
)

// region is a piece of shared memory for one item.
type region struct {
	id   uint64
	seg  *shm.Segment
	refs int // of the channel and of clients
}

// regions are the pieces of shared memory of a channel. Free ones are kept for the next items, up to a bound.
type regions struct {
	name string
	keep int64 // most bytes of free ones

	mu     sync.Mutex
	all    map[uint64]*region
	free   map[int][]*region // by size
	unused int64             // bytes of free ones
	last   uint64
	closed bool
}

func newRegions(name string, keep int64) *regions {
	return &regions{name: name, keep: keep, all: map[uint64]*region{}, free: map[int][]*region{}}
}

// classOf returns the size of the region for an item: four sizes for each power of two, so that at most a quarter lies idle.
func classOf(size int) int {
	step := shm.PageSize()
	for size > 8*step {
		step *= 2
	}
	return (size + step - 1) / step * step
}

// alloc returns a region for size bytes, which the caller refers to.
func (r *regions) alloc(size int) (*region, error) {
	class := classOf(size)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("%w: the channel's server ends", errMemory)
	}
	if free := r.free[class]; len(free) > 0 {
		x := free[len(free)-1]
		r.free[class] = free[:len(free)-1]
		r.unused -= int64(class)
		x.refs = 1
		return x, nil
	}
	seg, err := shm.Create("rlhost-channel-"+r.name, class)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMemory, err)
	}
	r.last++
	x := &region{id: r.last, seg: seg, refs: 1}
	r.all[x.id] = x
	return x, nil
}

// find returns a region that somebody refers to, nil if there is none.
func (r *regions) find(id uint64) *region {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.all[id]; x != nil && x.refs > 0 {
		return x
	}
	return nil
}

// share adds a reference.
func (r *regions) share(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[id].refs++
}

// drop ends references. A region without any is kept for the next item, or given back to the system.
func (r *regions) drop(id uint64, refs int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.all[id]
	if x == nil {
		return
	}
	x.refs -= refs
	if x.refs > 0 {
		return
	}
	size := x.seg.Size()
	for class, free := range r.free {
		if r.unused+int64(size) <= r.keep {
			break
		}
		for len(free) > 0 && r.unused+int64(size) > r.keep {
			r.destroy(free[0])
			free = free[1:]
			r.unused -= int64(class)
		}
		r.free[class] = free
		if len(free) == 0 {
			delete(r.free, class)
		}
	}
	if r.closed || int64(size) > r.keep {
		r.destroy(x)
		return
	}
	r.free[size] = append(r.free[size], x)
	r.unused += int64(size)
}

// destroy gives the memory of a region back to the system, also where a client still has it mapped.
func (r *regions) destroy(x *region) {
	delete(r.all, x.id)
	_ = errors.Join(x.seg.Discard(0), x.seg.Close()) // it is nobody's any more
}

// close ends all regions. Mappings of clients stay valid, with what was in them.
func (r *regions) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for _, x := range r.all {
		errs = append(errs, x.seg.Close())
	}
	r.all, r.free = map[uint64]*region{}, map[int][]*region{}
	return errors.Join(errs...)
}
