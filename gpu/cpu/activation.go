package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// activation is what products do with their results on the way forward and back.
type activation struct{ forward, backward kern.Epilogue }

// activation makes an activation part of the dense operation that it follows. Nothing else may read that.
func (l *layout) activation(n *policy.Node, a *layer.Activation) bool {
	d, ok := l.names[n.In[0]].(*dense)
	if !ok || d.readers > 0 || d.activation.forward != kern.None {
		return false
	}
	for i := range l.net.Nodes {
		for _, in := range l.net.Nodes[i].In {
			if in == n.In[0] && l.net.Nodes[i].Name != n.Name {
				return false
			}
		}
	}
	switch a.Func {
	case layer.ReLU:
		d.activation = activation{kern.ReLU, kern.DReLU}
	case layer.ELU:
		d.activation = activation{kern.ELU, kern.DELU}
	default:
		d.activation = activation{kern.Tanh, kern.DTanh}
	}
	l.names[n.Name] = d
	return true
}
