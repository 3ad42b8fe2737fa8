package member

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// ownHost stands for the name of the run's own host.
const ownHost = "of the run"

// share is what one host has got of a run at one time: it builds these instances together. A host can have several. A share ends as a whole, as
// soon as another host gets an instance of it.
type share struct {
	Number    uint64   `json:"number"` // from 1; no two shares of a run have the same
	Instances []string `json:"instances"`
	Begun     int      `json:"begun"` // see component.Succession: above that of each share that has sent what one of the instances made

	key, host string // of the host
	at        []placement.Instance
	build     *build // that it was begun with
	envs      string // that it runs; see build.envs
}

// places says which host has which instances of a run. It is not safe for several goroutines.
type places struct {
	graph  *graph.Graph
	own    placement.Host            // the run's own
	here   map[string]placement.Host // hosts whose lease lasts, by their keys
	away   map[string]placement.Instance
	shares []*share
	begun  map[string]int // shares that have sent what an instance made
	least  int            // the most that had one of a former graph's
	last   uint64         // number of a share
	left   []placement.Left
	build  *build // of new shares

	changes uint64 // of shares; 0 while none may have any
}

// newPlaces returns places of a graph whose own host has that many slots.
func newPlaces(g *graph.Graph, slots int) *places {
	return &places{graph: g, own: placement.Host{Name: ownHost, Slots: slots}, here: map[string]placement.Host{}, away: map[string]placement.Instance{}, begun: map[string]int{}, build: &build{}}
}

// settle decides which instances stay on the run's own host for good, given the hosts that are here.
func (p *places) settle() {
	plan := placement.Place(p.graph, p.hosts(), nil)
	p.own.Slots = plan.Taken(p.graph, ownHost)
	for i := range p.graph.Components {
		x := &p.graph.Components[i]
		for index := range x.Count {
			at := placement.Instance{Component: x.Name, Index: index}
			if plan.Hosts[at] != ownHost {
				p.away[x.InstanceName(index)] = at
			}
		}
	}
	p.place()
}

// hosts returns the run's own host, and the hosts that are here by their names.
func (p *places) hosts() []placement.Host {
	var list []placement.Host
	for _, h := range p.here {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b placement.Host) int { return strings.Compare(a.Name, b.Name) })
	return append([]placement.Host{p.own}, list...)
}

// place gives instances without a host to hosts that have room, and returns the shares that have ended by it. What has no host stays with the one
// that it had, in case that comes back.
func (p *places) place() (ended []*share) {
	plan := placement.Place(p.graph, p.hosts(), p.kept())
	p.together(plan)
	keys := map[string]string{}
	for key, h := range p.here {
		keys[h.Name] = key
	}
	ended = p.drop(func(s *share) bool {
		return slices.ContainsFunc(s.at, func(at placement.Instance) bool {
			host, placed := plan.Hosts[at]
			return placed && keys[host] != s.key
		})
	})
	p.share(plan, keys)
	p.left = plan.Left
	p.changes++
	return ended
}

// share makes a share for each host to which the plan gives instances that no share has.
func (p *places) share(plan *placement.Plan, keys map[string]string) {
	made := map[string]*share{}
	for _, name := range p.names() {
		at := p.away[name]
		host, placed := plan.Hosts[at]
		if !placed || p.of(name) != nil {
			continue
		}
		s := made[host]
		if s == nil {
			p.last++
			s = &share{Number: p.last, key: keys[host], host: host, Begun: p.least, build: p.build, envs: p.build.envs}
			made[host] = s
		}
		s.Instances, s.at = append(s.Instances, name), append(s.at, at)
		s.Begun = max(s.Begun, p.begun[name])
	}
	for _, s := range made {
		p.shares = append(p.shares, s)
	}
	slices.SortFunc(p.shares, func(a, b *share) int { return int(a.Number) - int(b.Number) })
}

// began notes that a share sends what its instances make. What never has is as if no host had had it: the next host begins in its place.
func (p *places) began(s *share) {
	for _, name := range s.Instances {
		p.begun[name] = s.Begun + 1
	}
}

// coming returns the instances elsewhere of another graph. The error says which instance would come to the run's own host or leave it.
func (p *places) coming(g *graph.Graph) (map[string]placement.Instance, error) {
	plan, list := placement.Place(g, p.hosts(), p.kept()), map[string]placement.Instance{}
	for i := range g.Components {
		x := &g.Components[i]
		was := p.graph.Component(x.Name)
		for index := range x.Count {
			at, name := placement.Instance{Component: x.Name, Index: index}, x.InstanceName(index)
			away := plan.Hosts[at] != ownHost
			before := false
			if was != nil && index < was.Count {
				_, before = p.away[was.InstanceName(index)]
			}
			if away {
				list[name] = at
			}
			if was != nil && index < was.Count && away != before {
				e := control.Errorf(CodeMoves, "%s would leave the run's own host, or come to it, by the new place", name)
				e.Help = "stop the run and resume it with the new file; between hosts that have joined, components move while it goes on"
				return nil, e
			}
		}
	}
	return list, nil
}

// begin makes p the places of another graph. Which instances are away, and what has them, is for the caller to say.
func (p *places) begin(g *graph.Graph) {
	for _, begun := range p.begun {
		p.least = max(p.least, begun)
	}
	p.graph, p.away, p.begun = g, map[string]placement.Instance{}, map[string]int{}
}

// names returns the instances that are away, in the order of the graph.
func (p *places) names() (list []string) {
	for i := range p.graph.Components {
		x := &p.graph.Components[i]
		for index := range x.Count {
			if _, away := p.away[x.InstanceName(index)]; away {
				list = append(list, x.InstanceName(index))
			}
		}
	}
	return list
}

// kept is the plan so far.
func (p *places) kept() *placement.Plan {
	plan := &placement.Plan{Hosts: map[placement.Instance]string{}}
	for i := range p.graph.Components {
		x := &p.graph.Components[i]
		for index := range x.Count {
			if _, away := p.away[x.InstanceName(index)]; !away {
				plan.Hosts[placement.Instance{Component: x.Name, Index: index}] = ownHost
			}
		}
	}
	for _, s := range p.shares {
		for _, at := range s.at {
			plan.Hosts[at] = s.host
		}
	}
	return plan
}

// together takes out of a plan what has a host by its name, and would be there without others of the same rule: they may need one another.
func (p *places) together(plan *placement.Plan) {
	for _, left := range plan.Left {
		if left.Rule.Host == "" {
			continue
		}
		for at := range plan.Hosts {
			if p.graph.HostRuleOf(p.graph.Component(at.Component)).Host == left.Rule.Host {
				delete(plan.Hosts, at)
			}
		}
	}
}

// drop ends shares that will not come back, and returns them.
func (p *places) drop(which func(s *share) bool) (ended []*share) {
	p.shares = slices.DeleteFunc(p.shares, func(s *share) bool {
		over := which(s)
		if over {
			ended = append(ended, s)
		}
		return over
	})
	return ended
}

// end ends the shares of a host.
func (p *places) end(key string) (ended []*share) {
	return p.drop(func(s *share) bool { return s.key == key })
}

// endOne ends a share.
func (p *places) endOne(number uint64) (ended []*share) {
	return p.drop(func(s *share) bool { return s.Number == number })
}

// numbered returns a share that lasts, or nil.
func (p *places) numbered(number uint64) *share {
	if i := slices.IndexFunc(p.shares, func(s *share) bool { return s.Number == number }); i >= 0 {
		return p.shares[i]
	}
	return nil
}

// of returns the share that has an instance, or nil.
func (p *places) of(instance string) *share {
	for _, s := range p.shares {
		if slices.Contains(s.Instances, instance) {
			return s
		}
	}
	return nil
}

// on returns the shares of a host.
func (p *places) on(key string) (list []share) {
	for _, s := range p.shares {
		if s.key == key {
			list = append(list, *s)
		}
	}
	return list
}
