package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// Input is a tensor that enters the network, with the preparation of its elements. Nodes read it under its path.
// Whatever its elements are, they enter as float32.
type Input struct {
	// Path names the observation: that of its tensor, or obs where the environment has only one without a path. The last
	// reward and the last action have the names of their sources, further actions Numbered ones.
	Path  string `json:"path"`
	Shape []int  `json:"shape"` // of one frame, as it is stored
	Norm  Norm   `json:"norm,omitempty"`
	DType string `json:"dtype,omitempty"` // of the stored elements, such as u8; empty means f32
	From  Source `json:"from,omitempty"`
	// Learned is for the last reward: it is the reward that the environment's wrappers have shaped. Else, as in descriptions of earlier
	// versions, it is the environment's own.
	Learned bool `json:"learned,omitempty"`
	// Stack is how many frames enter, the current one last; 0 means 1. Frames before an episode's first are copies of it.
	// The frames of a picture are next to each other in its last axis, others one after the other.
	Stack int `json:"stack,omitempty"`
	// Choices is how many values each element has, for OneHot; a single number is that of all elements.
	Choices []int   `json:"choices,omitempty"`
	Start   int     `json:"start,omitempty"` // the first of the values
	Scale   float32 `json:"scale,omitempty"` // for Scaled
	CHW     bool    `json:"chw,omitempty"`   // a picture that is stored as [channels][height][width]; it enters as HWC
}

// Norm is how an input's elements become numbers.
type Norm string

// Norms. Without one an element enters as the number that it is.
const (
	Running Norm = "running" // clamp((x-mean)*scale, -ObsClip, ObsClip) with the statistics of the weights
	Scaled  Norm = "scale"   // x times Input.Scale
	OneHot  Norm = "onehot"  // for each element as many numbers as it has values: 1 for its value, 0 for the others
)

// Source is where an input comes from.
type Source string

// Sources. Without one an input is an observation. In an episode's first row there is no last action and no last reward:
// they enter as zeros.
const (
	LastAction   Source = "last_action"     // as the policy has chosen it
	LastExecuted Source = "executed_action" // as the environment has taken it, in its own units
	LastReward   Source = "last_reward"
)

// ObsClip bounds normalised observations.
const ObsClip = 10

// MaxStack bounds the frames of an input.
const MaxStack = 64

// Frames returns how many frames enter.
func (in *Input) Frames() int { return max(in.Stack, 1) }

// lag returns how many rows before the current one a frame lies.
func (in *Input) lag(frame int) int {
	back := in.Frames() - 1 - frame
	if in.From != "" {
		back++
	}
	return back
}

// Type returns the dtype of the stored elements, 0 for a dtype that no input has.
func (in *Input) Type() hostabi.DType {
	if in.DType == "" {
		return hostabi.F32
	}
	for d := hostabi.U8; d <= hostabi.Bool; d++ {
		if d.Bytes() > 0 && d.String() == in.DType {
			return d
		}
	}
	return 0
}

// count returns the number of values of an element.
func (in *Input) count(i int) int {
	if len(in.Choices) == 1 {
		return in.Choices[0]
	}
	return in.Choices[i]
}

// values returns how many values all elements of a frame have together.
func (in *Input) values() int {
	sum := 0
	for i := range layer.Elems(in.Shape) {
		sum += in.count(i)
	}
	return sum
}

// Entered returns the shape that nodes read.
func (in *Input) Entered() []int {
	k := in.Frames()
	switch {
	case in.Norm == OneHot:
		return []int{k * in.values()}
	case in.CHW && len(in.Shape) == 3:
		return []int{in.Shape[1], in.Shape[2], k * in.Shape[0]}
	case k == 1:
		return in.Shape
	case len(in.Shape) == 3:
		return []int{in.Shape[0], in.Shape[1], k * in.Shape[2]}
	}
	return []int{k * layer.Elems(in.Shape)}
}

// validate reports the first thing that is wrong with an input.
func (in *Input) validate() error {
	elems := layer.Elems(in.Shape)
	var reason string
	switch {
	case in.Path == "" || elems < 1:
		reason = "no path or no elements"
	case in.Type() == 0:
		reason = fmt.Sprintf("dtype %q", in.DType)
	case !slices.Contains([]Norm{"", Running, Scaled, OneHot}, in.Norm):
		reason = "an unknown norm"
	case !slices.Contains([]Source{"", LastAction, LastExecuted, LastReward}, in.From):
		reason = fmt.Sprintf("it comes from %q", in.From)
	case in.Learned && in.From != LastReward:
		reason = "it is no reward to learn from"
	case in.Stack < 0 || in.Stack > MaxStack:
		reason = fmt.Sprintf("%d frames, at most %d", in.Stack, MaxStack)
	case in.From != "" && in.Stack > 1:
		reason = "what was last is one frame"
	case in.From != "" && in.From != LastReward && in.Norm == Running:
		reason = "a last action has no statistics"
	case in.CHW && len(in.Shape) != 3:
		reason = "a picture has three axes"
	case in.Norm == OneHot && len(in.Choices) != 1 && len(in.Choices) != elems:
		reason = fmt.Sprintf("numbers of values for %d elements of %d", len(in.Choices), elems)
	case slices.ContainsFunc(in.Choices, func(n int) bool { return n < 1 || n > layer.MaxElems/elems }):
		reason = "an element without values, or with too many"
	case layer.Elems(in.Entered()) == 0:
		reason = "too many elements"
	default:
		return nil
	}
	return fmt.Errorf("input %q of shape %v with norm %q: %s", in.Path, in.Shape, in.Norm, reason)
}

// String describes an input on one line.
func (in *Input) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "input %s %v %s", in.Path, in.Shape, in.Norm)
	add := func(set bool, format string, args ...any) {
		if set {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(in.Norm == Scaled, "%g", in.Scale)
	add(len(in.Choices) > 0, "of %v from %d", in.Choices, in.Start)
	add(in.Type() != hostabi.F32, "%s", in.DType)
	add(in.CHW, "chw")
	add(in.Frames() > 1, "stack %d", in.Frames())
	add(in.From != "", "from %s", in.From)
	add(in.Learned, "learned")
	return strings.TrimSpace(b.String())
}

// Past returns how many rows before a block's first one the network reads.
func (n *Network) Past() int {
	rows := 0
	for i := range n.Inputs {
		rows = max(rows, n.Inputs[i].lag(0))
	}
	return rows
}

// Obs returns the number of elements of a row that enter.
func (n *Network) Obs() int {
	sum := 0
	for i := range n.Inputs {
		sum += layer.Elems(n.Inputs[i].Entered())
	}
	return sum
}

// Stats returns the number of elements that have running statistics, in the order of the inputs.
func (n *Network) Stats() int {
	sum := 0
	for i := range n.Inputs {
		if n.Inputs[i].Norm == Running {
			sum += layer.Elems(n.Inputs[i].Shape)
		}
	}
	return sum
}

// NormalizeObs reports whether observations are normalised by the statistics of the weights.
func (n *Network) NormalizeObs() bool { return n.Stats() > 0 }

// Pixels reports whether the network reads one picture of bytes, stacked or not, whose elements enter times PixelScale:
// a backend can keep such rows as bytes.
func (n *Network) Pixels() bool {
	in := &n.Inputs[0]
	return len(n.Inputs) == 1 && in.Type() == hostabi.U8 && len(in.Shape) == 3 && !in.CHW && in.From == "" &&
		(in.Norm == "" || in.Norm == Scaled)
}

// PixelScale returns what a byte of the picture is multiplied with.
func (n *Network) PixelScale() float32 {
	if n.Inputs[0].Norm == Scaled {
		return n.Inputs[0].Scale
	}
	return 1
}

// Plain reports whether observations enter just as they are stored, but for running statistics: one input of float32
// without a stack.
func (n *Network) Plain() bool {
	in := &n.Inputs[0]
	return len(n.Inputs) == 1 && in.Type() == hostabi.F32 && in.Frames() == 1 && !in.CHW && in.From == "" &&
		(in.Norm == "" || in.Norm == Running)
}
