package store

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/shm"
)

// Bounds on one object.
const (
	MaxName     = 255
	MaxTracks   = 16
	MaxCapacity = 1 << 20
	MaxSpares   = 1 << 10
)

// lineBytes is the alignment of blocks: a cache line.
const lineBytes = 64

// Track is one column of an object: a block for every entry.
type Track struct {
	Name  string // informational; may be empty
	Bytes int    // most bytes of one value
	DType DType  // of all values; AnyDType takes all
}

// Config describes an object. It does not change while the object exists.
type Config struct {
	Capacity int // entries being written, kept or still read, together
	// Spares is the number of blocks beyond Capacity, for writers to fill while the object may be full. A writer with
	// one pushes with a single request. Readers may have some too: see OpPop. 0 means one for every eighth entry, at
	// most 8; negative means none.
	Spares int
	Tracks []Track
}

func (c *Config) spares() int {
	if c.Spares == 0 {
		return min(max(c.Capacity/8, 1), 8)
	}
	return max(c.Spares, 0)
}

func (c *Config) check(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("object %.20q: a name of %d bytes: %w: 1 to %d", name, len(name), ErrLimit, MaxName)
	case c.Capacity < 1 || c.Capacity > MaxCapacity:
		return fmt.Errorf("object %q: capacity %d: %w: 1 to %d", name, c.Capacity, ErrLimit, MaxCapacity)
	case c.Spares > MaxSpares:
		return fmt.Errorf("object %q: %d spares: %w: at most %d", name, c.Spares, ErrLimit, MaxSpares)
	case len(c.Tracks) < 1 || len(c.Tracks) > MaxTracks:
		return fmt.Errorf("object %q: %d tracks: %w: 1 to %d", name, len(c.Tracks), ErrLimit, MaxTracks)
	}
	for i, t := range c.Tracks {
		if len(t.Name) > MaxName {
			return fmt.Errorf("object %q: track %d: a name of %d bytes: %w: at most %d", name, i, len(t.Name), ErrLimit, MaxName)
		}
		if t.DType != AnyDType && t.DType.Size() == 0 {
			return fmt.Errorf("object %q: track %d: dtype %d: %w", name, i, t.DType, ErrDType)
		}
		if t.Bytes < 1 || t.Bytes > math.MaxInt/2 {
			return fmt.Errorf("object %q: track %d: blocks of %d bytes: %w: must be positive and addressable", name, i, t.Bytes, ErrLimit)
		}
	}
	return nil
}

// Column says where the blocks of one track lie in an object's file: At + block*Stride.
type Column struct {
	At, Stride int
	Track      Track
}

// plan places the tracks one after the other, each from a page on.
func (c *Config) plan(name string) (columns []Column, blocks, total int, err error) {
	blocks = c.Capacity + c.spares()
	for _, t := range c.Tracks {
		col := Column{At: total, Stride: roundUp(t.Bytes, lineBytes), Track: t}
		if t.Bytes >= shm.PageSize() {
			col.Stride = roundUp(t.Bytes, shm.PageSize())
		}
		if col.Stride > (math.MaxInt-shm.PageSize()-total)/blocks {
			return nil, 0, 0, fmt.Errorf("object %q: %d blocks of %d bytes: %w: more than can be addressed", name, blocks, t.Bytes, ErrLimit)
		}
		total = roundUp(total+col.Stride*blocks, shm.PageSize())
		columns = append(columns, col)
	}
	return columns, blocks, total, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
