package ppo

import (
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Samples holds the small columns of a dataset in row order (t*E + e), read once and checked, so that a guest
// that rewrites its window afterwards changes nothing that is used as an index. Rows that are not valid are zero.
// The zero value is ready; its slices are reused by the next Read.
type Samples struct {
	Action         []int32
	LogProb, Value []float32
	Mask           []byte   // [T*E][Actions], 0 or 1; nil without a mask
	Valid          []uint32 // rows that belong to an episode, ascending
}

// Read copies the columns of a checked dataset. A stored action that does not exist or that its mask forbids, a
// mask without a legal action and a value or log-probability that is not finite are each a *RowError.
func (s *Samples) Read(d *policy.Dataset, n *policy.Network) error {
	rows, envs, width, actions := d.Rows(), d.Envs(), d.BlockEnvs(), n.Actions()
	s.Action, s.LogProb, s.Value = zeroed(s.Action, rows), zeroed(s.LogProb, rows), zeroed(s.Value, rows)
	s.Mask = s.Mask[:0]
	if d.HasMask() {
		s.Mask = zeroed(s.Mask, rows*actions)
	}
	for i, b := range d.Blocks {
		for t := range d.Steps() {
			if err := s.readStep(d, actions, b, t*width, t*envs+i*width); err != nil {
				return err
			}
		}
	}
	s.listValid(d)
	return nil
}

// listValid notes the rows that belong to an episode.
func (s *Samples) listValid(d *policy.Dataset) {
	n := d.BlockEnvs()
	s.Valid = s.Valid[:0]
	row := uint32(0)
	for step := range d.Steps() {
		for i := range d.Blocks {
			for _, valid := range d.Blocks[i].Bytes(trajectory.Valid)[step*n : step*n+n] {
				if valid != 0 {
					s.Valid = append(s.Valid, row)
				}
				row++
			}
		}
	}
}

// readStep copies one time step of a block: its rows from at on are the dataset's from row on.
func (s *Samples) readStep(d *policy.Dataset, actions int, b trajectory.Trajectory, at, row int) error {
	action, valid := b.Int32(trajectory.Action), b.Bytes(trajectory.Valid)
	logProb, value := b.Float32(trajectory.LogProb), b.Float32(trajectory.Value)
	for j := at; j < at+d.BlockEnvs(); j, row = j+1, row+1 {
		if valid[j] == 0 {
			continue
		}
		s.Action[row], s.LogProb[row], s.Value[row] = action[j], logProb[j], value[j]
		switch {
		case s.Action[row] < 0 || int(s.Action[row]) >= actions:
			return d.RowError(row, trajectory.Action, policy.ErrActionRange)
		case !finite(s.LogProb[row]):
			return d.RowError(row, trajectory.LogProb, policy.ErrNotFinite)
		case !finite(s.Value[row]):
			return d.RowError(row, trajectory.Value, policy.ErrNotFinite)
		}
		if len(s.Mask) == 0 {
			continue
		}
		if err := s.readMask(d, actions, b, row, j); err != nil {
			return err
		}
	}
	return nil
}

func (s *Samples) readMask(d *policy.Dataset, actions int, b trajectory.Trajectory, row, j int) error {
	l, _ := b.Schema.Layout(trajectory.Mask)
	from := b.Bytes(trajectory.Mask)[j/l.Envs*l.StrideT+j%l.Envs*l.StrideEnv:]
	to := s.Mask[row*actions : (row+1)*actions]
	legal := byte(0)
	for a := range to {
		if from[a*l.StrideElem] != 0 {
			to[a], legal = 1, 1
		}
	}
	if legal == 0 {
		return d.RowError(row, trajectory.Mask, policy.ErrNoLegalAction)
	}
	if to[s.Action[row]] == 0 {
		return d.RowError(row, trajectory.Action, policy.ErrActionRange)
	}
	return nil
}

// Masks returns the masks of rows lo to hi, or nothing without a mask.
func (s *Samples) Masks(lo, hi int) []byte {
	if len(s.Mask) == 0 {
		return nil
	}
	actions := len(s.Mask) / len(s.Action)
	return s.Mask[lo*actions : hi*actions]
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
	Mask      []byte    // [Rows][Actions], nil without a mask
	Action    []int32
	LogProb   []float32 // of the acting policy
	Value     []float32 // of the acting policy
	Advantage []float32 // normalised if the configuration says so
	Return    []float32
}

// Gather copies the named rows: the one copy that a learner makes of observations. It returns the number of
// bytes of observations that it copied.
func (m *Minibatch) Gather(d *policy.Dataset, n *policy.Network, c *Config, s *Samples, t *Targets, rows []uint32) int {
	m.Rows = len(rows)
	obs := n.Obs()
	m.Obs, m.Mask = sized(m.Obs, m.Rows*obs), m.Mask[:0]
	m.Action, m.LogProb, m.Value = sized(m.Action, m.Rows), sized(m.LogProb, m.Rows), sized(m.Value, m.Rows)
	m.Advantage, m.Return = sized(m.Advantage, m.Rows), sized(m.Return, m.Rows)
	for i, row := range rows {
		m.Action[i], m.LogProb[i], m.Value[i] = s.Action[row], s.LogProb[row], s.Value[row]
		m.Advantage[i], m.Return[i] = t.Advantage[row], t.Return[row]
		m.Mask = append(m.Mask, s.Masks(int(row), int(row)+1)...)
	}
	d.GatherObs(n, rows, m.Obs)
	if c.NormalizeAdvantage {
		NormalizeAdvantage(m.Advantage)
	}
	return 4 * m.Rows * obs
}

// NormalizeAdvantage subtracts the mean and divides by the sample standard deviation plus 1e-8. A single element
// is left as it is.
func NormalizeAdvantage(advantage []float32) {
	n := float64(len(advantage))
	if n < 2 {
		return
	}
	var sum, squares float64
	for _, a := range advantage {
		sum += float64(a)
	}
	mean := sum / n
	for _, a := range advantage {
		squares += (float64(a) - mean) * (float64(a) - mean)
	}
	scale := 1 / (math.Sqrt(squares/(n-1)) + 1e-8)
	for i, a := range advantage {
		advantage[i] = float32((float64(a) - mean) * scale)
	}
}

// sized returns a slice of n elements with undefined contents, in the memory of s where it is large enough.
func sized[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }

func finite(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }
