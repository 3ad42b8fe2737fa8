package players

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Ladder rates the newest version of the leading policy and every frozen one that a run has, in their matches against each other.
type Ladder struct {
	Ratings  []Rating `json:"ratings"`  // versions of the leading policy first, oldest first: the first one has 0
	Episodes int      `json:"episodes"` // of each match
	Greedy   bool     `json:"deterministic"`
}

// Newest returns the rating of the newest version of the leading policy.
func (l *Ladder) Newest() Rating {
	return l.Ratings[slices.IndexFunc(l.Ratings, func(r Rating) bool { return r.Against == nil })]
}

// Elo returns the rating of that version, nil without a ladder.
func (l *Ladder) Elo() *float64 {
	if l == nil {
		return nil
	}
	elo := l.Newest().Elo
	return &elo
}

// String is a table for people.
func (l *Ladder) String() string {
	how := "sampled"
	if l.Greedy {
		how = "deterministic"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %7s   newest against it (%s actions, %d episodes a match)", "version", "Elo", how, l.Episodes)
	for _, r := range l.Ratings {
		fmt.Fprintf(&b, "\n%-24s %7.0f   ", fmt.Sprintf("%s@%d", r.Policy, r.Version), r.Elo)
		if r.Against == nil {
			b.WriteString("newest")
			continue
		}
		fmt.Fprintf(&b, "%.3f: %d won, %d drawn, %d lost", r.Against.Score(), r.Against.Wins, r.Against.Draws, r.Against.Losses)
		if r.Against.Unfinished > 0 {
			fmt.Fprintf(&b, ", %d of them unfinished", r.Against.Unfinished)
		}
	}
	return b.String()
}

// entrant is a version that is rated.
type entrant struct {
	Player
	policy string // that it is a version of
}

func (e *entrant) is(policy string, version uint64) bool {
	return e.policy == policy && e.Version == version
}

// entrants returns the newest version of a learned policy and every frozen one of its environment, in the order of ratings; newest is the
// place of the first.
func (r *Reader) entrants(leading *graph.Policy) (all []entrant, newest int, err error) {
	first, err := r.Player(leading.Name)
	if err != nil {
		return nil, 0, err
	}
	all = []entrant{{first, leading.Name}}
	for i := range r.Graph.Policies {
		p := &r.Graph.Policies[i]
		if p.Env != leading.Env || p.Role() == graph.Learned {
			continue
		}
		more, err := r.versions(p)
		if err != nil {
			return nil, 0, fmt.Errorf("policy %q: %w", p.Name, err)
		}
		for _, x := range more {
			if !slices.ContainsFunc(all, func(e entrant) bool { return e.is(x.policy, x.Version) }) {
				all = append(all, x)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b entrant) int {
		own := func(e entrant) int {
			if e.policy == leading.Name {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.policy, b.policy), cmp.Compare(a.Version, b.Version))
	})
	return all, slices.IndexFunc(all, func(e entrant) bool { return e.is(leading.Name, first.Version) }), nil
}

// versions returns the versions of a policy that nobody learns.
func (r *Reader) versions(p *graph.Policy) (all []entrant, err error) {
	of := cmp.Or(p.Of, p.Name)
	if p.Role() == graph.Frozen {
		n, w, err := r.weights(p)
		if err != nil {
			return nil, err
		}
		x, err := r.playing(p, n, w)
		return []entrant{{x, of}}, err
	}
	state, err := r.state(KindPool, p.Name)
	if err != nil {
		return nil, err
	}
	pool, err := KindOf[Pool](r.Parts, KindPool)
	if err != nil {
		return nil, err
	}
	learned, err := r.state(KindLearner, p.Of)
	if err != nil {
		return nil, err
	}
	n, _, err := weightsOf(r.Parts, learned)
	if err != nil {
		return nil, err
	}
	numbers, err := pool.Versions(state)
	for _, v := range numbers {
		w, err := pool.Weights(state, &n, v)
		if err != nil {
			return nil, err
		}
		x, err := r.playing(p, n, w)
		if err != nil {
			return nil, err
		}
		all = append(all, entrant{x, of})
	}
	return all, err
}

// CodeLadder is the code of a run that has nothing to rate; rlhost explain has its page.
const CodeLadder = "E059"

// ladder plays the matches of the newest version with every other, and of each with its neighbour in their order: those tell apart
// what the newest beats always, or never. Actions are sampled unless the options say otherwise.
func ladder(ctx context.Context, all []entrant, newest int, o evaluation.Options) (l *Ladder, err error) {
	const envs = 32 // of a match
	spec := o.Plugin.Spec()
	players := make([]Player, len(all))
	for i := range all {
		players[i] = all[i].Player
	}
	acting, end, err := ActAll(players, envs*spec.Agents())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	l = &Ladder{Greedy: o.Greedy}
	var pairings []evaluation.Pairing
	play := func(a, b int) (evaluation.Match, error) {
		o.Player, o.Others, o.Envs = acting[a], acting[b:b+1], envs
		m, err := evaluation.PlayMatch(ctx, o)
		pairings = append(pairings, evaluation.Pairing{A: a, B: b, Match: m})
		return m, err
	}
	for i := range all {
		r := Rating{Policy: all[i].policy, Version: all[i].Version}
		if i != newest {
			m, err := play(newest, i)
			if err != nil {
				return nil, err
			}
			r.Against, l.Episodes = &m, m.Episodes()
		}
		if next := i + 1; i != newest && next < len(all) && next != newest {
			if _, err := play(i, next); err != nil {
				return nil, err
			}
		}
		l.Ratings = append(l.Ratings, r)
	}
	for i, elo := range evaluation.Elo(len(all), pairings) {
		l.Ratings[i].Elo = elo
	}
	return l, nil
}

// Ladder rates the newest version of a learned policy and every frozen one of its environment, whose plugin is given. Of the options
// Episodes, Seed, Greedy and what bounds episodes matter.
func (r *Reader) Ladder(ctx context.Context, leading *graph.Policy, plugin env.Plugin, o evaluation.Options) (*Ladder, error) {
	all, newest, err := r.entrants(leading)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Spec.Agents() < 2:
		return nil, noLadder(fmt.Sprintf("%s has one agent: its policies do not play against each other", r.Spec.Name),
			"Elo is for environments with two agents or more")
	case len(all) < 2:
		return nil, noLadder(fmt.Sprintf("policy %q has nobody to play against: the run has no frozen versions", leading.Name),
			fmt.Sprintf("give it a pool, [policy.past] of = %q, or a frozen policy", leading.Name))
	}
	o.Plugin = plugin
	return ladder(ctx, all, newest, o)
}

func noLadder(reason, help string) error {
	return &table.Error{Code: CodeLadder, Reason: reason, Help: help}
}

// Pooled reports whether a graph has a pool of versions of a policy.
func Pooled(g *graph.Graph, learned string) bool {
	return slices.ContainsFunc(g.Policies, func(p graph.Policy) bool {
		return p.Of == learned && p.Role() == graph.Pool && OfPolicy(g, KindPool, p.Name) != nil
	})
}
