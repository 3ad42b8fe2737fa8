package wire

import (
	"fmt"
	"time"
)

// Bounds on one object.
const (
	MaxName     = 255
	MaxTracks   = 16
	MaxCapacity = 1 << 20
	MaxSpares   = 1 << 10
)

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

// Column says where the blocks of one track lie in an object's file: At + block*Stride.
type Column struct {
	At, Stride int
	Track      Track
}

// Layout is how to map an object.
type Layout struct {
	Capacity, Blocks int
	Size             int // bytes of the file
	Columns          []Column
}

// CheckValues returns why values do not fit the tracks of an object: ErrTracks, ErrDType, ErrLimit or ErrTooLarge.
func CheckValues(columns []Column, values []Value) error {
	if len(values) != len(columns) {
		return fmt.Errorf("%w: %d values for %d", ErrTracks, len(values), len(columns))
	}
	for i := range values {
		v, t := &values[i], columns[i].Track
		n, ok := v.Size()
		switch {
		case v.DType.Size() == 0 || t.DType != AnyDType && v.DType != t.DType:
			return fmt.Errorf("track %d: %w: %s, want %s", i, ErrDType, v.DType, t.DType)
		case v.Rank > MaxRank:
			return fmt.Errorf("track %d: %w: %d dimensions, at most %d", i, ErrLimit, v.Rank, MaxRank)
		case !ok || n > uint64(t.Bytes):
			return fmt.Errorf("track %d: %s: %w of %d bytes", i, v, ErrTooLarge, t.Bytes)
		}
	}
	return nil
}

// Forever is a Wait without end.
const Forever time.Duration = -1

// View is an entry claimed for reading.
type View struct {
	Index  uint64
	Block  uint32
	Torn   bool    // its writer in place did not finish
	Values []Value // one for each track; valid until what holds the View is used again
}

// Counters count the operations on an object since it was made.
type Counters struct {
	Commits, Aborts, Reads, Pops, Deletes uint64
	Waits                                 uint64 // operations that had to wait
}

// Stat is the state of an object at one moment.
type Stat struct {
	ID       uint32
	Origin   uint32 // the ID before the object grew for the first time
	Name     string
	Config   Config
	Entries  int    // committed and reachable
	Writing  int    // blocks being written, without spares
	Kept     int    // unreachable blocks with readers
	Spares   int    // spare blocks that writers have
	Lent     int    // spare blocks that readers have, among Kept
	Claims   int    // of all sessions, each block of a batch counted
	Waiting  int    // operations
	Next     uint64 // index of the next commit
	Oldest   uint64 // if there are entries
	Newest   uint64 // if there are entries
	Bytes    int    // of memory
	Counters Counters
}
