package cartpole_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
	"github.com/rlhost/rlhost/examples/plugins/golden"
	"github.com/rlhost/rlhost/sdk"
)

func episodes(t *testing.T) []golden.Episode {
	t.Helper()
	list, err := golden.CartPole()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// single is one environment that is put into states and stepped.
type single struct {
	t     *testing.T
	carts *cartpole.Carts
	rows  sdk.Rows[int32, float32]
}

func newSingle(t *testing.T) *single {
	return &single{t, cartpole.NewCarts(1, cartpole.DefaultMaxSteps), sdk.Rows[int32, float32]{
		Actions: make([]int32, 1), Obs: make([]float32, 4), Rewards: make([]float32, 1),
		Terminated: make([]uint8, 1), Truncated: make([]uint8, 1),
	}}
}

func (s *single) put(state golden.State, steps int) {
	s.t.Helper()
	var data []byte
	for _, v := range state {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
	}
	if err := s.carts.LoadEnv(0, binary.LittleEndian.AppendUint32(data, uint32(steps))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *single) step(action uint8) {
	s.rows.Actions[0] = int32(action)
	s.carts.Step(0, nil, s.rows)
}

// distance returns the largest difference between the observation and a recorded state.
func (s *single) distance(want golden.State) float64 {
	worst := 0.0
	for k, v := range s.rows.Obs {
		worst = max(worst, math.Abs(float64(v)-want[k]))
	}
	return worst
}

func TestStep_FromEveryRecordedStateIsGymnasiums(t *testing.T) {
	s, worst := newSingle(t), 0.0
	for e, episode := range episodes(t) {
		state := episode.First
		for i, want := range episode.Steps {
			s.put(state, i)
			s.step(uint8(want.Action))
			worst = max(worst, s.distance(want.State))
			if d := s.distance(want.State); d > 1e-6 {
				t.Errorf("episode %d step %d: state is off by %g", e, i, d)
			}
			if got := s.rows.Rewards[0]; got != want.Reward {
				t.Errorf("episode %d step %d: reward %v, want %v", e, i, got, want.Reward)
			}
			if s.rows.Terminated[0] != want.Terminated || s.rows.Truncated[0] != want.Truncated {
				t.Errorf("episode %d step %d: flags %d %d, want %d %d", e, i,
					s.rows.Terminated[0], s.rows.Truncated[0], want.Terminated, want.Truncated)
			}
			state = want.State
		}
	}
	t.Logf("largest difference %g", worst)
}

func TestStep_SixtyFreeStepsStayWithGymnasium(t *testing.T) {
	const length = 60
	s, segments, worst := newSingle(t), 0, 0.0
	for e, episode := range episodes(t) {
		state := episode.First
		for from := 0; from+length <= len(episode.Steps); from += length / 3 {
			s.put(state, from)
			for i, want := range episode.Steps[from : from+length] {
				s.step(uint8(want.Action))
				worst = max(worst, s.distance(want.State))
				if d := s.distance(want.State); d > 1e-4 {
					t.Fatalf("episode %d, %d steps after step %d: state is off by %g", e, i+1, from, d)
				}
			}
			state = episode.Steps[from+length/3-1].State
			segments++
		}
	}
	if segments < 10 {
		t.Errorf("only %d segments of %d steps", segments, length)
	}
	t.Logf("%d segments, largest difference %g", segments, worst)
}

func TestReset_StartsWithinGymnasiumsRange(t *testing.T) {
	const n = 1000
	b := cartpole.NewBatch(n, cartpole.DefaultMaxSteps)
	seeds, obs := make([]uint64, n), make([]float32, 4*n)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	b.Reset(seeds, obs)
	sum := 0.0
	for i, v := range obs {
		if v < -0.05 || v > 0.05 {
			t.Fatalf("element %d = %v", i, v)
		}
		sum += float64(v)
	}
	if mean := sum / (4 * n); math.Abs(mean) > 0.002 {
		t.Errorf("mean of %d numbers = %v", 4*n, mean)
	}
}

func TestBatch_StepKeepsTheLastObservation(t *testing.T) {
	b := cartpole.NewBatch(1, 3)
	obs, final, reward := make([]float32, 4), make([]float32, 4), make([]float32, 1)
	terminated, truncated := make([]uint8, 1), make([]uint8, 1)
	b.Reset([]uint64{1}, obs)
	for range 3 {
		b.Step([]int32{0}, obs, reward, terminated, truncated, final)
	}
	if truncated[0] != 1 || terminated[0] != 0 {
		t.Errorf("flags after 3 of 3 steps = %d %d, want 0 1", terminated[0], truncated[0])
	}
	if final[1] > -0.4 || obs[1] < -0.05 {
		t.Errorf("final speed %v and first speed %v, want one after three pushes and one at rest", final[1], obs[1])
	}
}

func TestBatch_StepAllocatesNothing(t *testing.T) {
	const n = 64
	b := cartpole.NewBatch(n, 50)
	obs, final, rewards := make([]float32, 4*n), make([]float32, 4*n), make([]float32, n)
	actions, terminated, truncated := make([]int32, n), make([]uint8, n), make([]uint8, n)
	b.Reset(make([]uint64, n), obs)
	if got := testing.AllocsPerRun(100, func() { b.Step(actions, obs, rewards, terminated, truncated, final) }); got != 0 {
		t.Errorf("Step allocates %v times", got)
	}
}

func BenchmarkBatch_Step64(b *testing.B) {
	const n = 64
	batch := cartpole.NewBatch(n, cartpole.DefaultMaxSteps)
	obs, final, rewards := make([]float32, 4*n), make([]float32, 4*n), make([]float32, n)
	terminated, truncated := make([]uint8, n), make([]uint8, n)
	rng, actions := sdk.NewRand(1), make([]int32, 64*n)
	for i := range actions {
		actions[i] = int32(rng.Below(2))
	}
	batch.Reset(make([]uint64, n), obs)
	t := 0
	for b.Loop() {
		batch.Step(actions[t*n:], obs, rewards, terminated, truncated, final)
		t = (t + 1) % 64
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
}
