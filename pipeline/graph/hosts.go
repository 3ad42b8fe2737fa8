package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// Strategies of a HostRule: which of the hosts that it allows comes next.
const (
	Pack   = "pack"   // the first that has room
	Spread = "spread" // the one with the fewest instances of the rule's
)

var strategies = []string{Pack, Spread}

// HostRule says which hosts of a run may have the instances of a component, or of a group: the value of the key place. The zero value keeps
// them on the run's own.
type HostRule struct {
	Strategy string // Pack or Spread; empty where a table packs, and in the zero value
	Host     string `toml:"host,omitempty" doc:"Name of the host that has them all." range:"a host's name"`
	Label    string `toml:"label,omitempty" doc:"Label that their hosts have." range:"KEY=VALUE"`
	PerHost  int    `toml:"per_host,omitempty" doc:"Most instances on each host." range:"1 to 1024"`
}

// SetWord is table.Worded's.
func (r *HostRule) SetWord(word string) { r.Strategy = word }

// Word is table.Worded's.
func (r HostRule) Word() (word string, ok bool) { return r.Strategy, r.Strategy != "" }

// String writes the rule as a file has it; empty for the zero value.
func (r HostRule) String() string {
	if r == (HostRule{}) {
		return ""
	}
	return table.EncodeValue(r)
}

// HostRuleOf returns the rule of a component: its table's, else its group's.
func (g *Graph) HostRuleOf(x *Component) HostRule {
	if group := g.GroupOfComponent(x.Name); group != nil && x.Hosts == (HostRule{}) {
		return group.Hosts
	}
	return x.Hosts
}

// HostRuleAt returns where the file has that rule, or else the component's table.
func (g *Graph) HostRuleAt(x *Component) Span {
	if n := x.key(keyHosts); n != nil {
		return n.val
	}
	if group := g.GroupOfComponent(x.Name); group != nil && group.table.at(keyHosts) != nil {
		return group.table.at(keyHosts).val
	}
	return x.table.key
}

// keyHosts is the key of a HostRule.
const keyHosts = "place"

// CodeApart is the code of components that ask one another at each step and may be on different hosts.
const CodeApart = "W116"

// hosts checks a rule; one that is wrong is taken out.
func (r *placeReader) hosts(n *node, path string, rule *HostRule) {
	at := n.at(keyHosts)
	if at == nil {
		return
	}
	since := len(r.check.list)
	if at.kind == tableNode {
		r.hostTable(at, path, rule)
	} else if word, isText := at.text(); isText && !slices.Contains(strategies, word) {
		r.check.Add("E010", at.val, `write "pack", "spread", { host = "NAME" }, { label = "KEY=VALUE" } or { per_host = 2 }`, "`%s.%s` is %q", path, keyHosts, word)
	}
	if r.check.failed(since) {
		*rule = HostRule{}
	}
}

func (r *placeReader) hostTable(at *node, path string, rule *HostRule) {
	if len(at.names) == 0 {
		r.check.Add("E004", at.val, `name a host, a label or a number: { per_host = 2 }`, "there is no rule in `%s.%s`", path, keyHosts)
	}
	if name := at.at("host"); name != nil {
		if rule.Host == "" && name.kind == scalarNode {
			r.check.Add("E005", name.val, "rlhost status lists the names", "`%s.%s.host` is empty", path, keyHosts)
		}
		if len(at.names) > 1 {
			r.check.Add("E005", name.val, "leave the others out: one host is named", "`%s.%s` has `host` and another key", path, keyHosts)
		}
	}
	if label := at.at("label"); label != nil && label.kind == scalarNode {
		if key, value, ok := strings.Cut(rule.Label, "="); !ok || key == "" || value == "" {
			r.check.Add("E005", label.val, `write KEY=VALUE as in rlhost join --label gpu=h100`, "`%s.%s.label` is %q", path, keyHosts, rule.Label)
		}
	}
	if n := at.at("per_host"); n != nil {
		r.check.atLeast(at, "per_host", rule.PerHost, 1)
		r.check.atMost(at, "per_host", rule.PerHost, maxCount)
	}
}

// apart warns of components that ask one another at each step and may be on different hosts.
func (r *placeReader) apart() {
	for i := range r.check.graph.Wires {
		w := &r.check.graph.Wires[i]
		from, to := r.check.graph.Component(w.From), r.check.graph.Component(w.To)
		if component.PayloadOf(w.Payload).AnsweredBy == "" || w.Paired {
			continue
		}
		a, b := r.check.graph.HostRuleOf(from), r.check.graph.HostRuleOf(to)
		if a == b && (a == HostRule{} || a.Host != "") {
			continue
		}
		placed := from
		if a == (HostRule{}) {
			placed = to
		}
		r.check.Add(CodeApart, r.check.graph.HostRuleAt(placed), fmt.Sprintf("put them in a group with a count, which keeps pairs together: [group.actors] components = [%q, %q]", from.Name, to.Name),
			"%q asks %q for each env step, and they may be on different hosts", from.Name, to.Name)
	}
}
