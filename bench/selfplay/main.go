package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/opponents"
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

// play prints how the newest policy of a run does against each opponent. It is an error if the score against an untrained
// opponent is less than least.
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
	stored, err := firstOf(run, reader, &network, saved.Components)
	if err != nil {
		return err
	}
	newest, err := actor(&network, weights, envs)
	first, otherErr := actor(&network, stored, envs)
	if err = errors.Join(err, otherErr); err != nil {
		return err
	}
	how := map[bool]string{true: "the most probable actions", false: "sampled actions"}[greedy]
	fmt.Printf("%s, %d env steps, policy version %d, %d episodes a match, %s\n", run.ID(), saved.EnvSteps, weights.Version, episodes, how)
	for _, opponent := range []struct {
		name string
		evaluation.Player
		seed  uint64
		least float64
	}{
		{"a random player", evaluation.Player{Actor: searcher{0}}, 1, least},
		// The first version moves nearly at random, and with the same draws it would play the same games.
		{fmt.Sprintf("the first version, %d", stored.Version), first, 2, least},
		{"a search of two moves", evaluation.Player{Actor: searcher{2}}, 1, 0},
	} {
		match, err := evaluation.PlayMatch(ctx, evaluation.Options{Plugin: plugin, Player: newest, Others: []evaluation.Player{opponent.Player},
			Episodes: episodes, Envs: envs, Seed: opponent.seed, Greedy: greedy})
		if err != nil {
			return err
		}
		elo := evaluation.Elo(2, []evaluation.Pairing{{A: 1, B: 0, Match: match}})
		fmt.Printf("against %-22s  score %.3f  (%d won, %d drawn, %d lost)  Elo %+.0f\n", opponent.name, match.Score(), match.Wins, match.Draws,
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

// firstOf returns the first version of the policy that a run has stored: of its pools, or else of its oldest checkpoint.
func firstOf(run *runs.Run, learner session.Learner, n *policy.Network, states map[string]component.State) (first policy.Weights, err error) {
	var pool opponents.Pool
	found := false
	for name, state := range states {
		if !strings.HasPrefix(name, "opponents_") {
			continue
		}
		versions, err := pool.Versions(state)
		if err != nil {
			return first, err
		}
		if len(versions) == 0 || found && versions[0] >= first.Version {
			continue
		}
		if first, err = pool.Weights(state, n, versions[0]); err != nil {
			return first, err
		}
		found = true
	}
	if found {
		return first, nil
	}
	oldest, err := run.Load(strconv.FormatUint(run.Checkpoints()[0].PolicyVersion, 10))
	if err != nil {
		return first, err
	}
	_, first, err = learner.Weights(oldest.Components["learner"])
	return first, err
}
