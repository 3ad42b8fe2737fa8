package players

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Rating is how strong one version of a policy is.
type Rating struct {
	Policy  string  `json:"policy"`
	Version uint64  `json:"policy_version"`
	Elo     float64 `json:"elo"`
	// Against is how the newest version of the leading policy did against it; nil of that version itself.
	Against *evaluation.Match `json:"against,omitempty"`
}

// Ratings say how strong the versions of a run's policies are: the newest one of a learned policy and every frozen one.
type Ratings struct {
	Versions []Rating // the learned policy's first, from the oldest on; the first of all has 0
	EnvSteps uint64   // that the newest version has been learned from
	Episodes int      // of each match
	Greedy   bool     // the most probable actions, instead of sampled ones
	// Random is how the newest version did against random legal actions; nil with greedy ones, or where actions are numbers.
	Random *evaluation.Match
}

// WinRates says how many episodes the newest version won against random actions and against the first version; empty without both.
func (r *Ratings) WinRates() string {
	var parts []string
	if r.Random != nil {
		parts = append(parts, fmt.Sprintf("%.2f won against random", winRate(r.Random)))
	}
	if first := r.Versions[0].Against; first != nil {
		parts = append(parts, fmt.Sprintf("%.2f won against the first version", winRate(first)))
	}
	return strings.Join(parts, ", ")
}

func winRate(m *evaluation.Match) float64 { return float64(m.Wins) / float64(max(m.Episodes(), 1)) }

// Newest returns the rating of the newest version of the learned policy.
func (r *Ratings) Newest() *Rating {
	return &r.Versions[slices.IndexFunc(r.Versions, func(x Rating) bool { return x.Against == nil })]
}

// Elo returns the rating of the newest version, NaN of no ratings.
func (r *Ratings) Elo() float64 {
	if r == nil {
		return math.NaN()
	}
	return r.Newest().Elo
}

// String is a table for people.
func (r *Ratings) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %7s   newest against it (%s actions, %d episodes a match)", "version", "Elo", Way(r.Greedy), r.Episodes)
	for _, x := range r.Versions {
		fmt.Fprintf(&b, "\n%-24s %7.0f   ", fmt.Sprintf("%s@%d", x.Policy, x.Version), math.Round(x.Elo)+0) // not -0
		if x.Against == nil {
			b.WriteString("newest")
			continue
		}
		writeMatch(&b, x.Against)
	}
	if r.Random != nil {
		fmt.Fprintf(&b, "\n%-24s %7s   ", "random actions", "")
		writeMatch(&b, r.Random)
	}
	return b.String()
}

func writeMatch(b *strings.Builder, m *evaluation.Match) {
	fmt.Fprintf(b, "%.3f: %d won, %d drawn, %d lost", m.Score(), m.Wins, m.Draws, m.Losses)
	if m.Unfinished > 0 {
		fmt.Fprintf(b, ", %d of them unfinished", m.Unfinished)
	}
}

// rated is a version that plays matches.
type rated struct {
	Player
	policy string // that it is a version of
}

func (v *rated) is(policy string, version uint64) bool {
	return v.policy == policy && v.Version == version
}

// all returns the newest version of a learned policy and every frozen one of its environment, in the order of ratings, and the
// place of the newest.
func (r *Reader) all(learned *graph.Policy) (list []rated, newest int, err error) {
	first, err := r.Player(learned.Name)
	if err != nil {
		return nil, 0, err
	}
	list = []rated{{first, learned.Name}}
	for i := range r.Graph.Policies {
		p := &r.Graph.Policies[i]
		if p.Env != learned.Env || p.Role() == graph.Learned || p.Role() == graph.Rules {
			continue
		}
		more, err := r.versions(p)
		if errors.Is(err, errNoState) { // it does not act, or did not yet
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("policy %q: %w", p.Name, err)
		}
		for _, x := range more {
			if !slices.ContainsFunc(list, func(v rated) bool { return v.is(x.policy, x.Version) }) {
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b rated) int {
		if own := a.policy == learned.Name; own != (b.policy == learned.Name) {
			if own {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.Version, b.Version))
	})
	return list, slices.IndexFunc(list, func(v rated) bool { return v.is(learned.Name, first.Version) }), nil
}

// versions returns the versions of a policy that is frozen or a pool.
func (r *Reader) versions(p *graph.Policy) (list []rated, err error) {
	if p.Role() == graph.Frozen {
		x, err := r.Player(p.Name)
		return []rated{{x, cmp.Or(p.Of, p.Name)}}, err
	}
	pool, err := r.pool(p)
	if err != nil {
		return nil, err
	}
	numbers, err := pool.Versions(pool.state)
	for _, v := range numbers {
		w, err := pool.Weights(pool.state, &pool.network, v)
		if err != nil {
			return nil, err
		}
		x, err := r.playing(p, pool.network, w)
		if err != nil {
			return nil, err
		}
		list = append(list, rated{x, p.Of})
	}
	return list, err
}

// CodeUnrated is the code of a run that has nothing to rate; rlhost explain has its page.
const CodeUnrated = "E059"

// Rate rates the newest version of a learned policy and every frozen one of its environment, whose plugin is given. Of the options,
// Episodes, Seed, Greedy and the bounds of episodes matter. The error has CodeUnrated where the newest version has no opponent.
func (r *Reader) Rate(ctx context.Context, learned *graph.Policy, plugin env.Plugin, o evaluation.Options) (*Ratings, error) {
	if r.Spec.Agents() < 2 {
		return nil, &table.Error{Code: CodeUnrated, Reason: fmt.Sprintf("%s has one agent: its policies do not play against each other", r.Spec.Name),
			Help: "Elo is for environments with two agents or more"}
	}
	if len(r.Spec.Groups) > 1 {
		return nil, &table.Error{Code: CodeUnrated, Reason: fmt.Sprintf("the agents of %s are in %d groups, which no policy plays all of", r.Spec.Name, len(r.Spec.Groups)),
			Help: "Elo is for environments whose agents are of one group"}
	}
	list, newest, err := r.all(learned)
	if err != nil {
		return nil, err
	}
	if len(list) < 2 {
		return nil, &table.Error{Code: CodeUnrated, Reason: fmt.Sprintf("policy %q has nobody to play against: the run has no frozen versions", learned.Name),
			Help: fmt.Sprintf("give it a pool, [policy.past] of = %q, or a frozen policy", learned.Name)}
	}
	learner, err := KindOf[Learner](r.Parts, KindLearner)
	if err != nil {
		return nil, err
	}
	state, err := r.state(KindLearner, learned.Name)
	if err != nil {
		return nil, err
	}
	_, envSteps, err := learner.Progress(state)
	if err != nil {
		return nil, err
	}
	o.Plugin = plugin
	ratings, err := rate(ctx, list, newest, o)
	if err != nil {
		return nil, err
	}
	ratings.EnvSteps = envSteps
	return ratings, nil
}

// rate plays the matches of the newest version with every other, and of each with its neighbour in their order: the latter
// separate versions that the newest beats always, or never.
func rate(ctx context.Context, list []rated, newest int, o evaluation.Options) (r *Ratings, err error) {
	const envs = 32 // of a match
	spec := o.Plugin.Spec()
	players := make([]Player, len(list))
	for i := range list {
		players[i] = list[i].Player
	}
	random, ok := atRandom(&players[newest])
	if ok = ok && !o.Greedy; ok {
		players = append(players, random)
	}
	acting, end, err := ActAll(players, envs*spec.Agents())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	var pairings []evaluation.Pairing
	play := func(a, b int) (*evaluation.Match, error) {
		o.Player, o.Others, o.Envs = acting[a], acting[b:b+1], envs
		m, err := evaluation.PlayMatch(ctx, o)
		pairings = append(pairings, evaluation.Pairing{A: a, B: b, Match: m})
		return &m, err
	}
	r = &Ratings{Greedy: o.Greedy, Versions: make([]Rating, len(list))}
	for i := range list {
		x := &r.Versions[i]
		x.Policy, x.Version = list[i].policy, list[i].Version
		if i == newest {
			continue
		}
		if x.Against, err = play(newest, i); err != nil {
			return nil, err
		}
		r.Episodes = x.Against.Episodes()
		if next := i + 1; next < len(list) && next != newest {
			if _, err := play(i, next); err != nil {
				return nil, err
			}
		}
	}
	if ok {
		o.Player, o.Others, o.Envs = acting[newest], acting[len(list):], envs
		m, err := evaluation.PlayMatch(ctx, o)
		if err != nil {
			return nil, err
		}
		r.Random = &m
	}
	for i, elo := range evaluation.Elo(len(list), pairings) {
		r.Versions[i].Elo = elo
	}
	return r, nil
}

// atRandom returns a player of a network without any weights: each legal action is as probable as the others. It is not ok for networks that
// act by numbers, or elsewhere.
func atRandom(of *Player) (random Player, ok bool) {
	for _, d := range of.Definition.Network.Policy {
		if d.Gaussian != nil {
			return random, false
		}
	}
	for i := range of.Definition.Network.Nodes {
		if of.Definition.Network.Nodes[i].External != nil {
			return random, false
		}
	}
	random = *of
	random.Weights.Params = make([]float32, len(of.Weights.Params))
	return random, true
}

// Pooled reports whether a graph has a pool of versions of a policy.
func Pooled(g *graph.Graph, learned string) bool {
	return slices.ContainsFunc(g.Policies, func(p graph.Policy) bool {
		return p.Of == learned && p.Role() == graph.Pool && OfPolicy(g, graph.KindPool, p.Name) != nil
	})
}
