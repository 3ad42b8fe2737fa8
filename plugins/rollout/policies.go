package rollout

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// policies say which policy acts for which agent, where there are several. An agent has its policy for an episode.
type policies struct {
	names     []string                      // ascending, as in trajectory.Shape.Policies
	ids       []uint32                      // trajectory.PolicyID of each
	of        []uint8                       // by agent of an environment, the place among the names
	groups    [trajectory.MaxPolicies]uint8 // see trajectory.Shape
	opponents []opponent
	drawn     uint64 // policies whose versions are drawn, a bit each
	seed      uint64 // of the draws, far from the environments' seeds
}

// opponent is a policy that plays one of the agents instead.
type opponent struct {
	place         uint8
	until         float64 // the sum of its share and the shares before it
	first, agents int     // that it can play: its group
}

// newPolicies returns the policies of a rollout; nil where one acts in all rows. declared has the groups of policies that no pattern names.
func newPolicies(flow *component.Flow, spec *hostabi.EnvSpec, declared map[string]component.PolicyTable, seed uint64) (*policies, error) {
	p := &policies{names: flow.Acting(), seed: env.Seed(seed, math.MinInt)}
	if len(p.names) == 0 {
		return nil, nil
	}
	names, err := flow.PolicyOfAgents(spec)
	if err != nil || len(p.names) == 1 {
		return nil, err
	}
	if len(p.names) > trajectory.MaxPolicies {
		return nil, &component.ConfigError{Key: "policies", Reason: fmt.Sprintf("and opponents name %d policies, at most %d act in one rollout",
			len(p.names), trajectory.MaxPolicies)}
	}
	for _, name := range p.names {
		table := declared[name]
		p.groups[p.place(name)] = uint8(table.Group)
		if table.Drawn() {
			p.drawn |= 1 << p.place(name)
		}
	}
	for agent, name := range names {
		p.of = append(p.of, p.place(name))
		p.groups[p.place(name)] = uint8(spec.GroupOf(agent))
	}
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(flow.Opponents)) {
		sum += flow.Opponents[name]
		place := p.place(name)
		first, agents := spec.AgentsOf(uint16(p.groups[place]))
		p.opponents = append(p.opponents, opponent{place, sum, first, agents})
	}
	for _, name := range p.names {
		p.ids = append(p.ids, trajectory.PolicyID(name))
	}
	return p, nil
}

func (p *policies) place(name string) uint8 { return uint8(slices.Index(p.names, name)) }

// count returns how many policies act.
func (p *policies) count() int {
	if p == nil {
		return 1
	}
	return len(p.names)
}

// draw returns the place of the policy that plays an agent of an environment in the episode that begins at an env step: the
// agent's own, unless an opponent has been drawn for it. Of all agents that begin at a step at most one has an opponent.
func (p *policies) draw(env uint32, agent int, step uint64) uint8 {
	if len(p.opponents) == 0 {
		return p.of[agent]
	}
	first, second := p.words(env, step)
	share := float64(second>>11) * 0x1p-53
	for _, o := range p.opponents {
		if share >= o.until {
			continue
		}
		if o.first+int(first>>32*uint64(o.agents)>>32) == agent {
			return o.place
		}
		break
	}
	return p.of[agent]
}

// words returns the random words of an environment at an env step.
func (p *policies) words(index uint32, step uint64) (first, second uint64) {
	first = env.Seed(p.seed+step, int(index))
	return first, env.Seed(first, 1)
}

// acting says which policy acts for each agent of a split's environments.
type acting struct {
	*policies
	each   int      // agents of an environment
	by     []uint8  // by row of a step, the place of the policy; nil where one acts in all rows
	newest []uint64 // by policy, the newest version that acted in the block
	played []uint64 // by row of a step, the version that plays the episode, trajectory.AnyVersion before it has acted; nil where none is drawn
}

func newActing(p *policies, s *trajectory.Schema) acting {
	a := acting{policies: p, each: s.Agents, newest: make([]uint64, p.count())}
	if p != nil {
		a.by = make([]uint8, s.Rows())
	}
	if s.Shape.Versions {
		a.played = slices.Repeat([]uint64{trajectory.AnyVersion}, s.Rows())
	}
	return a
}

// beginAll draws the policies of all agents, whose episodes begin at an env step. first is the global index of environment 0.
func (a *acting) beginAll(first int, step uint64) {
	for i := range a.by {
		a.begin(i, first, step)
	}
}

// begin is for an agent whose episode begins.
func (a *acting) begin(i, first int, step uint64) {
	a.by[i] = a.draw(uint32(first+i/a.each), i%a.each, step)
	if a.played != nil {
		a.played[i] = trajectory.AnyVersion
	}
}

// beginWhere is beginAll for the agents whose episodes have ended.
func (a *acting) beginWhere(ended []byte, first int, step uint64) {
	for i := range a.by {
		if ended[i] != 0 {
			a.begin(i, first, step)
		}
	}
}

// mark records who acts in row t.
func (a *acting) mark(tr trajectory.Trajectory, t int) {
	if a.by != nil {
		copy(tr.Policies(t), a.by)
	}
	if a.played != nil {
		copy(tr.PlayedVersions(t), a.played)
	}
}

// answered keeps the versions that a policy has acted with in row t, for the rest of these episodes.
func (a *acting) answered(tr trajectory.Trajectory, t, policy int) {
	if a.played == nil || a.drawn>>policy&1 == 0 {
		return
	}
	for i, version := range tr.PlayedVersions(t) {
		if a.by[i] == uint8(policy) {
			a.played[i] = version
		}
	}
}

// divide writes which rows are valid for which policy, when all have been written.
func (a *acting) divide(tr trajectory.Trajectory) {
	if a.by == nil {
		return
	}
	valid, by := tr.Bytes(trajectory.Valid), tr.Bytes(trajectory.Policy)
	for k := range a.names {
		own := tr.Bytes(trajectory.Valid.At(1 + k))
		for i, v := range valid {
			if by[i] != uint8(k) {
				v = 0
			}
			own[i] = v
		}
	}
}

// in returns which version of which policy acted in a row: the version of the episode where it has one, else the newest of the block. The ID is
// 0 where one policy acts in all rows.
func (a *acting) in(tr trajectory.Trajectory, at int) (version uint64, id uint32) {
	if a.by == nil {
		return a.newest[0], 0
	}
	place := tr.Bytes(trajectory.Policy)[at]
	if a.drawn>>place&1 != 0 {
		if version = tr.Uint64(trajectory.PlayedVersion)[at]; version != trajectory.AnyVersion {
			return version, a.ids[place]
		}
	}
	return a.newest[place], a.ids[place]
}
