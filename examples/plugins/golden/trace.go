// Package golden holds CartPole-v1 as Gymnasium plays it, recorded by record_gymnasium.py, and the scripts that
// drive guests without the host:
//
//	episodes, err := golden.CartPole()
//	for _, step := range episodes[0].Steps { … }
//
// Every implementation of CartPole is held to this trace. It is not a data set to learn from.
package golden

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
)

//go:embed cartpole.trace
var trace []byte

// State is x, x_dot, theta, theta_dot as Gymnasium computes them.
type State [4]float64

// Episode is one recorded episode.
type Episode struct {
	First State
	Steps []Step
}

// Step is one action, what followed from it, and the state after it.
type Step struct {
	Action                uint8
	Terminated, Truncated uint8
	_                     uint8
	Reward                float32
	State                 State
}

const magic = "rlgold1\n"

// errTrace says that the file is not a trace.
var errTrace = errors.New("golden trace: not a trace")

// CartPole returns the recorded episodes.
func CartPole() ([]Episode, error) {
	data, ok := bytes.CutPrefix(trace, []byte(magic))
	if !ok {
		return nil, errTrace
	}
	r := bytes.NewReader(data)
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, fmt.Errorf("golden trace: %w", err)
	}
	var episodes []Episode
	for range n {
		e, err := readEpisode(r)
		if err != nil {
			return nil, fmt.Errorf("golden trace: episode %d: %w", len(episodes), err)
		}
		episodes = append(episodes, e)
	}
	if r.Len() != 0 {
		return nil, errTrace
	}
	return episodes, nil
}

func readEpisode(r *bytes.Reader) (Episode, error) {
	var e Episode
	var steps uint32
	if err := binary.Read(r, binary.LittleEndian, &steps); err != nil {
		return e, err
	}
	if int64(steps) > int64(r.Len()/binary.Size(Step{})) {
		return e, errTrace
	}
	e.Steps = make([]Step, steps)
	if err := binary.Read(r, binary.LittleEndian, &e.First); err != nil {
		return e, err
	}
	return e, binary.Read(r, binary.LittleEndian, e.Steps)
}
