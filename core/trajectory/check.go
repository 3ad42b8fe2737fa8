package trajectory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// ErrOutput is wrapped by CheckStep's errors.
var ErrOutput = errors.New("environment wrote a value that is not allowed")

// Ended says which kinds of ends a row has, so that callers check further only when they must.
type Ended uint8

// Kinds of ends.
const (
	AnyTerminated Ended = 1 << iota
	AnyTruncated
)

// CheckStep checks everything that Step(t) wrote under an autoreset mode: rewards, infos and observations are finite (final_obs and AtEnd
// values only where an episode has ended), flags are 0 or 1, every mask has a legal action. It clears truncated where terminated is set, copies
// values that an environment writes once for a group to all agents of the group, and reports which ends there were. The error wraps ErrOutput;
// env is the index within the block of the environment at fault, or -1. It does not allocate unless it fails.
func (t Trajectory) CheckStep(row int, mode hostabi.Autoreset) (ended Ended, env int, err error) {
	ShareOutcome(t, row)
	if ended, env, err = t.checkStep(row, mode); err != nil {
		env, err = t.Schema.blame(env, err)
	}
	return ended, env, err
}

// ShareOutcome copies values that an environment writes once for a group in a step to all agents of the group.
func ShareOutcome(t Trajectory, row int) {
	for _, x := range t.Schema.shared {
		if t.Schema.columns[x.column].Flags&Outcome != 0 {
			t.at(x.column, row).spread(x, t.Schema.Agents)
		}
	}
}

// CheckObs checks the observations of a row. Its results are the same as CheckStep's.
func (t Trajectory) CheckObs(row int) (env int, err error) {
	if env, err = t.checkObs(row); err != nil {
		env, err = t.Schema.blame(env, err)
	}
	return env, err
}

// blame returns the environment of a row of a step, with the agent in the error where there are several.
func (s *Schema) blame(row int, err error) (env int, told error) {
	if row < 0 || s.Agents == 1 {
		return row, err
	}
	return row / s.Agents, fmt.Errorf("%s: %w", s.Spec.Agent(row%s.Agents), err)
}

func (t Trajectory) checkStep(row int, mode hostabi.Autoreset) (ended Ended, env int, err error) {
	terminated, truncated := t.RowBytes(Terminated, row), t.RowBytes(Truncated, row)
	ended, ok := settleFlags(terminated, truncated)
	for _, c := range t.Schema.outcome {
		l := &t.Schema.columns[c]
		ok = ok && (l.Flags&AtEnd != 0 || t.finite(l, row))
	}
	ok = ok && t.blameDiscount(row) < 0
	if !ok {
		env, err = t.blameStep(row)
		return 0, env, err
	}
	if env, err = t.checkObs(row + 1); err != nil || ended == 0 {
		return ended, env, err
	}
	if env, err = t.checkEnded(t.Schema.atEnd, row, terminated, truncated); err == nil && mode == hostabi.SameStep { // other modes leave the last observation in obs
		env, err = t.checkEnded(t.Schema.final, 0, terminated, truncated)
	}
	return ended, env, err
}

// checkEnded checks a row of columns for the environments whose episode has ended by these flags.
func (t Trajectory) checkEnded(columns []uint8, row int, terminated, truncated []byte) (env int, err error) {
	for _, c := range columns {
		final, whose := t.at(c, row), &t.Schema.columns[c]
		if final.DType != hostabi.F32 {
			continue
		}
		size, dense := final.Elems*final.DType.Bytes(), final.StrideElem == final.DType.Bytes()
		for first := 0; first < len(terminated); first += 8 {
			for flags := endsFrom(terminated, truncated, first); flags != 0; flags &= flags - 1 { // each is one bit
				env := first + bits.TrailingZeros64(flags)/8
				if !t.Schema.holds(whose, env) || dense && finite(final.Data[env*final.StrideRow:][:size]) {
					continue
				}
				if i, v := final.notFinite(env); i >= 0 && !(whose.Flags&AtEnd != 0 && final.absent(env)) {
					return env, fmt.Errorf("%w: %s is %v", ErrOutput, t.Schema.elementName(c, i), v)
				}
			}
		}
	}
	return -1, nil
}

// endsFrom returns the flags of eight environments, a byte each: 1 where an episode has ended.
func endsFrom(terminated, truncated []byte, first int) (flags uint64) {
	if first+8 <= len(terminated) {
		return binary.LittleEndian.Uint64(terminated[first:]) | binary.LittleEndian.Uint64(truncated[first:])
	}
	for i := first; i < len(terminated); i++ {
		flags |= uint64(terminated[i]|truncated[i]) << (8 * (i - first))
	}
	return flags
}

func (t Trajectory) checkObs(row int) (env int, err error) {
	for _, c := range t.Schema.observed {
		l := &t.Schema.columns[c]
		switch {
		case l.Column.Kind() == Mask:
			if env, err := t.checkMask(c, row); err != nil {
				return env, err
			}
		case l.Column == Active:
			for _, x := range t.Schema.always {
				t.row(l, row).fill(x, t.Schema.Agents, 1)
			}
			if env := notFlag(t.row(l, row).Data); env >= 0 {
				return env, fmt.Errorf("%w: %v is %d, want 0 or 1", ErrOutput, l.Column, t.row(l, row).Data[env])
			}
		case !t.finite(l, row):
			return blameObs(t, l, row)
		}
	}
	return -1, nil
}

// notFlag returns the place of the first byte that is neither 0 nor 1; -1 if there is none.
func notFlag(flags []byte) int {
	return slices.IndexFunc(flags, func(b byte) bool { return b > 1 })
}

// settleFlags checks one row of flags and makes terminated win over truncated.
func settleFlags(terminated, truncated []byte) (ended Ended, ok bool) {
	le := binary.LittleEndian
	var anyTerm, anyTrunc uint64
	i := 0
	for ; i+8 <= len(terminated); i += 8 {
		term, trunc := le.Uint64(terminated[i:]), le.Uint64(truncated[i:])
		anyTerm |= term
		anyTrunc |= trunc
		if term&trunc != 0 {
			le.PutUint64(truncated[i:], trunc&^term)
		}
	}
	for ; i < len(terminated); i++ {
		anyTerm |= uint64(terminated[i])
		anyTrunc |= uint64(truncated[i])
		truncated[i] &^= terminated[i]
	}
	const flags = 0x0101010101010101
	if anyTerm != 0 {
		ended |= AnyTerminated
	}
	if anyTrunc != 0 {
		ended |= AnyTruncated
	}
	return ended, (anyTerm|anyTrunc)&^flags == 0
}

// finite reports whether no float32 in b is NaN or infinite. Two at a time: adding one to an exponent of all
// ones carries into the sign bit.
func finite(b []byte) bool {
	const exponent, one, sign = 0x7f8000007f800000, 0x0080000000800000, 0x8000000080000000
	le := binary.LittleEndian
	var bad uint64
	for ; len(b) >= 32; b = b[32:] {
		bad |= le.Uint64(b)&exponent + one
		bad |= le.Uint64(b[8:])&exponent + one
		bad |= le.Uint64(b[16:])&exponent + one
		bad |= le.Uint64(b[24:])&exponent + one
	}
	for ; len(b) >= 4; b = b[4:] {
		bad |= uint64(le.Uint32(b))&0x7f800000 + 0x00800000
	}
	return bad&sign == 0
}

// finite reports whether no element of a row is NaN or infinite.
func (t *Trajectory) finite(l *Layout, row int) bool {
	if l.DType != hostabi.F32 {
		return true
	}
	if l.group == everyGroup || t.Schema.groups == nil {
		return finite(t.Mem[l.Offset+row*l.StrideT:][:l.RowBytes])
	}
	m := t.row(l, row)
	for r := range m.Rows {
		if !t.Schema.holds(l, r) {
			continue
		}
		if i, _ := m.notFinite(r); i >= 0 {
			return false
		}
	}
	return true
}

// checkMask checks that each element of an action has a legal value.
func (t *Trajectory) checkMask(column uint8, row int) (env int, err error) {
	mask, c := t.at(column, row), t.Schema.columns[column].Column
	for i := range t.Schema.actions {
		if a := &t.Schema.actions[i]; a.masked && a.mask == column && a.multiple {
			return checkParts(t, &t.Schema.columns[column], &a.tensor, mask)
		}
	}
	for env := range mask.Rows {
		if !t.Schema.holds(&t.Schema.columns[column], env) {
			continue
		}
		if err := legalWithin(mask, env, 0, mask.Elems); err != nil {
			return env, fmt.Errorf("%w: %v %w", ErrOutput, c, err)
		}
	}
	return -1, nil
}

// blameDiscount returns the first environment whose discount is not one, -1 if there is none.
func (t Trajectory) blameDiscount(row int) int {
	l := t.Schema.find(Discount)
	if l == nil {
		return -1
	}
	m := t.row(l, row)
	values := m.Float32()
	for env := range m.Rows {
		if d := values[env*m.StrideRow/4]; !(d >= 0 && d <= 1) {
			return env
		}
	}
	return -1
}

// checkParts is the same for an action of several elements, whose masks follow each other.
func checkParts(t *Trajectory, l *Layout, action *hostabi.Tensor, mask Matrix) (env int, err error) {
	for env := range mask.Rows {
		if !t.Schema.holds(l, env) {
			continue
		}
		first := 0
		for part := 0; first < mask.Elems; part++ {
			n := action.Count(part)
			if err := legalWithin(mask, env, first, n); err != nil {
				return env, fmt.Errorf("%w: %v, for element %d of the action, %w", ErrOutput, l.Column, part, err)
			}
			first += n
		}
	}
	return -1, nil
}

// Errors of masks.
var (
	errNoLegal = errors.New("has no legal action")
	errNotFlag = errors.New("holds a value other than 0 and 1")
)

// legalWithin checks n elements of a mask from first on.
func legalWithin(mask Matrix, env, first, n int) error {
	var any byte
	for a := first; a < first+n; a++ {
		any |= mask.Data[env*mask.StrideRow+a*mask.StrideElem]
	}
	switch any {
	case 0:
		return errNoLegal
	case 1:
		return nil
	}
	return errNotFlag
}

// blameStep finds the error that CheckStep has seen in a row of rewards and flags.
func (t Trajectory) blameStep(row int) (env int, err error) {
	for env := range t.Schema.Rows() {
		for _, c := range t.Schema.outcome {
			l, m := &t.Schema.columns[c], t.at(c, row)
			if l.Flags&AtEnd != 0 || !t.Schema.holds(l, env) {
				continue
			}
			if m.DType == hostabi.F32 {
				if i, v := m.notFinite(env); i >= 0 {
					return env, fmt.Errorf("%w: %s is %v", ErrOutput, t.Schema.elementName(c, i), v)
				}
			} else if v := m.Data[env*m.StrideRow]; v > 1 {
				return env, fmt.Errorf("%w: %v is %d, want 0 or 1", ErrOutput, l.Column, v)
			}
		}
	}
	if env := t.blameDiscount(row); env >= 0 {
		m := t.Row(Discount, row)
		return env, fmt.Errorf("%w: %v is %v, want 0 to 1", ErrOutput, Discount, m.Float32()[env*m.StrideRow/4])
	}
	return -1, fmt.Errorf("%w: reward or flags changed while they were read", ErrOutput)
}

// elementName returns the name of an element of a column for messages.
func (s *Schema) elementName(column uint8, elem int) string {
	switch l := &s.columns[column]; {
	case l.Column.Kind() == Info:
		return fmt.Sprintf("%v %q", l.Column, figureName(&s.Spec.All(hostabi.RoleInfo)[l.Column.Index()], elem))
	case l.Flags&Final != 0:
		return fmt.Sprintf("%v element %d, of the last observation of an episode,", l.Column, elem)
	default:
		return l.Column.String()
	}
}

func blameObs(t Trajectory, l *Layout, row int) (env int, err error) {
	obs, c := t.row(l, row), l.Column
	for env := range obs.Rows {
		if !t.Schema.holds(l, env) {
			continue
		}
		if i, v := obs.notFinite(env); i >= 0 {
			return env, fmt.Errorf("%w: observation%s element %d is %v", ErrOutput, c.suffix(), i, v)
		}
	}
	return -1, fmt.Errorf("%w: observation%s %d changed while it was read", ErrOutput, c.suffix(), row)
}

// notFinite returns the first element of a row that is NaN or infinite; -1 if there is none.
func (m *Matrix) notFinite(row int) (elem int, value float32) {
	const exponent = 0x7f800000
	for i, at := 0, row*m.StrideRow; i < m.Elems; i, at = i+1, at+m.StrideElem {
		if v := binary.LittleEndian.Uint32(m.Data[at:]); v&exponent == exponent {
			return i, math.Float32frombits(v)
		}
	}
	return -1, 0
}
