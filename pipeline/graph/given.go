package graph

import (
	"slices"
	"strings"
)

// notOfRuns are the keys of a policy that its run does not say for others: what the pipeline has by itself, and what computes it here.
var notOfRuns = append([]string{keyBackend}, policyKeys...)

// takeFromRun gives a policy whose weights come from a run the keys that describe it there, such as net and normalize_obs, where
// the file leaves them out. What cannot be read is reported where the weights are needed: a run that continues has them.
func (k *checker) takeFromRun(table *node, name, from string) {
	if k.parts.RunText == nil || from == "" || strings.HasSuffix(from, SuffixTensors) {
		return
	}
	path, err := k.graph.Stored(from)
	if err != nil {
		return
	}
	text, err := k.parts.RunText(k.graph.Run.Dir, path, from)
	if err != nil {
		return
	}
	other := newChecker(path, ParseOptions{})
	record := learnedIn(other.read(newSource(path, text, firstPreset)), name)
	if record == nil || record.at(keyPlugin) != nil || table.at(keyPlugin) != nil {
		return
	}
	for _, key := range record.names {
		if !slices.Contains(notOfRuns, key) && !written(table.at(key)) {
			table.put(key, record.table[key].clone())
		}
	}
}

// learnedIn returns the table of the policy in a run's pipeline that another one from that run plays: the learned one of the name, else the
// leading one. It is nil where there is none.
func learnedIn(root *node, name string) *node {
	policies := root.at("policy")
	if policies == nil {
		return nil
	}
	learned := func(name string) *node {
		if p := policies.at(name); p != nil && p.kind == tableNode && roleOf(p) == Learned {
			return p
		}
		return nil
	}
	if p := learned(name); p != nil {
		return p
	}
	if leading, ok := lookup(root, "run.policy").text(); ok {
		return learned(leading)
	}
	var all []string
	for _, other := range policies.names {
		if learned(other) != nil {
			all = append(all, other)
		}
	}
	if len(all) == 1 {
		return learned(all[0])
	}
	return learned("main")
}

// written reports whether a value, or something in it, is the user's own word.
func written(n *node) bool {
	if n == nil {
		return false
	}
	if n.kind != tableNode {
		return n.val.order() < firstPreset
	}
	return slices.ContainsFunc(n.names, func(name string) bool { return written(n.table[name]) })
}
