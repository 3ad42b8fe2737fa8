package evaluation

import (
	"context"
	"errors"
	"fmt"
)

// Match is how one player did against another, by episodes. The greater return wins an episode.
type Match struct {
	Wins   int `json:"wins"`
	Draws  int `json:"draws"` // equal returns
	Losses int `json:"losses"`
	// Unfinished counts the episodes that were cut off, and counted by their returns so far.
	Unfinished int `json:"unfinished"`
}

// Episodes returns how many were played.
func (m Match) Episodes() int { return m.Wins + m.Draws + m.Losses }

// Score returns the share of episodes that were won; a draw counts half.
func (m Match) Score() float64 { return (float64(m.Wins) + float64(m.Draws)/2) / float64(m.Episodes()) }

// ErrOneAgent is wrapped by PlayMatch for an environment with one agent.
var ErrOneAgent = errors.New("a match needs an environment with two agents or more")

// ErrOneGroup is wrapped by PlayMatch for an environment with several groups of agents.
var ErrOneGroup = errors.New("a match needs agents of one group")

// PlayMatch plays Player against the only one of Others; Plays and Alike are its own. In each episode one agent is played by one of
// both and all further agents by the other, whose return is their mean. Episodes come in rounds, in which each player is each
// agent once, alone and, of more than two agents, against it: they begin alike and draw alike, so that a match of two players that
// act alike is drawn, and that of B against A is the reverse of that of A against B. Episodes is rounded up to whole rounds.
func PlayMatch(ctx context.Context, o Options) (Match, error) {
	spec := o.Plugin.Spec()
	agents := spec.Agents()
	if agents < 2 {
		return Match{}, fmt.Errorf("%w: %s has one", ErrOneAgent, spec.Name)
	}
	if len(spec.Groups) > 1 {
		return Match{}, fmt.Errorf("%w: those of %s are in %d groups, which no policy plays all of", ErrOneGroup, spec.Name, len(spec.Groups))
	}
	if len(o.Others) != 1 {
		return Match{}, fmt.Errorf("a match of %d players, want two", 1+len(o.Others))
	}
	o.Alike = 2 * agents
	if agents == 2 { // one against one is the same the other way round
		o.Alike = 2
	}
	o.Episodes = (o.Episodes + o.Alike - 1) / o.Alike * o.Alike
	o.Plays = func(episode, agent int) int {
		i := episode % o.Alike
		if alone := i < agents; alone == (agent == i%agents) {
			return 0
		}
		return 1
	}
	r, err := Run(ctx, o)
	if err != nil {
		return Match{}, err
	}
	return r.match(), nil
}

// match counts who had the greater return.
func (r *Result) match() Match {
	m := Match{Unfinished: r.Unfinished}
	for i, own := range r.Returns {
		switch other := r.Against[i]; {
		case own > other:
			m.Wins++
		case own < other:
			m.Losses++
		default:
			m.Draws++
		}
	}
	return m
}
