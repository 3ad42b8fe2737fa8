package envcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// parted makes each step in parts, cut and ordered by the seed.
type parted struct {
	env.Env
	trace *trace
	seed  uint64
	envs  int
	list  []env.Span
	steps int
}

// Step makes the step in parts, or whole where the environment cannot.
func (p *parted) Step(t int) error {
	by, ok := p.Env.(env.PartStepper)
	if !ok || p.trace.unable != "" {
		p.trace.unable = "its runtime steps whole batches"
		return p.Env.Step(t)
	}
	p.cut()
	err := by.StepParts(t, p.list)
	if errors.Is(err, env.ErrUnsupported) && p.steps == 1 {
		p.trace.unable = "it steps whole batches"
		return p.Env.Step(t)
	}
	return err
}

// cut divides the batch into parts of one environment or more, the last one first in every second step.
func (p *parted) cut() {
	p.steps++
	p.list = p.list[:0]
	for first := 0; first < p.envs; {
		count := 1 + int(env.Seed(p.seed+uint64(p.steps), first)%uint64(p.envs-first))
		p.list = append(p.list, env.Span{First: first, Count: count})
		first += count
	}
	if p.steps%2 == 0 {
		for i, k := 0, len(p.list)-1; i < k; i, k = i+1, k-1 {
			p.list[i], p.list[k] = p.list[k], p.list[i]
		}
	}
}

func (k *checker) parts() (Verdict, string, error) {
	r := run{envs: k.o.Envs, seed: k.o.Seed, parts: true}
	t, err := k.record(r)
	if err != nil {
		return Failed, "", err
	}
	if t.unable != "" {
		return OK, t.unable, nil
	}
	if env, step, differ := k.base.differ(t, r.envs); differ {
		return Failed, fmt.Sprintf("stepped in parts, env %d differs from %s on", env, step), nil
	}
	return OK, "bit-equal in parts of any size, in any order", nil
}

func (k *checker) rebound() (Verdict, string, error) {
	return k.again(run{envs: k.o.Envs, seed: k.o.Seed, rebound: true}, "in another block from each step to the next, env %d differs from %s on",
		"bit-equal in another block from each step to the next")
}

// pictures compares with a trace in which a picture of an environment is taken after each step.
func (k *checker) pictures() (Verdict, string, error) {
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, shown: true})
	if err != nil {
		return Failed, "", err
	}
	if t.unable != "" {
		return OK, t.unable, nil
	}
	if env, step, differ := k.base.differ(t, k.o.Envs); differ {
		return Failed, fmt.Sprintf("with a picture after each step, env %d differs from %s on", env, step), nil
	}
	return OK, fmt.Sprintf("%d pictures, bit-equal", t.pictures), nil
}

func (k *checker) keys() (Verdict, string, error) {
	if k.spec.Keys == "" {
		return OK, "it names no keys; rlhost play takes digits and arrows", nil
	}
	if err := env.CheckOwnKeys(&k.spec); err != nil {
		return Failed, err.Error(), nil
	}
	return OK, strings.Join(strings.Fields(k.spec.Keys), " "), nil
}

// show takes two pictures of one environment, in a mode that it offers.
func (w *recorder) show(step int) error {
	if !w.run.shown || w.trace.unable != "" {
		return nil
	}
	to, ok := w.driver.Env.(env.Renderer)
	modes := modesOf(w.checker.spec.Render.Modes)
	if !ok || len(modes) == 0 {
		w.trace.unable = "it shows no pictures"
		return nil
	}
	mode, index := modes[step%len(modes)], step%w.run.envs
	first, err := to.Render(index, mode, 0, nil)
	if err != nil {
		return err
	}
	again, err := to.Render(index, mode, 0, nil)
	if err == nil && !bytes.Equal(first, again) {
		err = fmt.Errorf("env %d: two pictures of one state differ", index)
	}
	w.trace.pictures += 2
	return err
}

// modesOf returns the single modes of a set.
func modesOf(set hostabi.RenderMode) (modes []hostabi.RenderMode) {
	for _, m := range []hostabi.RenderMode{hostabi.RenderText, hostabi.RenderRGB, hostabi.RenderRGBA} {
		if set&m != 0 {
			modes = append(modes, m)
		}
	}
	return modes
}

// noteMask looks for an action that is not legal in the observation that ends an episode: the next step reads none.
func (w *recorder) noteMask(env, step int) {
	mask := w.driver.Mask()
	if mask.Rows == 0 || w.trace.illegal != "" {
		return
	}
	for a := range mask.Elems {
		if mask.Data[env*mask.StrideRow+a*mask.StrideElem] == 0 {
			w.trace.illegal = fmt.Sprintf("env %d step %d ends an episode under %v, and element %d of the mask after it is 0", env, step+1, w.mode, a)
			return
		}
	}
}

func (k *checker) maskAfterEnd() (Verdict, string, error) {
	switch {
	case !k.spec.HasMask():
		return OK, "it has no mask", nil
	case k.spec.Autoreset&(hostabi.NextStep|hostabi.Disabled) == 0:
		return OK, "it offers neither next_step nor disabled", nil
	}
	ends := 0
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.Disabled} {
		if k.spec.Autoreset&mode == 0 {
			continue
		}
		t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, mode: mode})
		if err != nil {
			return Failed, "", err
		}
		if t.illegal != "" {
			return Failed, t.illegal, nil
		}
		ends += t.episodes()
	}
	return OK, fmt.Sprintf("%d ends looked at", ends), nil
}

// stateHead is the length of the head of a saved state.
const stateHead = 8

// stateVersion loads a state whose head has another version: it must be refused as such, and change nothing.
func (k *checker) stateVersion() (verdict Verdict, detail string, err error) {
	const none = "it does not save environments one by one"
	w := &recorder{checker: k, run: run{envs: k.o.Envs, seed: k.o.Seed}, mode: k.spec.PickAutoreset()}
	if err := w.open(k.o.Envs); err != nil {
		return Failed, "", err
	}
	defer func() { err = errors.Join(err, w.driver.Close()) }()
	if err := w.reset(k.o.Seed); err != nil {
		return Failed, "", err
	}
	e, ok := w.driver.Env.(env.Stater)
	if !ok {
		return OK, none, nil
	}
	state, err := e.SaveEnv(0, nil)
	if errors.Is(err, env.ErrUnsupported) {
		return OK, none, nil
	}
	if err != nil {
		return Failed, "", err
	}
	if len(state) < stateHead || binary.LittleEndian.Uint32(state) != k.spec.StateVersion ||
		int(binary.LittleEndian.Uint32(state[4:])) != len(state)-stateHead {
		return OK, "its runtime keeps states in a form of its own", nil
	}
	other := bytes.Clone(state)
	binary.LittleEndian.PutUint32(other, k.spec.StateVersion+1)
	switch err := e.LoadEnv(0, other); {
	case err == nil:
		return Failed, fmt.Sprintf("a state of version %d is taken by an environment of version %d", k.spec.StateVersion+1, k.spec.StateVersion), nil
	case !errors.Is(err, env.ErrStateVersion) && !strings.Contains(err.Error(), hostabi.StatusVersion.String()):
		return Failed, fmt.Sprintf("a state of another version is refused with %v, want %q", err, hostabi.StatusVersion), nil
	}
	if now, err := e.SaveEnv(0, nil); err != nil || !bytes.Equal(now, state) {
		return Failed, "a state of another version is refused, and has changed the environment", nil
	}
	return OK, fmt.Sprintf("version %d, %d bytes", k.spec.StateVersion, len(state)), nil
}
