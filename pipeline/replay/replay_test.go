package replay_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/replay"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

var many = flag.Int("replay.episodes", 4, "episodes of each run that are played again")

const examples = "../../examples/plugins/"

// file is a small pipeline, with a witness of all blocks.
const file = `
rlhost = 1
[run]
name = "seen"
seed = 7
record = "64MiB"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.seen]
use = "cartpole@1"
[train]
preset = "fast"
env = "seen"
mode = "sync"
[policy.main]
net = { hidden = [8] }
[component.rollout]
envs = 8
splits = 2
horizon = 32
[component.batcher]
dataset_rows = 256
[component.learner]
minibatch = 256
lr_anneal_env_steps = 0
[component.runner]
log = ["jsonl"]
[component.witness]
kind = "witness"
[[wire]]
signal = "rollout.trajectories"
slot = "witness.on_trajectories"
mode = "all"
depth = 64
on_full = "block"
`

// seenRow is one row of one agent, as the run saw it. Observations are bits.
type seenRow struct {
	step        uint64
	obs, action [][]float64
	reward      float32
	valid       bool
}

// witness keeps what all agents saw and did.
type witness struct {
	h    *component.Host
	mu   sync.Mutex
	rows map[[2]int][]seenRow // by environment and agent
}

func (w *witness) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{{Name: "on_trajectories", Payload: component.PayloadTrajectory}}}
}

func (w *witness) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

func (w *witness) Start(h *component.Host) error {
	w.h = h
	h.Slot("on_trajectories", w.see)
	return nil
}

func (w *witness) Snapshot() (component.State, error) { return component.State{}, nil }
func (w *witness) Restore(component.State) error      { return nil }
func (w *witness) Stop() error                        { return nil }

func (w *witness) see(m *hostabi.Message) {
	tr, lease, err := trajectory.Lease(w.h.Arenas, m.Handle)
	if err != nil {
		w.h.Fail(err)
		return
	}
	w.mu.Lock()
	for t := range tr.Schema.Shape.Steps {
		for i := range tr.Schema.Rows() {
			w.add(tr, t, i)
		}
	}
	w.mu.Unlock()
	if err := lease.Release(); err != nil {
		w.h.Fail(err)
	}
}

func (w *witness) add(tr trajectory.Trajectory, t, i int) {
	at := t*tr.Schema.Rows() + i
	r := seenRow{
		step: tr.Meta().FirstStep + uint64(t), reward: tr.Float32(trajectory.Reward)[at],
		valid: tr.Bytes(trajectory.Valid)[at] != 0,
	}
	columns := func(kind trajectory.Column) (list [][]float64) {
		for k := 0; tr.Schema.Has(kind.At(k)); k++ {
			if !tr.Schema.Holds(kind.At(k), i) {
				continue
			}
			matrix := tr.Row(kind.At(k), t)
			of := make([]float64, matrix.Elems)
			for e := range of {
				of[e] = matrix.Value(i, e)
			}
			list = append(list, of)
		}
		return list
	}
	r.obs, r.action = columns(trajectory.Obs), columns(trajectory.Action)
	key := [2]int{int(tr.Meta().FirstEnv) + i/tr.Schema.Agents, i % tr.Schema.Agents}
	w.rows[key] = append(w.rows[key], r)
}

// learned returns an agent's rows that are learned from, in their order.
func (w *witness) learned(env, agent int) (list []seenRow) {
	rows := slices.Clone(w.rows[[2]int{env, agent}])
	slices.SortStableFunc(rows, func(a, b seenRow) int { return int(a.step) - int(b.step) })
	return slices.DeleteFunc(rows, func(r seenRow) bool { return !r.valid })
}

// recorded is a run that has ended, and what was seen of it.
type recorded struct {
	*witness
	run   *runs.Run
	parts *graph.Parts
}

// train trains, and calls during with the session while it runs.
func train(t *testing.T, text string, during func(s *session.Session, parts *graph.Parts), sets ...string) *recorded {
	t.Helper()
	x := &recorded{witness: &witness{rows: map[[2]int][]seenRow{}}}
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	parts.Kinds["witness"] = func() component.Component { return x.witness }
	x.parts = parts
	g, problems := graphtest.Parse("seen.toml", []byte(text), graph.ParseOptions{Parts: parts, Sets: append([]string{"run.dir=" + t.TempDir()}, sets...)})
	if g == nil {
		t.Fatal(problems)
	}
	s, err := session.Begin(t.Context(), session.Options{Parts: parts, Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	var meanwhile sync.WaitGroup
	if during != nil {
		meanwhile.Go(func() { during(s, parts) })
	}
	_, err = s.Run(t.Context())
	meanwhile.Wait()
	dir := s.Folder().Dir
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if x.run, err = runs.Open("", dir); err != nil {
		t.Fatal(err)
	}
	return x
}

// replayed plays random episodes of a recording again, compares every step with what the run saw, and returns how many these are. lacks says
// that the beginning of some may be gone.
func (x *recorded) replayed(t *testing.T, least int, lacks bool) (played int) {
	t.Helper()
	reel, err := tape.Open(filepath.Join(x.run.Dir, runs.RecordingFolder))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reel.Close(); err != nil {
			t.Error(err)
		}
	}()
	all := reel.Episodes()
	if len(all) < least {
		t.Fatalf("%d episodes are recorded, want %d or more", len(all), least)
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	load := replay.Loader(context.Background(), x.run, x.parts)
	for _, place := range random.Perm(len(all)) {
		told := all[place]
		switch err := x.compare(reel, told, load); {
		case err == nil:
			if played++; played == *many {
				return played
			}
		case lacks && errors.Is(err, replay.ErrGone):
		default:
			t.Fatalf("seed %d: episode %d of agent %d of environment %d, life %d, of %d steps: %v", seed, told.Number, told.Agent, told.Env, told.Of.Life, told.Length, err)
		}
	}
	return played
}

// seen returns what the run saw of an episode, the newest last. A change may have dropped rows that the environments made.
func (x *recorded) seen(told tape.Told) []seenRow {
	rows := x.learned(int(told.Env), int(told.Agent))
	for len(rows) > 0 && rows[len(rows)-1].step > told.Step {
		rows = rows[:len(rows)-1]
	}
	return rows[max(0, len(rows)-int(told.Length)):]
}

func (x *recorded) compare(reel *tape.Reel, told tape.Told, load replay.Load) (err error) {
	e, err := replay.Open(reel, told, load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var got []seenRow
	for !e.Over {
		if err := e.Step(); err != nil {
			return err
		}
		if s := e.Newest(); s.Acts {
			got = append(got, seenRow{step: uint64(len(got)), obs: s.Observation, action: s.Action, reward: s.Reward})
		} else {
			got[len(got)-1].reward += s.Reward // the decision's, as a run counts it
		}
	}
	last := fmt.Sprint(e.Newest())
	if err := errors.Join(e.Back(2), e.Back(-2)); err != nil || !e.Over || fmt.Sprint(e.Newest()) != last {
		return fmt.Errorf("two steps back and forth end in %v, want %s (%w)", e.Newest(), last, err)
	}
	if len(got) != int(told.Length) {
		return fmt.Errorf("it has %d steps, want %d", len(got), told.Length)
	}
	want, first := x.seen(told), told.Step+1-uint64(len(got))
	if told.Of.Agents == 1 { // rows that were dropped are not compared
		want = slices.DeleteFunc(want, func(r seenRow) bool { return r.step < first })
		got = slices.DeleteFunc(got, func(r seenRow) bool {
			return !slices.ContainsFunc(want, func(w seenRow) bool { return w.step-first == r.step })
		})
	}
	if len(got) != len(want) || len(want) == 0 {
		return fmt.Errorf("it has %d steps, want %d", len(got), len(want))
	}
	for i := range got {
		if got, want := fmt.Sprint(got[i].obs, got[i].action, got[i].reward), fmt.Sprint(want[i].obs, want[i].action, want[i].reward); got != want {
			return fmt.Errorf("step %d is %s, want %s", i, got, want)
		}
	}
	return nil
}

const selfPlay = `
[policy.past]
of = "main"
[component.opponents_past]
every_versions = 1
`

// Episodes of runs of all kinds are the same again: observations, actions and rewards of every step.
func TestReplay_PlaysWhatTheRunSaw(t *testing.T) {
	for name, c := range map[string]struct {
		extra string
		sets  []string
	}{
		"synchronous":   {},
		"asynchronous":  {sets: []string{"train.mode=async"}},
		"module":        {sets: []string{"train.mode=async", "env.seen.use=" + examples + "cartpole-c/cartpole.wasm"}},
		"many wrappers": {sets: []string{"train.mode=async", `env.seen.wrap=[{ time_limit = 30 }, { reward_normalize = { gamma = 0.99 } }, { sticky_action = 0.25 }]`}},
		"core":          {sets: []string{`policy.main.net={ hidden = [8], core = { kind = "gru", size = 8 }, chunk = 16 }`}},
		"self-play":     {extra: selfPlay, sets: []string{"env.seen.use=connectfour@1", "train.preset=general", "component.rollout.opponents={ past = 0.5 }"}},
		"agents":        {sets: []string{"env.seen.use=" + examples + "foragers-c/foragers.wasm"}},
		"groups":        {extra: "[policy.prey]\nnet = { hidden = [8] }\n", sets: []string{"env.seen.use=" + examples + "tag-c/tag.wasm", `component.rollout.policies={ "hunters/*" = "main", "prey/*" = "prey" }`}},
		"whole":         {sets: []string{"component.rollout.whole_episodes=true", "env.seen.wrap=[{ time_limit = 64 }]", "component.rollout.horizon=64", "component.batcher.dataset_rows=512"}},
		"small ring":    {sets: []string{"train.mode=async", "run.record=1MiB", "run.stop.env_steps=262144"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := train(t, file+c.extra, nil, c.sets...)
			if played := x.replayed(t, 8, name == "small ring"); played < *many {
				t.Errorf("%d episodes could be played again, want %d", played, *many)
			}
		})
	}
}

// A synchronous run that has recorded nothing is run again, from its beginning or from a checkpoint.
func TestReplay_RunsASynchronousRunAgain(t *testing.T) {
	x := train(t, file, nil, "run.record=0B", "run.stop.env_steps=16384", `run.checkpoint={ every = "1ns", keep = 64 }`, `env.seen.wrap=[{ sticky_action = 0.25 }]`)
	if _, err := os.Stat(filepath.Join(x.run.Dir, runs.RecordingFolder)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("something was recorded: %v", err)
	}
	random, fromCheckpoint := x.random(t), 0
	for range max(3, *many/20) {
		begins, err := x.again(t, 100+random.IntN(200))
		if err != nil {
			t.Fatal(err)
		}
		if begins > 0 {
			fromCheckpoint++
		}
	}
	if fromCheckpoint == 0 {
		t.Error("no checkpoint was used")
	}
}

// A synchronous run saves a checkpoint after each change, however seldom it does otherwise: what follows is run again from there.
func TestReplay_RunsASwappedRunAgain(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			x := train(t, file, func(s *session.Session, _ *graph.Parts) { x := swaps{t, s, at}; x.make() },
				"run.record=0B", "run.stop.env_steps=1_000_000_000", `run.checkpoint={ every = "24h", keep = 64 }`)
			changes, err := x.run.Changes()
			if err != nil || len(changes) < 3 {
				t.Fatal(changes, err)
			}
			random, last, repeated := x.random(t), changes[len(changes)-1].EnvStep, 0
			for repeated < max(3, *many/20) {
				number := 1 + random.IntN(x.episodes(t))
				switch begins, err := x.again(t, number); {
				case err != nil && strings.Contains(err.Error(), "comes between"): // it was under way when the environments were replaced
				case err != nil:
					t.Fatal(err)
				case begins >= last:
					repeated++
				}
			}
		})
	}
}

// swaps are changes of a run by its commands.
type swaps struct {
	t  *testing.T
	s  *session.Session
	at component.Boundary
}

// make swaps the environments to and fro, and stops the run.
func (x *swaps) make() {
	defer x.s.Stop(false)
	for _, file := range []string{abs(examples + "cartpole-cpp/cartpole.wasm"), "cartpole@1", abs(examples + "cartpole-cpp/cartpole.wasm"), ""} {
		err := x.learn()
		if err == nil && file != "" {
			err = x.swap(file)
		}
		if err != nil {
			x.t.Error(err)
			return
		}
	}
}

// learn waits until the run has learned from some datasets.
func (x *swaps) learn() error {
	for range 16 {
		if err := x.s.Pipeline().AtNextBoundary(x.t.Context(), func(pipeline.Snapshot) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (x *swaps) swap(file string) error {
	c, err := control.Dial(x.t.Context(), control.SocketPath(x.s.Folder().Dir))
	if err != nil {
		return err
	}
	request := control.SwapRequest{Component: "rollout", File: file, At: x.at.String(), TrialEnvs: new(int), Probation: new(float64)}
	return errors.Join(c.Do(x.t.Context(), control.VerbSwap, request, nil, nil), c.Close())
}

// random is a source whose seed a failing test says.
func (x *recorded) random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	x.parts.Kinds["witness"] = func() component.Component { return &witness{rows: map[[2]int][]seenRow{}} }
	return rand.New(rand.NewPCG(seed, 0))
}

// episodes returns how many the run has listed.
func (x *recorded) episodes(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(x.run.Dir, "episodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n")) - 1
}

// again runs the run again for an episode, compares that with what the run saw, and returns the env steps that the repetition begins with.
func (x *recorded) again(t *testing.T, number int) (begins uint64, err error) {
	t.Helper()
	line, err := replay.Read(x.run, replay.Which{Episode: number, Env: -1})
	if err != nil {
		return 0, err
	}
	repeated, key, err := session.RunAgain(t.Context(), x.run, session.Again{Parts: x.parts, Line: line, Dir: t.TempDir(), Begins: func(envSteps uint64) { begins = envSteps }})
	if err != nil {
		return begins, err
	}
	reel, err := tape.Open(filepath.Join(repeated.Dir, runs.RecordingFolder))
	if err != nil {
		return begins, err
	}
	defer func() { err = errors.Join(err, reel.Close()) }()
	told, err := replay.Find(reel, key)
	if err == nil && (told.Return != line.Return || told.Length != line.Length || told.PolicyVersion != line.PolicyVersion) {
		err = fmt.Errorf("it is %+v", told.Episode)
	}
	if err == nil {
		err = x.compare(reel, told, replay.Loader(t.Context(), repeated, x.parts))
	}
	if err != nil {
		err = fmt.Errorf("episode %d, %+v: %w", number, line, err)
	}
	return begins, err
}

// Episodes of environments that are replaced during the run are the same again, in whichever version they were played, or in both.
func TestReplay_PlaysThroughSwaps(t *testing.T) {
	for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for _, mode := range []string{"sync", "async"} {
			for _, keep := range []bool{true, false} {
				t.Run(fmt.Sprintf("%v %s, kept %t", at, mode, keep), func(t *testing.T) {
					t.Parallel()
					var swaps int
					x := train(t, file, func(s *session.Session, parts *graph.Parts) { swaps = swapped(t, s, parts, at, keep) }, "train.mode="+mode, "run.stop.env_steps=1_000_000_000")
					if played := x.replayed(t, 8, false); played < *many || swaps < 4 {
						t.Errorf("%d episodes could be played again, want %d; %d swaps", played, *many, swaps)
					}
				})
			}
		}
	}
}

// swapped swaps the environments of a run to and fro, and stops it.
func swapped(t *testing.T, s *session.Session, parts *graph.Parts, at component.Boundary, keep bool) (swaps int) {
	defer s.Stop(false)
	p := s.Pipeline()
	for _, sets := range [][]string{
		{`env.seen.use="` + abs(examples+"cartpole-c/cartpole.wasm") + `"`}, {`env.seen.wrap=[{ time_limit = 50 }]`}, {`env.seen.wrap=[{ sticky_action = 0.5 }, { time_limit = 90 }]`}, {`env.seen.use="cartpole@1"`},
	} {
		if err := learns(s); err != nil {
			t.Error(err)
			return swaps
		}
		next, problems := p.Graph().With(sets, parts)
		if next == nil {
			t.Error(problems)
			return swaps
		}
		x, err := p.Prepare(t.Context(), next, pipeline.TransitionOptions{At: at, KeepState: keep, Deadline: time.Minute})
		if err == nil {
			_, err = x.Commit(t.Context())
		}
		if err != nil {
			t.Error(err)
			return swaps
		}
		swaps++
	}
	if err := learns(s); err != nil {
		t.Error(err)
	}
	return swaps
}

// learns waits until a run has learned from some datasets.
func learns(s *session.Session) error {
	for before := s.Pipeline().Trained("main"); s.Pipeline().Trained("main") < before+2048; {
		if _, err := s.Checkpoint(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func abs(path string) string {
	path, _ = filepath.Abs(path)
	return path
}
