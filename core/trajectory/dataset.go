package trajectory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// A dataset block is a list of trajectories: index u64, count u32, parts u32, then count handles and, for each trajectory of which a
// part belongs to the dataset, its place in the list, the part's first environment, how many there are and the part's number, u32 each.
const (
	datasetHead = 16
	partBytes   = 16
)

// mostParts is how many parts there is room for in a dataset block. A dataset has the rest of one block and the beginning of another;
// more where batchers have been merged.
const mostParts = 64

// ErrDataset is returned for a block that is not a valid dataset.
var ErrDataset = errors.New("dataset block not accepted")

// Member is a trajectory of a dataset.
type Member struct {
	Handle hostabi.Handle
	Part   Part
}

// Part is a run of a block's environments, with all their time steps. The zero Part is the whole block.
type Part struct {
	First, Envs int
	Number      int // counts the parts that a policy's rows of the block are cut into, from 0
}

// Whole reports whether the part is the whole block.
func (p Part) Whole() bool { return p.Envs == 0 }

// Within returns which rows of each time step of a block are the part's, agents of its environments included.
func (p Part) Within(s *Schema) (lo, hi int) {
	if p.Whole() {
		return 0, s.Rows()
	}
	return p.First * s.Agents, (p.First + p.Envs) * s.Agents
}

// Check reports a part that a block of the schema does not have.
func (p Part) Check(s *Schema) error {
	envs := s.Shape.Envs
	if p.First < 0 || p.Envs < 0 || p.First > envs || p.Envs > envs-p.First || p.Number < 0 || p.Number >= s.MaxParts() {
		return fmt.Errorf("%w: part %d has %d environments from %d on, of a block of %d in at most %d parts",
			ErrDataset, p.Number, p.Envs, p.First, envs, s.MaxParts())
	}
	return nil
}

// MaxParts is how many parts a block can be cut into.
func (s *Schema) MaxParts() int { return MaxParts(max(1, len(s.policies))) }

// MaxParts is how many parts a block in which so many policies act can be cut into: each part has a mark of its own for every policy.
func MaxParts(policies int) int { return markBits / policies }

// markBits is how many marks a block has for each fate.
const markBits = 32

// PartPlace returns the place at which the fate of a part of a policy's rows is noted, by the policy's place in the block. That of part
// 0, and of a whole block, is the policy's.
func (s *Schema) PartPlace(place, number int) int { return number*max(1, len(s.policies)) + place }

// ValidIn returns how many rows of a part are valid by a column of flags such as Valid.
func (t Trajectory) ValidIn(p Part, column Column) (n int) {
	lo, hi := p.Within(t.Schema)
	width, flags := t.Schema.Rows(), t.Bytes(column)
	for step := range t.Schema.Shape.Steps {
		n += bytes.Count(flags[step*width+lo:step*width+hi], []byte{1})
	}
	return n
}

// DatasetBytes returns the size of a block that lists that many trajectories.
func DatasetBytes(trajectories int) int {
	return datasetHead + 8*trajectories + partBytes*min(trajectories, mostParts)
}

// WriteDataset fills a block with the trajectories of one learner round. index counts the datasets of a batcher.
func WriteDataset(block []byte, index uint64, members []Member) error {
	parts := 0
	for i := range members {
		if !members[i].Part.Whole() {
			parts++
		}
	}
	if len(block) < datasetHead+8*len(members)+partBytes*parts {
		return fmt.Errorf("%w: %d trajectories, %d of them parts, in %d bytes", ErrDataset, len(members), parts, len(block))
	}
	le := binary.LittleEndian
	le.PutUint64(block, index)
	le.PutUint32(block[8:], uint32(len(members)))
	le.PutUint32(block[12:], uint32(parts))
	to := block[datasetHead+8*len(members):]
	for i, m := range members {
		le.PutUint64(block[datasetHead+8*i:], uint64(m.Handle))
		if m.Part.Whole() {
			continue
		}
		for k, x := range [...]int{i, m.Part.First, m.Part.Envs, m.Part.Number} {
			le.PutUint32(to[4*k:], uint32(x))
		}
		to = to[partBytes:]
	}
	return nil
}

// ReadDataset appends the trajectories of a block to dst. It does not check that they are live, or that they have such parts.
func ReadDataset(block []byte, dst []Member) (index uint64, members []Member, err error) {
	if len(block) < datasetHead {
		return 0, dst, fmt.Errorf("%w: %d bytes", ErrDataset, len(block))
	}
	le, room := binary.LittleEndian, uint64(len(block)-datasetHead)
	count, parts := uint64(le.Uint32(block[8:])), uint64(le.Uint32(block[12:]))
	if count > room/8 || parts > (room-8*count)/partBytes {
		return 0, dst, fmt.Errorf("%w: %d trajectories and %d parts in %d bytes", ErrDataset, count, parts, len(block))
	}
	first := len(dst)
	for i := range int(count) {
		dst = append(dst, Member{Handle: hostabi.Handle(le.Uint64(block[datasetHead+8*i:]))})
	}
	own, from := dst[first:], block[datasetHead+8*count:]
	for range parts {
		at, envs := le.Uint32(from), le.Uint32(from[8:])
		if uint64(at) >= count || envs == 0 || !own[at].Part.Whole() {
			return 0, dst[:first], fmt.Errorf("%w: a part of %d environments of trajectory %d of %d", ErrDataset, envs, at, count)
		}
		own[at].Part = Part{First: int(le.Uint32(from[4:])), Envs: int(envs), Number: int(le.Uint32(from[12:]))}
		from = from[partBytes:]
	}
	return le.Uint64(block), dst, nil
}
