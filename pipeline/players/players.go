package players

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Player is a policy with the weights that it acts with.
type Player struct {
	*policy.Definition
	policy.Weights
	Group int // of agents that it plays
}

// Beside says who plays the agents that an evaluated policy does not. With the zero value the policy plays all agents of the
// first group and there are no others.
type Beside struct {
	Players []Player
	Agents  []int // by agent: 0 is the evaluated policy, n is Players[n-1]
	Group   int   // of agents that the evaluated policy plays
}

// Define returns a policy of a graph, without weights, as it plays in an environment with that description.
func Define(parts *graph.Parts, g *graph.Graph, p *graph.Policy, spec hostabi.EnvSpec) (Player, error) {
	group, err := g.GroupOf(p, &spec)
	if err != nil {
		return Player{}, err
	}
	spec = spec.OfGroup(group)
	made, err := g.MakePolicy(p, parts, &spec)
	if err != nil {
		return Player{}, err
	}
	d, err := policy.DefinitionOf(p.Name, made)
	if err != nil {
		return Player{}, err
	}
	return Player{Definition: d, Group: group}, nil
}

// act prepares a player for as many rows. The caller closes the actor.
func (p *Player) act(rows int) (evaluation.Player, error) {
	actor, err := policy.NewActor(p.Backend, &p.Network, rows)
	if err != nil {
		return evaluation.Player{}, err
	}
	if err := actor.Load(p.Weights); err != nil {
		return evaluation.Player{}, errors.Join(err, actor.Close())
	}
	return evaluation.Player{Actor: actor, Network: &p.Network, Group: p.Group}, nil
}

// Reader reads the policies of a graph out of the states of its components.
type Reader struct {
	Parts  *graph.Parts
	Graph  *graph.Graph
	States map[string]component.State
	Spec   hostabi.EnvSpec // of the environment that they play in
}

// Player returns a policy as it acts: newest, frozen, or the version that was drawn.
func (r *Reader) Player(name string) (Player, error) {
	p := r.Graph.Policy(name)
	if p == nil {
		return Player{}, fmt.Errorf("no policy %q", name)
	}
	n, w, err := r.weights(p)
	if err != nil {
		return Player{}, fmt.Errorf("policy %q: %w", name, err)
	}
	return r.playing(p, n, w)
}

// playing returns a policy that acts with weights of a network.
func (r *Reader) playing(p *graph.Policy, n policy.Network, w policy.Weights) (Player, error) {
	x, err := Define(r.Parts, r.Graph, p, r.Spec)
	if err != nil {
		return Player{}, err
	}
	return Player{&policy.Definition{Name: p.Name, Network: n, Backend: x.Backend}, w, x.Group}, nil
}

// weights returns the weights that a policy acts with, and their network.
func (r *Reader) weights(p *graph.Policy) (n policy.Network, w policy.Weights, err error) {
	switch p.Role() {
	case graph.Frozen:
		state, err := r.state(graph.KindFrozen, p.Name)
		if err != nil {
			return n, w, err
		}
		frozen, err := KindOf[Frozen](r.Parts, graph.KindFrozen)
		if err != nil {
			return n, w, err
		}
		_, n, w, err = frozen.Weights(state)
		return n, w, err
	case graph.Pool:
		return r.drawn(p)
	}
	state, err := r.state(KindLearner, p.Name)
	if err != nil {
		return n, w, err
	}
	return WeightsOf(r.Parts, state)
}

// drawn returns the version that a pool had drawn.
func (r *Reader) drawn(p *graph.Policy) (n policy.Network, w policy.Weights, err error) {
	pool, err := r.pool(p)
	if err != nil {
		return n, w, err
	}
	version, ok, err := pool.Drawn(pool.state)
	if err == nil && !ok {
		err = errors.New("its pool is empty")
	}
	if err != nil {
		return n, w, err
	}
	w, err = pool.Weights(pool.state, &pool.network, version)
	return pool.network, w, err
}

// poolState is a pool's state with its reader.
type poolState struct {
	Pool
	state   component.State
	network policy.Network // of its versions
}

// pool returns the pool of a policy. Its versions are of the network that their learner has.
func (r *Reader) pool(p *graph.Policy) (x poolState, err error) {
	learned, err := r.state(KindLearner, p.Of)
	if err != nil {
		return x, err
	}
	if x.network, _, err = WeightsOf(r.Parts, learned); err != nil {
		return x, err
	}
	if x.state, err = r.state(graph.KindPool, p.Name); err != nil {
		return x, err
	}
	x.Pool, err = KindOf[Pool](r.Parts, graph.KindPool)
	return x, err
}

// errNoState is wrapped where no saved state lets a policy act: none of its components has one, or the component began later.
var errNoState = errors.New("nothing is saved")

// state returns the state of the component of a kind for a policy.
func (r *Reader) state(kind, policy string) (component.State, error) {
	x := OfPolicy(r.Graph, kind, policy)
	if x == nil {
		return component.State{}, fmt.Errorf("%w: the pipeline has no component of kind %s for policy %q", errNoState, kind, policy)
	}
	state, ok := r.States[x.Name]
	if !ok {
		return component.State{}, fmt.Errorf("%w of component %q", errNoState, x.Name)
	}
	return state, nil
}

// Beside returns who plays the other agents, as in the rollouts of the policy's environment. Opponents that are drawn for episodes are
// left out. The policy itself plays for a scripted opponent, whose component no evaluation runs. A policy that plays no agent there
// plays all of its group here.
func (r *Reader) Beside(p *graph.Policy) (Beside, error) {
	group, err := r.Graph.GroupOf(p, &r.Spec)
	if err != nil {
		return Beside{}, err
	}
	alone := Beside{Group: group}
	i := slices.IndexFunc(r.Graph.Components, func(c graph.Component) bool { return c.Env == p.Env && len(c.Flow.Policies) > 0 })
	if i < 0 {
		return alone, nil
	}
	names, err := r.Graph.Components[i].Flow.PolicyOfAgents(&r.Spec)
	if err != nil || !slices.Contains(names, p.Name) {
		return alone, err
	}
	b, place := Beside{Agents: make([]int, len(names)), Group: group}, map[string]int{p.Name: 0}
	for agent, name := range names {
		if other := r.Graph.Policy(name); other != nil && other.Role() == graph.Rules {
			continue
		}
		if _, known := place[name]; !known {
			other, err := r.Player(name)
			if err != nil {
				return Beside{}, err
			}
			b.Players = append(b.Players, other)
			place[name] = len(b.Players)
		}
		b.Agents[agent] = place[name]
	}
	if len(b.Players) == 0 {
		return alone, nil
	}
	return b, nil
}

// ActAll prepares players for as many rows each; end closes their actors.
func ActAll(list []Player, rows int) (all []evaluation.Player, end func() error, err error) {
	end = func() error {
		var errs []error
		for i := range all {
			errs = append(errs, all[i].Actor.Close())
		}
		return errors.Join(errs...)
	}
	for i := range list {
		one, err := list[i].act(rows)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		all = append(all, one)
	}
	return all, end, nil
}
