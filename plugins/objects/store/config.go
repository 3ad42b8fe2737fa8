package store

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

// lineBytes is the alignment of blocks: a cache line.
const lineBytes = 64

// sparesOf is the number of spare blocks that a configuration means.
func sparesOf(c *wire.Config) int {
	if c.Spares == 0 {
		return min(max(c.Capacity/8, 1), 8)
	}
	return max(c.Spares, 0)
}

func check(c *wire.Config, name string) error {
	switch {
	case name == "" || len(name) > wire.MaxName:
		return fmt.Errorf("object %.20q: a name of %d bytes: %w: 1 to %d", name, len(name), wire.ErrLimit, wire.MaxName)
	case c.Capacity < 1 || c.Capacity > wire.MaxCapacity:
		return fmt.Errorf("object %q: capacity %d: %w: 1 to %d", name, c.Capacity, wire.ErrLimit, wire.MaxCapacity)
	case c.Spares > wire.MaxSpares:
		return fmt.Errorf("object %q: %d spares: %w: at most %d", name, c.Spares, wire.ErrLimit, wire.MaxSpares)
	case len(c.Tracks) < 1 || len(c.Tracks) > wire.MaxTracks:
		return fmt.Errorf("object %q: %d tracks: %w: 1 to %d", name, len(c.Tracks), wire.ErrLimit, wire.MaxTracks)
	}
	for i, t := range c.Tracks {
		if len(t.Name) > wire.MaxName {
			return fmt.Errorf("object %q: track %d: a name of %d bytes: %w: at most %d", name, i, len(t.Name), wire.ErrLimit, wire.MaxName)
		}
		if t.DType != wire.AnyDType && t.DType.Size() == 0 {
			return fmt.Errorf("object %q: track %d: dtype %d: %w", name, i, t.DType, wire.ErrDType)
		}
		if t.Bytes < 1 || t.Bytes > math.MaxInt/2 {
			return fmt.Errorf("object %q: track %d: blocks of %d bytes: %w: must be positive and addressable", name, i, t.Bytes, wire.ErrLimit)
		}
	}
	return nil
}

// plan places the tracks one after the other, each from a page on, with some blocks more than the configuration says.
func plan(c *wire.Config, name string, extra int) (columns []wire.Column, blocks, total int, err error) {
	blocks = c.Capacity + sparesOf(c) + extra
	for _, t := range c.Tracks {
		col := wire.Column{At: total, Stride: roundUp(t.Bytes, lineBytes), Track: t}
		if t.Bytes >= shm.PageSize() {
			col.Stride = roundUp(t.Bytes, shm.PageSize())
		}
		if col.Stride > (math.MaxInt-shm.PageSize()-total)/blocks {
			return nil, 0, 0, fmt.Errorf("object %q: %d blocks of %d bytes: %w: more than can be addressed", name, blocks, t.Bytes, wire.ErrLimit)
		}
		total = roundUp(total+col.Stride*blocks, shm.PageSize())
		columns = append(columns, col)
	}
	return columns, blocks, total, nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
