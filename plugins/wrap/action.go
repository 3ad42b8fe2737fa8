package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// chosen keeps the policy's actions while the environments read others in their place. Both are in the same column, one
// after the other: the policy's actions are learned from.
type chosen struct {
	plain
	tr    trajectory.Trajectory
	saved []byte
}

func (c *chosen) bind(tr trajectory.Trajectory) {
	c.tr = tr
	n := 0
	for i := 0; tr.Schema.Has(trajectory.Action.At(i)); i++ {
		n += len(tr.Row(trajectory.Action.At(i), 0).Data)
	}
	if len(c.saved) != n {
		c.saved = make([]byte, n)
	}
}

func (*chosen) replaces() {}

// keep keeps the actions of row t.
func (c *chosen) keep(t int) {
	to := c.saved
	for i := 0; c.tr.Schema.Has(trajectory.Action.At(i)); i++ {
		to = to[copy(to, c.tr.Row(trajectory.Action.At(i), t).Data):]
	}
}

// after puts them back.
func (c *chosen) after(t int) error {
	from := c.saved
	for i := 0; c.tr.Schema.Has(trajectory.Action.At(i)); i++ {
		from = from[copy(c.tr.Row(trajectory.Action.At(i), t).Data, from):]
	}
	return nil
}

// clipAction takes actions without bounds, which are cut off at the environment's.
type clipAction struct {
	On bool `toml:"clip_action" doc:"Clips actions to their bounds, which the policy does not see." range:"true" default:""`
}

func (c *clipAction) validate(bad func(key, reason, help string)) { onlyOn("clip_action", c.On, bad) }

// onlyOn refuses a wrapper that is switched off.
func onlyOn(key string, on bool, bad func(key, reason, help string)) {
	if !on {
		bad(key, "is false", "leave the wrapper out")
	}
}

func (c *clipAction) describe(s *hostabi.EnvSpec) error {
	return eachBox(s, func(t *hostabi.Tensor) { t.Flags |= hostabi.TensorNoLow | hostabi.TensorNoHigh })
}

// eachBox drops the bounds of the Boxes among the actions, and then changes them.
func eachBox(s *hostabi.EnvSpec, change func(t *hostabi.Tensor)) error {
	s.Tensors = slices.Clone(s.Tensors)
	found := false
	for i := range s.Tensors {
		if t := &s.Tensors[i]; t.Role == hostabi.RoleAction && !t.Discrete() {
			t.Low, t.High, t.Lows, t.Highs = 0, 0, nil, nil
			change(t)
			found = true
		}
	}
	if !found {
		return errors.New("none of its actions is a Box")
	}
	return nil
}

func (c *clipAction) around(w *wrapped) layer {
	return newBoxLayer(w, func(a, low, high float32) float32 { return max(low, min(high, a)) })
}

// rescaleAction maps actions between two numbers to actions between the environment's bounds.
type rescaleAction struct {
	Bounds []float64 `toml:"rescale_action" doc:"Lower and upper bound of the actions that the policy sees." default:""`
}

func (c *rescaleAction) validate(bad func(key, reason, help string)) {
	if len(c.Bounds) != 2 || !(c.Bounds[0] < c.Bounds[1]) || math.Abs(c.Bounds[0]) > 1e6 || math.Abs(c.Bounds[1]) > 1e6 {
		bad("rescale_action", fmt.Sprintf("is %v, want a lower and an upper bound", c.Bounds), "[-1, 1]")
	}
}

func (c *rescaleAction) describe(s *hostabi.EnvSpec) error {
	for _, t := range s.All(hostabi.RoleAction) {
		for i := range t.Elems(hostabi.MaxTensorElems) {
			if low, high := t.Bounds(i); !t.Discrete() && (math.IsInf(float64(high-low), 0) || !(low < high)) {
				return fmt.Errorf("element %d of its action has the bounds %v and %v", i, low, high)
			}
		}
	}
	s.Keys = "" // their numbers are the environment's
	return eachBox(s, func(t *hostabi.Tensor) {
		t.Flags &^= hostabi.TensorNoLow | hostabi.TensorNoHigh
		t.Low, t.High = float32(c.Bounds[0]), float32(c.Bounds[1])
	})
}

func (c *rescaleAction) around(w *wrapped) layer {
	from, span := float32(c.Bounds[0]), float32(c.Bounds[1]-c.Bounds[0])
	return newBoxLayer(w, func(a, low, high float32) float32 {
		return max(low, min(high, low+(a-from)/span*(high-low)))
	})
}

// boxLayer maps the elements of Boxes to the environments' actions.
type boxLayer struct {
	chosen
	w      *wrapped
	change func(a, low, high float32) float32
	inner  []hostabi.Tensor // the actions with the bounds that the environments know
}

func newBoxLayer(w *wrapped, change func(a, low, high float32) float32) *boxLayer {
	return &boxLayer{w: w, change: change, inner: w.plugin.inner.All(hostabi.RoleAction)}
}

func (l *boxLayer) before(t int) {
	l.keep(t)
	for k := range l.inner {
		if l.inner[k].Discrete() {
			continue
		}
		m := l.tr.Row(trajectory.Action.At(k), t)
		values := m.Float32()
		for i, part := range l.w.part {
			if part == 0 {
				continue
			}
			for row, end := l.tr.Schema.RowsOf(i); row < end; row++ {
				for e := range m.Elems {
					a := &values[(row*m.StrideRow+e*m.StrideElem)/4]
					low, high := l.inner[k].Bounds(e)
					*a = l.change(*a, low, high)
				}
			}
		}
	}
}

// stickyAction makes the environment take its previous action again with that probability (Machado et al. 2018).
type stickyAction struct {
	Probability float64 `toml:"sticky_action" doc:"Probability that the previous action is taken again." range:"above 0, below 1" default:""`
}

func (c *stickyAction) validate(bad func(key, reason, help string)) {
	if !(c.Probability > 0 && c.Probability < 1) {
		bad("sticky_action", fmt.Sprintf("is %g, want a probability above 0 and below 1", c.Probability), "0.25 is that of Machado et al.")
	}
}

func (c *stickyAction) describe(s *hostabi.EnvSpec) error {
	switch {
	case s.HasAgents():
		return errors.New("it has agents")
	case s.HasMask():
		return errors.New("its actions have a mask: the previous one may not be legal any more")
	}
	return nil
}

func (c *stickyAction) around(w *wrapped) layer {
	l := &stickyLayer{w: w, probability: c.Probability, envs: make([]stuck, w.o.Envs)}
	for _, t := range w.plugin.spec.All(hostabi.RoleAction) {
		l.action += t.Elems(hostabi.MaxTensorElems) * t.DType.Bytes()
	}
	l.previous = make([]byte, w.o.Envs*l.action)
	for i := range l.envs {
		l.begin(i, env.Seed(w.o.Seed, w.o.FirstEnv+i), true)
	}
	return l
}

// stickyLayer draws for each step of each environment from a stream of the environment's own, by the count of its steps.
type stickyLayer struct {
	chosen
	w           *wrapped
	probability float64
	envs        []stuck
	action      int    // bytes of an environment's action
	previous    []byte // that it took last
}

// stuck is the state of one environment.
type stuck struct {
	seed, steps uint64
	begun       bool // its episode has an action to take again
}

func (l *stickyLayer) begin(index int, seed uint64, seeded bool) {
	s := &l.envs[index]
	if s.begun = false; seeded {
		s.seed, s.steps = env.StickyStream.Seed(seed), 0
	}
}

func (l *stickyLayer) before(t int) {
	l.keep(t)
	for i, part := range l.w.part {
		if part == 0 || l.w.ends.phantom[i] != 0 {
			continue
		}
		s := &l.envs[i]
		s.steps++
		sticks := float64(env.Seed(s.seed, int(s.steps))>>11)/(1<<53) < l.probability
		l.move(i, t, s.begun && sticks)
		s.begun = true
	}
}

// move makes the previous action that of row t, or the other way round.
func (l *stickyLayer) move(index, t int, again bool) {
	previous := l.previous[index*l.action:][:l.action]
	for k := 0; l.tr.Schema.Has(trajectory.Action.At(k)); k++ {
		m := l.tr.Row(trajectory.Action.At(k), t)
		size := m.DType.Bytes()
		for e := range m.Elems {
			at := m.Data[index*m.StrideRow+e*m.StrideElem:][:size]
			if again {
				copy(at, previous)
			} else {
				copy(previous, at)
			}
			previous = previous[size:]
		}
	}
}

func (l *stickyLayer) after(t int) error {
	for i, over := range l.w.ends.over {
		if over != 0 && l.w.part[i] != 0 {
			l.envs[i].begun = false
		}
	}
	return l.chosen.after(t)
}

func (l *stickyLayer) bytes() int { return 17 + l.action }

func (l *stickyLayer) save(index int, dst []byte) {
	s := &l.envs[index]
	binary.LittleEndian.PutUint64(dst, s.seed)
	binary.LittleEndian.PutUint64(dst[8:], s.steps)
	if dst[16] = 0; s.begun {
		dst[16] = 1
	}
	copy(dst[17:], l.previous[index*l.action:][:l.action])
}

func (l *stickyLayer) load(index int, src []byte) {
	l.envs[index] = stuck{binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:]), src[16] != 0}
	copy(l.previous[index*l.action:][:l.action], src[17:])
}
