package graph

import (
	"context"
	"math"

	"github.com/rlhost/rlhost/hostabi"
)

// choosing is how a preset suits the actions of its environment.
type choosing struct {
	env     string // of the preset
	offered bool   // the preset names another one for actions that are numbers
	box     bool   // they are
}

// suits reports whether a file is to be read again, with what its preset has for actions that are numbers. The environment says what its
// actions are; nothing is chosen where it cannot be loaded, which is an error later.
func (c *choosing) suits(k *checker) bool {
	e := k.graph.Env(c.env)
	if !c.offered || e == nil || k.parts.Spec == nil {
		return false
	}
	spec, err := k.parts.Spec(context.Background(), e.Name, e.Table, k.graph.Dir)
	return err == nil && boxes(&spec)
}

// boxes reports whether all actions of an environment are numbers between bounds.
func boxes(spec *hostabi.EnvSpec) bool {
	actions := spec.All(hostabi.RoleAction)
	for i := range actions {
		t := &actions[i]
		if t.Discrete() {
			return false
		}
		for element := range t.Elems(hostabi.MaxTensorElems) {
			low, high := t.Bounds(element)
			if !(low > -math.MaxFloat32 && high < math.MaxFloat32) {
				return false
			}
		}
	}
	return len(actions) > 0
}
