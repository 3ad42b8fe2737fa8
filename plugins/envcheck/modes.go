package envcheck

import (
	"fmt"
	"math"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// autoreset plays with the same seeds and actions in every mode that the environment offers. The real steps must be
// the same: the observation, the reward, the flags, and the observation after it, which under same-step autoreset
// is the final observation where the episode ended.
func (k *checker) autoreset() (Verdict, string, error) {
	if k.base.afterEnd != "" {
		return Failed, k.base.afterEnd, nil
	}
	var first *trace
	var names []string
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		if k.spec.Autoreset&mode == 0 {
			continue
		}
		t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, mode: mode, real: true})
		if err != nil {
			return Failed, "", fmt.Errorf("%v: %w", mode, err)
		}
		if t.afterEnd != "" {
			return Failed, t.afterEnd, nil
		}
		names = append(names, mode.String())
		if first == nil {
			first = t
			continue
		}
		if env, step, differ := differReal(first, t); differ {
			return Failed, fmt.Sprintf("env %d: real %s under %v differs from that under %s", env, step, mode, names[0]), nil
		}
	}
	if len(names) == 1 {
		return OK, fmt.Sprintf("%s, %d ends looked at", names[0], first.episodes()), nil
	}
	return OK, fmt.Sprintf("%s agree, %d ends looked at", strings.Join(names, ", "), first.episodes()), nil
}

// differReal returns the first real steps, as a place, in which two traces differ as far as both go.
func differReal(a, b *trace) (env int, place string, differ bool) {
	for env := range a.real {
		for row := range min(len(a.real[env]), len(b.real[env])) {
			if a.real[env][row] != b.real[env][row] {
				return env, a.place(row), true
			}
		}
	}
	return 0, "", false
}

// turn is the input of the choice of an action: the step, or the environment's number of real steps.
func (w *recorder) turn(env, step int) int {
	if w.run.real && env < len(w.trace.reals) { // else it is beside the trace's
		return w.trace.reals[env]
	}
	return step
}

// beforeReal begins the hash of a real step with its observation.
func (w *recorder) beforeReal(env int) {
	if w.run.real && !w.phantom[env] {
		w.mixReal(env, trajectory.Observed)
	}
}

// afterReal adds the step's results to it.
func (w *recorder) afterReal(env int, reward float32, flags uint64) {
	if !w.run.real || w.phantom[env] {
		return
	}
	w.reals[env] = mix(w.reals[env], uint64(math.Float32bits(reward))<<2|flags)
	if flags != 0 && w.mode == hostabi.SameStep {
		w.mixReal(env, trajectory.Final)
	} else {
		w.mixReal(env, trajectory.Observed)
	}
	w.trace.reals[env]++
	if w.trace.reals[env]%w.trace.every == 0 {
		w.trace.real[env] = append(w.trace.real[env], w.reals[env])
	}
}

// mixReal adds an environment's observations, without masks, to the hash of its real steps.
func (w *recorder) mixReal(env int, flag trajectory.Flags) {
	for i, m := range w.driver.Observed(flag)[:len(w.spaces)] {
		if !w.driver.Schema().Holds(w.columns[flag][i], env) {
			continue
		}
		w.reals[env] = hashRow(w.reals[env], m, env)
	}
}

// hashRow adds a row of one environment to a hash.
func hashRow(hash uint64, m trajectory.Matrix, env int) uint64 {
	for i := range m.Elems {
		hash = mix(hash, m.Bits(env, i))
	}
	return hash
}
