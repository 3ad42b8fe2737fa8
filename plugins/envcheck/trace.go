package envcheck

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// run is how to step for one trace. Actions depend on the options' seed, the step and the environment alone.
type run struct {
	envs int
	// first is which environment of a batch the first of these stands for: its seed and its actions are that one's.
	first int
	seed  uint64 // of the environments
	// warmUp is how many steps are made with other seeds before the trace.
	warmUp int
	// A new instance continues at the step changeAt, if it is not 0: from a snapshot of the old one or, with moved,
	// from the saved state of each environment, in a larger batch.
	changeAt int
	moved    bool
	mode     hostabi.Autoreset // 0 = the host's choice
	// real: actions depend on how many real steps the environment has made, in place of the step, and real steps
	// are noted. A real step belongs to an episode.
	real bool
	// guarded: all writes are watched.
	guarded bool
	soa     bool // observations and masks lie [elem][env]
	parts   bool // steps are made in parts, in another order each
	rebound bool // another block is bound before each step
	blind   bool // nothing can be read in a step that was written before
	shown   bool // pictures are taken after each step
	waits   bool // under disabled, environments are stepped some times before they are reset
}

// maxMarks bounds the kept marks of a trace: of longer ones, every second, fourth, … step.
const maxMarks = 1 << 16

// trace holds the environments' writes, as one running hash per environment, and the findings. Where there are agents, each has
// the place of an environment, and an environment's agents are contiguous.
type trace struct {
	envs   int
	agents int      // of an environment
	every  int      // steps from one row of marks to the next
	hashes []uint64 // [step/every][env]
	acted  int      // rows in which an agent has acted, where agents do not always act
	idle   string   // a mask of an agent that does not act

	terminated, truncated, longest int
	observed, outside              int // observations checked, and observations with an element beyond its bounds
	firstOutside, afterEnd         string
	illegal                        string     // an action that is not legal after an end
	firstEnd                       int        // the step of the first end, from 1 on; 0: there was none
	waited                         int        // steps of environments that waited for their reset
	pictures                       int        // that were taken
	unable                         string     // why a step was not made in parts, or no picture taken
	unsaved                        string     // why no other instance continued
	real                           [][]uint64 // by environment: a running hash after every so many real steps
	reals                          []int      // real steps of each environment
	watched                        watched
}

func newTrace(envs, agents, steps int) trace {
	envs *= agents
	return trace{envs: envs, agents: agents, every: (steps + maxMarks - 1) / maxMarks, real: make([][]uint64, envs), reals: make([]int, envs)}
}

// who names the owner of a hash.
func (w *recorder) who(row int) string { return who(&w.checker.spec, row) }

// who names the environment of a row, and the agent where it has several.
func who(s *hostabi.EnvSpec, row int) string {
	agents := s.Agents()
	if agents == 1 {
		return fmt.Sprintf("env %d", row)
	}
	return fmt.Sprintf("env %d %s", row/agents, s.Agent(row%agents))
}

func (t *trace) episodes() int { return t.terminated + t.truncated }

// differ returns the first place where two traces of equal length differ in the first envs environments.
func (t *trace) differ(other *trace, envs int) (env int, step string, differ bool) {
	return t.differFrom(0, other, envs)
}

// differFrom is differ where the other trace's first environment stands for another one of this trace.
func (t *trace) differFrom(first int, other *trace, envs int) (env int, step string, differ bool) {
	for row := 0; row*t.envs < len(t.hashes); row++ {
		for env := range envs * t.agents {
			if t.hashes[row*t.envs+first*t.agents+env] != other.hashes[row*other.envs+env] {
				return first + env/t.agents, t.place(row), true
			}
		}
	}
	return 0, "", false
}

// place names the steps between two rows of marks. Steps count from 1, as in every message.
func (t *trace) place(row int) string {
	if t.every == 1 {
		return fmt.Sprintf("step %d", row+1)
	}
	return fmt.Sprintf("a step between %d and %d", row*t.every+1, (row+1)*t.every)
}

// recorder makes one trace.
type recorder struct {
	checker *checker
	run     run
	driver  *env.Driver
	guard   *guard
	blind   blind
	mode    hostabi.Autoreset
	trace   trace
	hash    []uint64
	reals   []uint64 // running hash of real steps
	length  []int
	phantom []bool // the next step of the environment belongs to no episode
	left    []int  // how many steps an environment still waits for its reset; of each in the batch
	held    []uint64
	mask    []byte
	seeds   []uint64
	spaces  []hostabi.Tensor                         // of the observations
	columns map[trajectory.Flags][]trajectory.Column // that Driver.Observed returns
	figures []trajectory.Figure
	agents  *trajectory.Agents
}

func (k *checker) record(r run) (t *trace, err error) {
	if r.mode == 0 {
		r.mode = k.spec.PickAutoreset()
	}
	rows := r.envs * k.spec.Agents()
	w := &recorder{
		checker: k, run: r, mode: r.mode, trace: newTrace(r.envs, k.spec.Agents(), k.o.Steps),
		hash: make([]uint64, rows), reals: make([]uint64, rows), length: make([]int, rows), phantom: make([]bool, rows), held: make([]uint64, rows),
		spaces: k.spec.All(hostabi.RoleObservation),
	}
	if err = w.open(r.envs); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.driver.Close()) }()
	if err := w.play(); err != nil {
		return &w.trace, err
	}
	return &w.trace, nil
}

// play makes the steps of the trace.
func (w *recorder) play() error {
	if err := w.warmUp(); err != nil {
		return err
	}
	w.agents = trajectory.NewAgents(w.driver.Schema())
	if err := w.reset(w.run.seed); err != nil {
		return err
	}
	for step := range w.checker.o.Steps {
		if until := w.checker.until; !until.IsZero() && step > 0 && time.Now().After(until) {
			return nil
		}
		if err := w.checker.ctx.Err(); err != nil {
			return err
		}
		if step > 0 && step == w.run.changeAt {
			if err := w.replace(); err != nil {
				return err
			}
		}
		if err := w.step(step); err != nil {
			return named(err, step)
		}
	}
	return nil
}

// named adds the step to an error that does not have it.
func named(err error, step int) error {
	var f *env.Fault
	if errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("step %d: %w", step+1, err)
}

// open makes a batch of that size; the trace's environments come first.
func (w *recorder) open(envs int) (err error) {
	o := env.DriverOptions{
		Options: env.Options{Name: "check", Envs: envs, FirstEnv: w.run.first, Autoreset: w.mode, Seed: w.checker.o.Seed, Wanted: w.checker.ctx}, SoA: w.run.soa,
	}
	if w.run.moved && w.driver != nil {
		o.Rows = 5 // blocks of another size: the heap lies differently
	}
	if w.run.rebound {
		o.Blocks = 2
	}
	w.guard = nil
	if w.run.blind {
		o.Rows = 3 // not more to lay canaries over
	}
	if w.run.guarded {
		w.driver, w.guard, err = w.checker.guardedDriver(o, &w.trace.watched)
	} else {
		w.driver, err = env.NewDriver(w.checker.plugin, o)
	}
	if err != nil {
		return err
	}
	w.mask, w.seeds, w.figures = make([]byte, envs), make([]uint64, envs), w.driver.Figures()
	w.left = append(w.left, make([]int, envs-len(w.left))...)
	w.columns = map[trajectory.Flags][]trajectory.Column{}
	for _, l := range w.driver.Schema().Columns() {
		for _, flag := range []trajectory.Flags{trajectory.Observed, trajectory.Final} {
			if l.Flags&flag != 0 {
				w.columns[flag] = append(w.columns[flag], l.Column)
			}
		}
	}
	w.agents = trajectory.NewAgents(w.driver.Schema())
	if w.run.parts {
		w.driver.Env = &parted{Env: w.driver.Env, trace: &w.trace, seed: w.checker.o.Seed, envs: envs}
	}
	return nil
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
	w.trace = newTrace(w.run.envs, w.checker.spec.Agents(), w.checker.o.Steps)
	clear(w.hash)
	clear(w.length)
	clear(w.phantom)
	return nil
}

func (w *recorder) reset(seed uint64) error {
	for k := range w.seeds {
		w.seeds[k] = env.Seed(seed, w.run.first+k)
	}
	return w.begin(nil, w.seeds)
}

// begin starts episodes, everywhere or where mask is not 0.
func (w *recorder) begin(mask []byte, seeds []uint64) error {
	if w.guard == nil {
		return w.driver.Reset(mask, seeds)
	}
	w.guard.plantReset(mask)
	err := w.driver.Reset(mask, seeds)
	return w.guard.look(hostabi.ExportReset, err)
}

// replace continues in another instance. The current observation lies in the old block, so it is copied.
func (w *recorder) replace() error {
	old := w.driver
	move, err := w.leave()
	if errors.Is(err, env.ErrUnsupported) {
		w.trace.unsaved = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	envs := w.run.envs
	if w.run.moved {
		envs = w.checker.capped(envs + 1)
	}
	if err := w.open(envs); err != nil {
		w.driver = old
		return err
	}
	if err = move(); err == nil {
		carry(w.driver, old)
	}
	return errors.Join(err, old.Close())
}

// leave saves the instance's state, and returns a function that loads it into the next one.
func (w *recorder) leave() (move func() error, err error) {
	if w.run.moved {
		return w.leaveEach()
	}
	snapshot, err := w.driver.Env.Snapshot()
	return func() error {
		if err := w.driver.Reset(nil, w.seeds); err != nil {
			return err
		}
		return errors.Join(w.driver.Env.Restore(snapshot), w.driver.Bind())
	}, err
}

// leaveEach is leave with the environments saved one by one. They are loaded into a batch with other episodes.
func (w *recorder) leaveEach() (move func() error, err error) {
	from, ok := w.driver.Env.(env.Stater)
	if !ok {
		return nil, env.ErrUnsupported
	}
	saved := make([][]byte, w.run.envs)
	for env := range saved {
		if saved[env], err = from.SaveEnv(env, nil); err != nil {
			return nil, err
		}
	}
	return func() error {
		to := w.driver.Env.(env.Stater)
		if err := w.reset(w.run.seed + 77); err != nil {
			return err
		}
		for env, state := range saved {
			if err := to.LoadEnv(env, state); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// carry copies the observations of one driver to the front of another's, which has the same strides.
func carry(to, from *env.Driver) {
	toRows, fromRows := to.Observed(trajectory.Observed), from.Observed(trajectory.Observed)
	for i := range toRows {
		copy(toRows[i].Data, fromRows[i].Data)
	}
}

// step makes one step with the scripted actions and records the environments' writes.
func (w *recorder) step(step int) error {
	if w.run.rebound {
		if err := w.driver.Move(); err != nil {
			return err
		}
	}
	first := w.run.first * w.driver.Schema().Agents
	w.driver.Draw(func(index int) uint64 {
		return env.Seed(w.checker.o.Seed+uint64(w.turn(index, step))*7919, first+index)
	})
	for env := range w.hash {
		w.beforeReal(env)
	}
	w.noteIdle(step)
	if err := w.advance(); err != nil {
		return err
	}
	reward, terminated, truncated := w.driver.Reward(), w.driver.Terminated(), w.driver.Truncated()
	shaped := w.driver.Result(trajectory.ShapedReward)
	w.agents.Step(w.driver.Stepped())
	if env, err := w.agents.Idle(); err != nil {
		return fmt.Errorf("env %d: %w", env, err)
	}
	for env := range w.hash {
		flags := uint64(terminated[env]) | uint64(truncated[env])<<1
		w.afterReal(env, reward[env], flags)
		w.mixResults(env, flags != 0)
		w.note(env, step, reward[env], flags)
		w.mix(env, uint64(math.Float32bits(reward[env]))<<2|flags)
		if shaped.Rows > 0 {
			w.hash[env] = hashRow(w.hash[env], shaped, env)
		}
		w.mixObs(env, step, trajectory.Observed)
		if flags != 0 && w.mode == hostabi.SameStep {
			w.mixObs(env, step, trajectory.Final)
		}
	}
	if err := w.show(step); err != nil {
		return err
	}
	if (step+1)%w.trace.every == 0 {
		w.trace.hashes = append(w.trace.hashes, w.hash...)
	}
	if w.mode == hostabi.Disabled && w.resets(terminated, truncated) {
		return w.begin(w.mask, nil)
	}
	return nil
}

// advance steps the environments and checks their writes.
func (w *recorder) advance() error {
	if w.run.blind {
		return w.advanceBlind()
	}
	if w.guard == nil {
		_, err := w.driver.Step()
		return err
	}
	w.guard.plantStep()
	_, err := w.driver.Step()
	return w.guard.look(hostabi.ExportStep, err)
}

// note counts episodes and looks at steps after an end.
func (w *recorder) note(env, step int, reward float32, flags uint64) {
	if w.phantom[env] {
		w.phantom[env] = w.mode == hostabi.Disabled // until it is reset
		w.length[env] = 0
		w.noteWaiting(env, step)
		if (reward != 0 || flags != 0) && w.trace.afterEnd == "" {
			w.trace.afterEnd = fmt.Sprintf("env %d step %d: the step after an end has reward %g and flags %d, want 0 under %v",
				env, step+1, reward, flags, w.mode)
		}
		return
	}
	over := w.agents.Ended[env] != 0
	if !over && !w.agents.Running(env) {
		return
	}
	w.length[env]++
	w.trace.longest = max(w.trace.longest, w.length[env])
	if !over {
		return
	}
	if flags&1 != 0 {
		w.trace.terminated++
	} else {
		w.trace.truncated++
	}
	w.length[env] = 0
	if w.trace.firstEnd == 0 {
		w.trace.firstEnd = step + 1
	}
	if w.phantom[env] = w.mode == hostabi.NextStep || w.run.waits; w.mode != hostabi.SameStep {
		w.noteMask(env, step)
	}
	if w.run.waits {
		w.held[env] = w.seen(env)
	}
}

// mixObs adds an environment's observation, or its last one, to the hash and checks that it lies in the declared
// bounds. Masks have been checked.
func (w *recorder) mixObs(env, step int, flag trajectory.Flags) {
	columns, inside := w.columns[flag], true
	for i, m := range w.driver.Observed(flag) {
		if !w.driver.Schema().Holds(columns[i], env) {
			continue
		}
		w.hash[env] = hashRow(w.hash[env], m, env)
		if i < len(w.spaces) {
			inside = w.checkBounds(&w.spaces[i], m, env, step) && inside
		}
	}
	w.trace.observed++
	if !inside {
		w.trace.outside++
	}
}

// mixResults adds the discount and the infos of a real step to the hash; some infos count where an episode ends alone.
func (w *recorder) mixResults(env int, ended bool) {
	if w.phantom[env] {
		return
	}
	if m := w.driver.Result(trajectory.Discount); m.Rows > 0 {
		w.hash[env] = hashRow(w.hash[env], m, env)
	}
	for _, f := range w.figures {
		if (ended || !f.AtEnd) && !f.AtBegin && w.driver.Schema().Holds(f.Column, env) {
			w.mix(env, w.driver.Result(f.Column).Bits(env, f.Elem))
		}
	}
}

// checkBounds reports whether an observation lies in its space.
func (w *recorder) checkBounds(space *hostabi.Tensor, m trajectory.Matrix, env, step int) bool {
	for i := range m.Elems {
		low, high := space.Limits(i)
		if v := m.Value(env, i); v < low || v > high {
			if w.trace.firstOutside == "" {
				w.trace.firstOutside = fmt.Sprintf("%s step %d element %d is %g, bounds %g..%g", w.who(env), step+1, i, v, low, high)
			}
			return false
		}
	}
	return true
}

func (w *recorder) mix(env int, word uint64) { w.hash[env] = mix(w.hash[env], word) }

// mix is FNV-1a over 64-bit words.
func mix(hash, word uint64) uint64 {
	const prime = 1099511628211
	return (hash ^ word) * prime
}
