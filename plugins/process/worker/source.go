package worker

import (
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// Limits of environments whose source does not set its own.
const (
	DefaultEnvStep = 5 * time.Second
	DefaultEnvInit = 30 * time.Second
)

// source is the program that works environments, and which.
type source struct {
	native.EnvSource
	runtime *spawn.Runtime
	program spawn.Program
}

// step is how long a process may take to answer a call of the step path: a guest that is stopped at its own limit
// comes first, and can say which environment it was.
func (s *source) step() time.Duration {
	if s.StepNS <= 0 {
		return DefaultEnvStep
	}
	limit := time.Duration(s.StepNS)
	return limit + max(limit/4, 250*time.Millisecond)
}

// loading is how long a process may take to load the environment: a module may have to be compiled.
func (s *source) loading() time.Duration { return time.Duration(s.CompileNS) + s.init() }

func (s *source) init() time.Duration {
	if s.InitNS <= 0 {
		return DefaultEnvInit
	}
	return time.Duration(s.InitNS)
}
