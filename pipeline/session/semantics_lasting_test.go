package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// normalised is a run whose rewards are normalised: statistics that begin with nothing make the first ones a 10.
func normalised(mode string, steps int, sets ...string) experiment {
	script := uneven()
	script.Reward = func(at plugintest.At) float32 { return 100 * float32(1+at.Step%3) }
	return experiment{script: script, changes: true, sets: append([]string{fmt.Sprintf("train.mode=%q", mode),
		fmt.Sprintf("run.stop.env_steps=%d", steps), "env.lab.wrap=[{ reward_normalize = {} }]"}, sets...)}
}

// largest returns the largest learned reward in the blocks that of selects, and their number.
func (c *tap) largest(of func(*block) bool) (most float32, blocks int) {
	for i := range c.blocks {
		b := &c.blocks[i]
		if !of(b) {
			continue
		}
		blocks++
		valid := b.Bytes(trajectory.Valid)
		for i, r := range b.Float32(trajectory.ShapedReward) {
			if valid[i] != 0 {
				most = max(most, r)
			}
		}
	}
	return most, blocks
}

func all(*block) bool { return true }

// Statistics of wrappers are in asynchronous checkpoints, for as many instances and environments as there are then. In synchronous
// checkpoints they outlive episodes that do not fit any more.
func TestS29StatisticsSurviveAResume(t *testing.T) {
	lives := func(mode string, only bool, sets ...string) {
		t.Helper()
		a := normalised(mode, 1024).must(t)
		if most, _ := a.largest(all); most != 10 {
			t.Fatalf("%s: the first rewards are up to %v: what follows shows nothing", mode, most)
		}
		states := roundTrip(t, runs.Checkpoint{Components: a.states}).Components
		if only {
			part, ok := states["rollout"].Lasting()
			if !ok {
				t.Fatalf("%s: a checkpoint without statistics", mode)
			}
			states["rollout"] = part
		}
		if mode == "async" && !states["rollout"].OnlyLasting() {
			t.Fatalf("an asynchronous checkpoint has %+v of the rollout", states["rollout"])
		}
		x := normalised(mode, 2048, sets...)
		x.resume, x.resumes = states, 1
		b := x.must(t)
		if most, blocks := b.largest(all); most > 5 || blocks == 0 {
			t.Errorf("%s %v: behind the resume a reward of %v is learned from: the statistics have begun anew", mode, sets, most)
		}
	}
	lives("async", false)
	lives("async", false, "component.rollout.count=2", "component.rollout.envs=4")
	lives("sync", true)
}

// An added instance begins with the running instances' statistics, and so does a replacement that cannot take over episodes.
func TestS29StatisticsSurviveAScaleUpAndAReplacement(t *testing.T) {
	for set, isNew := range map[string]func(*block) bool{
		"component.rollout.count=2":  func(b *block) bool { return b.meta.Rollout == 1 },
		"component.rollout.splits=4": func(b *block) bool { return b.Schema.Shape.Envs == 2 },
	} {
		t.Run(set, func(t *testing.T) {
			x := normalised("async", 100_000_000)
			changed := make(chan error, 1)
			x.boundary = func(p *pipeline.Pipeline, n int, _ func() (map[string]component.State, error)) error {
				if n == 8 {
					go func() {
						_, err := replaceOne(t, p, x.parts(&tap{}), set)
						for range 16 {
							err = errors.Join(err, p.AtNextBoundary(t.Context(), func(pipeline.Snapshot) error { return nil }))
						}
						p.Stop(component.StopInterrupted)
						changed <- err
					}()
				}
				return nil
			}
			o := x.must(t)
			if err := <-changed; err != nil {
				t.Fatal(err)
			}
			if most, blocks := o.largest(isNew); most > 5 || blocks == 0 {
				t.Errorf("behind the change a reward of %v is learned from in %d blocks: the statistics have begun anew", most, blocks)
			}
		})
	}
}
