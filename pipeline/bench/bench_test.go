package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// game is an env.Plugin whose environments have two agents that take turns, or always act.
type game struct {
	spec  hostabi.EnvSpec
	block env.Block
}

func newGame(turns bool) *game {
	tensor := func(role hostabi.Role, d hostabi.DType) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: d, Flags: hostabi.TensorPerAgent}
	}
	s := hostabi.EnvSpec{Name: "game@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Groups: []hostabi.Group{{Agents: 2}}, Tensors: []hostabi.Tensor{
		tensor(hostabi.RoleAction, hostabi.I32), tensor(hostabi.RoleObservation, hostabi.F32), tensor(hostabi.RoleReward, hostabi.F32),
		tensor(hostabi.RoleTerminated, hostabi.U8), tensor(hostabi.RoleTruncated, hostabi.U8), tensor(hostabi.RoleFinalObservation, hostabi.F32),
	}}
	s.Tensors[0].N = 2
	if turns {
		s.Tensors = append(s.Tensors, tensor(hostabi.RoleActive, hostabi.U8))
	}
	return &game{spec: s}
}

func (g *game) Spec() hostabi.EnvSpec { return g.spec }
func (g *game) Hash() string          { return "game" }
func (g *game) Close() error          { return nil }

func (g *game) NewEnv(o env.Options) (env.Env, error) { return &gameEnv{g}, o.Check(&g.spec, 1) }

type gameEnv struct{ *game }

func (e *gameEnv) Spec() *hostabi.EnvSpec    { return &e.spec }
func (e *gameEnv) Renew() error              { return nil }
func (e *gameEnv) Bind(b env.Block) error    { e.block = b; return nil }
func (e *gameEnv) Snapshot() ([]byte, error) { return nil, env.ErrUnsupported }
func (e *gameEnv) Restore([]byte) error      { return env.ErrUnsupported }

func (e *gameEnv) Reset(t int, _ []uint8, _ []uint64) error {
	e.turn(t)
	return nil
}

func (e *gameEnv) Step(t int) error {
	clear(e.block.Row(trajectory.Terminated, t).Data)
	clear(e.block.Row(trajectory.Truncated, t).Data)
	e.turn(t + 1)
	return nil
}

// turn writes a row: one agent of each environment acts, alternately.
func (e *gameEnv) turn(t int) {
	clear(e.block.Row(trajectory.Obs, t).Data)
	acts := e.block.Acts(t)
	for i := range acts {
		acts[i] = byte((i + t) % 2)
	}
}

// An env step is a decision: an agent that does not act makes none.
func TestEnvStepsCountActingAgents(t *testing.T) {
	for what, c := range map[string]struct {
		turns bool
		want  int
	}{"both act": {false, 2 * 3}, "in turns": {true, 3}} {
		o := Options{Envs: 3}
		s, err := o.driver(newGame(c.turns), false)
		if err != nil {
			t.Fatal(err)
		}
		a := &alone{driver: s, draw: drawRandom}
		for burst := range 100 { // beyond the driver's block
			n := a.prepare(1 + burst%5)
			for range n {
				if err := s.Advance(); err != nil {
					t.Fatal(err)
				}
			}
			if got := envSteps(s, n); got != n*c.want {
				t.Fatalf("%s: %d steps of 3 environments have %d env steps, want %d", what, n, got, n*c.want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// recorded is an env.Plugin whose environments write down the actions that they get.
type recorded struct {
	*game
	logs []*actionLog
}

// actionLog has the actions of one batch of environments, by step.
type actionLog struct {
	user  string
	first int // environment of the first row
	steps [][]int32
}

func (r *recorded) NewEnv(o env.Options) (env.Env, error) {
	own := *r.game
	made := &recordedEnv{gameEnv{&own}, &actionLog{user: o.Name, first: o.FirstEnv}}
	r.logs = append(r.logs, made.log)
	return made, o.Check(&r.spec, 1)
}

type recordedEnv struct {
	gameEnv
	log *actionLog
}

func (e *recordedEnv) Step(t int) error {
	if len(e.log.steps) < 100 { // beyond the driver's block
		e.log.steps = append(e.log.steps, slices.Clone(e.block.Row(trajectory.Action, t).Int32()))
	}
	return e.gameEnv.Step(t)
}

// Alone and through the bus environments get the same random actions.
func TestBothWaysHaveTheSameActions(t *testing.T) {
	plugin := &recorded{game: newGame(false)}
	parts, _ := builtin.New(builtin.Options{})
	parts.Load = func(context.Context, string, graph.EnvTable, string) (env.Plugin, error) { return plugin, nil }
	result, err := Run(t.Context(), plugin, Options{Parts: parts, Envs: 4, Horizon: 16, Time: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Rates {
		if f.Best <= 0 {
			t.Errorf("%s: %g env steps/s", f.Name, f.Best)
		}
	}
	i := slices.IndexFunc(plugin.logs, func(l *actionLog) bool { return l.user == "bench" })
	alone := plugin.logs[i]
	plugin.logs = slices.Delete(plugin.logs, i, i+1)
	if len(plugin.logs) < rounds*2 { // a round in which the machine was too busy for a step is made again
		t.Errorf("%d batches stepped on the bus, want two in each of %d rounds", len(plugin.logs), rounds)
	}
	ones, all, compared := 0, 0, 0
	for _, bus := range plugin.logs {
		for step, got := range bus.steps[:min(len(bus.steps), len(alone.steps))] {
			if want := alone.steps[step][2*bus.first:][:len(got)]; !slices.Equal(got, want) {
				t.Fatalf("step %d from environment %d on: on the bus the actions are %v, alone %v", step, bus.first, got, want)
			}
			compared++
		}
	}
	for _, row := range alone.steps {
		for _, action := range row {
			ones, all = ones+int(action), all+1
		}
	}
	if compared == 0 || all < 100 || ones < all*3/10 || ones > all*7/10 {
		t.Errorf("%d steps compared; %d of %d actions are 1, want about half", compared, ones, all)
	}
}

// The cost of drawing is not in the figure of the environment alone.
func TestAloneDrawsOutsideOfTheClock(t *testing.T) {
	o := Options{Envs: 2}
	s, err := o.driver(newGame(false), false)
	if err != nil {
		t.Fatal(err)
	}
	const slow = time.Millisecond // to draw one step, which takes less than a hundredth of that to make
	drawn, began := 0, time.Now()
	a := &alone{driver: s, draw: func(tr trajectory.Trajectory, row int, step uint64, words []uint64) {
		for until := time.Now().Add(slow); time.Now().Before(until); {
		}
		drawn++
		drawRandom(tr, row, step, words)
	}}
	rate, err := a.run(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if with := float64(4*drawn) / time.Since(began).Seconds(); rate < 10*with {
		t.Errorf("%.3g env steps/s, %.3g with the time to draw: want at least ten times as many without", rate, with)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Reset parameters have no time, so nothing but this bounds them: they are refused before a block is made.
func TestRun_RefusesLargeResetParameters(t *testing.T) {
	g := newGame(false)
	d := hostabi.Tensor{Role: hostabi.RoleResetParam, DType: hostabi.F32, Rank: 1, Flags: hostabi.TensorOptional}
	d.Shape[0] = 1 << 24
	g.spec.Tensors = append(g.spec.Tensors, d)
	var short *env.ParamsError
	if _, err := Run(t.Context(), g, Options{Envs: 8, Horizon: 64}); !errors.As(err, &short) || short.Envs != 8 || short.Bytes != 3*8*2<<26 {
		t.Fatalf("%v", err)
	}
	if err := envcheck.CheckMemory(g, envcheck.Options{}); !errors.As(err, &short) || short.Envs != 4 {
		t.Errorf("checks: %v", err)
	}
	g.spec.Tensors[len(g.spec.Tensors)-1].Shape[0] = 1 << 10
	if err := envcheck.CheckMemory(g, envcheck.Options{}); err != nil {
		t.Errorf("1,024 of them: %v", err)
	}
}
