package export

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Format is a kind of file.
type Format string

// Formats.
const (
	NumPy       Format = "numpy"       // .npz with its reader in Python, which needs NumPy alone
	Safetensors Format = "safetensors" // the weights by name, the network as metadata
	ONNX        Format = "onnx"        // opset 17: obs and mask to action, logits and value
)

// codec is how a format is written and computed from.
type codec struct {
	suffix string
	encode func(p *Policy) ([]byte, error)
	// open returns what the file computes: logits [rows][actions] and values [rows] of observations [rows][elements].
	open func(file []byte) (model, error)
}

type model func(obs []float32, rows int) (logits, values []float64, err error)

var codecs = map[Format]codec{
	NumPy:       {".npz", encodeNumPy, openNumPy},
	Safetensors: {".safetensors", encodeTensors, openTensors},
	ONNX:        {".onnx", encodeONNX, openONNX},
}

// Formats lists the formats.
func Formats() []Format { return slices.Sorted(maps.Keys(codecs)) }

// Suffix is what the names of files of the format end in, with its dot.
func (f Format) Suffix() string { return codecs[f].suffix }

// Policy is what is written. It is not changed.
type Policy struct {
	Network policy.Network
	Weights policy.Weights
	Masked  bool              // the environment says which actions are legal
	About   map[string]string // where it comes from, such as run and env_steps
}

// Encode returns the file of a valid policy. policy.ErrUnsupported names a node that the format has no words for.
func Encode(f Format, p *Policy) ([]byte, error) {
	c, ok := codecs[f]
	if !ok {
		return nil, fmt.Errorf("no format %q: there are %v", f, Formats())
	}
	w := p.Network.Weights()
	if err := w.Check(&p.Weights); err != nil {
		return nil, err
	}
	return c.encode(p)
}

// Samples are observations and what the host has computed of them.
type Samples struct {
	Rows    int
	Obs     []float32 // [Rows][elements]
	Mask    []byte    // [Rows][actions], 1 where an action is legal; empty without masks
	Action  []int32   // the most probable legal one
	LogProb []float32 // of Action
	Value   []float32
}

// Add appends the rows of a request that was answered greedily.
func (s *Samples) Add(r *policy.Request) {
	m, mask := r.Obs[0], r.ActionMask(0)
	obs := m.Float32()
	for row := range m.Rows {
		for e := range m.Elems {
			s.Obs = append(s.Obs, obs[(row*m.StrideRow+e*m.StrideElem)/4])
		}
	}
	for row := range mask.Rows {
		for e := range mask.Elems {
			s.Mask = append(s.Mask, mask.Data[row*mask.StrideRow+e*mask.StrideElem])
		}
	}
	s.Rows += m.Rows
	s.Action, s.LogProb, s.Value = append(s.Action, r.Action[0].Int32()[:m.Rows]...), append(s.LogProb, r.LogProb...), append(s.Value, r.Value...)
}

// Tolerances of Compare.
const (
	tolerance = 1e-5 // of a number x: times max(1, |x|)
	tie       = 1e-4 // two logits that are nearer may change places
)

// ErrDiffers is wrapped by Compare where the file computes something else than the host.
var ErrDiffers = errors.New("the file does not compute what the host does")

// Compare computes the samples from the file and returns the largest difference of a log-probability or value x from the
// host's, divided by max(1, |x|). More than 1e-5, or another most probable action where the best two differ by more than
// 1e-4, is ErrDiffers.
func Compare(f Format, file []byte, s *Samples) (largest float64, err error) {
	compute, err := codecs[f].open(file)
	if err != nil {
		return 0, fmt.Errorf("%s file: %w", f, err)
	}
	logits, values, err := compute(s.Obs, s.Rows)
	if err != nil {
		return 0, fmt.Errorf("%s file: %w", f, err)
	}
	if len(values) != s.Rows || len(logits) == 0 || len(logits)%s.Rows != 0 {
		return 0, fmt.Errorf("%w: %d logits and %d values of %d rows", ErrDiffers, len(logits), len(values), s.Rows)
	}
	actions := len(logits) / s.Rows
	if len(s.Mask) > 0 && len(s.Mask) != len(logits) || int(slices.Max(s.Action)) >= actions {
		return 0, fmt.Errorf("%w: it has %d actions", ErrDiffers, actions)
	}
	for r := range s.Rows {
		row := logits[r*actions : (r+1)*actions]
		if len(s.Mask) > 0 {
			hide(row, s.Mask[r*actions:(r+1)*actions])
		}
		best, lead := mode(row)
		if best != int(s.Action[r]) && lead > tie {
			return largest, fmt.Errorf("%w: action %d instead of %d in row %d", ErrDiffers, best, s.Action[r], r)
		}
		for _, x := range [][2]float64{
			{row[s.Action[r]] - logSum(row), float64(s.LogProb[r])}, {values[r], float64(s.Value[r])},
		} {
			d := math.Abs(x[0]-x[1]) / max(1, math.Abs(x[1]))
			if !(d <= tolerance) {
				return d, fmt.Errorf("%w: %g instead of %g in row %d", ErrDiffers, x[0], x[1], r)
			}
			largest = max(largest, d)
		}
	}
	return largest, nil
}

// hide gives illegal actions no probability.
func hide(logits []float64, mask []byte) {
	for i, legal := range mask {
		if legal == 0 {
			logits[i] = math.Inf(-1)
		}
	}
}

// mode returns the first of the largest numbers, and how far the next one is behind.
func mode(x []float64) (best int, lead float64) {
	lead = math.Inf(1)
	for i := range x {
		if x[i] > x[best] {
			best = i
		}
	}
	for i := range x {
		if i != best {
			lead = min(lead, x[best]-x[i])
		}
	}
	return best, lead
}

func logSum(x []float64) float64 {
	best, _ := mode(x)
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - x[best])
	}
	return x[best] + math.Log(sum)
}
