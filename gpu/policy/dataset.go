package policy

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// Errors about the contents of rows. They come wrapped in a *RowError that names the row.
var (
	// ErrNoLegalAction: the action mask of a row that is to act, or that acted, is all zero.
	ErrNoLegalAction = errors.New("action mask without a legal action")
	// ErrActionRange: the stored action of a row does not exist or was not legal. Guests can rewrite it.
	ErrActionRange = errors.New("stored action out of range or masked out")
	// ErrFlag: a flag of a row, such as whether it ended an episode, is neither 0 nor 1. Guests and native plugins can rewrite it.
	ErrFlag = errors.New("neither 0 nor 1")
)

// Dataset is one learner round: blocks of one shape, in order of their first environment, leased by the
// caller for the duration of Update. Its rows are numbered t-major over all blocks: row = t*E + e, where E is
// the number of environments of all blocks and e counts them in block order. So results do not depend on how
// environments are split over blocks. Rows outside of a block's part are numbered too, and are not valid.
type Dataset struct {
	Blocks []trajectory.Trajectory
	Parts  []trajectory.Part // that belong to the dataset, by block; empty where all blocks are whole
	// Normaliser that the rows enter the network with; nil without NormalizeObs.
	ObsMean, ObsScale []float32
	Seed              uint64 // run seed, key of the shuffle
	Index             uint64 // counts datasets, from 0; second key of the shuffle

	// BurnInRows is how many rows of each chunk only warm a core's state up: they are not learned from. Warm has the states after them,
	// [chunks][Network.State] by ChunkOf. An update sets both by its learner's configuration.
	BurnInRows int
	Warm       []float32

	valid [][]byte // by block: Valid within the part, copied by Check; nil of a whole block
}

// ErrDataset is wrapped by complaints about a dataset that does not belong to the network.
var ErrDataset = errors.New("dataset does not fit the network")

// RowError says which row an error is about.
type RowError struct {
	Request int // index of the request in Act, 0 for a dataset
	Row     int // row of the request, or row of the dataset (t*E + e)
	What    string
	Err     error
}

// Error returns the message with the row in front.
func (e *RowError) Error() string {
	if e.What == "" {
		return fmt.Sprintf("request %d, row %d: %v", e.Request, e.Row, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.What, e.Err)
}

// Unwrap returns the sentinel.
func (e *RowError) Unwrap() error { return e.Err }

// RowError returns err about a column of a row, which it names by env step and environment.
func (d *Dataset) RowError(row int, column trajectory.Column, err error) error {
	return &RowError{Row: row, Err: err, What: fmt.Sprintf("dataset row %d: %v of %s", row, column, d.Who(row))}
}

// Who names the environment of a row, the agent where there are several, and the env step.
func (d *Dataset) Who(row int) string {
	envs := d.Envs()
	t, e := row/envs, row%envs
	block := &d.Blocks[e/d.BlockEnvs()]
	agents := block.Schema.Agents
	who := fmt.Sprintf("environment %d", int(block.Meta().FirstEnv)+e%d.BlockEnvs()/agents)
	if agents > 1 {
		who += fmt.Sprintf(", agent %d,", e%agents)
	}
	return fmt.Sprintf("%s at t = %d", who, t)
}

// At returns the block of a row, and where the row is in its columns of one element.
func (d *Dataset) At(row int) (block trajectory.Trajectory, i int) {
	envs, width := d.Envs(), d.BlockEnvs()
	t, e := row/envs, row%envs
	return d.Blocks[e/width], t*width + e%width
}

// BlockEnvs returns the number of environments of one block, or of all their agents.
func (d *Dataset) BlockEnvs() int { return d.Blocks[0].Schema.Rows() }

// Steps returns T, the number of rows of each environment.
func (d *Dataset) Steps() int { return d.Blocks[0].Schema.Shape.Steps }

// Envs returns E, the number of environments of all blocks.
func (d *Dataset) Envs() int { return len(d.Blocks) * d.BlockEnvs() }

// Rows returns T*E, valid and invalid rows together.
func (d *Dataset) Rows() int { return d.Steps() * d.Envs() }

// Valid returns which rows of a block belong to an episode and to the dataset, as the block's column of that name has them.
func (d *Dataset) Valid(block int) []byte {
	if len(d.Parts) > 0 && !d.Parts[block].Whole() {
		return d.valid[block]
	}
	return d.Blocks[block].Bytes(trajectory.Valid)
}

// cut copies the valid flags of the blocks of which only a part belongs to the dataset.
func (d *Dataset) cut() error {
	if len(d.Parts) == 0 {
		return nil
	}
	if len(d.Parts) != len(d.Blocks) {
		return fmt.Errorf("%w: parts of %d blocks, it has %d", ErrDataset, len(d.Parts), len(d.Blocks))
	}
	if more := len(d.Blocks) - len(d.valid); more > 0 {
		d.valid = append(d.valid, make([][]byte, more)...)
	}
	width := d.BlockEnvs()
	for i, p := range d.Parts {
		b := &d.Blocks[i]
		if err := p.Check(b.Schema); err != nil {
			return fmt.Errorf("%w: block %d: %w", ErrDataset, i, err)
		}
		if p.Whole() {
			continue
		}
		flags, own := b.Bytes(trajectory.Valid), d.valid[i][:0]
		lo, hi := p.Within(b.Schema)
		own = append(own, flags...)
		for at := 0; at < len(own); at += width {
			clear(own[at : at+lo])
			clear(own[at+hi : at+width])
		}
		d.valid[i] = own
	}
	return nil
}

// Check reports what keeps a network from learning from the dataset: no blocks, blocks of different shapes, parts that they do not
// have, or tensors of other sizes than the network's. Every other method takes it as checked.
func (d *Dataset) Check(n *Network) error {
	if len(d.Blocks) == 0 {
		return fmt.Errorf("%w: it has no blocks", ErrDataset)
	}
	first := d.Blocks[0].Schema
	for i, b := range d.Blocks {
		if b.Schema != first && b.Schema.Shape != first.Shape {
			return fmt.Errorf("%w: block %d is %v, block 0 %v", ErrDataset, i, b.Schema.Shape, first.Shape)
		}
		if len(b.Mem) < b.Schema.Bytes {
			return fmt.Errorf("%w: block %d has %d bytes of %d", ErrDataset, i, len(b.Mem), b.Schema.Bytes)
		}
		if err := checkSchema(n, b.Schema); err != nil {
			return err
		}
	}
	if rows := uint64(d.Steps()) * uint64(d.Envs()); rows >= 1<<32 {
		return fmt.Errorf("%w: %d rows", ErrDataset, rows)
	}
	if err := d.cut(); err != nil {
		return err
	}
	if err := d.checkWarm(n); err != nil {
		return err
	}
	if stats := n.Stats(); stats > 0 && (len(d.ObsMean) != stats || len(d.ObsScale) != stats) {
		return fmt.Errorf("%w: %d means and %d scales for %d normalised elements",
			ErrDataset, len(d.ObsMean), len(d.ObsScale), stats)
	}
	return nil
}

func checkSchema(n *Network, s *trajectory.Schema) error {
	for i := range n.Inputs {
		if _, _, err := n.Inputs[i].column(s); err != nil {
			return err
		}
	}
	if err := n.learns(s); err != nil {
		return err
	}
	for i := range n.Policy {
		d, err := n.Policy[i].Of()
		if err != nil {
			return err
		}
		if err := checkAction(d, s, i); err != nil {
			return fmt.Errorf("%w: %v: %w", ErrDataset, trajectory.Action.At(i), err)
		}
	}
	if extra := trajectory.Action.At(len(n.Policy)); s.Has(extra) {
		return fmt.Errorf("%w: it has %v, the network %d actions", ErrDataset, extra, len(n.Policy))
	}
	return nil
}

// checkAction compares the columns of an action with the network's distribution for it.
func checkAction(d head.Dist, s *trajectory.Schema, i int) error {
	action, ok := s.Layout(trajectory.Action.At(i))
	mask := s.MaskOf(i)
	switch {
	case !ok || action.Elems != d.Size() || action.DType.Float() != d.Continuous():
		return fmt.Errorf("%d elements of %v, the network has %d of %v", action.Elems, action.DType, d.Size(), d)
	case mask != nil && mask.Elems != d.Choices():
		return fmt.Errorf("mask of %d choices, the network has %d", mask.Elems, d.Choices())
	}
	return nil
}

// GatherObs writes the inputs of rows to dst [rows][Obs].
func (d *Dataset) GatherObs(n *Network, rows []uint32, dst []float32) {
	if !n.Plain() {
		var g Gather
		g.Open(n, NewEntry(n, nil), d)
		for i, row := range rows {
			g.Row(EnteredRow{Numbers: dst[i*n.Obs():]}, row)
		}
		return
	}
	mean, scale := d.ObsMean, d.ObsScale
	if !n.NormalizeObs() {
		mean, scale = nil, nil
	}
	l, _ := d.Blocks[0].Schema.Layout(trajectory.Obs)
	envs, width, elems := uint32(d.Envs()), uint32(d.BlockEnvs()), n.Obs()
	strideT, strideEnv, stride := l.StrideT/4, l.StrideEnv/4, l.StrideElem/4
	last := ^uint32(0)
	var obs []float32
	for i, row := range rows {
		t, e := row/envs, row%envs
		if block := e / width; block != last {
			obs, last = d.Blocks[block].Float32(trajectory.Obs), block
		}
		NormalizeRow(dst[i*elems:(i+1)*elems], obs[int(t)*strideT+int(e%width)*strideEnv:], stride, mean, scale)
	}
}

// NormalizeRow writes clamp((x-mean)*scale, -ObsClip, ObsClip) to dst, or x itself where mean is empty. Element i
// of x is at x[i*stride]. Every backend enters observations like this, in float32 and in this order.
func NormalizeRow(dst, x []float32, stride int, mean, scale []float32) {
	if len(mean) == 0 {
		if stride == 1 {
			copy(dst, x[:len(dst)])
			return
		}
		for i := range dst {
			dst[i] = x[i*stride]
		}
		return
	}
	for i := range dst {
		v := (x[i*stride] - mean[i]) * scale[i]
		if v > ObsClip {
			v = ObsClip
		}
		if v < -ObsClip {
			v = -ObsClip
		}
		dst[i] = v
	}
}
