package trajectory

import (
	"bytes"
	"fmt"
)

// MaxIdle is how many steps in a row an environment may make in which none of its agents acts.
const MaxIdle = 1000

// Agents follows the episodes of the agents of a batch of environments, step by step. The episode of an agent begins in a row
// in which it acts and ends in the step in which its own flag or its environment's is set, whether it acts in that row or
// not. The environment's episode ends in the step that ends the last running one of its agents.
type Agents struct {
	// Ended is 1 where the newest step has ended the agent's episode, by row of a step; EnvEnded is the same by environment.
	Ended, EnvEnded []byte
	// AnyEnded reports whether one of them is 1.
	AnyEnded bool

	running []byte // by row of a step
	idle    []int  // steps without anybody acting, by environment
	each    int    // agents of an environment
}

// NewAgents returns an Agents for blocks of a schema, without an episode.
func NewAgents(s *Schema) *Agents {
	rows, envs := s.Rows(), s.Shape.Envs
	return &Agents{Ended: make([]byte, rows), EnvEnded: make([]byte, envs), running: make([]byte, rows), idle: make([]int, envs), each: s.Agents}
}

// Step takes in a step that has been checked. It does not allocate.
func (a *Agents) Step(t Trajectory, row int) {
	acts, terminated, truncated := t.Acts(row), t.Row(Terminated, row).Data, t.Row(Truncated, row).Data
	if a.AnyEnded {
		clear(a.Ended)
		clear(a.EnvEnded)
		a.AnyEnded = false
	}
	if bytes.IndexByte(acts, 0) < 0 && bytes.IndexByte(terminated, 1) < 0 && bytes.IndexByte(truncated, 1) < 0 { // all act, and none ends
		for i := range a.running {
			a.running[i] = 1
		}
		clear(a.idle)
		return
	}
	for env := range a.EnvEnded {
		var some, ended, running byte
		for i := env * a.each; i < (env+1)*a.each; i++ {
			if acts == nil || acts[i] != 0 {
				a.running[i], some = 1, 1
			}
			a.Ended[i] = a.running[i] & (terminated[i] | truncated[i])
			a.running[i] &^= a.Ended[i]
			ended, running = ended|a.Ended[i], running|a.running[i]
		}
		a.EnvEnded[env] = ended &^ running
		a.AnyEnded = a.AnyEnded || ended != 0
		if a.idle[env]++; some != 0 {
			a.idle[env] = 0
		}
	}
}

// EndEnv ends the running episodes of an environment's agents in the newest step, and its own.
func (a *Agents) EndEnv(env int) {
	for i := env * a.each; i < (env+1)*a.each; i++ {
		a.Ended[i] |= a.running[i]
		a.running[i] = 0
	}
	a.EnvEnded[env], a.AnyEnded, a.idle[env] = 1, true, 0
}

// Idle returns the first environment none of whose agents has acted in more than MaxIdle steps, with an error that wraps ErrOutput;
// -1 and nil if there is none.
func (a *Agents) Idle() (env int, err error) {
	for env, steps := range a.idle {
		if steps > MaxIdle {
			return env, fmt.Errorf("%w: no agent has acted in %d steps: somebody must be %v", ErrOutput, MaxIdle, Active)
		}
	}
	return -1, nil
}

// Running reports whether the episode of an agent runs on after the newest step.
func (a *Agents) Running(row int) bool { return a.running[row] != 0 }

// SetRunning says whether an episode of an agent runs, as where one is continued from elsewhere or given up.
func (a *Agents) SetRunning(row int, runs bool) {
	a.running[row], a.idle[row/a.each] = 0, 0
	if runs {
		a.running[row] = 1
	}
}
