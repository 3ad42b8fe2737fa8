package trajectory

import (
	"encoding/binary"
	"math"
)

// DrawActions writes random actions to a row: values of discrete actions are uniform over the legal ones, elements of a Box
// uniform within their bounds, and beyond a bound that is missing they are normally distributed. word returns the random
// bits of an environment, which all of its elements are made from. It does not allocate.
func (t Trajectory) DrawActions(row int, word func(env int) uint64) {
	for i := range t.Schema.actions {
		t.drawAction(i, row, word)
	}
}

// DrawActionsFrom is DrawActions where the words of all environments have been made already. A first action that is discrete, of one
// element and without a mask, the commonest, takes it a fraction of the time.
func (t Trajectory) DrawActionsFrom(row int, words []uint64) {
	for i := range t.Schema.actions {
		c := &t.Schema.actions[i]
		l := &t.Schema.columns[c.action]
		if i > 0 || !t.Schema.isPlain(c, l) {
			t.drawAction(i, row, func(env int) uint64 { return words[env] })
			continue
		}
		actions, n, start := t.row(l, row).Int32(), uint64(c.tensor.Count(0)), c.tensor.Start
		for env, word := range words[:len(actions)] {
			actions[env] = int32(word>>32*n>>32) + start
		}
	}
}

// isPlain reports whether a choice is one number per environment, contiguous and without a mask.
func (s *Schema) isPlain(c *choice, l *Layout) bool {
	return !c.masked && c.tensor.Discrete() && l.Elems == 1 && l.StrideEnv == 4 && (l.group == everyGroup || s.groups == nil)
}

// drawAction draws one action of all environments that have it.
func (t Trajectory) drawAction(i, row int, word func(env int) uint64) {
	c := &t.Schema.actions[i]
	action, mask := t.at(c.action, row), Matrix{}
	if c.masked {
		mask = t.at(c.mask, row)
	}
	agents := t.Schema.Agents
	for agent := range agents {
		if !t.Schema.holds(&t.Schema.columns[c.action], agent) {
			continue
		}
		for env := agent; env < action.Rows; env += agents {
			c.draw(action, mask, env, scrambled(word(env), i<<actionBit))
		}
	}
}

// draw writes the action of one environment.
func (c *choice) draw(action, mask Matrix, env int, word uint64) {
	to := action.Data[env*action.StrideRow:]
	if !c.tensor.Discrete() {
		for i := range action.Elems {
			x := c.point(i, scrambled(word, 2*i), scrambled(word, 2*i+1))
			binary.LittleEndian.PutUint32(to[i*action.StrideElem:], math.Float32bits(x))
		}
		return
	}
	first := 0
	for i := range action.Elems {
		n, u := c.tensor.Count(i), scrambled(word, i)>>32
		value := int(u * uint64(n) >> 32)
		if c.masked {
			value = legalOf(mask, env, first, n, u)
			first += n
		}
		binary.LittleEndian.PutUint32(to[i*action.StrideElem:], uint32(value)+uint32(c.tensor.Start))
	}
}

// legalOf returns the legal value for a random number of 32 bits, of n values whose mask begins at first.
func legalOf(mask Matrix, env, first, n int, u uint64) int {
	at := mask.Data[env*mask.StrideRow+first*mask.StrideElem:]
	legal := 0
	for a := range n {
		if at[a*mask.StrideElem] != 0 {
			legal++
		}
	}
	left := int(u * uint64(legal) >> 32)
	for a := range n {
		if at[a*mask.StrideElem] == 0 {
			continue
		}
		if left == 0 {
			return a
		}
		left--
	}
	return 0
}

// point returns an element of a Box for two random words.
func (c *choice) point(i int, a, b uint64) float32 {
	bound := func(x float32) (float64, bool) { return float64(x), !math.IsInf(float64(x), 0) }
	l, h := c.tensor.Bounds(i)
	low, below := bound(l)
	high, above := bound(h)
	uniform := float64(a>>11) * 0x1p-53
	if below && above {
		return min(h, max(l, float32(low+(high-low)*uniform)))
	}
	normal := math.Sqrt(-2*math.Log(1-uniform)) * math.Cos(2*math.Pi*float64(b>>11)*0x1p-53)
	switch {
	case below:
		return float32(low + math.Abs(normal))
	case above:
		return float32(high - math.Abs(normal))
	}
	return float32(normal)
}

// actionBit is the bit where the index of the action begins in an element number of scrambled: no action has so many elements.
const actionBit = 32

// scrambled returns the random word of an element: the environment's word for the first one, a word derived from it for others (splitmix64).
func scrambled(word uint64, element int) uint64 {
	if element == 0 {
		return word
	}
	z := word + uint64(element)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// FirstLegal sets the action of an environment in a row to one that its masks allow: the first legal value of each
// element. Actions without a mask stay as they are.
func (t Trajectory) FirstLegal(env, row int) {
	for i := range t.Schema.actions {
		c := &t.Schema.actions[i]
		if !c.masked || !t.Schema.holds(&t.Schema.columns[c.action], env) {
			continue
		}
		action, mask, first := t.at(c.action, row), t.at(c.mask, row), 0
		for k := range action.Elems {
			n := c.tensor.Count(k)
			value := legalOf(mask, env, first, n, 0)
			binary.LittleEndian.PutUint32(action.Data[env*action.StrideRow+k*action.StrideElem:], uint32(value)+uint32(c.tensor.Start))
			first += n
		}
	}
}

// Execute copies the actions of a row to the executed actions, in blocks that have both. It does not allocate.
func (t Trajectory) Execute(row int) {
	for i := range t.Schema.actions {
		l := t.Schema.find(Executed.At(i))
		if l == nil {
			return
		}
		copy(t.row(l, row).Data, t.Row(Action.At(i), row).Data)
	}
}

// ExecuteOf is Execute for one environment, or agent.
func (t Trajectory) ExecuteOf(env, row int) {
	for i := range t.Schema.actions {
		l := t.Schema.find(Executed.At(i))
		if l == nil {
			return
		}
		t.row(l, row).CopyRow(env, t.Row(Action.At(i), row))
	}
}

// CopyActions copies the actions of a row of a block that is laid out like this one.
func (t Trajectory) CopyActions(row int, from Trajectory) {
	for i := range t.Schema.actions {
		c := t.Schema.actions[i].action
		copy(t.at(c, row).Data, from.at(c, row).Data)
	}
}
