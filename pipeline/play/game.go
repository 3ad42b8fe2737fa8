package play

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// By is who chooses the actions of the agent that a person can play.
type By string

// Who chooses.
const (
	Person By = "you"
	Policy By = "policy"
	Chance By = "random"
	Record By = "record" // the actions of an episode that was recorded
)

// Recorded is an episode that is played again.
type Recorded interface {
	Spec() *hostabi.EnvSpec
	// Step makes the next step, unless it is over.
	Step() error
	// Back goes so many steps back, or forward.
	Back(steps int) error
	// Steps is how many have been made.
	Steps() int
	// Score is the agent's return and reward of the last step, and how the episode has ended, if it has.
	Score() (total, reward float64, ended string)
	// Render draws the environment; see env.Renderer.
	Render(mode hostabi.RenderMode, dst []byte) ([]byte, error)
	Close() error
}

// Errors.
var (
	// ErrNoPicture is returned by an environment that draws nothing in the wanted form.
	ErrNoPicture = errors.New("it draws no pictures")
	// ErrChoice is wrapped by errors about an action that cannot be taken.
	ErrChoice = errors.New("no such action")
)

// Seat is a policy that plays one agent; see evaluation.Seat.
type Seat interface {
	Begin()
	Act(evaluation.Observation) ([]evaluation.Elements, error)
}

// Options say what is played.
type Options struct {
	Seed  uint64
	Agent int    // that a person can play
	Seats []Seat // by agent; nil: there is no policy. Other agents play by theirs, or at random
}

// Game is one environment that is being played. It belongs to one goroutine.
type Game struct {
	By By

	o      Options
	again  Recorded // nil where an environment is played; else most of the rest is empty
	driver *env.Driver
	spec   *hostabi.EnvSpec
	own    []int     // numbers of the actions that the agent has: of several groups, one has some
	chosen []float64 // by the person: the elements of each own action
	seed   uint64    // of the episode
	made   [][]byte  // the actions of all agents, by step of the episode
	next   int       // steps of made that have been made: fewer after going back

	rewards []float32 // of all agents in the last step

	Episode int     // from 0
	Return  float64 // of the agent, in the episode so far
	Reward  float64 // of the last step
	Over    bool    // the episode has ended; the next step begins another one
	Ended   string  // how it has: terminated or truncated
}

// New makes the environment and begins an episode. The caller closes the game; the plugin and the seats stay its own.
func New(plugin env.Plugin, o Options) (*Game, error) {
	spec := plugin.Spec()
	mode := spec.PickAutoreset()
	if spec.Autoreset&hostabi.Disabled != 0 {
		mode = hostabi.Disabled // the last picture of an episode can be seen
	}
	if o.Agent < 0 || o.Agent >= spec.Agents() {
		return nil, fmt.Errorf("agent %d: %s has %d, from 0 on", o.Agent, spec.Name, spec.Agents())
	}
	if len(spec.Groups) > 1 && o.Seats != nil {
		return nil, fmt.Errorf("%s has %d groups of agents, and policies play here where there is one", spec.Name, len(spec.Groups))
	}
	d, err := env.NewDriver(plugin, env.DriverOptions{Options: env.Options{Name: "play", Envs: 1, Seed: o.Seed, Autoreset: mode}})
	if err != nil {
		return nil, err
	}
	g := &Game{By: Chance, o: o, driver: d, spec: d.Env.Spec()}
	group := uint16(g.spec.GroupOf(o.Agent))
	for i, t := range g.spec.All(hostabi.RoleAction) {
		if t.Group != group {
			continue
		}
		g.own = append(g.own, i)
		for e := range t.Elems(hostabi.MaxTensorElems) {
			g.chosen = append(g.chosen, rest(&t, e))
		}
	}
	if err := g.begin(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return g, nil
}

// Again shows a recorded episode as a game that nobody decides in. Closing the game closes it.
func Again(r Recorded) *Game {
	g := &Game{By: Record, again: r, spec: r.Spec()}
	g.score()
	return g
}

// score takes over how a recorded episode stands.
func (g *Game) score() {
	g.next = g.again.Steps()
	g.Return, g.Reward, g.Ended = g.again.Score()
	g.Over = g.Ended != ""
}

// Close closes the environment.
func (g *Game) Close() error {
	if g.again != nil {
		return g.again.Close()
	}
	return g.driver.Close()
}

// Spec describes the environment.
func (g *Game) Spec() *hostabi.EnvSpec { return g.spec }

// ActionSpaces are the spaces of the agent's actions, in Gymnasium's words.
func (g *Game) ActionSpaces() string {
	var list []string
	for _, t := range g.Actions() {
		list = append(list, t.Space())
	}
	return strings.Join(list, ", ")
}

// HasPolicy reports whether a policy can play.
func (g *Game) HasPolicy() bool { return g.o.Seats != nil }

// Next begins the next episode, whether this one is over or not; a recorded one begins again.
func (g *Game) Next() error {
	if g.again != nil {
		return g.Back(g.next)
	}
	g.Episode++
	return g.begin()
}

// Steps is how many env steps of the episode have been made.
func (g *Game) Steps() int { return g.next }

// begin begins the episode with the present number.
func (g *Game) begin() error {
	g.seed, g.made = env.Seed(g.o.Seed, g.Episode), g.made[:0]
	return g.rewind()
}

// rewind begins the same episode again.
func (g *Game) rewind() error {
	g.next, g.Return, g.Reward, g.Over, g.Ended = 0, 0, 0, false, ""
	for _, s := range g.o.Seats {
		s.Begin()
	}
	return g.driver.Reset(nil, []uint64{g.seed})
}

// Choose sets the person's action: a number for each element, the first action's before the next one's. It is kept until another is chosen.
func (g *Game) Choose(values []float64) error {
	if err := g.check(values); err != nil {
		return err
	}
	copy(g.chosen, values)
	return nil
}

// check says whether there is such an action.
func (g *Game) check(values []float64) error {
	if len(values) != len(g.chosen) {
		return fmt.Errorf("%w: %d numbers for an action of %d", ErrChoice, len(values), len(g.chosen))
	}
	if err := env.CheckAction(values, g.Actions()); err != nil {
		return fmt.Errorf("%w: %w", ErrChoice, err)
	}
	return nil
}

// rest is the value of an element before a person has chosen one: the first choice, and of a Box the number nearest to 0.
func rest(t *hostabi.Tensor, elem int) float64 {
	low, high := t.Limits(elem)
	if t.Discrete() {
		return low
	}
	return min(max(0, low), high)
}

// Actions describes the agent's actions.
func (g *Game) Actions() (list []hostabi.Tensor) {
	all := g.spec.All(hostabi.RoleAction)
	for _, i := range g.own {
		list = append(list, all[i])
	}
	return list
}

// Waits reports whether the agent that the person plays acts in the next step.
func (g *Game) Waits() bool {
	tr, row := g.driver.Acting()
	acts := tr.Acts(row)
	return acts == nil || acts[g.o.Agent] != 0
}

// Step makes one step, or begins the next episode where this one is over. The error wraps ErrChoice where the person's action is not
// legal: then nothing has happened.
func (g *Game) Step() error {
	if g.Over {
		return g.Next()
	}
	if g.again != nil {
		defer g.score()
		return g.again.Step()
	}
	if err := g.act(); err != nil {
		return err
	}
	g.made = append(g.made[:g.next], g.copyActions())
	return g.advance()
}

// Back goes so many steps back, or forward through what was undone, by playing the episode again. Policies remember what they saw.
func (g *Game) Back(steps int) error {
	if g.again != nil {
		defer g.score()
		return g.again.Back(steps)
	}
	to := min(max(g.next-steps, 0), len(g.made))
	if err := g.rewind(); err != nil {
		return err
	}
	for g.next < to {
		if g.o.Seats != nil {
			if err := g.actBySeats(); err != nil { // its actions are replaced, its memory stays
				return err
			}
		}
		g.setActions(g.made[g.next])
		if err := g.advance(); err != nil {
			return err
		}
	}
	return nil
}

// advance makes the step whose actions are written.
func (g *Game) advance() error {
	g.next++
	if _, err := g.driver.Step(); err != nil {
		return err
	}
	g.rewards = append(g.rewards[:0], g.driver.Reward()...)
	g.Reward = float64(g.rewards[g.o.Agent])
	g.Return += g.Reward
	tr, row := g.driver.Stepped()
	switch terminated, truncated := tr.RowBytes(trajectory.Terminated, row), tr.RowBytes(trajectory.Truncated, row); {
	case all(terminated, truncated) && slices.Contains(terminated, 1):
		g.Over, g.Ended = true, "terminated"
	case all(terminated, truncated):
		g.Over, g.Ended = true, "truncated"
	}
	return nil
}

// all reports whether the episodes of all agents have ended.
func all(terminated, truncated []byte) bool {
	for i := range terminated {
		if terminated[i]|truncated[i] == 0 {
			return false
		}
	}
	return true
}

// act writes everybody's actions.
func (g *Game) act() error {
	g.driver.Draw(func(row int) uint64 { return env.Seed(env.Seed(g.seed, g.next), row) })
	if g.o.Seats != nil {
		if err := g.actBySeats(); err != nil {
			return err
		}
	}
	if g.By != Person || !g.Waits() {
		return nil
	}
	if err := g.legal(); err != nil {
		return err
	}
	i := 0
	actions := g.driver.Actions()
	for _, k := range g.own {
		m := actions[k]
		for e := range m.Elems {
			setElement(m, g.o.Agent, e, g.chosen[i])
			i++
		}
	}
	return nil
}

// legal checks the person's action against the masks.
func (g *Game) legal() error {
	masks := g.driver.Masks()
	if len(masks) == 0 {
		return nil
	}
	i := 0
	for k, t := range g.Actions() {
		mask, first := masks[g.own[k]], 0
		for e := range t.Elems(hostabi.MaxTensorElems) {
			if mask.Rows > 0 && mask.Value(g.o.Agent, first+int(g.chosen[i])-int(t.Start)) == 0 {
				return fmt.Errorf("%w: %v is not legal now", ErrChoice, g.chosen[i])
			}
			if t.Discrete() {
				first += t.Count(e)
			}
			i++
		}
	}
	return nil
}

// actBySeats writes the actions of the policies. That of the person's agent acts too, so that it knows the episode when it takes over; its
// action counts where By is Policy.
func (g *Game) actBySeats() error {
	for agent, s := range g.o.Seats {
		actions, err := s.Act(g.observation(agent))
		if err != nil {
			return err
		}
		if agent == g.o.Agent && g.By == Chance {
			continue
		}
		for i, m := range g.driver.Actions() {
			for e := range m.Elems {
				if a := actions[i]; a.F32 != nil {
					setElement(m, agent, e, float64(a.F32[e]))
				} else {
					setElement(m, agent, e, float64(a.I32[e]))
				}
			}
		}
	}
	return nil
}

// observation is what an agent sees now.
func (g *Game) observation(agent int) (o evaluation.Observation) {
	for _, m := range g.driver.Observations() {
		o.Tensors = append(o.Tensors, elements(m, agent))
	}
	for _, m := range g.driver.Masks() {
		if m.Rows > 0 {
			o.Masks = append(o.Masks, elements(m, agent).U8)
		}
	}
	if g.next > 0 {
		o.Reward = g.rewards[agent]
	}
	return o
}

// elements copies a row of a matrix.
func elements(m trajectory.Matrix, row int) (e evaluation.Elements) {
	for i := range m.Elems {
		switch bits := m.Bits(row, i); m.DType {
		case hostabi.F32:
			e.F32 = append(e.F32, math.Float32frombits(uint32(bits)))
		case hostabi.I32:
			e.I32 = append(e.I32, int32(bits))
		default:
			e.U8 = append(e.U8, uint8(bits))
		}
	}
	return e
}

// setElement writes a number into a matrix of f32 or i32.
func setElement(m trajectory.Matrix, row, elem int, v float64) {
	bits := uint32(int32(v))
	if m.DType == hostabi.F32 {
		bits = math.Float32bits(float32(v))
	}
	binary.LittleEndian.PutUint32(m.Data[row*m.StrideRow+elem*m.StrideElem:], bits)
}

// copyActions copies all actions of the coming step.
func (g *Game) copyActions() (data []byte) {
	for _, m := range g.driver.Actions() {
		for row := range m.Rows {
			for e := range m.Elems {
				data = binary.LittleEndian.AppendUint32(data, uint32(m.Bits(row, e)))
			}
		}
	}
	return data
}

// setActions writes what copyActions has copied.
func (g *Game) setActions(data []byte) {
	for _, m := range g.driver.Actions() {
		for row := range m.Rows {
			for e := range m.Elems {
				data = data[copy(m.Data[row*m.StrideRow+e*m.StrideElem:][:4], data):]
			}
		}
	}
}
