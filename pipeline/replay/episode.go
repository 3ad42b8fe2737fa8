package replay

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Key names an episode: the columns env, agent, life and number of episodes.csv.
type Key struct {
	Env    uint32
	Agent  uint16
	Life   uint32
	Number uint32
}

// Find returns an episode of a recording. The error wraps ErrGone if it is not there.
func Find(reel *tape.Reel, k Key) (tape.Told, error) {
	for _, e := range reel.Episodes() {
		if (Key{e.Env, e.Agent, e.Of.Life, e.Number}) == k {
			return e, nil
		}
	}
	return tape.Told{}, fmt.Errorf("%w: the recording does not have its end", ErrGone)
}

// stretch is a part of an episode: steps of one track.
type stretch struct {
	track    *tape.Track
	from, to uint64
}

// Episode is an episode that is played again. It belongs to one goroutine.
type Episode struct {
	Told   tape.Told
	Return float64 // of the agent so far
	Reward float64 // of the newest step
	Over   bool    // all steps have been made
	Fault  error   // that has ended it; see OpenFailed

	reel      *tape.Reel
	load      Load
	stretches []stretch
	now       int // stretch
	player    *player
	plugin    env.Plugin
	first     *place // the beginning of the first stretch; nil if the environments give no state
	made      int
	acted     uint32
	before    float64 // the return before the agent's newest decision
	decision  float32 // what that has brought so far
	step      Step
	failed    *tape.Failed // of an episode that a fault has ended
}

// Step is one step of the agent's environment.
type Step struct {
	Number      int         // in the episode, from 0
	Observation [][]float64 // before it, by tensor of the agent
	Acts        bool        // the agent acts
	Action      [][]float64 // of the agent, by tensor
	Reward      float32
	Terminated  bool
	Truncated   bool
	Failed      bool // the environment failed at it
}

// Load loads what the environments of a track were made from. The caller closes the plugin.
type Load func(t *tape.Track) (env.Plugin, error)

// Open goes to the beginning of an episode. The error wraps ErrGone where too little is kept. The caller closes the episode; the reel stays
// open meanwhile.
func Open(reel *tape.Reel, told tape.Told, load Load) (*Episode, error) {
	x := &Episode{Told: told, reel: reel, load: load}
	err := x.find()
	if err == nil {
		err = x.rewind()
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// Close closes the environments.
func (x *Episode) Close() error {
	var err error
	if x.player != nil {
		err = x.player.close()
		x.player = nil
	}
	if x.plugin != nil {
		err = errors.Join(err, x.plugin.Close())
		x.plugin = nil
	}
	return err
}

// Spec describes the environment.
func (x *Episode) Spec() *hostabi.EnvSpec { return x.player.driver.Env.Spec() }

// Steps is how many steps have been made, Length how many there are.
func (x *Episode) Steps() int { return x.made }

// Length is how many steps of the environment the episode has.
func (x *Episode) Length() (n int) {
	for _, s := range x.stretches {
		n += int(s.to - s.from)
	}
	return n
}

// Score is the agent's return and reward of the newest step, and how the episode has ended, if it has; see play.Recorded.
func (x *Episode) Score() (total, reward float64, ended string) {
	switch {
	case x.Fault != nil:
		ended = "failed"
	case x.Over && x.Told.Terminated:
		ended = "terminated"
	case x.Over:
		ended = "truncated"
	}
	return x.Return, x.Reward, ended
}

// Hash is the SHA-256 of the version of the environment that plays now.
func (x *Episode) Hash() string { return x.stretches[x.now].track.Hash }

// find finds the stretches. Where agents act in some steps, those in which they do have to be counted.
func (x *Episode) find() error {
	end := stretch{track: x.Told.Of, to: x.Told.At}
	left := uint64(x.Told.Length)
	for {
		var err error
		if end.from, left, err = x.reach(end.track, end.to, left); err != nil {
			return err
		}
		x.stretches = append([]stretch{end}, x.stretches...)
		if left == 0 {
			return nil
		}
		before := x.reel.Before(end.track)
		if before == nil {
			return fmt.Errorf("%w: its first %d env steps were made before the recording begins", ErrGone, left)
		}
		end = stretch{track: before, to: end.track.AfterAt}
	}
}

// reach returns where the last steps of a track before a position begin in which the agent acts, and how many more there are than the track has.
func (x *Episode) reach(t *tape.Track, to, acted uint64) (from, left uint64, err error) {
	if t.Agents == 1 {
		if acted > to {
			return 0, acted - to, nil
		}
		return to - acted, 0, nil
	}
	var acts []bool
	for from = to; from > 0; {
		next := from - min(from, searched)
		more, err := x.acts(t, next, from)
		if err != nil {
			return 0, 0, err
		}
		acts, from = append(more, acts...), next
		n := acted
		for i := len(acts) - 1; i >= 0; i-- {
			if acts[i] {
				n--
			}
			if n == 0 {
				return from + uint64(i), 0, nil
			}
		}
		left = n
	}
	return 0, left, nil
}

// searched is how many steps are played again at once in search of the beginning of an agent's episode.
const searched = 1024

// acts returns in which steps the agent acts.
func (x *Episode) acts(t *tape.Track, from, to uint64) (acts []bool, err error) {
	if err := x.open(t); err != nil {
		return nil, err
	}
	if err := x.player.seek(from); err != nil {
		return nil, err
	}
	for at := from; at < to; at++ {
		if err := x.player.prepare(); err != nil {
			return nil, err
		}
		tr, row := x.player.driver.Acting()
		who := tr.Acts(row)
		acts = append(acts, who == nil || who[x.row(t)] != 0)
		if err := x.player.step(); err != nil {
			return nil, err
		}
	}
	return acts, nil
}

// row is the agent's row of a step.
func (x *Episode) row(t *tape.Track) int {
	return (int(x.Told.Env)-t.First)*t.Agents + int(x.Told.Agent)
}

// open makes the environments of a track, unless they are there.
func (x *Episode) open(t *tape.Track) error {
	if x.player != nil && x.player.track == t {
		return nil
	}
	if err := x.Close(); err != nil {
		return err
	}
	if int(x.Told.Env) < t.First || int(x.Told.Env) >= t.First+t.Envs || int(x.Told.Agent) >= t.Agents {
		return fmt.Errorf("%w: environment %d, agent %d of %d environments from %d on of %d agents", tape.ErrFormat, x.Told.Env, x.Told.Agent, t.Envs, t.First, t.Agents)
	}
	var err error
	if x.plugin, err = x.load(t); err != nil {
		return err
	}
	x.player, err = newPlayer(x.reel, t, x.plugin, x.failed != nil)
	return err
}

// enter goes to the beginning of a stretch.
func (x *Episode) enter(number int) error {
	x.now = number
	if err := x.open(x.stretches[number].track); err != nil {
		return err
	}
	return x.player.seek(x.stretches[number].from)
}

// rewind goes to the beginning.
func (x *Episode) rewind() error {
	x.made, x.acted, x.Return, x.Reward, x.Over, x.Fault = 0, 0, 0, 0, false, nil
	x.before, x.decision = 0, 0
	if x.first != nil && x.first.of == x.player {
		x.now = 0
		return x.player.back(x.first)
	}
	if err := x.enter(0); err != nil {
		return x.fails(err)
	}
	x.first = x.player.mark()
	return nil
}

// Step makes the next step. At the end it does nothing. The error wraps ErrDiffers where the episode ends otherwise than it did.
func (x *Episode) Step() error {
	if x.Over {
		return nil
	}
	p := x.player
	if err := p.prepare(); err != nil {
		return x.fails(err)
	}
	tr, row := p.driver.Acting()
	i := x.row(p.track)
	who := tr.Acts(row)
	x.step = Step{Number: x.made, Acts: who == nil || who[i] != 0, Observation: values(tr, trajectory.Obs, row, i), Action: values(tr, trajectory.Action, row, i)}
	if err := p.step(); err != nil {
		x.step.Failed = true
		return x.fails(err)
	}
	x.note()
	s := x.stretches[x.now]
	switch {
	case p.at < s.to:
		return nil
	case x.now+1 < len(x.stretches):
		return x.enter(x.now + 1)
	case x.failed != nil:
		return x.fails(p.prepare())
	}
	x.Over = true
	return x.compare()
}

// note takes in the result of a step.
func (x *Episode) note() {
	p := x.player
	tr, row := p.driver.Stepped()
	i := x.row(p.track)
	x.step.Terminated, x.step.Truncated = tr.RowBytes(trajectory.Terminated, row)[i] != 0, tr.RowBytes(trajectory.Truncated, row)[i] != 0
	x.made++
	x.step.Reward = p.driver.Reward()[i]
	if x.step.Acts {
		x.acted++
		x.before, x.decision = x.Return, 0
	}
	// As a run counts it: what comes until the agent acts again belongs to its decision.
	x.decision += x.step.Reward
	x.Reward, x.Return = float64(x.step.Reward), x.before+float64(x.decision)
}

// compare compares the episode with what the run saw. A reward that comes long after its decision is added otherwise there.
func (x *Episode) compare() error {
	got, want := float32(x.Return), x.Told.Return
	same := math.Float32bits(got) == math.Float32bits(want)
	if x.player.track.Agents > 1 {
		same = math.Abs(float64(got-want)) <= 1e-5*max(1, math.Abs(float64(want)))
	}
	if x.acted != x.Told.Length || !same {
		return fmt.Errorf("%w: %d env steps and a return of %v, it had %d and %v", ErrDiffers, x.acted, float32(x.Return), x.Told.Length, x.Told.Return)
	}
	return nil
}

// Newest is the newest step. Its values are valid until the next one.
func (x *Episode) Newest() Step { return x.step }

// Observation is what the agent sees now: after the last step the last observation, where the environment tells it.
func (x *Episode) Observation() [][]float64 {
	tr, row := x.player.driver.Acting()
	if x.Over && x.player.track.Autoreset == hostabi.SameStep {
		return values(tr, trajectory.FinalObs, 0, x.row(x.player.track))
	}
	return values(tr, trajectory.Obs, row, x.row(x.player.track))
}

// values are the elements of all columns of a kind, of one agent.
func values(tr trajectory.Trajectory, kind trajectory.Column, row, i int) (list [][]float64) {
	for k := 0; tr.Schema.Has(kind.At(k)); k++ {
		if !tr.Schema.Holds(kind.At(k), i) {
			continue
		}
		m := tr.Row(kind.At(k), row)
		of := make([]float64, m.Elems)
		for e := range of {
			of[e] = m.Value(i, e)
		}
		list = append(list, of)
	}
	return list
}

// Back goes so many steps back, or forward.
func (x *Episode) Back(steps int) error {
	to := min(max(x.made-steps, 0), x.Length())
	if to < x.made {
		if err := x.rewind(); err != nil {
			return err
		}
	}
	for x.made < to {
		if err := x.Step(); err != nil {
			return err
		}
	}
	return nil
}

// Render draws the environment as it is now; see env.Renderer.
func (x *Episode) Render(mode hostabi.RenderMode, dst []byte) ([]byte, error) {
	from, ok := x.player.driver.Env.(env.Renderer)
	if !ok || x.Spec().Render.Modes&mode == 0 {
		return nil, env.ErrUnsupported
	}
	return from.Render(int(x.Told.Env)-x.player.track.First, mode, 0, dst)
}
