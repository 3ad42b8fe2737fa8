package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/play/web"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// liveRun opens the environment of a run, and the policy of its newest checkpoint.
type liveRun struct {
	parts graph.Parts // a copy: it takes the interpreter of its own run
	dir   string
	log   *slog.Logger

	policyVersion uint64 // of the stage that was opened last
}

// Open is dash.Opener's.
func (l *liveRun) Open(ctx context.Context, n int) (*web.Stage, error) {
	if err := mine(l.dir); err != nil {
		return nil, err
	}
	run, err := runs.Open("", l.dir)
	if err != nil {
		return nil, err
	}
	checkpoint, err := run.Load(runs.Latest)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, errors.New("the run has no checkpoint yet: the picture begins with the first one")
	}
	if err != nil {
		return nil, err
	}
	seed := run.Info().Seed + uint64(n) // not the same episode for each checkpoint
	s, err := session.OpenStage(ctx, run, &checkpoint, session.RunEvaluation{Parts: &l.parts, Episodes: 1, Seed: seed, Log: l.log})
	if err != nil {
		return nil, err
	}
	game, err := play.New(s.Plugin, play.Options{Seed: seed, Seats: s.Players()})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if text, colour := game.Draws(); !text && !colour {
		return nil, errors.Join(undrawn(game), game.Close(), s.Close())
	}
	game.By = play.Policy
	l.policyVersion = checkpoint.PolicyVersion
	return &web.Stage{
		Show: play.NewShow(game, nil, 0), What: fmt.Sprintf("%s at policy version %d", s.Policy, s.PolicyVersion),
		Close: func() error { return errors.Join(game.Close(), s.Close()) },
	}, nil
}

// Stale is dash.Opener's.
func (l *liveRun) Stale() bool {
	run, err := runs.Open("", l.dir)
	if err != nil {
		return false // it has been removed; what is shown continues
	}
	return slices.ContainsFunc(run.Checkpoints(), func(c runs.Saved) bool { return c.Latest && c.PolicyVersion != l.policyVersion })
}

// codeNotMine is the code of a run whose programs are not run by looking at it.
const codeNotMine = "E166"

// mine refuses a run's folder of another user: its environment may be any program.
func mine(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("error[%s]: the run's folder belongs to another user, whose environment is not run by a page\n  help: rlhost watch %s runs it", codeNotMine, text.Shell(dir))
	}
	return nil
}
