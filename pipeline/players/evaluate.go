package players

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Played is how a policy did with its actions picked in one way.
type Played struct {
	Return     float64   `json:"mean_return"`
	Std        float64   `json:"std_return"`
	Length     float64   `json:"mean_length"`
	Unfinished int       `json:"unfinished"`    // episodes that were given up
	Cut        bool      `json:"cut,omitempty"` // its time was over before all episodes had been played
	Returns    []float64 `json:"-"`
	// Agents are the mean returns of the agents with names of their own that it plays, by these; nil without.
	Agents map[string]float64 `json:"agents,omitempty"`
}

// Evaluation is how a policy did greedily and with sampled actions, in the same episodes.
type Evaluation struct {
	Greedy, Sampled Played
	JudgesGreedy    bool     // or else the sampled one
	MaxSteps        uint64   // after which episodes were given up
	Episodes        int      // that were to be played
	Ratings         *Ratings // how strong its versions are, in the final evaluation of a run with a pool of them; else nil

	// Of session.EvaluateRun: the policy, and how far its learner had come.
	Policy                  string
	PolicyVersion, EnvSteps uint64
}

// Judged returns the part that a run is judged by.
func (e *Evaluation) Judged() *Played {
	if e.JudgesGreedy {
		return &e.Greedy
	}
	return &e.Sampled
}

// Acting says how the actions were picked that a run is judged by.
func (e *Evaluation) Acting() string { return Acting(e.JudgesGreedy) }

// Acting says how actions are picked: the most probable ones, or sampled ones.
func Acting(greedy bool) string { return Way(greedy) + " actions" }

// Way is the word for a way of picking actions: greedy, the most probable ones, or sampled.
func Way(greedy bool) string {
	if greedy {
		return "greedy"
	}
	return "sampled"
}

// Cut reports whether time was over before all episodes had been played. The result then means less and judges nothing.
func (e *Evaluation) Cut() bool { return e.Greedy.Cut || e.Sampled.Cut }

// String describes both ways of acting, the judged one first.
func (e *Evaluation) String() string {
	judged, other, otherHow := &e.Sampled, &e.Greedy, "greedy"
	if e.JudgesGreedy {
		judged, other, otherHow = &e.Greedy, &e.Sampled, "sampled"
	}
	told := fmt.Sprintf("%s over %s%s, %s; %s %s%s", text.Returns(judged.Return, judged.Std), e.played(judged),
		e.unfinished(judged), e.Acting(), otherHow, text.Returns(other.Return, other.Std), e.unfinished(other))
	for _, name := range slices.Sorted(maps.Keys(judged.Agents)) {
		told += fmt.Sprintf("; %s %.4g", name, judged.Agents[name])
	}
	if e.Ratings != nil {
		told += "\n" + e.Ratings.String()
	}
	return told
}

// played says over how many episodes a return is.
func (e *Evaluation) played(p *Played) string {
	if p.Cut {
		return fmt.Sprintf("%d of %d episodes, cut by its time", len(p.Returns), e.Episodes)
	}
	return fmt.Sprintf("%d episodes", len(p.Returns))
}

// unfinished says how many episodes were given up, if any.
func (e *Evaluation) unfinished(p *Played) string {
	if p.Unfinished == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d unfinished after %d env steps)", p.Unfinished, e.MaxSteps)
}

// Told describes how the policies of a run did, a line each: the leading one, if it was evaluated, then the others by their names.
func Told(leading *Evaluation, others map[string]*Evaluation) string {
	var b strings.Builder
	if leading != nil {
		fmt.Fprintf(&b, "evaluation: return %s\n", leading)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		fmt.Fprintf(&b, "evaluation of %s: return %s\n", name, others[name])
	}
	return b.String()
}

// EvaluationOptions say which episodes are played and judged.
type EvaluationOptions struct {
	evaluation.Options
	JudgesGreedy bool   // or else the evaluation of sampled actions is judged
	Beside       Beside // players of the other agents
}

// EvaluationOf returns the evaluation that a pipeline asks for, after a training whose longest episode had so many env
// steps. Episodes begin with the state that outlives the training's episodes, taken from its instances' states.
func EvaluationOf(g *graph.Graph, longest uint64, states map[string]component.State) EvaluationOptions {
	e := g.Run.Evaluation
	most := max(10*longest, 10_000)
	if e.MaxSteps > 0 {
		most = uint64(e.MaxSteps)
	}
	return EvaluationOptions{JudgesGreedy: e.Greedy, Options: evaluation.Options{
		Episodes: e.Episodes, Seed: e.Seed, MaxSteps: most, Lasting: lastingOf(g, states),
	}}
}

// lastingOf returns the lasting state of the first environment whose instance has saved one, nil if none has.
func lastingOf(g *graph.Graph, states map[string]component.State) []byte {
	for i := range g.Components {
		c := &g.Components[i]
		for index := range c.Count {
			part, _ := states[c.InstanceName(index)].Lasting()
			if kept, err := env.SplitLasting(part.Blobs[component.LastingBlob]); err == nil && len(kept) > 0 {
				return kept[0]
			}
		}
	}
	return nil
}

// Evaluate plays the episodes in a plugin's environments twice at the same time, greedily and with sampled actions.
func Evaluate(ctx context.Context, plugin env.Plugin, p Player, o EvaluationOptions) (*Evaluation, error) {
	o.Plugin = plugin
	greedy, sampled := o.Options, o.Options
	greedy.Greedy = true
	e := &Evaluation{JudgesGreedy: o.JudgesGreedy, MaxSteps: o.MaxSteps, Episodes: o.Episodes}
	other := make(chan error, 1)
	go func() {
		var err error
		e.Sampled, err = Play(ctx, p, o.Beside, sampled)
		other <- err
	}()
	var err error
	e.Greedy, err = Play(ctx, p, o.Beside, greedy)
	if err = errors.Join(err, <-other); err != nil {
		return nil, err
	}
	return e, nil
}

// ErrNoRound is returned where time was over before one round of episodes had been played.
var ErrNoRound = errors.New("its time was over before one round of episodes had come to its end: give it more by run.evaluation.wall_time, or play fewer steps by run.evaluation.max_steps")

// Play plays all episodes in one way, with new environments and policies; b plays the agents that p does not.
func Play(ctx context.Context, p Player, b Beside, o evaluation.Options) (Played, error) {
	const most = 32
	turns := (o.Episodes + most - 1) / most
	envs := (o.Episodes + turns - 1) / turns // so that few are idle in the last turn
	spec := o.Plugin.Spec()
	p.Group = b.Group
	all, closeAll, err := ActAll(append([]Player{p}, b.Players...), envs*spec.Agents())
	if err != nil {
		return Played{}, err
	}
	o.Player, o.Others, o.Envs = all[0], all[1:], envs
	if len(o.Others) > 0 {
		o.Plays = func(_, agent int) int { return b.Agents[agent] }
	}
	r, err := evaluation.Run(ctx, o)
	if err = errors.Join(err, closeAll()); err != nil {
		return Played{}, err
	}
	if len(r.Returns) == 0 {
		return Played{}, ErrNoRound
	}
	return Played{Return: r.Mean(), Std: r.Std(), Length: r.MeanLength(), Unfinished: r.Unfinished, Returns: r.Returns, Cut: r.Cut, Agents: r.AgentMeans(&spec)}, nil
}
