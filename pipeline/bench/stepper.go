package bench

import (
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Stepper steps environments alone, with random actions, for a caller that watches them.
type Stepper struct{ alone alone }

// NewStepper makes environments of a plugin, which stays the caller's. Close releases them.
func NewStepper(plugin env.Plugin, envs int) (*Stepper, error) {
	spec := plugin.Spec()
	o := Options{Envs: envs}
	driver, err := o.driver(plugin, spec.Caps&hostabi.CapPreferSoA != 0)
	if err != nil {
		return nil, err
	}
	return &Stepper{alone{driver: driver, draw: drawRandom}}, nil
}

// Step steps for about d. It returns how many env steps it has made, and how long they took; actions are drawn outside of that. watch is
// called with true before steps and with false after them; nil: it is not.
func (s *Stepper) Step(d time.Duration, watch func(on bool)) (steps int, took time.Duration, err error) {
	s.alone.watch = watch
	return s.alone.burst(d)
}

// Close releases the environments.
func (s *Stepper) Close() error { return s.alone.driver.Close() }
