package wrap_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

const (
	gameSteps = 12 // of a game, which has three lives of four steps
	pixels    = 6
)

// screen is what a game shows after so many steps: half of the sprites flicker, in each other step the other half.
func screen(env, step int) (s [pixels]byte) {
	for e := range s {
		if s[e] = byte(10*env + e); (step+e)%2 == 0 {
			s[e] = byte(100 + 10*env + step)
		}
	}
	return s
}

func livesAfter(step int) int { return 3 - step/4 }

func paid(step int, action int32) float32 { return float32(step) + 100*float32(action) }

// gameScript is the game as an environment.
func gameScript() plugintest.Script {
	return plugintest.Script{
		Actions: 3, Length: func(int, int) int { return gameSteps },
		Reward: func(at plugintest.At) float32 { return paid(at.Step, at.Action) },
		Infos:  []hostabi.Tensor{{Path: "score"}, {Path: "lives"}},
		Tell: func(at plugintest.At, figures []float32) {
			figures[0], figures[1] = float32(at.Step), float32(livesAfter(at.Step+1))
		},
		Observations: []hostabi.Tensor{{Path: "screen", DType: hostabi.U8, Rank: 3, Shape: [hostabi.MaxRank]uint32{2, 3, 1}, High: 255, Flags: hostabi.TensorImageHWC}},
		Show: func(at plugintest.At, elems []float64) {
			for e, v := range screen(at.Env, at.Step) {
				elems[e] = float64(v)
			}
		},
	}
}

// seen is what a step of a wrapped game returns.
type seen struct {
	screen [pixels]byte
	reward float32
	over   bool
}

// player is a game with wrappers as Gymnasium has them: reset and step, without autoreset.
type player interface {
	reset() [pixels]byte
	step(action int32) seen
	lives() int
	done() bool // the game itself is over
}

// game is the game alone.
type game struct{ env, n int }

func (g *game) reset() [pixels]byte { g.n = 0; return screen(g.env, 0) }
func (g *game) lives() int          { return livesAfter(g.n) }
func (g *game) done() bool          { return g.n == gameSteps }

func (g *game) step(action int32) seen {
	g.n++
	return seen{screen(g.env, g.n), paid(g.n-1, action), g.n == gameSteps}
}

// skipping repeats actions as AtariPreprocessing does, but for a step that an end cuts: its last two frames are observed.
type skipping struct {
	player
	skip int
}

func (p *skipping) step(action int32) (sum seen) {
	var before *[pixels]byte
	for range p.skip {
		if sum.reward > 0 || sum.screen != [pixels]byte{} {
			last := sum.screen
			before = &last
		}
		s := p.player.step(action)
		sum = seen{s.screen, sum.reward + s.reward, s.over}
		if s.over {
			break
		}
	}
	if before != nil {
		for e := range sum.screen {
			sum.screen[e] = max(sum.screen[e], before[e])
		}
	}
	return sum
}

// opened begins episodes with steps of an action.
type opened struct {
	player
	action int32
	count  func() int
}

func (p *opened) reset() [pixels]byte {
	now := p.player.reset()
	for range p.count() {
		s := p.player.step(p.action)
		if now = s.screen; s.over {
			now = p.player.reset()
		}
	}
	return now
}

// living ends episodes with lives, as Baselines' EpisodicLifeEnv does. It knows the lives from a game's first step on.
type living struct {
	player
	left int
}

func (p *living) reset() [pixels]byte {
	if p.left > 0 && !p.done() {
		if s := p.player.step(0); !s.over {
			p.left = p.player.lives()
			return s.screen
		}
	}
	p.left = 0 // no step has told it yet
	return p.player.reset()
}

func (p *living) step(action int32) seen {
	s := p.player.step(action)
	now := p.player.lives()
	if !s.over && now > 0 && now < p.left {
		s.over = true
	}
	p.left = now
	return s
}

// fixedNoops makes the counts that the wrapper draws for an environment.
func fixedNoops(index, most int) func() int {
	seed, episodes := env.NoopStream.Seed(env.Seed(5, index)), 0
	return func() int {
		episodes++
		return 1 + int(env.Seed(seed, episodes)%uint64(most))
	}
}

// A wrapped batch plays as each of its games does with the wrappers of Gymnasium: rewards, ends, observations and last observations.
func TestGames_AreWrappedAsGymnasiumDoes(t *testing.T) {
	for name, c := range map[string]struct {
		list []env.Wrapper
		wrap func(index int, p player) player
	}{
		"frame_skip":      {[]env.Wrapper{{"frame_skip": 3}}, func(_ int, p player) player { return &skipping{p, 3} }},
		"frame_skip of 5": {[]env.Wrapper{{"frame_skip": 5}}, func(_ int, p player) player { return &skipping{p, 5} }},
		"noop_reset":      {[]env.Wrapper{{"noop_reset": 7}}, func(i int, p player) player { return &opened{p, 0, fixedNoops(i, 7)} }},
		"beyond the end":  {[]env.Wrapper{{"noop_reset": 30}}, func(i int, p player) player { return &opened{p, 0, fixedNoops(i, 30)} }},
		"fire_reset":      {[]env.Wrapper{{"fire_reset": 2}}, func(_ int, p player) player { return &opened{p, 2, func() int { return 1 }} }},
		"life_loss":       {[]env.Wrapper{{"life_loss": true}}, func(_ int, p player) player { return &living{player: p, left: 0} }},
		"all, in the usual order": {[]env.Wrapper{{"noop_reset": 3}, {"life_loss": true}, {"frame_skip": 2}, {"fire_reset": 1}}, func(i int, p player) player {
			return &opened{&skipping{&living{player: &opened{p, 0, fixedNoops(i, 3)}}, 2}, 1, func() int { return 1 }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const envs = 3
			d := driven(t, made(t, gameScript(), c.list...), envs, hostabi.SameStep)
			var players [envs]player
			for i := range players {
				players[i] = c.wrap(i, &game{env: i})
				if got, want := row(d.Obs(), i), players[i].reset(); got != want {
					t.Fatalf("environment %d begins with %v, want %v", i, got, want)
				}
			}
			ends := 0
			for step := range 100 { // through several blocks
				for i := range players {
					d.Action()[i] = int32((step*step + i) % 3)
				}
				actions := slices.Clone(d.Action())
				if _, err := d.Step(); err != nil {
					t.Fatal(err)
				}
				for i, p := range players {
					want := p.step(actions[i])
					got := seen{row(d.Obs(), i), d.Reward()[i], d.Terminated()[i] != 0}
					if want.over {
						ends++
						if last := row(d.FinalObs(), i); last != want.screen {
							t.Fatalf("step %d, environment %d ends with %v, want %v", step, i, last, want.screen)
						}
						want.screen = p.reset()
					}
					if got != want {
						t.Fatalf("step %d, environment %d: %+v, want %+v", step, i, got, want)
					}
				}
				if tr, at := d.Stepped(); !slices.Equal(tr.Row(trajectory.Action, at).Int32(), actions) {
					t.Fatalf("step %d: actions %v, want the policy's, %v", step, tr.Row(trajectory.Action, at).Int32(), actions)
				}
			}
			if ends < 9 {
				t.Errorf("%d episodes have ended, want several of each", ends)
			}
		})
	}
}

func row(m trajectory.Matrix, i int) (s [pixels]byte) {
	for e := range s {
		s[e] = byte(m.Value(i, e))
	}
	return s
}

// Wrappers of games keep the promises of environments.
func TestGames_KeepThePromisesOfEnvironments(t *testing.T) {
	for _, list := range [][]env.Wrapper{
		{{"frame_skip": 3}}, {{"noop_reset": 5}}, {{"fire_reset": 1}}, {{"life_loss": true}},
		{{"noop_reset": 30}, {"life_loss": true}, {"frame_skip": 4}, {"fire_reset": 1}},
		{{"time_limit": 9}, {"noop_reset": 4}, {"sticky_action": 0.3}, {"life_loss": true}, {"resize": []any{int64(4), int64(4)}}, {"frame_skip": 2}, {"reward_clip": "sign"}, {"time_limit": 3}},
	} {
		t.Run(fmt.Sprint(list), func(t *testing.T) {
			s := gameScript()
			s.Legal = nil
			plugintest.TestEnv(t, made(t, s, list...), plugintest.Options{Seed: 7})
		})
	}
}

// A game's return and length are reported once it is over, of all its lives.
func TestLifeLoss_ReportsGames(t *testing.T) {
	p := made(t, gameScript(), env.Wrapper{"life_loss": true})
	told := map[string][]float64{}
	d, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "test", Envs: 1, Autoreset: hostabi.SameStep, Metric: func(m env.Metric) { told[m.Name] = append(told[m.Name], m.Value) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Reset(nil, []uint64{1}); err != nil {
		t.Fatal(err)
	}
	var lengths []int
	for step, since := 0, 0; step < 20; step++ {
		d.Action()[0] = 1
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		if since++; d.Terminated()[0] != 0 {
			lengths, since = append(lengths, since), 0
		}
	}
	sum := float64(0)
	for n := range gameSteps {
		if n != 4 && n != 8 { // lives begin with a step of action 0, which no policy has chosen
			sum += float64(paid(n, 1))
		}
	}
	if want := []float64{sum, sum}; !slices.Equal(told["game_return"], want) || !slices.Equal(told["game_length"], []float64{gameSteps, gameSteps}) {
		t.Errorf("told %v, want returns %v", told, want)
	}
	if want := []int{4, 3, 3, 4, 3, 3}; !slices.Equal(lengths, want) {
		t.Errorf("episodes of %v steps, want %v", lengths, want)
	}
}

func TestGames_SayWhatDoesNotSuit(t *testing.T) {
	box := gameScript()
	box.Spaces = []hostabi.Tensor{{DType: hostabi.F32, Low: -1, High: 1}}
	none, atEnd, next := gameScript(), gameScript(), gameScript()
	none.Infos = nil
	atEnd.Infos = []hostabi.Tensor{{Path: "lives", Flags: hostabi.TensorEpisode}}
	next.Autoreset = hostabi.NextStep
	for want, c := range map[string]struct {
		s    plugintest.Script
		wrap env.Wrapper
	}{
		`it has no info "lives", the number of lives that are left: its infos are none`: {none, env.Wrapper{"life_loss": true}},
		"at the end of an episode alone, want one for each step":                        {atEnd, env.Wrapper{"life_loss": true}},
		"`wrap[0].life_loss` is false":                                                  {gameScript(), env.Wrapper{"life_loss": false}},
		"it offers no autoreset same_step":                                              {next, env.Wrapper{"noop_reset": 3}},
		"not all of its actions are Discrete":                                           {box, env.Wrapper{"fire_reset": 0}},
		"it has no action 3: its action is":                                             {gameScript(), env.Wrapper{"fire_reset": 3}},
		"is -1, want an action, which counts from 0":                                    {gameScript(), env.Wrapper{"fire_reset": -1}},
		"is 0, want 1 to 1000 steps":                                                    {gameScript(), env.Wrapper{"noop_reset": 0}},
		"is 1, want 2 to 1000 steps":                                                    {gameScript(), env.Wrapper{"frame_skip": 1}},
		"none of its observations is a picture of bytes: use action_repeat":             {uneven(), env.Wrapper{"frame_skip": 4}},
	} {
		_, err := wrap.New(plugintest.New(c.s), numbers([]env.Wrapper{c.wrap}), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.wrap, err, want)
		}
	}
}
