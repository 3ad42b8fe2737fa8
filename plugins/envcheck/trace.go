package envcheck

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
)

// run says how to step for one trace. Actions depend on the options' seed, the step and the environment alone.
type run struct {
	envs, steps int
	seed        uint64            // of the environments
	warmUp      int               // steps with other seeds before the trace
	snapshotAt  int               // step at which a new instance takes over from a snapshot; 0 = never
	mode        hostabi.Autoreset // 0 = what the host would choose
	// real: actions depend on how many real steps the environment has made, in place of the step, and real steps
	// are noted. A real step belongs to an episode.
	real bool
}

// trace is what the environments wrote, as one running hash per environment and step, and what was noticed.
type trace struct {
	envs   int
	hashes []uint64 // [step][env]

	terminated, truncated, longest int
	outside                        int
	firstOutside, afterEnd         string
	noSnapshot                     string     // why none was taken
	real                           [][]uint64 // by environment: a hash for each real step
}

func (t *trace) episodes() int { return t.terminated + t.truncated }

// differ returns the first place where two traces differ in the first envs environments. Steps count from 1, as in
// every message.
func (t *trace) differ(other *trace, envs int) (env, step int, differ bool) {
	for step := 0; step*t.envs < len(t.hashes); step++ {
		for env := range envs {
			if t.hashes[step*t.envs+env] != other.hashes[step*other.envs+env] {
				return env, step + 1, true
			}
		}
	}
	return 0, 0, false
}

// recorder makes one trace.
type recorder struct {
	c       *checker
	run     run
	stage   *rollout.Stage
	mode    hostabi.Autoreset
	trace   trace
	hash    []uint64
	length  []int
	phantom []bool
	mask    []byte
	seeds   []uint64
}

func (c *checker) record(r run) (t *trace, err error) {
	if r.mode == 0 {
		r.mode = c.spec.PickAutoreset()
	}
	w := &recorder{
		c: c, run: r, mode: r.mode, trace: trace{envs: r.envs, real: make([][]uint64, r.envs)},
		hash: make([]uint64, r.envs), length: make([]int, r.envs), phantom: make([]bool, r.envs),
		mask: make([]byte, r.envs), seeds: make([]uint64, r.envs),
	}
	if w.stage, err = w.newStage(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stage.Close()) }()
	if err := w.warmUp(); err != nil {
		return nil, err
	}
	if err := w.reset(r.seed); err != nil {
		return nil, err
	}
	for step := range r.steps {
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
		if step > 0 && step == r.snapshotAt {
			if err := w.replace(); err != nil {
				return nil, err
			}
		}
		if err := w.step(step); err != nil {
			return nil, named(err, step)
		}
	}
	return &w.trace, nil
}

// named adds the step to an error that does not have it.
func named(err error, step int) error {
	var f *rollout.Fault
	if errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("step %d: %w", step+1, err)
}

func (w *recorder) newStage() (*rollout.Stage, error) {
	return rollout.NewStage(w.c.plugin, rollout.StageOptions{
		EnvOptions: rollout.EnvOptions{Name: "check", Envs: w.run.envs, Autoreset: w.mode, Seed: w.c.o.Seed},
	})
}

func (w *recorder) warmUp() error {
	if w.run.warmUp == 0 {
		return nil
	}
	if err := w.reset(w.run.seed + 99); err != nil {
		return err
	}
	for step := range w.run.warmUp {
		if err := w.step(step + 1000); err != nil {
			return err
		}
	}
	w.trace = trace{envs: w.run.envs, real: make([][]uint64, w.run.envs)}
	clear(w.hash)
	clear(w.length)
	clear(w.phantom)
	return nil
}

func (w *recorder) reset(seed uint64) error {
	for env := range w.seeds {
		w.seeds[env] = rollout.EnvSeed(seed, env)
	}
	return w.stage.Reset(nil, w.seeds)
}

// replace goes on in a new instance that is restored from a snapshot of this one. What is observed now lies in
// the old block, so it is carried by hand.
func (w *recorder) replace() error {
	snapshot, err := w.stage.Env.Snapshot()
	if errors.Is(err, rollout.ErrUnsupported) {
		w.trace.noSnapshot = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	next, err := w.newStage()
	if err != nil {
		return err
	}
	if err := next.Reset(nil, w.seeds); err != nil {
		return errors.Join(err, next.Close())
	}
	if err := errors.Join(next.Env.Restore(snapshot), next.Bind()); err != nil {
		return errors.Join(err, next.Close())
	}
	copy(next.Obs().Data, w.stage.Obs().Data)
	copy(next.Mask().Data, w.stage.Mask().Data)
	err = w.stage.Close()
	w.stage = next
	return err
}

// step makes one step with the scripted actions and notes what the environments wrote.
func (w *recorder) step(step int) error {
	action, mask := w.stage.Action(), w.stage.Mask()
	for env := range action {
		action[env] = w.choose(mask, w.turn(env, step), env)
		w.beforeReal(env)
	}
	if _, err := w.stage.Step(); err != nil {
		return err
	}
	reset := false
	reward, terminated, truncated := w.stage.Reward(), w.stage.Terminated(), w.stage.Truncated()
	for env := range action {
		flags := uint64(terminated[env]) | uint64(truncated[env])<<1
		w.afterReal(env, reward[env], flags)
		w.note(env, step, reward[env], flags)
		w.mix(env, uint64(math.Float32bits(reward[env]))<<2|flags)
		w.mixObs(env, step, w.stage.Obs())
		if flags != 0 && w.mode == hostabi.SameStep {
			w.mixObs(env, step, w.stage.FinalObs())
		}
		w.mask[env] = 0
		if flags != 0 && w.mode == hostabi.Disabled {
			w.mask[env], reset = 1, true
		}
	}
	w.trace.hashes = append(w.trace.hashes, w.hash...)
	if reset {
		return w.stage.Reset(w.mask, nil)
	}
	return nil
}

// choose picks a legal action from the step and the environment alone.
func (w *recorder) choose(mask rollout.Matrix, step, env int) int32 {
	n := w.c.spec.Actions()
	pick := int(rollout.EnvSeed(w.c.o.Seed+uint64(step)*7919, env) % uint64(n))
	for k := range n {
		a := (pick + k) % n
		if mask.Rows == 0 || mask.Data[env*mask.StrideRow+a*mask.StrideElem] != 0 {
			return int32(a)
		}
	}
	return int32(pick)
}

// note counts episodes and looks at steps after an end.
func (w *recorder) note(env, step int, reward float32, flags uint64) {
	if w.phantom[env] {
		w.phantom[env] = false
		w.length[env] = 0
		if (reward != 0 || flags != 0) && w.trace.afterEnd == "" {
			w.trace.afterEnd = fmt.Sprintf("env %d step %d: the step after an end has reward %g and flags %d, want 0 under next_step",
				env, step+1, reward, flags)
		}
		return
	}
	w.length[env]++
	if flags == 0 {
		return
	}
	w.trace.longest = max(w.trace.longest, w.length[env])
	if flags&1 != 0 {
		w.trace.terminated++
	} else {
		w.trace.truncated++
	}
	w.length[env] = 0
	w.phantom[env] = w.mode == hostabi.NextStep
}

// mixObs adds an observation to the hash and looks whether it lies in the declared bounds.
func (w *recorder) mixObs(env, step int, m rollout.Matrix) {
	d, _ := w.c.spec.Tensor(hostabi.RoleObservation)
	values := m.Float32()
	for i := range m.Elems {
		v := values[(env*m.StrideRow+i*m.StrideElem)/4]
		w.mix(env, uint64(math.Float32bits(v)))
		if d.Low < d.High && (v < d.Low || v > d.High) {
			w.trace.outside++
			if w.trace.firstOutside == "" {
				w.trace.firstOutside = fmt.Sprintf("env %d step %d element %d is %g, bounds %g..%g", env, step+1, i, v, d.Low, d.High)
			}
		}
	}
}

func (w *recorder) mix(env int, word uint64) { w.hash[env] = mix(w.hash[env], word) }

// mix is FNV-1a over 64-bit words.
func mix(hash, word uint64) uint64 {
	const prime = 1099511628211
	return (hash ^ word) * prime
}
