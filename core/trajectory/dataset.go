package trajectory

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// A dataset block is a list of trajectory handles: index u64, count u32, 4 bytes of zero, then count handles.
const datasetHead = 16

// ErrDataset is returned for a block that is not a valid dataset.
var ErrDataset = errors.New("dataset block not accepted")

// DatasetBytes returns the size of a block that lists that many trajectories.
func DatasetBytes(trajectories int) int { return datasetHead + 8*trajectories }

// WriteDataset fills a block with the handles of one learner round. index counts the datasets of a batcher.
func WriteDataset(block []byte, index uint64, handles []hostabi.Handle) error {
	if len(block) < DatasetBytes(len(handles)) {
		return fmt.Errorf("%w: %d trajectories in %d bytes", ErrDataset, len(handles), len(block))
	}
	le := binary.LittleEndian
	le.PutUint64(block, index)
	le.PutUint32(block[8:], uint32(len(handles)))
	le.PutUint32(block[12:], 0)
	for i, h := range handles {
		le.PutUint64(block[datasetHead+8*i:], uint64(h))
	}
	return nil
}

// ReadDataset appends the handles of a block to dst. It does not check that they are live.
func ReadDataset(block []byte, dst []hostabi.Handle) (index uint64, handles []hostabi.Handle, err error) {
	if len(block) < datasetHead {
		return 0, dst, fmt.Errorf("%w: %d bytes", ErrDataset, len(block))
	}
	le := binary.LittleEndian
	count := le.Uint32(block[8:])
	if uint64(count) > uint64(len(block)-datasetHead)/8 {
		return 0, dst, fmt.Errorf("%w: %d trajectories in %d bytes", ErrDataset, count, len(block))
	}
	for i := range int(count) {
		dst = append(dst, hostabi.Handle(le.Uint64(block[datasetHead+8*i:])))
	}
	return le.Uint64(block), dst, nil
}
