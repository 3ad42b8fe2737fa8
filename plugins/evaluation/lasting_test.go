package evaluation

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// looking reports the shaped reward of each step of an episode.
type looking struct {
	env.Plugin
	step func(step int, shaped float32)
}

func (p looking) Shapes() bool { return true }

func (p looking) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &lookingEnv{Env: e, step: p.step}, err
}

type lookingEnv struct {
	env.Env
	step func(step int, shaped float32)
	tr   trajectory.Trajectory
}

func (e *lookingEnv) SaveLasting(index int, dst []byte) []byte {
	return e.Env.(env.Lasting).SaveLasting(index, dst)
}

func (e *lookingEnv) LoadLasting(index int, kept []byte) []byte {
	return e.Env.(env.Lasting).LoadLasting(index, kept)
}

func (e *lookingEnv) Bind(b env.Block) error {
	e.tr = b.Trajectory
	return e.Env.Bind(b)
}

func (e *lookingEnv) Step(t int) error {
	err := e.Env.Step(t)
	obs := e.tr.Row(trajectory.Obs, t)
	for i, shaped := range e.tr.Row(trajectory.ShapedReward, t).Float32() {
		e.step(int(obs.Float32()[i*obs.StrideRow/4+plugintest.ObsStep]), shaped)
	}
	return err
}

// The rewards that a policy is shown depend on the episode alone, however many environments play: each begins with the same statistics, the
// training's if it has any.
func TestS12_StatisticsOfRewardsAreThoseThatEachEpisodeBeginsWith(t *testing.T) {
	script := plugintest.Script{Actions: 3, Length: func(int, int) int { return 9 }, Autoreset: hostabi.Disabled, Reward: func(at plugintest.At) float32 { return float32(10 + at.Step) }}
	run := func(envs int, lasting []byte) (seen map[int]float32) {
		seen = map[int]float32{}
		p, err := wrap.New(plugintest.New(script), []env.Wrapper{{"reward_normalize": map[string]any{}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Episodes: 12, Envs: envs, Seed: 4, Lasting: lasting, Player: Player{Actor: &dice{}}}
		o.Plugin = looking{p, func(step int, shaped float32) {
			if was, ok := seen[step]; ok && was != shaped {
				t.Errorf("%d environments: the reward of step %d is shaped to %v and to %v", envs, step, was, shaped)
			}
			seen[step] = shaped
		}}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	alone, many := run(1, nil), run(5, nil)
	if alone[0] != 10 || many[0] != 10 || alone[8] != many[8] || alone[8] == alone[0] {
		t.Errorf("without statistics rewards are shaped to %v, and by several environments to %v", alone, many)
	}
	p, err := wrap.New(plugintest.New(script), []env.Wrapper{{"reward_normalize": map[string]any{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "trained", Envs: 1, Autoreset: hostabi.Disabled}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		d.Action()[0] = 0
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if trained := run(3, d.Env.(env.Lasting).SaveLasting(0, nil)); trained[0] > 5 || trained[0] == 0 {
		t.Errorf("with the statistics of a training the first reward is shaped to %v", trained[0])
	}
}
