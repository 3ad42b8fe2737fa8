package worker

import (
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// Limits of environments whose source does not set its own.
const (
	DefaultEnvStep = 5 * time.Second
	DefaultEnvInit = 30 * time.Second
)

// source names the environments, and the program that runs them.
type source struct {
	env.Source
	runtime *spawn.Runtime
	program spawn.Program
}

// step is how long a process may take to answer a call of the step path: a guest that is stopped at its own limit
// comes first, and can say which environment it was.
func (s *source) step() time.Duration {
	if s.Step <= 0 {
		return DefaultEnvStep
	}
	return s.Step + max(s.Step/4, 250*time.Millisecond)
}

// compilePatience is how many times its limit of processor time the compiler of a module may take by the clock.
const compilePatience = 5

// loading is how long a process may take to load the environment: a module may have to be compiled.
func (s *source) loading() time.Duration { return compilePatience*s.Compile + s.init() }

func (s *source) init() time.Duration {
	if s.Init <= 0 {
		return DefaultEnvInit
	}
	return s.Init
}
