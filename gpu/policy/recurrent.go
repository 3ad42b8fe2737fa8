package policy

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// CoreNode is a node that keeps a state from row to row.
type CoreNode struct {
	layer.Core
	Name string
	At   int // where its state begins in that of a row
}

// Core returns a node's operation, if it keeps a state, and else nil.
func (n *Node) Core() layer.Core {
	op, _ := n.Op()
	core, _ := op.(layer.Core)
	if core == nil || core.State() == 0 {
		return nil // an External may keep none
	}
	return core
}

// Cores returns the nodes with a state, in the order of nodes, which is that of their parts of a row's state.
func (n *Network) Cores() (list []CoreNode) {
	at := 0
	for i := range n.Nodes {
		if core := n.Nodes[i].Core(); core != nil {
			list = append(list, CoreNode{core, n.Nodes[i].Name, at})
			at += core.State()
		}
	}
	return list
}

// State returns the elements of a row's state, 0 for a network without one.
func (n *Network) State() (elems int) {
	for i := range n.Nodes {
		if core := n.Nodes[i].Core(); core != nil {
			elems += core.State()
		}
	}
	return elems
}

// SameBesideCores reports whether two valid networks are the same except for their cores: all other nodes have parameters of
// the same names and shapes, with the same meaning except where they read cores.
func (n *Network) SameBesideCores(o *Network) bool {
	return slices.Equal(n.besideCores(), o.besideCores())
}

// besideCores describes a network without its cores, with the shapes of its parameters.
func (n *Network) besideCores() []string {
	rest := n.Clone()
	for i := range rest.Nodes {
		if x := &rest.Nodes[i]; x.Core() != nil {
			*x = Node{Name: x.Name, In: x.In}
		}
	}
	lines := rest.Lines()
	for _, p := range n.ParamsBesideCores() {
		lines = append(lines, fmt.Sprint(p.Name, p.Shape))
	}
	return lines
}

// ParamsBesideCores is Params without the parameters of cores.
func (n *Network) ParamsBesideCores() (list []Param) {
	for i, params := range n.paramsByNode() {
		if n.Nodes[i].Core() == nil {
			list = append(list, params...)
		}
	}
	return list
}

// Memory returns which earlier rows the network needs to act on a row.
func (n *Network) Memory() trajectory.Memory {
	m := trajectory.Memory{Past: n.Past(), State: n.State(), Chunk: n.Chunk}
	for i := range n.Inputs {
		in := &n.Inputs[i]
		m.Learned, m.Executed = m.Learned || in.Learned, m.Executed || in.From == LastExecuted
	}
	return m
}

// MaxChunk bounds Network.Chunk.
const MaxChunk = 1 << 12

func (n *Network) validateCores() error {
	cores := n.Cores()
	switch stacked := slices.IndexFunc(n.Inputs, func(in Input) bool { return in.Frames() > 1 }); {
	case len(cores) == 0 && n.Chunk != 0:
		return fmt.Errorf("chunks of %d rows, and no node keeps a state", n.Chunk)
	case len(cores) == 0:
		return nil
	case n.Chunk < 1 || n.Chunk > MaxChunk:
		return fmt.Errorf("node %q, %v, is learned in chunks of %d rows: want 1 to %d", cores[0].Name, cores[0], n.Chunk, MaxChunk)
	case stacked >= 0:
		return fmt.Errorf("node %q, %v, keeps a state, and input %q is a stack of %d frames: take one of them out",
			cores[0].Name, cores[0], n.Inputs[stacked].Path, n.Inputs[stacked].Frames())
	}
	return nil
}

// holds returns an error if blocks of a schema cannot hold the network's state.
func (n *Network) holds(s *trajectory.Schema) error {
	if elems := n.State(); elems > s.Shape.State {
		return fmt.Errorf("%w: blocks keep %d elements of state, the network's cores %d", ErrDataset, s.Shape.State, elems)
	}
	return nil
}

// learns returns an error if blocks of a schema do not suit the network's chunks: there must be a state where each begins.
func (n *Network) learns(s *trajectory.Schema) error {
	switch stored := s.StoredEvery(); {
	case n.Chunk == 0:
		return nil
	case s.Shape.Steps%n.Chunk != 0:
		return fmt.Errorf("%w: %d steps are not whole chunks of %d", ErrDataset, s.Shape.Steps, n.Chunk)
	case n.Chunk%stored != 0:
		return fmt.Errorf("%w: blocks keep a state every %d rows, the network's chunks begin every %d", ErrDataset, stored, n.Chunk)
	}
	return n.holds(s)
}

// State returns the state before a row of a block, for Request.State and, of the next row, Request.StateOut; the zero
// Matrix for a network that keeps none.
func (b *Binding) State(tr trajectory.Trajectory, row int) trajectory.Matrix {
	if b.state == 0 {
		return trajectory.Matrix{}
	}
	m := tr.Row(trajectory.CoreState, tr.Schema.StateRow(row))
	m.Elems = b.state // other policies of the same blocks may keep more
	return m
}

// Chunked appends the valid rows to dst chunk by chunk, by time and then environment, in order within a chunk.
func (d *Dataset) Chunked(n *Network, dst []uint32) []uint32 {
	envs, width := d.Envs(), d.BlockEnvs()
	for first := 0; first < d.Steps(); first += n.Chunk {
		for e := range envs {
			valid := d.Valid(e / width)
			for t := first; t < first+n.Chunk; t++ {
				if valid[t*width+e%width] != 0 {
					dst = append(dst, uint32(t*envs+e))
				}
			}
		}
	}
	return dst
}

// ChunkOf returns the number of the chunk that a row belongs to.
func (d *Dataset) ChunkOf(n *Network, row uint32) uint32 {
	envs := uint32(d.Envs())
	return row/envs/uint32(n.Chunk)*envs + row%envs
}

// ChunkStarts appends to dst where each chunk begins in rows, which come as Chunked has them, and len(rows) after the last one.
func (d *Dataset) ChunkStarts(n *Network, rows []uint32, dst []int) []int {
	for i, row := range rows {
		if i == 0 || d.ChunkOf(n, row) != d.ChunkOf(n, rows[i-1]) {
			dst = append(dst, i)
		}
	}
	return append(dst, len(rows))
}

// Follow says which of the rows, which come as Chunked has them, follow one another: prev[i] is the place of the row before
// row i in its episode and chunk, or -1 for a row that begins from state, [rows][Network.State]: the stored state where its
// chunk begins, or Warm's behind its burn-in, or zero where its episode does. Rows in which an agent does not act leave its state as it is.
func (d *Dataset) Follow(n *Network, rows []uint32, prev []int32, state []float32) {
	if len(rows) == 0 {
		return
	}
	envs, width, elems := d.Envs(), d.BlockEnvs(), len(state)/len(rows)
	for i, row := range rows {
		t, e := int(row)/envs, int(row)%envs
		b, own := &d.Blocks[e/width], state[i*elems:(i+1)*elems]
		prev[i] = -1
		clear(own)
		switch running := b.Ages(t)[e%width] > 0; {
		case !running:
		case i > 0 && d.ChunkOf(n, rows[i-1]) == d.ChunkOf(n, row):
			prev[i] = int32(i - 1)
		case d.Warmed(n, row):
			copy(own, d.Warm[int(d.ChunkOf(n, row))*elems:])
		default:
			stored := b.Row(trajectory.CoreState, b.Schema.StateRow(t-t%n.Chunk))
			copy(own, stored.Float32()[e%width*stored.StrideRow/4:])
		}
	}
}

// BurnsIn reports whether a row only warms a core's state up.
func (d *Dataset) BurnsIn(n *Network, row uint32) bool {
	return d.BurnInRows > 0 && int(row)/d.Envs()%n.Chunk < d.BurnInRows
}

// Warmed reports whether a row comes after its chunk's burn-in: the first such row begins from Warm.
func (d *Dataset) Warmed(n *Network, row uint32) bool { return d.BurnInRows > 0 && !d.BurnsIn(n, row) }

// Chunks returns how many chunks the dataset has for a network that keeps a state.
func (d *Dataset) Chunks(n *Network) int { return d.Steps() / n.Chunk * d.Envs() }

// Stored writes the states that are stored where chunks begin to dst, [chunks][Network.State] by ChunkOf.
func (d *Dataset) Stored(n *Network, dst []float32) {
	elems := n.State()
	for first := 0; first < d.Steps(); first += n.Chunk {
		for i := range d.Blocks {
			stored := d.Blocks[i].Row(trajectory.CoreState, d.Blocks[i].Schema.StateRow(first))
			from := stored.Float32()
			for e := range d.BlockEnvs() {
				copy(dst[:elems], from[e*stored.StrideRow/4:])
				dst = dst[elems:]
			}
		}
	}
}

// checkWarm reports burn-in rows that leave nothing of a chunk, or states that are not those after them.
func (d *Dataset) checkWarm(n *Network) error {
	switch {
	case d.BurnInRows == 0:
		return nil
	case d.BurnInRows < 0 || d.BurnInRows >= n.Chunk:
		return fmt.Errorf("%w: %d burn-in rows of each chunk of %d", ErrDataset, d.BurnInRows, n.Chunk)
	case len(d.Warm) != d.Chunks(n)*n.State():
		return fmt.Errorf("%w: %d elements of states after burn-in, its chunks have %d", ErrDataset, len(d.Warm), d.Chunks(n)*n.State())
	}
	return nil
}
