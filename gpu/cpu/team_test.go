package cpu_test

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// divided is a backend whose learners are so many.
type divided struct {
	policy.Backend
	learners int
}

func (b divided) Compile(n *policy.Network) (policy.Program, error) {
	p, err := b.Backend.Compile(n)
	return dividedProgram{p, n, b}, err
}

type dividedProgram struct {
	policy.Program
	network *policy.Network
	backend divided
}

func (p dividedProgram) NewLearner(params []float32, c ppo.Config) (ppo.Learner, error) {
	c.Learners = p.backend.learners
	return ppo.NewLearner(p.backend.Backend, p.network, params, c)
}

// Learners that divide each minibatch are held to the same reference as one, with every network and every setting of the suite.
func TestLearnersTogether(t *testing.T) {
	policytest.TestBackend(t, divided{cpu.New(), 3}, policytest.Float32)
}
