package evaluation

import (
	"context"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// Options says what to evaluate.
type Options struct {
	Plugin       rollout.Plugin
	Actor        policy.Actor // loaded with the weights, prepared for at least Envs rows
	Episodes     int
	Envs         int    // that play at the same time; does not change the result
	Seed         uint64 // of episodes and actions
	Greedy       bool   // the most probable action instead of a sample
	EpisodeLimit int    // ends episodes after that many env steps; 0 = the environment's own limit alone
}

// Result holds what each episode came to, by its index.
type Result struct {
	Returns []float64
	Lengths []int
	Greedy  bool
}

// Mean returns the mean return of all episodes.
func (r *Result) Mean() float64 {
	sum := 0.0
	for _, x := range r.Returns {
		sum += x
	}
	return sum / float64(len(r.Returns))
}

// Std returns the standard deviation of the returns.
func (r *Result) Std() float64 {
	mean, sum := r.Mean(), 0.0
	for _, x := range r.Returns {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(r.Returns)))
}

// MeanLength returns the mean number of env steps of an episode.
func (r *Result) MeanLength() float64 {
	sum := 0
	for _, n := range r.Lengths {
		sum += n
	}
	return float64(sum) / float64(len(r.Lengths))
}

// blockSteps is how many rows are stepped before the last one is carried to the front.
const blockSteps = 32

// Run plays every episode to its end. It runs on the calling goroutine; ctx is looked at between steps.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Episodes < 1 {
		return nil, fmt.Errorf("evaluation: %d episodes", o.Episodes)
	}
	p, err := newPlay(o)
	if err != nil {
		return nil, err
	}
	err = p.run(ctx)
	if closeErr := p.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return &p.result, nil
}

// play is one evaluation under way.
type play struct {
	o        Options
	n        int // environments
	env      rollout.Env
	arena    *arena.Arena
	loan     arena.Loan
	tr       rollout.Trajectory
	result   Result
	episode  []int // that each environment plays, -1 when it idles
	steps    []uint64
	returns  []float64
	next     int // episode that nobody plays yet
	playing  int
	mask     []byte
	seeds    []uint64
	value    []float32
	requests []policy.Request
}

func newPlay(o Options) (*play, error) {
	spec := o.Plugin.Spec()
	n := min(max(o.Envs, 1), o.Episodes)
	if spec.MaxEnvs > 0 {
		n = min(n, spec.MaxEnvs)
	}
	schema, err := rollout.NewSchema(spec, rollout.Shape{Steps: blockSteps, Envs: n,
		SoA: spec.Caps&hostabi.CapPreferSoA != 0})
	if err != nil {
		return nil, err
	}
	p := &play{
		o: o, n: n, result: Result{
			Returns: make([]float64, o.Episodes), Lengths: make([]int, o.Episodes), Greedy: o.Greedy,
		},
		episode: make([]int, n), steps: make([]uint64, n), returns: make([]float64, n),
		mask: make([]byte, n), seeds: make([]uint64, n), value: make([]float32, n),
	}
	p.env, err = o.Plugin.NewEnv(rollout.EnvOptions{
		Name: "evaluation", Envs: n, Autoreset: spec.PickAutoreset(), Seed: o.Seed,
	})
	if err != nil {
		return nil, err
	}
	p.arena, err = arena.New(arena.Config{Name: "evaluation", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	if err != nil {
		return nil, p.env.Close()
	}
	p.loan, err = p.arena.Loan()
	p.tr = rollout.Trajectory{Schema: schema, Mem: p.loan.Bytes()}
	return p, err
}

func (p *play) close() error {
	err := p.env.Close()
	if abortErr := p.loan.Abort(); err == nil {
		err = abortErr
	}
	if closeErr := p.arena.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (p *play) run(ctx context.Context) error {
	err := p.env.Bind(rollout.Block{Trajectory: p.tr, FD: p.arena.FD(), Offset: p.arena.BlockOffset(0)})
	if err != nil {
		return err
	}
	for env := range p.n {
		p.start(env)
	}
	if err := p.env.Reset(0, nil, p.seeds); err != nil {
		return err
	}
	for t := 0; p.playing > 0; t++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t == blockSteps {
			p.carry()
			t = 0
		}
		if err := p.step(t); err != nil {
			return err
		}
	}
	return nil
}

// start gives an environment the next episode, or none when all are taken.
func (p *play) start(env int) {
	p.steps[env], p.returns[env] = 0, 0
	if p.next == p.o.Episodes {
		p.episode[env] = -1
		return
	}
	p.episode[env] = p.next
	p.seeds[env] = rollout.EnvSeed(p.o.Seed, p.next)
	p.next++
	p.playing++
}

// carry moves the last row of the block to its front.
func (p *play) carry() {
	copy(p.tr.Row(rollout.ColObs, 0).Data, p.tr.Row(rollout.ColObs, blockSteps).Data)
	if _, ok := p.tr.Schema.Layout(rollout.ColMask); ok {
		copy(p.tr.Row(rollout.ColMask, 0).Data, p.tr.Row(rollout.ColMask, blockSteps).Data)
	}
}

// step acts on row t, steps the environments and begins new episodes where some have ended.
func (p *play) step(t int) error {
	if env, err := p.tr.CheckObs(t); err != nil {
		return fmt.Errorf("evaluation env %d: %w", env, err)
	}
	if err := p.act(t); err != nil {
		return err
	}
	if err := p.env.Step(t); err != nil {
		return err
	}
	if _, env, err := p.tr.CheckStep(t); err != nil {
		return fmt.Errorf("evaluation env %d: %w", env, err)
	}
	if !p.count(t) {
		return nil
	}
	return p.env.Reset(t+1, p.mask, p.seeds)
}

// act asks the policy about row t. Sampled actions are keyed by episode, so each row is a request of its own.
func (p *play) act(t int) error {
	obs := p.tr.Row(rollout.ColObs, t)
	lo := t * p.n
	action, logProb := p.tr.Int32(rollout.ColAction)[lo:lo+p.n], p.tr.Float32(rollout.ColLogProb)[lo:lo+p.n]
	all := policy.Request{Obs: obs, Action: action, LogProb: logProb, Value: p.value, Greedy: true}
	if _, ok := p.tr.Schema.Layout(rollout.ColMask); ok {
		all.Mask = p.tr.Row(rollout.ColMask, t)
	}
	p.requests = p.requests[:0]
	if p.o.Greedy {
		p.requests = append(p.requests, all)
		return p.o.Actor.Act(p.requests)
	}
	for env := range p.n {
		r := policy.Request{
			Obs: obs.Slice(env, env+1), Action: action[env : env+1], LogProb: logProb[env : env+1],
			Value: p.value[env : env+1], Seed: p.o.Seed, FirstEnv: uint32(max(p.episode[env], 0)), Step: p.steps[env],
		}
		if all.Mask.Rows > 0 {
			r.Mask = all.Mask.Slice(env, env+1)
		}
		p.requests = append(p.requests, r)
	}
	return p.o.Actor.Act(p.requests)
}

// count adds up row t and reports whether environments want a reset, as mask and seeds then say.
func (p *play) count(t int) (reset bool) {
	lo := t * p.n
	reward := p.tr.Float32(rollout.ColReward)[lo : lo+p.n]
	terminated, truncated := p.tr.Bytes(rollout.ColTerminated)[lo:], p.tr.Bytes(rollout.ColTruncated)[lo:]
	for env := range p.n {
		p.mask[env] = 0
		ended := terminated[env]|truncated[env] != 0
		if p.episode[env] >= 0 {
			p.returns[env] += float64(reward[env])
			p.steps[env]++
			ended = ended || p.o.EpisodeLimit > 0 && p.steps[env] >= uint64(p.o.EpisodeLimit)
		}
		if !ended {
			continue
		}
		p.mask[env], reset = 1, true
		p.record(env)
		p.start(env)
	}
	return reset
}

func (p *play) record(env int) {
	if e := p.episode[env]; e >= 0 {
		p.result.Returns[e], p.result.Lengths[e] = p.returns[env], int(p.steps[env])
		p.playing--
	}
}
