package gorgonia

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// maxParams bounds the canonical vector.
const maxParams = 1 << 30

// model is the source of a graph.
type model struct {
	network policy.Network
	builder Builder
	dist    dist           // of a single Categorical action
	joint   *joint         // of others
	elems   int            // of a row of the distribution's parameters
	layout  []policy.Param // of the canonical vector
	size    int            // its elements

	chained bool // rows follow one another; else each begins from a state
	loss    Loss // nil for acting
	config  ppo.Config
}

// newModel returns the acting model of a network.
func newModel(n *policy.Network, builder Builder) (m *model, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, panicError(r)
		}
	}()
	if err := n.Validate(); err != nil {
		return nil, err
	}
	m = &model{network: n.Clone(), builder: builder} // graphs are compiled later, too
	for _, d := range n.Dists() {
		m.elems += d.Elems()
	}
	if c := n.Policy[0].Categorical; c != nil && len(n.Policy) == 1 {
		m.dist = categoricalOf(c)
	} else {
		m.joint = newJoint(&m.network)
	}
	m.layout = builder.Params(&m.network)
	names := map[string]bool{}
	for _, p := range m.layout {
		if p.Offset != m.size || p.Rows < 1 || p.Cols < 1 || p.Rows > (maxParams-m.size)/p.Cols {
			return nil, fmt.Errorf("parameter %s is [%d, %d] at %d: want it at %d, of at most %d elements",
				p.Name, p.Rows, p.Cols, p.Offset, m.size, maxParams-m.size)
		}
		if names[p.Name] {
			return nil, fmt.Errorf("two parameters are called %s", p.Name)
		}
		names[p.Name] = true
		m.size += p.Rows * p.Cols
	}
	if m.size == 0 {
		return nil, fmt.Errorf("network without parameters")
	}
	return m, nil
}

// learning returns the model with a loss.
func (m *model) learning(loss Loss, c ppo.Config) *model {
	learning := *m
	learning.chained, learning.loss, learning.config = true, loss, c
	return &learning
}

// evaluating returns the model of a dataset's rows without a loss.
func (m *model) evaluating() *model {
	evaluating := *m
	evaluating.chained = true
	return &evaluating
}
