package wrap

import (
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// ends follows the episodes of a batch: which have ended in the newest step, and which environments have made none.
type ends struct {
	mode    hostabi.Autoreset
	over    []byte             // 1 where the newest step has ended the environment's episode
	idle    []byte             // 1 where it was no step of an episode: left out, lost, or between two episodes (next-step autoreset)
	phantom []byte             // 1 where the next step lies between two episodes
	agents  *trajectory.Agents // nil where each environment is one agent that always acts
	each    int                // agents of an environment
}

func newEnds(envs int, spec *hostabi.EnvSpec, mode hostabi.Autoreset) (ends, error) {
	x := ends{mode: mode, over: make([]byte, envs), idle: make([]byte, envs), phantom: make([]byte, envs), each: spec.Agents()}
	if !spec.HasAgents() {
		return x, nil
	}
	s, err := trajectory.NewSchema(*spec, trajectory.Shape{Steps: 1, Envs: envs})
	if err == nil {
		x.agents = trajectory.NewAgents(s)
	}
	return x, err
}

// begin is for an environment that begins a new episode, whatever became of the one before.
func (x *ends) begin(index int) {
	x.over[index], x.idle[index], x.phantom[index] = 0, 0, 0
	for i := range x.each {
		x.setRunning(index*x.each+i, false)
	}
}

func (x *ends) setRunning(row int, runs bool) {
	if x.agents != nil {
		x.agents.SetRunning(row, runs)
	}
}

// step takes in step t of the environments in part.
func (x *ends) step(tr trajectory.Trajectory, t int, part []byte) {
	if x.agents != nil {
		trajectory.ShareOutcome(tr, t)
		x.agents.Step(tr, t)
		copy(x.over, x.agents.EnvEnded)
		clear(x.idle)
		return
	}
	terminated, truncated := tr.Row(trajectory.Terminated, t).Data, tr.Row(trajectory.Truncated, t).Data
	for i := range x.over {
		x.over[i], x.idle[i] = 0, 1-part[i]
		switch {
		case part[i] == 0:
		case x.phantom[i] != 0:
			x.phantom[i], x.idle[i] = 0, 1
		case terminated[i]|truncated[i] != 0:
			x.over[i] = 1
			x.phantom[i] = x.nextStep()
		}
	}
}

// ended reports whether the newest step has ended the episode of an agent, which may begin again while its environment continues, by the
// environment and the agent's row.
func (x *ends) ended(index, row int) bool {
	return x.over[index] != 0 || x.agents != nil && x.agents.Ended[row] != 0
}

// running reports whether the episode of an agent runs on after the newest step.
func (x *ends) running(index, row int) bool {
	if x.agents != nil {
		return x.agents.Running(row)
	}
	return x.over[index] == 0
}

// nextStep is 1 under next-step autoreset.
func (x *ends) nextStep() byte {
	if x.mode == hostabi.NextStep {
		return 1
	}
	return 0
}

// cut truncates the episode of an environment, with its agents' running episodes, in the last step taken in. The observation
// after that step is its last one.
func (x *ends) cut(tr trajectory.Trajectory, index, t int) {
	truncated := tr.Row(trajectory.Truncated, t).Data
	for i, end := tr.Schema.RowsOf(index); i < end; i++ {
		trajectory.EndUnwritten(tr, i, t)
		if x.agents != nil && !x.agents.Running(i) {
			continue
		}
		truncated[i] = 1
		if x.mode == hostabi.SameStep {
			tr.KeepFinal(i, t+1)
		}
	}
	if x.agents != nil {
		x.agents.EndEnv(index)
	}
	x.over[index], x.phantom[index] = 1, x.nextStep()
}

// bytes is the length of save's output.
func (x *ends) bytes() int {
	if x.agents == nil {
		return 1
	}
	return 1 + x.each
}

func (x *ends) save(index int, dst []byte) {
	dst[0] = x.phantom[index]
	if x.agents == nil {
		return
	}
	for i := range x.each {
		dst[1+i] = 0
		if x.agents.Running(index*x.each + i) {
			dst[1+i] = 1
		}
	}
}

func (x *ends) load(index int, src []byte) {
	x.begin(index)
	x.phantom[index] = src[0]
	for i, runs := range src[1:x.bytes()] {
		x.setRunning(index*x.each+i, runs != 0)
	}
}
