package member

import (
	"fmt"
	"maps"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// build is what hosts build their shares of: a graph, with the files that they get.
type build struct {
	graph  *graph.Graph
	pieces *pieces

	programs map[string]string            // see readPrograms
	absent   map[string]map[string]absent // see readAbsent

	envs string // its environments with their files: two builds have the same, or other environments
}

// newBuild checks that a graph can be on several hosts, and reads its files.
func newBuild(g *graph.Graph, parts *graph.Parts) (b *build, err error) {
	b = &build{graph: g, programs: readPrograms(g, parts), absent: readAbsent(g)}
	if b.pieces, err = readPieces(g, parts.Builtins); err != nil {
		return nil, err
	}
	for i := range g.Wires {
		if err := placedRight(g, &g.Wires[i]); err != nil {
			return nil, err
		}
	}
	b.envs = (&graph.Graph{Envs: g.Envs}).Expanded()
	for _, x := range b.pieces.list {
		if x.ofEnv() {
			b.envs += x.Key + " " + x.SHA256 + "\n"
		}
	}
	for i := range g.Envs {
		if t := g.Envs[i].Table.Plugin; t != nil {
			b.envs += t.Name + " " + b.programs[t.Name] + b.programs["env."+g.Envs[i].Name] + "\n"
		}
	}
	return b, nil
}

// ofEnv reports whether a file is an environment's.
func (x *piece) ofEnv() bool { return strings.HasPrefix(x.Key, "env.") }

// with is the text of this graph with the environments of another one, and its files.
func (b *build) with(envs *build) (text string, files []piece) {
	mixed := *b.graph
	mixed.Envs = envs.graph.Envs
	for _, x := range envs.pieces.list {
		if x.ofEnv() {
			files = append(files, x)
		}
	}
	for _, x := range b.pieces.list {
		if !x.ofEnv() {
			files = append(files, x)
		}
	}
	return mixed.Resolved(), files
}

// programsOver are the programs of this build, and further ones of another.
func (b *build) programsOver(other *build) map[string]string {
	all := maps.Clone(other.programs)
	maps.Copy(all, b.programs)
	return all
}

// CodePlaced is the code of components that cannot be on another host; rlhost explain has its page.
const CodePlaced control.Code = "E139"

// placedRight returns why a wire cannot lead between the hosts of its ends.
func placedRight(g *graph.Graph, w *graph.Wire) error {
	payload := component.PayloadOf(w.Payload)
	if !payload.Steps && together(g, w) {
		return nil
	}
	from, to := hostsOf(g, w.From), hostsOf(g, w.To)
	for host := range from {
		switch {
		case payload.OnLoan && !to[host]:
			return placedWrong(w, host, "it is about blocks that leave no host, and "+w.To+" may not be there", "put both components into one group; with a rule other than host the group needs a count")
		case host == "" || payload.OnLoan || payload.Steps || w.Payload == component.PayloadEpisode:
		default:
			return placedWrong(w, host, "its payload, "+w.Payload+", does not go to the run's own host yet", "place components that run environments and the inferences that serve them, and no others")
		}
	}
	for host := range to {
		if host != "" && !payload.OnLoan && !payload.Publishes {
			return placedWrong(w, host, "its payload, "+w.Payload+", does not go to other hosts yet", "place components that run environments and the inferences that serve them, and no others")
		}
	}
	return nil
}

// together reports whether the two ends of a wire are on one host wherever they are, so that what it carries goes to no other.
func together(g *graph.Graph, w *graph.Wire) bool {
	from, to := g.Component(w.From), g.Component(w.To)
	if rule := g.HostRuleOf(from); rule.Host != "" {
		return g.HostRuleOf(to) == rule
	}
	group := g.GroupOfComponent(w.From)
	return w.Paired && group != nil && group == g.GroupOfComponent(w.To) && from.Hosts == (graph.HostRule{}) && to.Hosts == (graph.HostRule{})
}

func placedWrong(w *graph.Wire, host, why, help string) error {
	if host == "" {
		host = "the run's own host"
	}
	e := control.Errorf(CodePlaced, "the wire %s cannot be on %s: %s", w, host, why)
	e.Help = help
	return e
}

// hostsOf returns where a component's instances may be: "" is the run's own host. Instances that may be on different ones have different texts.
func hostsOf(g *graph.Graph, name string) map[string]bool {
	x := g.Component(name)
	rule := g.HostRuleOf(x)
	unit := name
	if group := g.GroupOfComponent(name); group != nil && group.Count > 0 {
		unit, rule = "group "+group.Name, group.Hosts
	}
	hosts := map[string]bool{}
	for index := range x.Count {
		switch {
		case rule == (graph.HostRule{}):
			hosts[""] = true
		case rule.Host != "":
			hosts["host "+rule.Host] = true
		default:
			hosts[fmt.Sprintf("the host of number %d of %s", index, unit)] = true
		}
	}
	return hosts
}
