// Package golden holds CartPole-v1, Acrobot-v1, MountainCar-v0, MountainCarContinuous-v0, Pendulum-v1 and Taxi-v4 as Gymnasium
// plays them, recorded by record_gymnasium.py, LunarLander-v3 by record_lunarlander.py, Breakout and Freeway as MinAtar plays them,
// recorded by record_minatar.py, and the script that drives guests without the host:
//
//	episodes, err := golden.CartPole()
//	for _, step := range episodes[0].Steps { … }
//
// Every implementation of these environments is held to the traces. They are not data sets to learn from.
package golden

import (
	"bytes"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
)

//go:embed *.trace *.board taxi.table
var traces embed.FS

// State is the state of an environment as Gymnasium computes it: x, x_dot, theta, theta_dot of CartPole; both angles
// and both angular velocities of Acrobot; position and velocity of MountainCar.
type State []float64

// Episode is one recorded episode.
type Episode struct {
	First State
	Steps []Step
}

// Step is one action, what followed from it, the state after it and what Gymnasium shows of that state.
type Step struct {
	Action                float32 // a number of a choice, or how hard to push
	Terminated, Truncated uint8
	Reward                float32
	State                 State
	Obs                   []float32
}

// Traces of environments whose actions are choices, and of environments whose actions are numbers.
const (
	magicChoices = "rlgold2\n"
	magicNumbers = "rlgold3\n"
)

// errTrace says that a file is not a trace.
var errTrace = errors.New("not a trace")

// CartPole returns the recorded episodes of CartPole-v1.
func CartPole() ([]Episode, error) { return read("cartpole.trace") }

// Acrobot returns the recorded episodes of Acrobot-v1.
func Acrobot() ([]Episode, error) { return read("acrobot.trace") }

// MountainCar returns the recorded episodes of MountainCar-v0.
func MountainCar() ([]Episode, error) { return read("mountaincar.trace") }

// MountainCarContinuous returns the recorded episodes of MountainCarContinuous-v0.
func MountainCarContinuous() ([]Episode, error) { return read("mountaincarcontinuous.trace") }

// Pendulum returns the recorded episodes of Pendulum-v1: angle and velocity.
func Pendulum() ([]Episode, error) { return read("pendulum.trace") }

// LunarLander returns the recorded episodes of LunarLander-v3, without states: episode k begins as the port does from seed k.
func LunarLander() ([]Episode, error) { return read("lunarlander.trace") }

// LunarLanderContinuous returns episodes of LunarLanderContinuous-v3 with wind; record_lunarlander.py says which thrust an action is.
func LunarLanderContinuous() ([]Episode, error) { return read("lunarlandercontinuous.trace") }

// Sizes of Taxi.
const (
	TaxiStates  = 500
	TaxiActions = 6
)

// TaxiMove is what follows from an action in a state of Taxi.
type TaxiMove struct {
	Next       int16
	Reward     int8
	Terminated uint8
}

// Taxi returns Taxi-v4 whole: what follows from each action in each state, and which actions its mask allows there.
func Taxi() (moves [TaxiStates][TaxiActions]TaxiMove, legal [TaxiStates][TaxiActions]uint8, err error) {
	data, err := traces.ReadFile("taxi.table")
	if err != nil {
		return moves, legal, fmt.Errorf("golden table: %w", err)
	}
	r := bytes.NewReader(data)
	return moves, legal, errors.Join(binary.Read(r, binary.LittleEndian, &moves), binary.Read(r, binary.LittleEndian, &legal))
}

func read(file string) ([]Episode, error) {
	data, err := traces.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("golden trace: %w", err)
	}
	data, numbers := bytes.CutPrefix(data, []byte(magicNumbers))
	data, choices := bytes.CutPrefix(data, []byte(magicChoices))
	if !numbers && !choices {
		return nil, fmt.Errorf("golden trace %s: %w", file, errTrace)
	}
	r := bytes.NewReader(data)
	var head struct{ Episodes, State, Obs uint32 }
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return nil, fmt.Errorf("golden trace %s: %w", file, err)
	}
	var episodes []Episode
	for range head.Episodes {
		e, err := readEpisode(r, numbers, head.State, head.Obs)
		if err != nil {
			return nil, fmt.Errorf("golden trace %s: episode %d: %w", file, len(episodes), err)
		}
		episodes = append(episodes, e)
	}
	if r.Len() != 0 {
		return nil, fmt.Errorf("golden trace %s: %w", file, errTrace)
	}
	return episodes, nil
}

func readEpisode(r *bytes.Reader, numbers bool, state, obs uint32) (Episode, error) {
	var steps uint32
	if err := binary.Read(r, binary.LittleEndian, &steps); err != nil {
		return Episode{}, err
	}
	e := Episode{First: make(State, state)}
	if err := binary.Read(r, binary.LittleEndian, e.First); err != nil {
		return Episode{}, err
	}
	for range steps {
		s := Step{State: make(State, state), Obs: make([]float32, obs)}
		if err := s.read(r, numbers); err != nil {
			return Episode{}, err
		}
		e.Steps = append(e.Steps, s)
	}
	return e, nil
}

// read fills in a step. Its action is a number, or the first of four bytes.
func (s *Step) read(r *bytes.Reader, numbers bool) error {
	var action [4]uint8
	var flags struct{ Terminated, Truncated uint8 }
	parts := []any{action[:1], &flags, action[1:2]}
	if numbers {
		parts = []any{&s.Action, &flags, action[:2]}
	}
	for _, part := range append(parts, &s.Reward, s.State, s.Obs) {
		if err := binary.Read(r, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	if !numbers {
		s.Action = float32(action[0])
	}
	s.Terminated, s.Truncated = flags.Terminated, flags.Truncated
	return nil
}
