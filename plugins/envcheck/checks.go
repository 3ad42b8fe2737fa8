package envcheck

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// steps records the trace that the other checks compare with.
func (k *checker) steps() (Verdict, string, error) {
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed})
	if err != nil {
		return Failed, "", err
	}
	k.base = t
	return OK, fmt.Sprintf("%d steps of %d environments, %d episodes, all values finite, all flags 0 or 1",
		k.o.Steps, k.o.Envs, t.episodes()), nil
}

// watch makes the trace whose writes are watched, once.
func (k *checker) watch() *watched {
	if k.guarded == nil {
		k.guarded, k.guardedErr = k.record(run{envs: k.o.Envs, seed: k.o.Seed, guarded: true})
		if k.guarded == nil {
			k.guarded = &trace{}
		}
	}
	return &k.guarded.watched
}

// found is the outcome of a check that looks for one kind of finding in the watched trace. If nothing was found, the
// error that ended the trace counts.
func (k *checker) found(what func(*watched) string, fine string) (Verdict, string, error) {
	w := k.watch()
	if text := what(w); text != "" {
		return Failed, text, nil
	}
	if k.guardedErr != nil && w.unwritten == "" && w.beyond == "" {
		return Failed, "", k.guardedErr
	}
	return OK, fine, nil
}

func (k *checker) silentErrors() (Verdict, string, error) {
	return k.found(func(w *watched) string { return w.words }, "no call returns as if nothing were wrong and says otherwise")
}

func (k *checker) writesAll() (Verdict, string, error) {
	return k.found(func(w *watched) string { return w.unwritten }, "each reset and step writes what is described, the last observation too")
}

func (k *checker) writesNothingElse() (Verdict, string, error) {
	fine := "room around each tensor stays as it was, and so does what was written before"
	if k.watch().unguarded {
		fine = "what was written before stays as it was; there is no room around tensors in another process"
	}
	return k.found(func(w *watched) string { return w.beyond }, fine)
}

func (k *checker) examined() (Verdict, string, error) {
	x, ok := k.plugin.(env.Examiner)
	if !ok {
		return OK, "its runtime sees to it", nil
	}
	e := x.Examine()
	k.help = e.Help
	switch {
	case e.Wrong != "":
		return Failed, e.Wrong, nil
	case e.Risky != "":
		return Warning, e.Risky, nil
	}
	return OK, e.Fine, nil
}

func (k *checker) bounds() (Verdict, string, error) {
	if k.base.outside == 0 {
		return OK, fmt.Sprintf("%d observations", k.base.observed), nil
	}
	return Failed, fmt.Sprintf("%d of %d observations, first: %s", k.base.outside, k.base.observed, k.base.firstOutside), nil
}

func (k *checker) ends() (Verdict, string, error) {
	if k.base.episodes() > 0 {
		return OK, fmt.Sprintf("%d terminated, %d truncated, longest %d env steps", k.base.terminated, k.base.truncated, k.base.longest), nil
	}
	return Warning, fmt.Sprintf("no episode ended within %d env steps", k.o.Steps), nil
}

func (k *checker) timeLimit() (Verdict, string, error) {
	limit := k.spec.EpisodeLimit
	switch {
	case limit == 0:
		return Warning, "the description has no episode_limit", nil
	case k.base.longest > limit:
		k.help = "set truncated at the step that the description names, or describe the limit that holds"
		return Failed, fmt.Sprintf("the description has episode_limit %d, and an episode goes on for %d env steps or more", limit, k.base.longest), nil
	}
	return OK, fmt.Sprintf("%d env steps", limit), nil
}

// again compares a trace of another run with the first one.
func (k *checker) again(r run, what, fine string) (Verdict, string, error) {
	t, err := k.record(r)
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := k.base.differFrom(r.first, t, r.envs); differ {
		return Failed, fmt.Sprintf(what, env, step), nil
	}
	return OK, fine, nil
}

func (k *checker) sameSeed() (Verdict, string, error) {
	return k.again(run{envs: k.o.Envs, seed: k.o.Seed}, "env %d differs from %s on",
		fmt.Sprintf("2 instances, %d steps, bit-equal", k.o.Steps))
}

func (k *checker) otherSeed() (Verdict, string, error) {
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed + 1})
	if err != nil {
		return Failed, "", err
	}
	if _, _, differ := k.base.differ(t, k.o.Envs); differ {
		return OK, "traces differ", nil
	}
	return Warning, "two seeds give one trace: an environment without chance, or one that ignores its seed", nil
}

// independent steps the first environment alone, and then the last: neither must notice that the others are missing.
func (k *checker) independent() (Verdict, string, error) {
	if k.o.Envs == 1 {
		return OK, "the environment takes one at a time", nil
	}
	if k.watch().beyond != "" {
		k.help = "begin with M02: what is written beyond a tensor belongs to the next environment"
	}
	verdict, detail, err := k.again(run{envs: 1, seed: k.o.Seed}, fmt.Sprintf("env %%d alone differs from env 0 of %d from %%s on", k.o.Envs), "")
	if verdict != OK || err != nil {
		return verdict, detail, err
	}
	last := k.o.Envs - 1
	return k.again(run{envs: 1, first: last, seed: k.o.Seed}, fmt.Sprintf("env %%d alone, with its own seed, differs from env %d of %d from %%s on", last, k.o.Envs),
		"env 0 alone is bit-equal to env 0 of the batch")
}

func (k *checker) resetSeed() (Verdict, string, error) {
	return k.again(run{envs: k.o.Envs, seed: k.o.Seed, warmUp: 57}, "after 57 other steps, env %d differs from %s on",
		"bit-equal after other steps")
}

func (k *checker) snapshot() (Verdict, string, error) {
	at := k.o.Steps / 2
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, changeAt: at})
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := k.base.differ(t, k.o.Envs); differ {
		return Failed, fmt.Sprintf("restored at step %d, env %d differs from %s on", at, env, step), nil
	}
	if t.unsaved != "" {
		var detail string
		detail, k.help = withoutSnapshot(t.unsaved)
		return Warning, detail, nil
	}
	return OK, fmt.Sprintf("restored at step %d into a new instance, bit-equal", at), nil
}

// withoutSnapshot says what it means that environments cannot be saved, for that reason, and what to do where the usual help misleads.
func withoutSnapshot(reason string) (detail, help string) {
	if strings.Contains(reason, "Python") {
		return "environments of Python cannot be saved, so runs on them cannot be resumed exactly", "there is nothing to correct: a resumed run begins new episodes"
	}
	return "no snapshot, so runs on it cannot be resumed exactly: " + reason, ""
}

// moved saves each environment and loads it elsewhere: in an instance of another size, at another place.
func (k *checker) moved() (Verdict, string, error) {
	at := k.o.Steps / 2
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, changeAt: at, moved: true})
	if err != nil {
		return Failed, "", fmt.Errorf("saved and loaded at step %d: %w", at, err)
	}
	if env, step, differ := k.base.differ(t, k.o.Envs); differ {
		return Failed, fmt.Sprintf("saved at step %d and loaded into another instance, env %d differs from %s on", at, env, step), nil
	}
	if t.unsaved != "" {
		return OK, "it does not save environments one by one", nil
	}
	wrong, modes, err := k.movedAtEnd()
	switch {
	case err != nil:
		return Failed, "", err
	case wrong != "":
		return Failed, wrong, nil
	case modes > 0:
		return OK, fmt.Sprintf("saved at step %d and after an end, loaded into a larger batch, bit-equal", at), nil
	}
	return OK, fmt.Sprintf("saved at step %d, loaded into a larger batch, bit-equal", at), nil
}

// strides compares with traces stepped at other addresses and, where offered, with columns of elements in place of
// rows.
func (k *checker) strides() (Verdict, string, error) {
	k.watch()
	if k.guardedErr != nil {
		return Failed, "", k.guardedErr
	}
	if env, step, differ := k.base.differ(k.guarded, k.o.Envs); differ {
		return Failed, fmt.Sprintf("in a block that is laid out otherwise, env %d differs from %s on", env, step), nil
	}
	if k.spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return OK, "bit-equal in a block that is laid out otherwise", nil
	}
	return k.again(run{envs: k.o.Envs, seed: k.o.Seed, soa: true}, "laid out [elem][env], env %d differs from %s on",
		"bit-equal in a block that is laid out otherwise, and laid out [elem][env]")
}
