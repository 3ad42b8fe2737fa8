package envcheck

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// resets says in the mask which environments are reset after a step under disabled, and reports whether any is: each that has ended, or
// has waited for as long as it was to.
func (w *recorder) resets(terminated, truncated []byte) (any bool) {
	for env := range w.mask {
		w.mask[env] = 0
		switch ended := terminated[env]|truncated[env] != 0; { // with one agent
		case w.left[env] > 1:
			w.left[env]--
			continue
		case w.left[env] == 0 && !ended:
			continue
		case w.left[env] == 0 && w.run.waits:
			w.left[env] = 1 + env%3
			continue
		}
		w.left[env], w.mask[env], any = 0, 1, true
		if env < len(w.phantom) {
			w.phantom[env] = false
		}
	}
	return any
}

// seen is a hash of what an environment observes, and of its mask.
func (w *recorder) seen(env int) (hash uint64) {
	for i, m := range w.driver.Observed(trajectory.Observed) {
		if w.driver.Schema().Holds(w.columns[trajectory.Observed][i], env) {
			hash = hashRow(hash, m, env)
		}
	}
	return hash
}

// noteWaiting looks at a step that an environment makes while it waits for its reset.
func (w *recorder) noteWaiting(env, step int) {
	if w.mode != hostabi.Disabled {
		return
	}
	w.trace.waited++
	if w.seen(env) != w.held[env] && w.trace.afterEnd == "" {
		w.trace.afterEnd = fmt.Sprintf("env %d step %d: while it waits for its reset it shows another observation, or another mask, want the same under disabled", env, step+1)
	}
}

// waits steps environments some times before they are reset: nothing comes of that.
func (k *checker) waits() (Verdict, string, error) {
	_, wrapped := k.plugin.(env.Rewrapping)
	switch {
	case wrapped:
		return OK, "wrappers look at every step", nil
	case k.spec.Autoreset&hostabi.Disabled == 0:
		return OK, "it does not offer disabled", nil
	case k.spec.Agents() > 1:
		return OK, "it has agents, whose episodes end apart", nil
	}
	r := run{envs: k.o.Envs, seed: k.o.Seed, mode: hostabi.Disabled, real: true}
	atOnce, err := k.record(r)
	if err != nil {
		return Failed, "", err
	}
	r.waits = true
	t, err := k.record(r)
	if err != nil {
		return Failed, "", fmt.Errorf("stepped while it waits for its reset: %w", err)
	}
	if t.afterEnd != "" {
		return Failed, t.afterEnd, nil
	}
	if env, step, differ := differReal(atOnce, t); differ {
		return Failed, fmt.Sprintf("env %d: real %s differs where it was stepped while it waited for its reset", env, step), nil
	}
	return OK, fmt.Sprintf("%d steps while environments wait", t.waited), nil
}

// movedAtEnd saves each environment after the first end of an episode, in the modes in which it waits then for what comes next, and loads
// it elsewhere. It returns what is wrong, and how many modes it has tried.
func (k *checker) movedAtEnd() (wrong string, modes int, err error) {
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.Disabled} {
		if k.spec.Autoreset&mode == 0 || mode == hostabi.Disabled && k.spec.Agents() > 1 {
			continue
		}
		r := run{envs: k.o.Envs, seed: k.o.Seed, mode: mode, real: true, waits: mode == hostabi.Disabled}
		whole, err := k.record(r)
		if err != nil {
			return "", modes, err
		}
		if whole.firstEnd == 0 {
			continue
		}
		r.moved, r.changeAt = true, whole.firstEnd
		t, err := k.record(r)
		if err != nil {
			return "", modes, fmt.Errorf("saved and loaded after the end at step %d under %v: %w", whole.firstEnd, mode, err)
		}
		modes++
		if env, step, differ := differReal(whole, t); differ || t.afterEnd != whole.afterEnd {
			return fmt.Sprintf("saved after the end at step %d under %v and loaded into another instance, env %d differs from real %s on: what it waits for is state, too",
				whole.firstEnd, mode, env, step), modes, nil
		}
	}
	return "", modes, nil
}
