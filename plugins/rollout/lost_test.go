package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// mortal is a plugin whose environments die on demand.
type mortal struct {
	env.Plugin
	// dies says which environments of the batch, which begins at first, are lost in the call with that number. Calls
	// of all batches are counted apart.
	dies func(call string, number, first int) []env.Span
}

// mortalEnv forgets environments, and leaves forbidden values in the rows that they should have written.
type mortalEnv struct {
	env.Env
	dies  func(call string, number, first int) []env.Span
	first int
	block env.Block
	calls map[string]int
	gone  map[int]bool
	seeds map[int][]uint64 // by environment, one for each reset
}

func (p mortal) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &mortalEnv{Env: e, dies: p.dies, first: o.FirstEnv, calls: map[string]int{}, gone: map[int]bool{},
		seeds: map[int][]uint64{}}, err
}

// lost spoils rows of the environments that die in this call.
func (e *mortalEnv) lost(call string, row int) error {
	e.calls[call]++
	spans := e.dies(call, e.calls[call], e.first)
	for _, span := range spans {
		for env := span.First; env < span.First+span.Count; env++ {
			e.gone[env] = true
			if call == hostabi.ExportBind {
				continue
			}
			obs, each := e.block.Row(trajectory.Obs, row), e.block.Schema.Agents
			for i := env * each; i < (env+1)*each; i++ {
				obs.Float32()[i*obs.StrideRow/4] = float32(math.NaN())
				if call == hostabi.ExportStep {
					e.block.Row(trajectory.Reward, row-1).Float32()[i] = float32(math.Inf(-1))
					e.block.Row(trajectory.Terminated, row-1).Data[i] = 7
				}
			}
		}
	}
	if spans == nil {
		return nil
	}
	return &env.Fault{Kind: env.FaultLost, Name: "rollout", Source: "scripted", Call: call, Env: -1, Lost: spans,
		Err: errors.New("killed")}
}

func (e *mortalEnv) Bind(b env.Block) error {
	e.block = b
	if err := e.Env.Bind(b); err != nil {
		return err
	}
	return e.lost(hostabi.ExportBind, 0)
}

func (e *mortalEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	for env := range e.block.Schema.Shape.Envs {
		if mask != nil && mask[env] == 0 {
			continue
		}
		if e.gone[env] && seeds == nil {
			return errors.New("an environment that was lost is reset without a seed")
		}
		delete(e.gone, env)
		if seeds != nil {
			e.seeds[env] = append(e.seeds[env], seeds[env])
		}
	}
	if err := e.Env.Reset(t, mask, seeds); err != nil {
		return err
	}
	return e.lost(hostabi.ExportReset, t)
}

func (e *mortalEnv) Step(t int) error {
	if len(e.gone) > 0 {
		return fmt.Errorf("a step while %v wait for a reset", e.gone)
	}
	if err := e.Env.Step(t); err != nil {
		return err
	}
	return e.lost(hostabi.ExportStep, t+1)
}

// once says that the environments of a span of the batch that begins at environment 3 die in one call.
func once(call string, number int, spans ...env.Span) func(string, int, int) []env.Span {
	return func(c string, n, first int) []env.Span {
		if c == call && n == number && first == 3 {
			return spans
		}
		return nil
	}
}

// tables are the columns of all blocks of the second split that the tests look at, one row after the other.
type tables struct {
	obs, reward, value, bootstrap []float32
	terminated, truncated, valid  []byte
}

// play runs until a split has handed over some blocks and returns the columns of the second split's.
func play(t *testing.T, o rigOptions, blocks int) (*rig, *tables) {
	t.Helper()
	r := newRig(t, o)
	got := &tables{}
	n := 0
	r.eachBlock(t, func(m *hostabi.Message, tr trajectory.Trajectory) {
		if m.Split != 1 {
			return
		}
		n++
		envs := 3
		got.obs = append(got.obs, tr.Float32(trajectory.Obs)[:4*envs*plugintest.ObsElems]...)
		got.reward = append(got.reward, tr.Float32(trajectory.Reward)...)
		got.value = append(got.value, tr.Float32(trajectory.Value)[:4*envs]...)
		got.bootstrap = append(got.bootstrap, tr.Float32(trajectory.Bootstrap)...)
		got.terminated = append(got.terminated, tr.Bytes(trajectory.Terminated)...)
		got.truncated = append(got.truncated, tr.Bytes(trajectory.Truncated)...)
		got.valid = append(got.valid, tr.Bytes(trajectory.Valid)...)
	})
	r.MustRun(func() bool { return n == blocks })
	return r, got
}

func (x *tables) obsOf(row, env int) []float32 {
	at := (row*3 + env) * plugintest.ObsElems
	return x.obs[at : at+plugintest.ObsElems]
}

// scriptOfSixSteps has episodes that end in rows 5, 11, … of every environment.
var scriptOfSixSteps = plugintest.Script{Length: func(int, int) int { return 6 }, Legal: func(plugintest.At, int) bool { return true }}

func TestS2LostEnvironmentsLoseTheStepThatTheyWereIn(t *testing.T) {
	dies := once(hostabi.ExportStep, 7, env.Span{First: 1, Count: 2})
	plugin := mortal{plugintest.New(scriptOfSixSteps), dies}
	_, want := play(t, rigOptions{script: scriptOfSixSteps}, 4)
	r, got := play(t, rigOptions{plugin: plugin}, 4)
	for row := range 16 {
		for env := range 3 {
			i := row*3 + env
			lost := row == 6 && env > 0
			if got.valid[i] != 0 == lost {
				t.Errorf("row %d of environment %d has valid %d", row, env, got.valid[i])
			}
			if lost && (got.reward[i] != 0 || got.terminated[i]|got.truncated[i] != 0) {
				t.Errorf("the lost row of environment %d has reward %v, flags %d %d", env, got.reward[i], got.terminated[i], got.truncated[i])
			}
			after := row > 6 && env > 0
			if !after && !lost && (got.terminated[i] != want.terminated[i] || got.reward[i] != want.reward[i]) {
				t.Errorf("row %d of environment %d: reward %v, terminated %d; want %v, %d", row, env, got.reward[i],
					got.terminated[i], want.reward[i], want.terminated[i])
			}
			if !after && fmt.Sprint(got.obsOf(row, env)) != fmt.Sprint(want.obsOf(row, env)) {
				t.Errorf("row %d of environment %d observes %v, want %v", row, env, got.obsOf(row, env), want.obsOf(row, env))
			}
		}
	}
	for env := 1; env < 3; env++ {
		if o := got.obsOf(7, env); o[plugintest.ObsStep] != 0 || o[plugintest.ObsEpisode] != 0 {
			t.Errorf("behind the lost row environment %d observes %v, want a first episode", env, o)
		}
		// The row before belongs to the episode that ended in row 5: it stays as it was.
		if got.terminated[5*3+env] != 1 || got.truncated[5*3+env] != 0 {
			t.Errorf("the end in row 5 of environment %d has become %d %d", env, got.terminated[5*3+env], got.truncated[5*3+env])
		}
		if seeds := r.c.splits[1].batch.env.(*mortalEnv).seeds[env]; len(seeds) != 2 || seeds[0] == seeds[1] {
			t.Errorf("environment %d was given the seeds %v, want two that differ", env, seeds)
		}
	}
	r.wantCounters(t, 1, 2, 2)
	if want := "rollout: lost in rl_step at step 0: killed (scripted)"; !strings.Contains(r.Log.String(), want) || !strings.Contains(r.Log.String(), "envs=2 restart=1") {
		t.Errorf("log %s\nwant %q", r.Log.String(), want)
	}
}

// wantCounters compares restarts, lost env steps and lost episodes, and that every row made is counted once.
func (r *rig) wantCounters(t *testing.T, restarts, steps, episodes uint64) {
	t.Helper()
	if a, b, c := r.counter("rollout/restarts"), r.counter("rollout/lost_env_steps"), r.counter("rollout/lost_episodes"); a != restarts || b != steps || c != episodes {
		t.Errorf("%d restarts, %d env steps and %d episodes lost; want %d, %d, %d", a, b, c, restarts, steps, episodes)
	}
	var made, valid uint64
	for _, b := range r.blocks {
		made += 4 * 3
		valid += uint64(b.meta.ValidRows)
	}
	if counted := r.counter("rollout/env_steps"); counted != valid || made != valid+steps {
		t.Errorf("%d rows made, %d valid, %d counted, %d lost", made, valid, counted, steps)
	}
}

// An episode that a loss ends is cut at its last known step, and does not count for returns.
func TestS2ALossCutsTheEpisodeBeforeIt(t *testing.T) {
	dies := once(hostabi.ExportStep, 4, env.Span{First: 2, Count: 1})
	r, got := play(t, rigOptions{plugin: mortal{plugintest.New(scriptOfSixSteps), dies}}, 3)
	if got.truncated[2*3+2] != 1 || got.valid[3*3+2] != 0 {
		t.Errorf("the row before the lost one has truncated %d, the lost one valid %d; want 1, 0", got.truncated[2*3+2], got.valid[3*3+2])
	}
	for _, e := range r.episodes {
		if e.Length != 6 {
			t.Errorf("episode %+v is told, want none that a loss has ended", e)
		}
	}
	r.wantCounters(t, 1, 1, 1)
}

// In the first row of a block there is nothing to cut: the block before bootstraps from its own last row anyway.
func TestS4ALossInTheFirstRowOfABlock(t *testing.T) {
	for _, call := range []string{hostabi.ExportStep, hostabi.ExportBind} {
		number, lost := 5, uint64(1)
		if call == hostabi.ExportBind {
			number, lost = 2, 0
		}
		r, got := play(t, rigOptions{plugin: mortal{plugintest.New(scriptOfSixSteps), once(call, number, env.Span{First: 2, Count: 1})}}, 3)
		if flags := got.truncated[3*3+2] | got.terminated[3*3+2]; flags != 0 {
			t.Errorf("%s: the last row of the block before has flags %d", call, flags)
		}
		if valid := uint64(got.valid[4*3+2]); valid != 1-lost {
			t.Errorf("%s: row 0 has valid %d", call, valid)
		}
		first := 4 + int(lost)
		if o := got.obsOf(first, 2); o[plugintest.ObsStep] != 0 {
			t.Errorf("%s: row %d observes %v, want a new episode", call, first, o)
		}
		for _, e := range r.episodes {
			if e.Length != 6 {
				t.Errorf("%s: episode %+v is told", call, e)
			}
		}
		r.wantCounters(t, 1, lost, 1)
	}
}

// A death while others are reset costs environments in the middle of an episode their step. An episode that had ended
// in that step stays ended, with its last observation.
func TestS2ALossInAReset(t *testing.T) {
	script := plugintest.Script{Autoreset: hostabi.Disabled, Length: func(env, _ int) int { return env }} // 3, 4 and 5
	dies := once(hostabi.ExportReset, 2, env.Span{First: 0, Count: 2})                                    // the reset of environment 3, in row 3
	r, got := play(t, rigOptions{plugin: mortal{plugintest.New(script), dies}}, 3)
	if got.terminated[2*3] != 1 || got.valid[2*3] != 1 {
		t.Errorf("the end of the first environment: terminated %d, valid %d; want 1, 1", got.terminated[2*3], got.valid[2*3])
	}
	if got.valid[2*3+1] != 0 || got.truncated[1*3+1] != 1 || got.valid[2*3+2] != 1 {
		t.Errorf("row 2 has valid %v, row 1 truncated %v; want the second environment's cut", got.valid[6:9], got.truncated[3:6])
	}
	for env := range 2 {
		if o := got.obsOf(3, env); o[plugintest.ObsStep] != 0 {
			t.Errorf("row 3 of environment %d observes %v, want a new episode", env, o)
		}
	}
	r.wantCounters(t, 1, 1, 1)
}

// The step that belongs to no episode is lost without a loss.
func TestS3ALossInAPhantomStep(t *testing.T) {
	script := scriptOfSixSteps
	script.Autoreset = hostabi.NextStep
	dies := once(hostabi.ExportStep, 7, env.Span{First: 0, Count: 1})
	r, got := play(t, rigOptions{plugin: mortal{plugintest.New(script), dies}}, 4)
	if got.terminated[5*3] != 1 || got.valid[6*3] != 0 || got.valid[7*3] != 1 {
		t.Errorf("row 5 has terminated %d, rows 6 and 7 valid %d, %d; want 1, 0, 1", got.terminated[5*3], got.valid[6*3], got.valid[7*3])
	}
	if o := got.obsOf(7, 0); o[plugintest.ObsStep] != 0 || o[plugintest.ObsEpisode] != 0 {
		t.Errorf("row 7 observes %v, want a new episode", o)
	}
	if r.counter("rollout/lost_env_steps") != 0 || r.counter("rollout/lost_episodes") != 0 {
		t.Errorf("%d env steps and %d episodes lost, want none", r.counter("rollout/lost_env_steps"), r.counter("rollout/lost_episodes"))
	}
}

// Environments that die again while they begin again are restarted until the budget is spent.
func TestLoss_TheBudgetEnds(t *testing.T) {
	dies := func(call string, number, first int) []env.Span {
		if first == 3 && call == hostabi.ExportReset || call == hostabi.ExportStep && number == 3 {
			return []env.Span{{First: 0, Count: 1}, {First: 2, Count: 1}}
		}
		return nil
	}
	for budget := range 3 {
		r := newRig(t, rigOptions{plugin: mortal{plugintest.New(scriptOfSixSteps), dies}, config: func(c *config) { c.MaxRestarts = budget }})
		err := r.RunUntil(func() bool { return len(r.blocks) > 50 })
		var f *env.Fault
		if !errors.As(err, &f) || f.Kind != env.FaultLost {
			t.Fatalf("max_restarts = %d: %v, want a loss", budget, err)
		}
		if want := fmt.Sprintf("restarted %d times already (max_restarts)", budget); !strings.Contains(err.Error(), want) {
			t.Errorf("max_restarts = %d: %v, want %q", budget, err, want)
		}
		if got := r.counter("rollout/restarts"); got != uint64(budget) {
			t.Errorf("max_restarts = %d: %d restarts", budget, got)
		}
	}
}

// One environment, blocks of 4, γ = 0.9, λ = 0.5, V = 10 times the step within the episode, rewards of 1. The step
// of row 2 is lost: rows 0 and 1 are an episode that is cut off at V(obs[2]) = 20, row 3 begins another one.
//
//	A(3) = 1 + 0.9·10 - 0            = 10      V(obs[4]) = 10
//	A(1) = 1 + 0.9·20 - 10           =  9
//	A(0) = 1 + 0.9·10 - 0 + 0.45·9   = 14.05
func TestS11AdvantagesAroundALossAreThoseByHand(t *testing.T) {
	script := plugintest.Script{Length: func(int, int) int { return 100 }}
	dies := func(call string, number, _ int) []env.Span {
		if call == hostabi.ExportStep && number == 3 {
			return []env.Span{{First: 0, Count: 1}}
		}
		return nil
	}
	r := newRig(t, rigOptions{plugin: mortal{plugintest.New(script), dies}, config: func(c *config) { c.Envs, c.Splits = 1, 1 }})
	r.silent = true
	var valid []byte
	var got []float32
	r.From("obs_ready", func(m *hostabi.Message) {
		q := trajectory.ActRequestOf(m)
		tr, err := trajectory.Borrowed(r.Host.Arenas, q.Block)
		if err != nil {
			t.Fatal(err)
		}
		r.answer(*m)
		tr.Float32(trajectory.Value)[q.T] = 10 * tr.Float32(trajectory.Obs)[q.T*plugintest.ObsElems+plugintest.ObsStep]
	})
	r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
		got, valid = advantages(t, tr), bytes.Clone(tr.Bytes(trajectory.Valid))
	})
	r.MustRun(func() bool { return len(r.blocks) == 1 })
	wantAdvantages(t, got, 14.05, 9, 0, 10)
	if !bytes.Equal(valid, []byte{1, 1, 0, 1}) {
		t.Errorf("valid rows %v, want all but the lost one", valid)
	}
}
