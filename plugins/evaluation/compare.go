package evaluation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/tape"
)

// CompareOptions are the settings of a comparison of two versions of an environment.
type CompareOptions struct {
	Old, New env.Plugin
	Player          // that acts in both; agents of other groups than its own draw their actions at random
	Envs     int    // of each version
	Episodes int    // of each environment; a mean over the first to end would be biased
	Ceiling  uint64 // env steps of each environment; 0 = none. Episodes that it cuts off count so far.
	Seed     uint64 // of episodes and actions, for both versions the same
	// Progress receives the finished share of the trial, from 0 to 1; it may be nil.
	Progress func(share float64)
	// Tape records the new version's environments, and Loaded describes their source; nil records nothing.
	Tape   *tape.Ring
	Loaded []byte
	Change uint64 // number of the change that the comparison is for, on the tape
}

// Trial is the result of one version.
type Trial struct {
	Result           // of the episodes that were begun; the ceiling leaves some unfinished
	Steps     uint64 // env steps made
	PerSecond float64
	// Fault is the error that ended the trial early, or nil.
	Fault error
}

// compareTurn is how many steps one version makes before the other's turn, so that both run under the same load.
const compareTurn = 64

// Compare plays the same episodes with two versions of an environment, alternately, on separate environments, until
// every environment has ended its quota or reached the ceiling. A version that fails ends its own trial. It runs on
// the calling goroutine; the error is ctx's, or about the options.
func Compare(ctx context.Context, o CompareOptions) (before, after Trial, err error) {
	if o.Envs < 1 || o.Episodes < 1 {
		return before, after, fmt.Errorf("compare: %d environments with %d episodes each", o.Envs, o.Episodes)
	}
	for _, p := range []env.Plugin{o.Old, o.New} {
		if spec := p.Spec(); spec.MaxEnvs > 0 {
			o.Envs = min(o.Envs, spec.MaxEnvs) // the same number of both, else the episodes would differ
		}
	}
	sides := [2]*side{{o: &o, plugin: o.Old}, {o: &o, plugin: o.New}}
	for _, s := range sides {
		s.open(ctx)
		defer func() { err = errors.Join(err, s.close()) }()
	}
	for !sides[0].over() || !sides[1].over() {
		for _, s := range sides {
			if err := s.turn(ctx); err != nil {
				return before, after, err
			}
		}
		if o.Progress != nil {
			o.Progress(min(sides[0].share(), sides[1].share()))
		}
	}
	return sides[0].trial(), sides[1].trial(), nil
}

// side is one version of the two.
type side struct {
	o      *CompareOptions
	plugin env.Plugin
	play   *play
	fault  error
}

func (s *side) open(ctx context.Context) {
	o := s.o
	s.play, s.fault = newPlay(ctx, Options{
		Plugin: s.plugin, Player: o.Player, Episodes: o.Envs * o.Episodes, Envs: o.Envs, Seed: o.Seed,
	}, env.TrialStream)
	if s.fault != nil {
		return
	}
	s.play.quota, s.play.ceiling = o.Episodes, o.Ceiling
	if s.plugin == o.New && o.Tape != nil {
		s.record()
	}
	s.fault = s.play.open()
}

// record puts the environments on the tape.
func (s *side) record() {
	d, o := s.play.driver, s.o
	s.play.tape = tape.NewWriter(d.Env, o.Tape.Stream(tape.Head{
		Name: playName, Envs: len(s.play.episode), Agents: d.Schema().Agents, Seed: s.play.seed, Autoreset: d.Autoreset(), SoA: d.Schema().Shape.SoA,
		Hash: s.plugin.Hash(), Loaded: o.Loaded, Change: o.Change, Fresh: true,
	}))
	tr, _ := d.Acting()
	s.play.tape.Bind(tr)
}

func (s *side) over() bool { return s.fault != nil || s.play.playing == 0 }

// turn makes some steps. Its error is that of ctx.
func (s *side) turn(ctx context.Context) error {
	for range compareTurn {
		if s.over() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		s.fault = s.play.step()
	}
	return nil
}

// share returns the finished share of the trial.
func (s *side) share() float64 {
	if s.over() {
		return 1
	}
	least := 1.0
	for env := range s.play.episode {
		ended := float64(s.play.begun[env])
		if s.play.episode[env] >= 0 {
			ended--
		}
		share := ended / float64(s.o.Episodes)
		if s.o.Ceiling > 0 {
			share = max(share, float64(s.play.spent[env])/float64(s.o.Ceiling))
		}
		least = min(least, share)
	}
	return least
}

// trial sums up. Episodes that were never begun are not in it.
func (s *side) trial() Trial {
	t := Trial{Fault: s.fault}
	if s.play == nil {
		return t
	}
	t.Unfinished = s.play.result.Unfinished
	for i, length := range s.play.result.Lengths {
		if length > 0 {
			t.Returns = append(t.Returns, s.play.result.Returns[i])
			t.Lengths = append(t.Lengths, length)
		}
	}
	for _, n := range s.play.spent {
		t.Steps += n
	}
	t.PerSecond = s.perSecond(t.Steps)
	return t
}

// perSecond returns the version's steps per second, by the median call: in a short trial one call that waited for the
// processor would decide.
func (s *side) perSecond(steps uint64) float64 {
	if len(s.play.took) == 0 {
		return 0
	}
	took := slices.Sorted(slices.Values(s.play.took))
	median := max(took[len(took)/2], 1)
	return float64(steps) / float64(s.play.calls) / median.Seconds()
}

func (s *side) close() error {
	if s.play == nil {
		return nil
	}
	return s.play.driver.Close()
}
