package ppo

import (
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Actions are the actions of one action tensor in some rows. Missing parts are empty.
type Actions struct {
	policy.ActionSize
	Index []int32   // [rows][Size] of discrete elements, from 0
	Raw   []float32 // [rows][Size] of a Box, as its distribution drew them
	Mask  []byte    // [rows][Choices], 0 or 1
}

// reset makes room for rows, all zero.
func (a *Actions) reset(rows int, size policy.ActionSize, masked bool) {
	a.ActionSize = size
	a.Index, a.Raw, a.Mask = a.Index[:0], a.Raw[:0], a.Mask[:0]
	if size.Continuous {
		a.Raw = zeroed(a.Raw, rows*size.Size)
	} else {
		a.Index = zeroed(a.Index, rows*size.Size)
	}
	if masked {
		a.Mask = zeroed(a.Mask, rows*size.Choices)
	}
}

// add appends rows lo to hi of others.
func (a *Actions) add(from *Actions, lo, hi int) {
	a.ActionSize = from.ActionSize
	if a.Continuous {
		a.Raw = append(a.Raw, from.Raw[lo*a.Size:hi*a.Size]...)
	} else {
		a.Index = append(a.Index, from.Index[lo*a.Size:hi*a.Size]...)
	}
	a.Mask = append(a.Mask, from.Masks(lo, hi)...)
}

// Masks returns the masks of rows lo to hi, or nothing without a mask.
func (a *Actions) Masks(lo, hi int) []byte {
	if len(a.Mask) == 0 {
		return nil
	}
	return a.Mask[lo*a.Choices : hi*a.Choices]
}

// Row writes the action of a row to action, as head.Dist takes it.
func (a *Actions) Row(row int, action []float64) {
	for i := range action {
		if a.Continuous {
			action[i] = float64(a.Raw[row*len(action)+i])
		} else {
			action[i] = float64(a.Index[row*len(action)+i])
		}
	}
}

// Samples holds the small columns of a dataset in row order (t*E + e), read once and checked, so that a guest
// that rewrites its window afterwards changes nothing that is used as an index. Rows that are not valid are zero.
// The zero value is ready; its slices are reused by the next Read.
type Samples struct {
	Actions        []Actions // by action
	LogProb, Value []float32
	Valid          []uint32 // rows that are learned from, ascending: they belong to an episode and are no burn-in
	Chunked        []uint32 // of a network that keeps a state: the same rows as Dataset.Chunked has them
	Entered        []uint32 // of a network that keeps a state: Chunked with burn-in rows; see Rows

	sizes  policy.Sizes
	counts [][]int // values of each element, by action
	starts []int32 // by action
}

// Read copies the columns of a checked dataset. A stored action that does not exist or that its mask forbids, a
// flag that is neither 0 nor 1, a mask without a legal action and a value or log-probability that is not finite are each a *RowError.
func (s *Samples) Read(d *policy.Dataset, n *policy.Network) error {
	if len(s.Actions) != len(n.Policy) {
		s.Actions, s.sizes, s.counts, s.starts = make([]Actions, len(n.Policy)), n.Sizes(), nil, nil
		for i := range n.Policy {
			s.counts, s.starts = append(s.counts, n.Policy[i].Counts()), append(s.starts, n.Policy[i].Start)
		}
	}
	rows, envs, width := d.Rows(), d.Envs(), d.BlockEnvs()
	s.LogProb, s.Value = zeroed(s.LogProb, rows), zeroed(s.Value, rows)
	for i := range s.Actions {
		s.Actions[i].reset(rows, s.sizes.Actions[i], d.Blocks[0].Schema.MaskOf(i) != nil)
	}
	for i := range d.Blocks {
		for t := range d.Steps() {
			if err := s.readStep(d, i, t*width, t*envs+i*width); err != nil {
				return err
			}
		}
	}
	s.listValid(d, n)
	if n.Chunk > 0 {
		s.Entered, s.Chunked = d.Chunked(n, s.Entered[:0]), s.Chunked[:0]
		for _, row := range s.Entered {
			if !d.BurnsIn(n, row) {
				s.Chunked = append(s.Chunked, row)
			}
		}
	}
	return nil
}

// Rows returns the rows that belong to an episode, of which Valid are learned from.
func (s *Samples) Rows() []uint32 {
	if s.Entered != nil {
		return s.Entered
	}
	return s.Valid
}

// listValid notes the rows that are learned from.
func (s *Samples) listValid(d *policy.Dataset, network *policy.Network) {
	n := d.BlockEnvs()
	s.Valid = s.Valid[:0]
	row := uint32(0)
	for step := range d.Steps() {
		for i := range d.Blocks {
			for _, valid := range d.Valid(i)[step*n : step*n+n] {
				if valid != 0 && !d.BurnsIn(network, row) {
					s.Valid = append(s.Valid, row)
				}
				row++
			}
		}
	}
}

// readStep copies one time step of a block: its rows from at on are the dataset's from row on.
func (s *Samples) readStep(d *policy.Dataset, block, at, row int) error {
	b, valid := d.Blocks[block], d.Valid(block)[at:at+d.BlockEnvs()]
	for _, c := range flags {
		if i := notFlag(b.Bytes(c), valid, at); i >= 0 {
			return d.RowError(row+i, c, policy.ErrFlag)
		}
	}
	logProb, value := b.Float32(trajectory.LogProb)[at:], b.Float32(trajectory.Value)[at:]
	for i, ok := range valid {
		if ok == 0 {
			continue
		}
		s.LogProb[row+i], s.Value[row+i] = logProb[i], value[i]
		switch {
		case !finite(s.LogProb[row+i]):
			return d.RowError(row+i, trajectory.LogProb, policy.ErrNotFinite)
		case !finite(s.Value[row+i]):
			return d.RowError(row+i, trajectory.Value, policy.ErrNotFinite)
		}
	}
	for i := range s.Actions {
		if err := s.readAction(d, i, b, valid, at, row); err != nil {
			return err
		}
	}
	return nil
}

// flags are the columns of flags, without masks, that decide which rows are learned from. Active exists where agents do not always act.
var flags = [...]trajectory.Column{trajectory.Valid, trajectory.Terminated, trajectory.Truncated, trajectory.Active}

// notFlag returns the first valid row from at on whose flag is neither 0 nor 1, counted from at; -1 if there is none. The column may
// be missing.
func notFlag(column, valid []byte, at int) int {
	if column == nil {
		return -1
	}
	for i, flag := range column[at : at+len(valid)] {
		if flag > 1 && valid[i] != 0 {
			return i
		}
	}
	return -1
}

// readAction copies an action of one time step.
func (s *Samples) readAction(d *policy.Dataset, i int, b trajectory.Trajectory, valid []byte, at, row int) error {
	step := at / d.BlockEnvs()
	a, action := &s.Actions[i], b.Row(trajectory.Action.At(i), step)
	if l := b.Schema.MaskOf(i); l != nil {
		if err := a.readMasks(d, b.Row(l.Column, step), s.counts[i], l.Column, valid, row); err != nil {
			return err
		}
	}
	if a.Continuous {
		return a.readRaw(d, i, b.Row(trajectory.RawAction.At(i), step), valid, row)
	}
	values, start, size := action.Int32(), s.starts[i], a.Size
	for e, ok := range valid {
		if ok == 0 {
			continue
		}
		first := (row + e) * a.Choices
		for k, n := range s.counts[i] {
			x := values[(e*action.StrideRow+k*action.StrideElem)/4] - start
			if x < 0 || int(x) >= n || len(a.Mask) > 0 && a.Mask[first+int(x)] == 0 {
				return d.RowError(row+e, trajectory.Action.At(i), policy.ErrActionRange)
			}
			a.Index[(row+e)*size+k] = x
			first += n
		}
	}
	return nil
}

// readRaw copies the raw samples of a Box. Only the host writes them, but a weight that is not finite draws such numbers.
func (a *Actions) readRaw(d *policy.Dataset, i int, raw trajectory.Matrix, valid []byte, row int) error {
	from := raw.Float32()
	for e, ok := range valid {
		if ok == 0 {
			continue
		}
		for k := range a.Size {
			x := from[(e*raw.StrideRow+k*raw.StrideElem)/4]
			if !finite(x) {
				return d.RowError(row+e, trajectory.RawAction.At(i), policy.ErrNotFinite)
			}
			a.Raw[(row+e)*a.Size+k] = x
		}
	}
	return nil
}

// readMasks copies the masks of the environments of one block in one time step, from row on.
func (a *Actions) readMasks(d *policy.Dataset, mask trajectory.Matrix, counts []int, column trajectory.Column, valid []byte, row int) error {
	for e, ok := range valid {
		if ok == 0 {
			continue
		}
		from, at := mask.Data[e*mask.StrideRow:], 0
		to := a.Mask[(row+e)*a.Choices : (row+e+1)*a.Choices]
		for _, n := range counts {
			legal := byte(0)
			for c := at; c < at+n; c++ {
				switch from[c*mask.StrideElem] {
				case 0:
				case 1:
					to[c], legal = 1, 1
				default:
					return d.RowError(row+e, column, policy.ErrFlag)
				}
			}
			if legal == 0 {
				return d.RowError(row+e, column, policy.ErrNoLegalAction)
			}
			at += n
		}
	}
	return nil
}

// NextMinibatch cuts the next minibatch off the rows of an epoch that are still to be learned from. The n rows of an
// epoch come in ceil(n/size) parts whose sizes differ by one at most: a remainder of a few rows would be a full step
// of the optimiser as well, along the gradient of next to nothing.
func NextMinibatch(rows []uint32, size int) (minibatch, rest []uint32) {
	parts := (len(rows) + size - 1) / size
	n := (len(rows) + parts - 1) / parts
	return rows[:n], rows[n:]
}

// Minibatch is the rows of one optimiser step, dense. Gather fills it; its slices are reused.
type Minibatch struct {
	Rows      int
	Obs       []float32 // [Rows][Obs], normalised
	Actions   []Actions // by action
	LogProb   []float32 // of the acting policy
	Value     []float32 // of the acting policy
	Advantage []float32
	Return    []float32

	// Of a network that keeps a state, as Dataset.Follow has them.
	Prev  []int32
	State []float32
}

// Gather copies the named rows: the one copy that a learner makes of observations. It returns the number of
// bytes of observations that it copied.
//
// Advantages are as they are: see MomentsOf.
func (m *Minibatch) Gather(d *policy.Dataset, n *policy.Network, s *Samples, t *Targets, rows []uint32) int {
	m.Rows = len(rows)
	obs := n.Obs()
	m.Obs = sized(m.Obs, m.Rows*obs)
	m.LogProb, m.Value = sized(m.LogProb, m.Rows), sized(m.Value, m.Rows)
	if len(m.Actions) != len(s.Actions) {
		m.Actions = make([]Actions, len(s.Actions))
	}
	for k := range m.Actions {
		a := &m.Actions[k]
		a.Index, a.Raw, a.Mask = a.Index[:0], a.Raw[:0], a.Mask[:0]
		for _, row := range rows {
			a.add(&s.Actions[k], int(row), int(row)+1)
		}
	}
	m.Advantage, m.Return = sized(m.Advantage, m.Rows), sized(m.Return, m.Rows)
	for i, row := range rows {
		m.LogProb[i], m.Value[i] = s.LogProb[row], s.Value[row]
		m.Advantage[i], m.Return[i] = t.Advantage[row], t.Return[row]
	}
	d.GatherObs(n, rows, m.Obs)
	if n.Chunk > 0 {
		m.Prev, m.State = sized(m.Prev, m.Rows), sized(m.State, m.Rows*n.State())
		d.Follow(n, rows, m.Prev, m.State)
	}
	return 4 * m.Rows * obs
}

// NormalizeAdvantage subtracts the mean and divides by the sample standard deviation plus 1e-8. A single element
// is left as it is.
func NormalizeAdvantage(advantage []float32) { MomentsOf(advantage).Normalize(advantage) }

// Moments are what the advantages of a minibatch are normalised with: their mean, and the factor of their distances from it. The zero
// Moments leave them as they are.
type Moments struct{ mean, scale float64 }

// MomentsOf returns the moments of advantages; of a single one the zero Moments.
func MomentsOf(advantage []float32) Moments {
	n := float64(len(advantage))
	if n < 2 {
		return Moments{}
	}
	var sum, squares float64
	for _, a := range advantage {
		sum += float64(a)
	}
	mean := sum / n
	for _, a := range advantage {
		squares += (float64(a) - mean) * (float64(a) - mean)
	}
	return Moments{mean, 1 / (math.Sqrt(squares/(n-1)) + 1e-8)}
}

// Normalize applies the moments.
func (m Moments) Normalize(advantage []float32) {
	if m == (Moments{}) {
		return
	}
	for i, a := range advantage {
		advantage[i] = float32((float64(a) - m.mean) * m.scale)
	}
}

// sized returns a slice of n elements with undefined contents, in the memory of s where it is large enough.
func sized[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

func finite(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }
