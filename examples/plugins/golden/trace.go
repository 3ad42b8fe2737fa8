// Package golden holds CartPole-v1, Acrobot-v1 and MountainCar-v0 as Gymnasium plays them, recorded by
// record_gymnasium.py, and the scripts that drive guests without the host:
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

//go:embed *.trace
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
	Action                uint8
	Terminated, Truncated uint8
	Reward                float32
	State                 State
	Obs                   []float32
}

const magic = "rlgold2\n"

// errTrace says that a file is not a trace.
var errTrace = errors.New("not a trace")

// CartPole returns the recorded episodes of CartPole-v1.
func CartPole() ([]Episode, error) { return read("cartpole.trace") }

// Acrobot returns the recorded episodes of Acrobot-v1.
func Acrobot() ([]Episode, error) { return read("acrobot.trace") }

// MountainCar returns the recorded episodes of MountainCar-v0.
func MountainCar() ([]Episode, error) { return read("mountaincar.trace") }

func read(file string) ([]Episode, error) {
	data, err := traces.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("golden trace: %w", err)
	}
	data, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("golden trace %s: %w", file, errTrace)
	}
	r := bytes.NewReader(data)
	var head struct{ Episodes, State, Obs uint32 }
	if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
		return nil, fmt.Errorf("golden trace %s: %w", file, err)
	}
	var episodes []Episode
	for range head.Episodes {
		e, err := readEpisode(r, head.State, head.Obs)
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

func readEpisode(r *bytes.Reader, state, obs uint32) (Episode, error) {
	var steps uint32
	if err := binary.Read(r, binary.LittleEndian, &steps); err != nil {
		return Episode{}, err
	}
	e := Episode{First: make(State, state)}
	if err := binary.Read(r, binary.LittleEndian, e.First); err != nil {
		return Episode{}, err
	}
	for range steps {
		var head struct {
			Action, Terminated, Truncated, _ uint8
			Reward                           float32
		}
		s := Step{State: make(State, state), Obs: make([]float32, obs)}
		for _, part := range []any{&head, s.State, s.Obs} {
			if err := binary.Read(r, binary.LittleEndian, part); err != nil {
				return Episode{}, err
			}
		}
		s.Action, s.Terminated, s.Truncated, s.Reward = head.Action, head.Terminated, head.Truncated, head.Reward
		e.Steps = append(e.Steps, s)
	}
	return e, nil
}
