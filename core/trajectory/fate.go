package trajectory

import (
	"bytes"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// Fate is the fate of the rows of one policy in a block.
type Fate int

// Fates. The component that decides one settles it while it has a claim on the block. Rows without a fate were dropped by
// the last holder of the block.
const (
	Trained Fate = iota // learned from
	TooOld              // dropped for its lag
	Cut                 // in a dataset that the run's end cut short
	Fates               // how many there are
)

// Settle notes the fate of the valid rows of a policy, by its PolicyPlace, or of a part of them, by its PartPlace. The caller must have a
// claim on the block. Any goroutine, and any process.
func Settle(a *arena.Arena, h hostabi.Handle, place int, f Fate) error {
	return a.Mark(h, int(f), 1<<place)
}

// Unsettle takes a fate back that Settle has noted, under the same conditions.
func Unsettle(a *arena.Arena, h hostabi.Handle, place int, f Fate) error {
	return a.Unmark(h, int(f), 1<<place)
}

// Settled returns the places of the policies, or of the parts of their rows, that have met a fate, a bit each, also after the block has become free, until
// its next use is settled.
func Settled(a *arena.Arena, h hostabi.Handle, f Fate) (places uint32) { return a.Marks(h, int(f)) }

// ValidRows appends how many valid rows each policy has, by the places of PolicyPlace: one number where one acts in all rows.
func (t Trajectory) ValidRows(list []int) []int {
	if len(t.Schema.policies) == 0 {
		return append(list, bytes.Count(t.Bytes(Valid)[:t.Schema.Shape.Steps*t.Schema.Rows()], []byte{1}))
	}
	for place := range t.Schema.policies {
		list = append(list, bytes.Count(t.Bytes(Valid.At(1+place)), []byte{1}))
	}
	return list
}
