package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

func main() {
	episodes := flag.Int("episodes", 1000, "of each match")
	dir := flag.String("dir", "runs", "folder of runs")
	least := flag.Float64("least", 0, "fail where the score against a random player or the first version is less")
	greedy := flag.Bool("greedy", false, "the most probable actions instead of sampled ones; against the first version one game on each side, over and over")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./bench/selfplay [-dir DIR] [-episodes N] [-greedy] [-least SCORE] RUN")
		os.Exit(2)
	}
	if err := play(context.Background(), *dir, flag.Arg(0), *episodes, *greedy, *least); err != nil {
		fmt.Fprintln(os.Stderr, "selfplay:", err)
		os.Exit(1)
	}
}

// play prints how the newest policy of a run does against each opponent. It is an error if the score against one that has learned
// nothing is less than least.
func play(ctx context.Context, dir, which string, episodes int, greedy bool, least float64) (err error) {
	parts, engines := builtin.New(builtin.Options{Log: slog.Default()})
	defer func() { err = errors.Join(err, engines.Close()) }()
	run, err := runs.Open(dir, which)
	if err != nil {
		return err
	}
	saved, err := run.Load(runs.Latest)
	if err != nil {
		return err
	}
	reader := parts.Kinds["learner"]().(session.Learner)
	network, weights, err := reader.Weights(saved.Components["learner"])
	if err != nil {
		return err
	}
	plugin, err := parts.Load(ctx, "connectfour", graph.EnvTable{Source: env.Source{Use: "connectfour@1"}}, ".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	const envs = 64
	newest, err := actor(&network, weights, envs)
	if err != nil {
		return err
	}
	first, err := actor(&network, untrained(&network, run.Info().Seed), envs)
	if err != nil {
		return err
	}
	how := map[bool]string{true: "the most probable actions", false: "sampled actions"}[greedy]
	fmt.Printf("%s, %d env steps, policy version %d, %d episodes a match, %s\n", run.ID(), saved.EnvSteps, weights.Version, episodes, how)
	for _, opponent := range []struct {
		name string
		evaluation.Player
		least float64
	}{
		{"a random player", evaluation.Player{Actor: searcher{0}}, least},
		{"the first version", first, least},
		{"a search of two moves", evaluation.Player{Actor: searcher{2}}, 0},
	} {
		match, err := evaluation.PlayMatch(ctx, evaluation.Options{Plugin: plugin, Player: newest, Others: []evaluation.Player{opponent.Player},
			Episodes: episodes, Envs: envs, Seed: 1, Greedy: greedy})
		if err != nil {
			return err
		}
		elo := evaluation.Elo(2, []evaluation.Pairing{{A: 1, B: 0, Match: match}})
		fmt.Printf("against %-21s  score %.3f  (%d won, %d drawn, %d lost)  Elo %+.0f\n", opponent.name, match.Score(), match.Wins, match.Draws,
			match.Losses, elo[1])
		if match.Score() < opponent.least {
			return fmt.Errorf("a score of %.3f against %s, want %g", match.Score(), opponent.name, opponent.least)
		}
	}
	return nil
}

// actor returns a player of a version of the policy.
func actor(n *policy.Network, w policy.Weights, envs int) (evaluation.Player, error) {
	a, err := policy.NewActor(cpu.New(), n, 2*envs)
	if err != nil {
		return evaluation.Player{}, err
	}
	return evaluation.Player{Actor: a, Network: n}, a.Load(w)
}

// untrained returns what a run begins with.
func untrained(n *policy.Network, seed uint64) policy.Weights {
	w := policy.Weights{Params: policy.Init(n, seed)}
	if stats := n.Stats(); stats > 0 {
		w.ObsMean, w.ObsScale = make([]float32, stats), make([]float32, stats)
		policy.NewNormalizer(stats).Weights(w.ObsMean, w.ObsScale)
	}
	return w
}
