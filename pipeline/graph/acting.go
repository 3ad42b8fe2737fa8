package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
)

// Learns reports whether the component makes versions of its policy from datasets.
func (x *Component) Learns() bool { return x.Policy != "" && takes(x, component.PayloadDataset) }

// Keeps reports whether blocks of the component's steps keep what a policy needs: it is made for the same environment, or acts.
func (x *Component) Keeps(p *Policy) bool {
	return p.Env == x.Env || slices.Contains(x.Flow.Acting(), p.Name)
}

// Report notes an error of a key of the component's table that was found after it was read.
func (x *Component) Report(c *Report, e *component.ConfigError) {
	at := x.table.key
	if n := x.keyOf(e.Key); n != nil {
		at = n.key
	}
	c.Add(codeOf(e), at, e.Help, "component %q: `%s` %s", x.Name, e.Key, e.Reason)
}

// keyOf returns a key of the component's table, or of a table in it: the rest of the text is one key there, whatever it has in it.
func (x *Component) keyOf(key string) *node {
	first, rest, nested := strings.Cut(key, ".")
	n := x.key(first)
	if inner := n.at(rest); nested && inner != nil {
		return inner
	}
	return n
}

// takes reports whether a component has a slot for a payload.
func takes(x *Component, payload string) bool {
	return slices.ContainsFunc(x.Manifest.Slots, func(p component.Port) bool { return p.Payload == payload })
}

// actingChecker checks that the policies that act are given or learned, and served.
type actingChecker struct{ *checker }

func (c *actingChecker) acting() {
	for i := range c.graph.Components {
		c.learnsGiven(&c.graph.Components[i])
	}
}

// learnsGiven rejects learners of policies that are given.
func (c *actingChecker) learnsGiven(x *Component) {
	p := c.graph.Policy(x.Policy)
	if p == nil || p.Role() == Learned || !x.Learns() {
		return
	}
	key := "from"
	if p.Of != "" {
		key = "of"
	}
	c.Add(codeGiven, x.table.at("policy").val, "leave the learner out, or `"+key+"` in [policy."+p.Name+"]",
		"policy %q is given by `%s`: nobody learns it", p.Name, key)
}
