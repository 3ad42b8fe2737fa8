package hostabi

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tensor is one tensor of one environment, or of one agent with TensorPerAgent: a TensorDesc with its strings and values.
type Tensor struct {
	Role        Role
	Index       uint16
	Group       uint16
	DType       DType
	Rank        uint8
	Flags       TensorFlags // without an axis of time, Describe adds that of the role
	Shape       [MaxRank]uint32
	Low, High   float32
	N           uint32
	Start       int32
	Pair        uint16
	Scale       float32
	Path, Doc   string
	Lows, Highs []float32 // of each element of a Box; nil = Low and High
	Counts      []uint32  // values of each element of a MultiDiscrete tensor; nil = N
}

// Elems returns the number of elements, 1 for a scalar, or 0 if the product exceeds limit or the rank is not allowed. The
// check cannot overflow.
func (t *Tensor) Elems(limit int) int {
	if int(t.Rank) > MaxRank {
		return 0
	}
	n := 1
	for _, dim := range t.Shape[:t.Rank] {
		if dim == 0 || uint64(dim) > uint64(limit/n) {
			return 0
		}
		n *= int(dim)
	}
	return n
}

// Discrete reports whether elements are numbers of choices.
func (t *Tensor) Discrete() bool { return t.N > 0 || len(t.Counts) > 0 }

// Image reports whether the tensor is a picture, whose elements are dense within a row whatever the layout of others: it
// says so, or has rank 3 and u8.
func (t *Tensor) Image() bool {
	return t.Flags&(TensorImageHWC|TensorImageCHW) != 0 || t.Rank == 3 && t.DType == U8
}

// Count returns how many values element i of a discrete tensor has.
func (t *Tensor) Count(i int) int {
	if len(t.Counts) > 0 {
		return int(t.Counts[i])
	}
	return int(t.N)
}

// Choices returns how many values all elements of a discrete tensor have together: the length of its mask. It is 0 for a Box.
func (t *Tensor) Choices() int {
	n := 0
	for _, c := range t.Counts {
		n += int(c)
	}
	return n + int(t.N)*t.Elems(MaxTensorElems)
}

// Bounds returns the bounds of element i of a Box, infinite if it has none.
func (t *Tensor) Bounds(i int) (low, high float32) {
	low, high = t.Low, t.High
	if len(t.Lows) > 0 {
		low, high = t.Lows[i], t.Highs[i]
	}
	if t.Flags&TensorNoLow != 0 {
		low = float32(math.Inf(-1))
	}
	if t.Flags&TensorNoHigh != 0 {
		high = float32(math.Inf(1))
	}
	return low, high
}

// Limits returns the least and the greatest value of element i: the bounds of a Box, or the first and the last choice.
func (t *Tensor) Limits(i int) (low, high float64) {
	if t.Discrete() {
		return float64(t.Start), float64(int(t.Start) + t.Count(i) - 1)
	}
	l, h := t.Bounds(i)
	return float64(l), float64(h)
}

// Space returns the tensor's space in Gymnasium's words, such as Discrete(2) or Box[4]; an element type follows if it is
// not the usual one. For an info it is the way from an episode's figures to one, such as mean[3].
func (t *Tensor) Space() string {
	name, usual := "Box", F32
	switch {
	case (t.Role == RoleInfo || t.Role == RoleResetInfo) && t.Rank == 0:
		return t.gathered()
	case t.Role == RoleInfo, t.Role == RoleResetInfo:
		return t.gathered() + dims(t.Shape[:min(int(t.Rank), MaxRank)])
	case len(t.Counts) > 0:
		name, usual = "MultiDiscrete"+dims(t.Counts), I32
	case t.N > 0 && t.Flags&TensorBinary != 0:
		name, usual = "MultiBinary"+dims(t.Shape[:t.Rank]), I32
	case t.N > 0 && t.Rank > 0:
		name, usual = "MultiDiscrete"+dims(t.Shape[:t.Rank])+" of "+strconv.Itoa(int(t.N)), I32
	case t.N > 0:
		name, usual = "Discrete("+strconv.Itoa(int(t.N))+")", I32
	default:
		name += dims(t.Shape[:min(int(t.Rank), MaxRank)])
	}
	if t.Discrete() && t.Start != 0 {
		name += " from " + strconv.Itoa(int(t.Start))
	}
	if t.DType != usual {
		name += " of " + t.DType.String()
	}
	return name
}

// gathered names the way to gather.
func (t *Tensor) gathered() string {
	switch {
	case t.Flags&TensorEpisode != 0:
		return "at the end"
	case t.Flags&TensorSum != 0:
		return "sum"
	case t.Flags&TensorMean != 0:
		return "mean"
	case t.Flags&TensorMax != 0:
		return "max"
	case t.Flags&TensorMin != 0:
		return "min"
	}
	return "last"
}

// dims writes numbers as [2,3].
func dims(n []uint32) string {
	list := make([]string, len(n))
	for i, dim := range n {
		list[i] = strconv.FormatUint(uint64(dim), 10)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// Equal reports whether two tensors have the same layout and meaning. Their documentation and index do not matter.
func (t *Tensor) Equal(o *Tensor) bool {
	return t.Role == o.Role && t.Group == o.Group && t.DType == o.DType && t.Rank == o.Rank && t.timed() == o.timed() && t.Shape == o.Shape &&
		t.Low == o.Low && t.High == o.High && t.N == o.N && t.Start == o.Start && t.Pair == o.Pair && t.Scale == o.Scale && t.Path == o.Path &&
		slices.Equal(t.Lows, o.Lows) && slices.Equal(t.Highs, o.Highs) && slices.Equal(t.Counts, o.Counts)
}

// roleTime is the axis of time of each role, 0 where there is no role of that number.
var roleTime = [lastRole + 1]TensorFlags{
	RoleAction: TensorAtT, RoleObservation: TensorAtT1, RoleReward: TensorAtT, RoleTerminated: TensorAtT, RoleTruncated: TensorAtT,
	RoleActionMask: TensorAtT1, RoleFinalObservation: TensorNoTime, RoleActive: TensorAtT1, RoleInfo: TensorAtT, RoleDiscount: TensorAtT,
	RoleResetParam: TensorNoTime, RoleResetInfo: TensorAtT1,
}

// timed returns the flags with an axis of time.
func (t *Tensor) timed() TensorFlags {
	if t.Flags&TensorTime == 0 && t.Role <= lastRole {
		return t.Flags | roleTime[t.Role]
	}
	return t.Flags
}
