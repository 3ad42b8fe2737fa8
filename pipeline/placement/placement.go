package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// Host is a machine of a run.
type Host struct {
	Name   string
	Slots  int // units that it may have
	Labels map[string]string
}

// Instance is one instance of a component.
type Instance struct {
	Component string
	Index     int
}

// Plan says which host has each instance.
type Plan struct {
	Hosts map[Instance]string // by name
	Left  []Left              // what no host has, in the order of the file
}

// Left are the units of one rule that have no host.
type Left struct {
	Components []string // one, or the members of a group with a count
	Indices    []int    // ascending
	Rule       graph.HostRule
	Reason     string // a clause such as: no host has the label gpu=h100
}

// Place returns where each instance of a graph belongs. The first host is the run's own; there is one at least. kept is the plan so far, nil for
// none: what it says stays where its host is there and the rule allows it.
func Place(g *graph.Graph, hosts []Host, kept *Plan) *Plan {
	p := &placer{hosts: hosts, used: make([]int, len(hosts)), plan: &Plan{Hosts: map[Instance]string{}}}
	all := rulesOf(g)
	if kept != nil { // all that stays, before anything takes its slots
		for _, r := range all {
			p.keep(r, kept)
		}
	}
	for _, r := range all {
		p.place(r)
	}
	return p.plan
}

// On returns the instances that a host has, in the order of the graph.
func (p *Plan) On(g *graph.Graph, host string) (list []Instance) {
	for i := range g.Components {
		x := &g.Components[i]
		for index := range x.Count {
			if at := (Instance{x.Name, index}); p.Hosts[at] == host {
				list = append(list, at)
			}
		}
	}
	return list
}

// CodeRoom is the code of instances that no host has room for.
const CodeRoom = "E145"

// Problems says what has no host, at the rule in the graph's file.
func (p *Plan) Problems(g *graph.Graph) graph.Problems {
	r := graph.Report{File: g.File}
	for _, left := range p.Left {
		x := g.Component(left.Components[0])
		r.Add(CodeRoom, g.HostRuleAt(x), left.Help(), "%s of %s: %s", have(&left, x.Count), strings.Join(left.Components, " and "), left.Reason)
	}
	return r.Sorted()
}

func have(left *Left, count int) string {
	if len(left.Indices) == 1 {
		return fmt.Sprintf("1 of %s has no host", counted(count, "instance"))
	}
	return fmt.Sprintf("%d of %s have no host", len(left.Indices), counted(count, "instance"))
}

// Help returns what a user can do about it.
func (left *Left) Help() string {
	switch {
	case left.Rule.Host != "":
		return "rlhost join --name " + left.Rule.Host + " gives a machine that name, --slots how many instances it has"
	case left.Rule.Label != "":
		return "join with rlhost join --label " + left.Rule.Label + ", with more --slots, or lower count"
	}
	return "join more machines, join them with more --slots, or lower count"
}

// Taken returns how many slots of a host the plan takes.
func (p *Plan) Taken(g *graph.Graph, host string) (n int) {
	for _, u := range rulesOf(g) {
		for index := range u.count {
			if u.rule != (graph.HostRule{}) && p.Hosts[Instance{u.components[0], index}] == host {
				n++
			}
		}
	}
	return n
}

// units are the units with one rule, which is a component's or that of a group with a count.
type units struct {
	components []string
	count      int
	rule       graph.HostRule
	on         []int // units of it by host
	placed     []int // host of each unit, -1 for none
}

// rulesOf returns the units of a graph in its order; a group stands where its first member does.
func rulesOf(g *graph.Graph) (list []*units) {
	seen := map[string]bool{}
	for i := range g.Components {
		x := &g.Components[i]
		u := &units{components: []string{x.Name}, count: x.Count, rule: g.HostRuleOf(x)}
		if group := g.GroupOfComponent(x.Name); group != nil && group.Count > 0 {
			if seen[group.Name] {
				continue
			}
			seen[group.Name] = true
			u.components, u.rule = slices.Clone(group.Components), group.Hosts
		}
		list = append(list, u)
	}
	return list
}

// placer is the state of one Place.
type placer struct {
	hosts []Host
	used  []int // slots by host
	plan  *Plan
}

func (p *placer) begin(u *units) {
	if u.placed != nil {
		return
	}
	u.on, u.placed = make([]int, len(p.hosts)), slices.Repeat([]int{-1}, u.count)
}

// keep leaves units where they are, if they may be there.
func (p *placer) keep(u *units, kept *Plan) {
	p.begin(u)
	for index := range u.count {
		name, known := kept.Hosts[Instance{u.components[0], index}]
		h := slices.IndexFunc(p.hosts, func(h Host) bool { return h.Name == name })
		if known && h >= 0 && u.rule != (graph.HostRule{}) && p.fits(u, h) {
			p.put(u, index, h)
		}
	}
}

// place finds a host for each unit that has none yet.
func (p *placer) place(u *units) {
	p.begin(u)
	var left []int
	for index := range u.count {
		if u.placed[index] >= 0 {
			continue
		}
		h := p.next(u)
		if h < 0 {
			left = append(left, index)
			continue
		}
		p.put(u, index, h)
	}
	if len(left) > 0 {
		p.plan.Left = append(p.plan.Left, Left{u.components, left, u.rule, p.reason(u)})
	}
}

// next returns the host for another unit, or -1.
func (p *placer) next(u *units) int {
	if u.rule == (graph.HostRule{}) {
		return 0
	}
	best := -1
	for h := range p.hosts {
		if p.fits(u, h) && (best < 0 || u.rule.Strategy == graph.Spread && u.on[h] < u.on[best]) {
			best = h
		}
	}
	return best
}

// fits reports whether a host may have another unit of a rule.
func (p *placer) fits(u *units, h int) bool {
	return allows(u.rule, &p.hosts[h]) && p.used[h] < p.hosts[h].Slots && (u.rule.PerHost == 0 || u.on[h] < u.rule.PerHost)
}

// allows reports whether a rule allows a host, whatever it has.
func allows(rule graph.HostRule, h *Host) bool {
	if rule.Host != "" && rule.Host != h.Name {
		return false
	}
	key, value, _ := strings.Cut(rule.Label, "=")
	return rule.Label == "" || h.Labels[key] == value
}

func (p *placer) put(u *units, index, h int) {
	u.placed[index] = h
	u.on[h]++
	if u.rule != (graph.HostRule{}) {
		p.used[h]++
	}
	for _, name := range u.components {
		p.plan.Hosts[Instance{name, index}] = p.hosts[h].Name
	}
}

// reason says why no host has another unit.
func (p *placer) reason(u *units) string {
	allowed, slots, full := 0, 0, true
	for h := range p.hosts {
		if allows(u.rule, &p.hosts[h]) {
			allowed++
			slots += p.hosts[h].Slots
			full = full && p.used[h] >= p.hosts[h].Slots
		}
	}
	switch {
	case allowed == 0 && u.rule.Host != "":
		return fmt.Sprintf("there is no host %q", u.rule.Host)
	case allowed == 0:
		return "no host has the label " + u.rule.Label
	case full:
		return fmt.Sprintf("the hosts that it may have offer %s, and none is free", counted(slots, "slot"))
	}
	return fmt.Sprintf("%s may have %d each, and there is no slot on another", counted(allowed, "host"), u.rule.PerHost)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
