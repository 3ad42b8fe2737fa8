package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Keys of components that say which policies act.
const (
	keyPolicies  = "policies"
	keyOpponents = "opponents"
)

// Kinds of components that publish the weights of policies without a learner: one stored version, and versions of a pool.
const (
	KindFrozen = "frozen"
	KindPool   = "opponents"
)

// actingNames returns the policies that a component's table names, each once, in the order of the file, with their places.
func actingNames(table *node) []placedName {
	var list []placedName
	add := func(name string, at Span) {
		if !slices.ContainsFunc(list, func(p placedName) bool { return p.text == name }) {
			list = append(list, placedName{text: name, at: at})
		}
	}
	if n := table.at(keyPolicies); n != nil {
		for _, pattern := range n.names {
			if name, ok := n.table[pattern].text(); ok {
				add(name, n.table[pattern].val)
			}
		}
	}
	if n := table.at(keyOpponents); n != nil {
		for _, name := range n.names {
			add(name, n.table[name].key)
		}
	}
	return list
}

// addVersions declares the policies that components name as main@12 and the file does not declare.
func addVersions(root *node) {
	components := root.at("component")
	if components == nil {
		return
	}
	for _, component := range components.names {
		for _, p := range actingNames(components.table[component]) {
			of, version, ok := VersionName(p.text)
			if !ok || root.at("policy").at(p.text) != nil {
				continue
			}
			if root.at("policy") == nil {
				root.put("policy", newTable(p.at, p.at))
			}
			made := newTable(p.at, p.at)
			made.put("of", scalarAt(p.at, of))
			made.put("version", scalarAt(p.at, int64(version)))
			root.at("policy").put(p.text, made)
		}
	}
}

// scalarAt returns a scalar with the given value and place.
func scalarAt(at Span, value any) *node { return &node{key: at, val: at, value: value} }

// policyExpander makes the components that a preset lacks where several policies act: for each policy but its own.
type policyExpander struct {
	check *checker
	root  *node
	// Names of the preset's components, and its policy.
	rollout, inference, batcher, learner, policy string
	made                                         map[string]string // policies by the names of components made for them
}

// addPolicies makes components and wires for further policies that act in the preset's rollout.
func (k *checker) addPolicies(root, preset *node) {
	x := &policyExpander{check: k, root: root, made: map[string]string{}, rollout: ofKind(preset, "rollout"), inference: ofKind(preset, "inference"),
		batcher: ofKind(preset, "batcher"), learner: ofKind(preset, "learner")}
	rollout := x.component(x.rollout)
	x.policy, _ = x.component(x.learner).at("policy").text()
	if x.policy == "" || rollout == nil || x.component(x.inference) == nil || x.component(x.batcher) == nil {
		return
	}
	x.defaults(preset)
	if rollout.at(keyOpponents) != nil && rollout.at(keyPolicies) == nil {
		at := rollout.at(keyOpponents).key
		all := newTable(at, at)
		all.put("*/*", scalarAt(at, x.policy))
		rollout.put(keyPolicies, all)
	}
	var others []placedName
	scripted := false
	for _, p := range actingNames(rollout) {
		table := root.at("policy").at(p.text)
		switch {
		case p.text == x.policy || table == nil: // an undeclared policy is an error later
		case roleOf(table) == Rules: // the component that acts for it is in the file, with its wires
			scripted = true
		default:
			others = append(others, p)
		}
	}
	if (scripted || len(others) > 0) && len(others) < trajectory.MaxPolicies { // more are an error later
		x.add(others)
	}
}

// ofKind returns the name of the component of a kind in a preset, or "" where there is not one.
func ofKind(preset *node, kind string) (name string) {
	components := preset.at("component")
	if components == nil {
		return ""
	}
	for _, other := range components.names {
		if text, _ := components.table[other].at("kind").text(); text != kind {
			continue
		}
		if name != "" {
			return ""
		}
		name = other
	}
	return name
}

// component returns the table of a component, or nil where there is none.
func (x *policyExpander) component(name string) *node {
	if n := x.root.at("component").at(name); n != nil && n.kind == tableNode {
		return n
	}
	return nil
}

// defaults gives the other policies the keys that the preset has for its own, and the environment of that.
func (x *policyExpander) defaults(preset *node) {
	policies := x.root.at("policy")
	if policies == nil {
		return
	}
	base := newTable(policies.key, policies.val)
	if own := preset.at("policy").at(x.policy); own != nil {
		base = own.clone()
	}
	if env := policies.at(x.policy).at("env"); env != nil {
		base.put("env", env)
	}
	for _, name := range policies.names {
		if p := policies.table[name]; name != x.policy && p.kind == tableNode && p.at("of") == nil {
			policies.put(name, overlay(base.clone(), p))
		}
	}
}

// roleOf is Policy.Role of a table.
func roleOf(policy *node) Role {
	p := Policy{}
	p.Of, _ = policy.at("of").text()
	p.From, _ = policy.at("from").text()
	if n := policy.at("scripted"); n != nil {
		p.Scripted, _ = n.value.(bool)
	}
	if policy.at("version") != nil {
		p.Version = 1
	}
	return p.Role()
}

// nameFor is the name of a policy's component that copies one of the preset, or is of a kind.
func nameFor(like, policy string) string { return like + "_" + strings.ReplaceAll(policy, "@", "_") }

// add makes the components and wires of the policies.
func (x *policyExpander) add(policies []placedName) {
	if batcher := x.component(x.batcher); batcher.at("policy") == nil {
		batcher.put("policy", x.component(x.learner).at("policy"))
	}
	behind := map[string][]string{} // names of components by the component that they follow
	var wires []*node
	for _, p := range policies {
		like := []string{x.inference}
		role := roleOf(x.root.at("policy").at(p.text))
		if role == Learned {
			like = append(like, x.batcher, x.learner)
		}
		names := map[string]string{}
		for _, name := range like {
			names[name] = x.copy(name, p)
			behind[name] = append(behind[name], names[name])
		}
		wires = append(wires, x.wiresLike(names)...)
		if role != Learned {
			source := x.addSource(role, p)
			behind[x.learner] = append(behind[x.learner], source)
			wires = append(wires, x.weightsFrom(source, role, p)...)
		}
	}
	x.order(behind)
	x.wire(wires)
}

// put adds a component that is made for a policy, with the keys that the file has for it merged over.
func (x *policyExpander) put(name string, p placedName, made *node) {
	if other, taken := x.made[name]; taken {
		x.check.Add("E006", p.at, "rename one of them", "policies %q and %q both have a component %q", other, p.text, name)
		return
	}
	x.made[name] = p.text
	over := x.root.at("component").at(name)
	switch {
	case over == nil:
	case over.kind == tableNode && !otherKind(made, over):
		made = overlay(made, over)
	default:
		made = over
	}
	x.root.at("component").put(name, made)
}

// copy adds a component for a policy that is like one of the preset's, and returns its name. Each has its own loop, except a
// component that answers the rollout.
func (x *policyExpander) copy(like string, p placedName) string {
	name, made := nameFor(like, p.text), x.component(like).clone()
	made.put("policy", scalarAt(p.at, p.text))
	if loop, ok := made.at("loop").text(); ok && like != x.inference {
		base := trimIndex(loop)
		made.put("loop", scalarAt(made.at("loop").val, nameFor(base, p.text)+loop[len(base):]))
	}
	x.put(name, p, made)
	return name
}

// addSource adds the component that gives a policy its weights, and returns its name.
func (x *policyExpander) addSource(role Role, p placedName) string {
	kind := KindFrozen
	if role == Pool {
		kind = KindPool
	}
	name, made := nameFor(kind, p.text), newTable(p.at, p.at)
	made.put("kind", scalarAt(p.at, kind))
	made.put("policy", scalarAt(p.at, p.text))
	x.put(name, p, made)
	return name
}

// order moves components after the components that they follow.
func (x *policyExpander) order(behind map[string][]string) {
	components := x.root.at("component")
	moved := slices.Concat(slices.Collect(maps.Values(behind))...)
	var names []string
	for _, name := range components.names {
		if !slices.Contains(moved, name) {
			names = append(append(names, name), behind[name]...)
		}
	}
	components.names = names
}

// wiresLike returns wires like the preset's between components of new names. Wires of a component without a new name are left out.
func (x *policyExpander) wiresLike(names map[string]string) (list []*node) {
	own := []string{x.inference, x.batcher, x.learner}
	for _, w := range x.presetWires() {
		for _, signal := range textsOf(w.at("signal")) {
			var slots []string
			from, renamed := rename(signal, names)
			owner, _, _ := component.SplitQualified(signal)
			for _, slot := range textsOf(w.at("slot")) {
				to, also := rename(slot, names)
				receiver, _, _ := component.SplitQualified(slot)
				if (renamed || also) && (renamed || !slices.Contains(own, owner)) && (also || !slices.Contains(own, receiver)) {
					slots = append(slots, to)
				}
			}
			if len(slots) > 0 {
				list = append(list, rewired(w, from, slots...))
			}
		}
	}
	return list
}

// rename returns a port of a component's namesake, if there is one.
func rename(port string, names map[string]string) (string, bool) {
	owner, name, _ := component.SplitQualified(port)
	if other, ok := names[owner]; ok {
		return component.Qualified(other, name), true
	}
	return port, false
}

// weightsFrom returns the wires of a policy's source of weights. A pool gets the learned versions, and the trajectories, as a batcher does.
func (x *policyExpander) weightsFrom(source string, role Role, p placedName) []*node {
	w, weights, port := x.wireOf(x.learner, x.inference)
	if w == nil {
		return nil
	}
	list := []*node{rewired(w, component.Qualified(source, weights), component.Qualified(nameFor(x.inference, p.text), port))}
	of, _ := x.root.at("policy").at(p.text).at("of").text()
	learner := x.learner
	if of != x.policy {
		learner = nameFor(x.learner, of)
	}
	if role != Pool || of != x.policy && !x.acts(of) { // it has no learner, which is an error later
		return list
	}
	list = append(list, rewired(w, component.Qualified(learner, weights), component.Qualified(source, port)))
	if w, signal, slot := x.wireOf(x.rollout, x.batcher); w != nil {
		list = append(list, rewired(w, component.Qualified(x.rollout, signal), component.Qualified(source, slot)))
	}
	return list
}

// wireOf returns the first wire of the preset from one component to another, with the names of signal and slot; nil if there is
// none.
func (x *policyExpander) wireOf(from, to string) (w *node, signal, slot string) {
	for _, w := range x.presetWires() {
		for _, out := range textsOf(w.at("signal")) {
			for _, in := range textsOf(w.at("slot")) {
				sender, signal, _ := component.SplitQualified(out)
				receiver, slot, _ := component.SplitQualified(in)
				if sender == from && receiver == to {
					return w, signal, slot
				}
			}
		}
	}
	return nil, "", ""
}

// acts reports whether the preset's rollout names a policy, which is learned then if it can be.
func (x *policyExpander) acts(policy string) bool {
	return slices.ContainsFunc(actingNames(x.component(x.rollout)), func(p placedName) bool { return p.text == policy })
}

// presetWires are the wires of the preset.
func (x *policyExpander) presetWires() (list []*node) {
	if wires := x.root.at("wire"); wires != nil {
		list = slices.DeleteFunc(slices.Clone(wires.items), func(w *node) bool { return w.key.order() < firstPreset })
	}
	return list
}

// wire adds wires after the preset's. The rollout's messages go to all policies.
func (x *policyExpander) wire(more []*node) {
	wires := x.root.at("wire")
	if wires == nil {
		return
	}
	items := append(x.presetWires(), more...)
	for i, w := range items {
		at, mode := w.key, bus.Queue.String() // the default of requests and trajectories
		if n := w.at("mode"); n != nil {
			at = n.val
			mode, _ = n.text()
		}
		if mode == bus.Queue.String() && x.fansOut(w) {
			items[i] = with(w, "mode", scalarAt(at, bus.All.String()))
		}
	}
	for _, w := range wires.items {
		if w.key.order() < firstPreset {
			items = append(items, w)
		}
	}
	all := *wires
	all.items = items
	x.root.put("wire", &all)
}

// fansOut reports whether a wire leads from the rollout to components of policies.
func (x *policyExpander) fansOut(w *node) bool {
	owned := func(list []string, by func(string) bool) bool {
		return slices.ContainsFunc(list, func(port string) bool { owner, _, _ := component.SplitQualified(port); return by(owner) })
	}
	return owned(textsOf(w.at("signal")), func(name string) bool { return name == x.rollout }) &&
		owned(textsOf(w.at("slot")), func(name string) bool { return name == x.inference || name == x.batcher || x.made[name] != "" })
}

// rewired is a wire like another, between other ports.
func rewired(w *node, signal string, slots ...string) *node {
	to := &node{kind: arrayNode, key: w.at("slot").key, val: w.at("slot").val}
	for _, slot := range slots {
		to.items = append(to.items, scalarAt(to.val, slot))
	}
	return with(with(w, "signal", scalarAt(w.at("signal").val, signal)), "slot", to)
}

// textsOf returns a string, or the strings of a list.
func textsOf(n *node) (list []string) {
	if text, ok := n.text(); ok {
		return []string{text}
	}
	if n == nil {
		return nil
	}
	for _, item := range n.items {
		if text, ok := item.text(); ok {
			list = append(list, text)
		}
	}
	return list
}
