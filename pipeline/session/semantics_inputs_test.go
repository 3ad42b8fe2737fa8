package session_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Every row that a policy acts on has the frames of its own episode alone, however episodes end and blocks are cut, and is
// as old as they are. The learner gathers the same frames.
func TestS22StacksAreCutAtStartsAndCarriedOverSeams(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, limit := range []int{0, 5} {
			t.Run(fmt.Sprint(mode, " limit ", limit), func(t *testing.T) {
				script := uneven()
				script.Autoreset = mode
				var wrong []string
				rows, old := 0, 0
				x := experiment{script: script, sets: []string{"policy.main.encoder.obs.stack=4", "component.rollout.horizon=8",
					"component.batcher.dataset_rows=64", limitOf(limit)}}
				x.backend = func(b policy.Backend) policy.Backend {
					return &spy{Backend: b, acted: func(requests []policy.Request) {
						for i := range requests {
							r := &requests[i]
							for row := range r.Len() {
								rows++
								if old += min(int(r.Age[row]), 3) / 3; len(wrong) < 5 {
									wrong = append(wrong, stackErrors(r, row)...)
								}
							}
						}
					}}
				}
				o := x.must(t)
				if len(wrong) > 0 {
					t.Errorf("%s", strings.Join(wrong, "\n"))
				}
				if rows < 512 || old == 0 {
					t.Errorf("%d rows, %d of them with three older frames", rows, old)
				}
				if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
					t.Errorf("the first ratio: %v: the learner has gathered other frames", err)
				}
			})
		}
	}
}

// stackErrors compares the frames of a row with the observations of plugintest's environments.
func stackErrors(r *policy.Request, row int) (wrong []string) {
	at := func(frame, elem int) int {
		m := r.Obs[frame]
		return int(m.Float32()[(row*m.StrideRow+elem*m.StrideElem)/4])
	}
	env, episode, step, age := at(3, plugintest.ObsEnv), at(3, plugintest.ObsEpisode), at(3, plugintest.ObsStep), int(r.Age[row])
	if age != step {
		wrong = append(wrong, fmt.Sprintf("environment %d episode %d step %d is %d rows old", env, episode, step, age))
	}
	for lag := range min(age, 3) + 1 {
		if f := 3 - lag; at(f, plugintest.ObsEnv) != env || at(f, plugintest.ObsEpisode) != episode || at(f, plugintest.ObsStep) != step-lag {
			wrong = append(wrong, fmt.Sprintf("environment %d episode %d step %d: %d frames back it was at environment %d episode %d step %d",
				env, episode, step, lag, at(f, plugintest.ObsEnv), at(f, plugintest.ObsEpisode), at(f, plugintest.ObsStep)))
		}
	}
	return wrong
}

// riddle is an environment that asks for one of four actions at every step. Its kind says where the clue is.
type riddle struct {
	spec hostabi.EnvSpec
	kind string
}

func newRiddle(kind string) *riddle {
	scalar := func(role hostabi.Role, dtype hostabi.DType, n uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: dtype, N: n}
	}
	p := &riddle{kind: kind, spec: hostabi.EnvSpec{Name: "riddle@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Tensors: []hostabi.Tensor{
		scalar(hostabi.RoleAction, hostabi.I32, riddleActions), scalar(hostabi.RoleReward, hostabi.F32, 0),
		scalar(hostabi.RoleTerminated, hostabi.U8, 0), scalar(hostabi.RoleTruncated, hostabi.U8, 0)}}}
	for i, path := range []string{"noise", "signs/picture", "signs/answer"} {
		t := []hostabi.Tensor{{DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{3}},
			{DType: hostabi.U8, Rank: 3, Shape: [hostabi.MaxRank]uint32{2, 2, 1}, Flags: hostabi.TensorImageHWC, High: 255},
			{DType: hostabi.I32, N: riddleActions, Start: -2}}[i]
		t.Role, t.Index, t.Pair, t.Path = hostabi.RoleObservation, uint16(i), uint16(i), path
		final := t
		final.Role = hostabi.RoleFinalObservation
		p.spec.Tensors = append(p.spec.Tensors, t, final)
	}
	return p
}

const (
	riddleActions = 4
	riddleSteps   = 19
)

func (p *riddle) Spec() hostabi.EnvSpec { return p.spec }
func (p *riddle) Hash() string          { return strings.Repeat("1d", 32) }
func (p *riddle) Close() error          { return nil }

func (p *riddle) NewEnv(o env.Options) (env.Env, error) {
	return &riddleEnv{riddle: p, states: make([]riddleState, o.Envs)}, nil
}

type riddleState struct {
	random *rand.Rand
	step   int
	signs  [4]int // the newest first
	last   int    // action
}

type riddleEnv struct {
	*riddle
	states []riddleState
	tr     trajectory.Trajectory
}

func (e *riddleEnv) Spec() *hostabi.EnvSpec { return &e.spec }
func (e *riddleEnv) Renew() error           { return nil }

func (e *riddleEnv) Snapshot() ([]byte, error) { return nil, env.ErrUnsupported }
func (e *riddleEnv) Restore([]byte) error      { return env.ErrUnsupported }

func (e *riddleEnv) Bind(b env.Block) error {
	e.tr = b.Trajectory
	return nil
}

func (e *riddleEnv) Reset(t int, mask []uint8, seeds []uint64) error {
	for i := range e.states {
		if mask != nil && mask[i] == 0 {
			continue
		}
		if seeds != nil {
			e.states[i].random = rand.New(rand.NewPCG(seeds[i], 0))
		}
		e.begin(i)
		e.observe(trajectory.Obs, t, i)
	}
	return nil
}

func (e *riddleEnv) begin(i int) {
	s := &e.states[i]
	s.step, s.last = 0, 0
	for k := range s.signs {
		s.signs[k] = s.random.IntN(riddleActions)
	}
}

// answer is the action that a step asks for.
func (e *riddleEnv) answer(s *riddleState) int {
	switch {
	case e.kind == "frame" && s.step >= 3:
		return s.signs[3]
	case e.kind == "action":
		return (s.last + 1) % riddleActions
	case e.kind == "frame":
		return -1 // no frame has the clue
	}
	return s.signs[0]
}

func (e *riddleEnv) Step(t int) error {
	for i := range e.states {
		s := &e.states[i]
		action := int(e.tr.Row(trajectory.Action, t).Int32()[i])
		reward := float32(0)
		if action == e.answer(s) {
			reward = 1
		}
		e.tr.Row(trajectory.Reward, t).Float32()[i] = reward
		copy(s.signs[1:], s.signs[:3])
		s.signs[0], s.last, s.step = s.random.IntN(riddleActions), action, s.step+1
		e.tr.Row(trajectory.Terminated, t).Data[i], e.tr.Row(trajectory.Truncated, t).Data[i] = 0, 0
		if s.step == riddleSteps {
			e.tr.Row(trajectory.Truncated, t).Data[i] = 1
			e.observe(trajectory.FinalObs, 0, i)
			e.begin(i)
		}
		e.observe(trajectory.Obs, t+1, i)
	}
	return nil
}

func (e *riddleEnv) observe(c trajectory.Column, row, i int) {
	s := &e.states[i]
	noise, picture, answer := e.tr.Row(c, row), e.tr.Row(c.At(1), row), e.tr.Row(c.At(2), row)
	for k := range noise.Elems {
		binary.LittleEndian.PutUint32(noise.Data[i*noise.StrideRow+k*noise.StrideElem:], math.Float32bits(s.random.Float32()))
	}
	clear(picture.Data[i*picture.StrideRow:][:4])
	shown, sign := -2, -1
	switch e.kind {
	case "entry":
		shown += s.signs[0]
	case "picture", "frame":
		sign = s.signs[0]
	}
	if sign >= 0 {
		picture.Data[i*picture.StrideRow+sign] = 255
	}
	binary.LittleEndian.PutUint32(answer.Data[i*answer.StrideRow:], uint32(int32(shown)))
}

// A policy finds the answer wherever it is shown: in one of several entries, in a picture, three frames back, in its own
// last action. Without that input it is no better than guessing.
func TestS22ProbesFindTheAnswerWhereItLies(t *testing.T) {
	frames, action := `policy.main.encoder."signs/picture".stack=%d`, `policy.main.inputs=["last_action", "last_reward"]`
	for _, c := range []struct {
		name, kind string
		sets       []string
		want       float64 // mean reward of a step
	}{
		{"in one entry", "entry", nil, 1},
		{"embedded", "entry", []string{`policy.main.encoder."*answer".kind="embed"`}, 1},
		{"in a picture", "picture", []string{`policy.main.encoder."*picture".kind="mlp"`}, 1},
		{"three frames back", "frame", []string{fmt.Sprintf(frames, 4)}, 16.0 / riddleSteps},
		{"three frames back, of two", "frame", []string{fmt.Sprintf(frames, 3)}, 4.0 / riddleSteps},
		{"in the last action", "action", []string{action}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sets := append([]string{"run.stop.env_steps=60000", "component.rollout.envs=64", "component.rollout.horizon=16", "component.batcher.dataset_rows=1024",
				"component.learner.minibatch=128", "component.learner.lr_anneal_env_steps=0", "component.learner.learning_rate=0.004",
				"component.learner.gamma=0", "component.learner.entropy_coef=0.001", "policy.main.net.hidden=[32]"}, c.sets...)
			o := experiment{plugin: newRiddle(c.kind), changes: true, sets: sets}.run(t)
			if o.err != nil && !errors.Is(o.err, env.ErrUnsupported) {
				t.Fatal(o.err)
			}
			sum, n := 0.0, 0
			for _, b := range o.blocks[len(o.blocks)-8:] {
				for _, reward := range b.Float32(trajectory.Reward) {
					sum, n = sum+float64(reward), n+1
				}
			}
			if got := sum / float64(n); got < c.want-0.06 || got > c.want+0.06 {
				t.Errorf("a step's reward is %.3f, want %.3f", got, c.want)
			}
		})
	}
}

// The last inputs are the same where a policy acts and where it learns: first ratios are 1 bit for bit, in whatever splits and over whatever seams,
// and a resumed run is the unbroken one. Rewards that wrappers shape enter as they are shaped.
func TestS28TheLastInputsAreThoseThatWereActedOn(t *testing.T) {
	run := func(steps int, sets ...string) experiment {
		x := everything()
		x.sets = append(x.sets[:len(x.sets)-1], `policy.main.inputs=["last_reward", "executed_action", "last_action"]`, "policy.main.normalize_obs=true",
			"env.lab.wrap=[{ reward_normalize = {} }, { sticky_action = 0.25 }]", fmt.Sprintf("run.stop.env_steps=%d", steps))
		x.sets = append(x.sets, sets...)
		return x
	}
	for _, core := range []string{`policy.main.net.activation="tanh"`, `policy.main.net.core={ kind = "gru", size = 8 }`} {
		whole := run(512, core).must(t)
		if err := only(whole.reported("losses/first_ratio_error"), 0); err != nil {
			t.Errorf("%s: %v", core, err)
		}
		for _, b := range whole.blocks {
			if !b.Schema.Has(trajectory.PastShaped) || !b.Schema.Has(trajectory.PastExecuted) {
				t.Fatal("blocks do not have what the policy reads")
			}
		}
		half := run(256, core).must(t)
		rest := run(512, core)
		rest.resume, rest.resumes = roundTrip(t, runs.Checkpoint{Components: half.states}).Components, 1
		if got := append(slices.Clone(half.hashes), rest.must(t).hashes...); !slices.Equal(got, whole.hashes) {
			t.Errorf("%s: parameters %.8s, want %.8s", core, got, whole.hashes)
		}
		if one := run(512, core, "component.rollout.splits=1").must(t); !slices.Equal(one.hashes, whole.hashes) {
			t.Errorf("%s: in one split parameters %.8s, want %.8s", core, one.hashes, whole.hashes)
		}
	}
}
