package graph

import (
	"context"
	"math"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// choosing is how a preset suits its environment.
type choosing struct {
	env     string   // of the preset
	offered bool     // the preset names another one for actions that are numbers
	alone   bool     // nothing says which policies act in the preset's rollout
	box     bool     // the actions are numbers, and the preset names another one for them
	groups  []string // of agents with spaces of their own, which need a policy each; none where the file says who acts
}

// suits reports whether a file is to be read again, with what its preset has for such an environment. The environment says what its
// actions and its agents are; nothing is chosen where it cannot be loaded, which is an error later.
func (c *choosing) suits(k *checker) (next choosing, again bool) {
	e := k.graph.Env(c.env)
	if e == nil || k.parts.Spec == nil || !c.offered && !(c.alone && e.Table.Plugin != nil && e.Table.Plugin.Name == pettingZoo) {
		return next, false
	}
	spec, err := k.parts.Spec(context.Background(), e.Name, e.Table, k.graph.Dir)
	if err != nil {
		return next, false
	}
	next.box = c.offered && boxes(&spec)
	if c.alone && len(spec.Groups) > 1 {
		for i := range spec.Groups {
			next.groups = append(next.groups, spec.Groups[i].Name)
		}
	}
	return next, next.box || len(next.groups) > 0
}

// pettingZoo is the plugin of environments that have several agents as a rule.
const pettingZoo = "pettingzoo"

// addGroups names a policy for each group of agents: the preset's own for the first, and one of the group's name for each other.
func (k *checker) addGroups(root, preset *node) {
	rollout := root.at("component").at(ofKind(preset, "rollout"))
	own, _ := root.at("component").at(ofKind(preset, "learner")).at("policy").text()
	k.choosing.alone = own != "" && rollout != nil && rollout.at(keyPolicies) == nil && rollout.at(keyOpponents) == nil
	groups := k.choosing.groups
	if !k.choosing.alone || len(groups) == 0 || slices.ContainsFunc(groups[1:], func(name string) bool { return !validName(name) || name == own }) {
		return
	}
	at := rollout.key
	policies := newTable(at, at)
	policies.put(groups[0], scalarAt(at, own))
	for _, name := range groups[1:] {
		policies.put(name, scalarAt(at, name))
		if root.at("policy").at(name) == nil {
			root.at("policy").put(name, newTable(at, at))
		}
	}
	rollout.put(keyPolicies, policies)
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
