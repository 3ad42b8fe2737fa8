package evaluation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Player is a policy that plays.
type Player struct {
	Actor   policy.Actor    // loaded with the weights, prepared for a row of each agent of Envs environments
	Network *policy.Network // that the actor computes; nil for an actor that takes observations as they are
	Group   int             // of agents that it can play
}

// Options are the settings of an evaluation.
type Options struct {
	Plugin env.Plugin
	Player // the evaluated player
	// Others play the agents that Plays assigns to them: 0 is Player, n is Others[n-1]. Without Others, Player plays all agents of its
	// group, and other groups' agents draw their actions at random; with Others, it plays at least one agent in every episode.
	Others []Player
	Plays  func(episode, agent int) int
	// Alike is how many successive episodes begin with the same seed and draw the same numbers; 0 = 1.
	Alike    int
	Episodes int
	Envs     int    // in parallel; does not change the result
	Seed     uint64 // of episodes and actions, which differ from a training's with the same seed
	Greedy   bool   // the most probable action instead of a sample
	// Lasting is the lasting state that each episode begins with, such as a training's statistics of rewards; nil is none. See env.Lasting.
	Lasting []byte
	// MaxSteps cuts an episode off after that many env steps; 0 = never. It counts with its return so far, and as
	// unfinished.
	MaxSteps uint64
	// Share is how much of a processor Run may use, from 0 to 1: it sleeps for the remaining time. 0 and 1 = all.
	Share float64
	// Until ends Run, which then has the outcomes of whole rounds: of Envs successive episodes each, up to the first that is not complete.
	// The zero time is never. Done, if it is not nil, is called after each episode.
	Until time.Time
	Done  func()
}

// Result holds the outcome of each episode, by its index.
type Result struct {
	Returns []float64 // of several agents of the evaluated player their mean
	Against []float64 // the mean returns of the agents that others play; without others nil
	Lengths []int
	Greedy  bool
	// Unfinished counts the episodes that were cut off.
	Unfinished int
	Cut        bool // Until came before all episodes had been played
	// ByAgent are the returns of the agents of each episode, one after the other, NaN for an agent that another player plays; nil where
	// the agents have no names of their own.
	ByAgent []float64
}

// AgentMeans returns the mean returns of the agents that have names of their own, as far as the player plays them; nil if none has.
func (r *Result) AgentMeans(spec *hostabi.EnvSpec) map[string]float64 {
	var means map[string]float64
	names := spec.OwnNames()
	for agent, name := range names {
		sum, n := 0.0, 0
		for at := agent; at < len(r.ByAgent); at += len(names) {
			if x := r.ByAgent[at]; !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		if name == "" || n == 0 {
			continue
		}
		if means == nil {
			means = map[string]float64{}
		}
		means[name] = sum / float64(n)
	}
	return means
}

// Mean returns the mean return of all episodes.
func (r *Result) Mean() float64 {
	sum := 0.0
	for _, x := range r.Returns {
		sum += x
	}
	return sum / float64(len(r.Returns))
}

// Std returns the standard deviation of the returns, over n.
func (r *Result) Std() float64 {
	mean, sum := r.Mean(), 0.0
	for _, x := range r.Returns {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(r.Returns)))
}

// MeanLength returns the mean number of env steps of an episode.
func (r *Result) MeanLength() float64 {
	sum := 0
	for _, n := range r.Lengths {
		sum += n
	}
	return float64(sum) / float64(len(r.Lengths))
}

// cutWithin is how long a step may still take when the time of the play is over, until its environments are made to end it.
const cutWithin = 500 * time.Millisecond

// Run plays every episode to its end, or as far as MaxSteps. It runs on the calling goroutine; ctx is checked between
// steps, and ends a long step.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Episodes < 1 {
		return nil, fmt.Errorf("evaluation: %d episodes", o.Episodes)
	}
	wanted := ctx
	if !o.Until.IsZero() {
		var cancel context.CancelFunc
		wanted, cancel = context.WithDeadline(ctx, o.Until.Add(cutWithin))
		defer cancel()
	}
	p, err := newPlay(wanted, o, env.EvaluationStream)
	switch {
	case err == nil:
	case ctx.Err() != nil: // which cuts an environment's creation too
		return nil, ctx.Err()
	case wanted.Err() != nil:
		return &Result{Greedy: o.Greedy, Cut: true}, nil
	default:
		return nil, err
	}
	if err := errors.Join(p.run(ctx), p.driver.Close()); err != nil {
		return nil, err
	}
	return &p.result, nil
}
