package graph

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
)

// Runner is the kind of component that applies the rules by which a run ends.
const Runner = "runner"

// TableChange is how a table of the file differs in the next graph.
type TableChange struct {
	What string // run, limit, place of an event loop, or rule for a table that says whether something may be swapped
	Name string
	Text string // the keys: "learning_rate 0.0015 → 0.0003"
}

// TableChanges lists the differences of [run] and of the [env] tables of both graphs. Sources of environments are
// not included, because the text of a graph has only their paths.
func (g *Graph) TableChanges(next *Graph) []TableChange {
	var list []TableChange
	note := func(what, name string, a, b []keyValue) {
		if lines := lineChanges(a, b); len(lines) > 0 {
			list = append(list, TableChange{what, name, strings.Join(lines, ", ")})
		}
	}
	note("run", "run", g.runLines(), next.runLines())
	for i := range next.Envs {
		e := &next.Envs[i]
		if was := g.Env(e.Name); was != nil {
			note("limit", e.Name, withoutSource(was.lines()), withoutSource(e.lines()))
			note("rule", e.Name, ruleLines(was.Swap), ruleLines(e.Swap))
		}
	}
	for i := range next.Components {
		x := &next.Components[i]
		if was := g.Component(x.Name); was != nil {
			note("rule", x.Name, ruleLines(was.Swap), ruleLines(x.Swap))
			if changed := g.placeChanges(next, was, x); len(changed) > 0 && x.Runtime != RuntimeProcess {
				list = append(list, TableChange{"place", x.Name, strings.Join(changed, ", ")})
			}
			note("place", x.Name, hostLines(g.HostRuleOf(was)), hostLines(next.HostRuleOf(x)))
		}
	}
	return list
}

func ruleLines(rule SwapRule) []keyValue {
	return []keyValue{{Key: "swap", Value: quote(string(rule))}}
}

func hostLines(rule HostRule) []keyValue {
	if rule == (HostRule{}) {
		return nil
	}
	return []keyValue{{Key: keyHosts, Value: rule.String()}}
}

// Reasons returns why the instances of a component must be replaced in the next graph; empty if they need not.
func (g *Graph) Reasons(next *Graph, name string) []string {
	was, of := g.Component(name), next.Component(name)
	var why []string
	if was.Runtime != of.Runtime || was.Plugin != of.Plugin {
		why = append(why, "runtime "+was.where()+" → "+of.where())
	}
	why = append(why, lineChanges(was.configured(), of.configured())...)
	why = append(why, lineChanges(was.askLines(), of.askLines())...)
	why = append(why, lineChanges(g.grantLines(name), next.grantLines(name))...)
	if of.Plugin != "" && was.Plugin == of.Plugin {
		a, b := g.Plugin(was.Plugin), next.Plugin(of.Plugin)
		had := a.Table
		if had.File(g.Dir) == b.Table.File(next.Dir) { // each names it from its own folder
			had.Path = b.Table.Path
		}
		why = append(why, lineChanges(had.lines(), b.Table.lines())...)
		if a.Digest != b.Digest {
			why = append(why, "its program has changed")
		}
	}
	if of.Runtime == RuntimeProcess {
		for _, change := range g.placeChanges(next, was, of) {
			if !slices.Contains(why, change) { // its plugin's has been named
				why = append(why, change)
			}
		}
	}
	why = append(why, moduleReasons(was.Module, of.Module)...)
	if was.Policy == of.Policy && of.Policy != "" {
		why = append(why, lineChanges(g.Policy(was.Policy).meaning(), next.Policy(of.Policy).meaning())...)
	}
	if of.Kind == Runner && !g.Run.Stop.Equal(&next.Run.Stop) {
		why = append(why, "rules of run.stop")
	}
	return why
}

// where describes where a component runs.
func (x *Component) where() string {
	if x.Plugin != "" {
		return "plugin " + x.Plugin
	}
	return x.Runtime
}

// configured returns the component's own keys with all defaults.
func (x *Component) configured() []keyValue { return configLines(x.config, x.table, x.ownKeys()...) }

// grantLines returns Grants as keys.
func (g *Graph) grantLines(name string) (lines []keyValue) {
	for i := range g.Wires {
		if w := &g.Wires[i]; w.To == name && len(w.Write) > 0 {
			lines = append(lines, keyValue{Key: "write of " + w.Slot, Value: quoteList(w.Write)})
		}
	}
	return lines
}

// withoutSource removes the path of an environment's source, and the keys of people, which no run reads.
func withoutSource(lines []keyValue) (rest []keyValue) {
	for _, kv := range lines {
		if kv.Key == "wrap" {
			kv.Value = env.WithoutWrapPaths(kv.Value)
		}
		if kv.Key != "use" && kv.Key != "sha256" && kv.Key != "swap" && kv.Key != "keys" {
			rest = append(rest, kv)
		}
	}
	return rest
}
