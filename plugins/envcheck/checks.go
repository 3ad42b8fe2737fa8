package envcheck

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
)

// steps records the trace that the other checks compare with.
func (c *checker) steps() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed})
	if err != nil {
		return Failed, "", err
	}
	c.base = t
	return OK, fmt.Sprintf("%d steps of %d environments, %d episodes, all values finite, all flags 0 or 1",
		c.o.Steps, c.o.Envs, t.episodes()), nil
}

// watch makes the trace whose writes are watched, once.
func (c *checker) watch() *watched {
	if c.guarded == nil {
		c.guarded, c.guardedErr = c.record(run{envs: c.o.Envs, seed: c.o.Seed, guarded: true})
		if c.guarded == nil {
			c.guarded = &trace{}
		}
	}
	return &c.guarded.watched
}

// found is the outcome of a check that looks for one kind of finding in the watched trace. If nothing was found, the
// error that ended the trace counts.
func (c *checker) found(what func(*watched) string, fine string) (Verdict, string, error) {
	w := c.watch()
	if text := what(w); text != "" {
		return Failed, text, nil
	}
	if c.guardedErr != nil && w.unwritten == "" && w.beyond == "" {
		return Failed, "", c.guardedErr
	}
	return OK, fine, nil
}

func (c *checker) silentErrors() (Verdict, string, error) {
	return c.found(func(w *watched) string { return w.words }, "no call returns as if nothing were wrong and says otherwise")
}

func (c *checker) writesAll() (Verdict, string, error) {
	return c.found(func(w *watched) string { return w.unwritten }, "each reset and step writes what is described, the last observation too")
}

func (c *checker) writesNothingElse() (Verdict, string, error) {
	fine := "room around each tensor stays as it was, and so does what was written before"
	if c.watch().unguarded {
		fine = "what was written before stays as it was; there is no room around tensors in another process"
	}
	return c.found(func(w *watched) string { return w.beyond }, fine)
}

func (c *checker) examined() (Verdict, string, error) {
	x, ok := c.plugin.(env.Examiner)
	if !ok {
		return OK, "its runtime sees to it", nil
	}
	e := x.Examine()
	c.help = e.Help
	switch {
	case e.Wrong != "":
		return Failed, e.Wrong, nil
	case e.Risky != "":
		return Warning, e.Risky, nil
	}
	return OK, e.Fine, nil
}

func (c *checker) bounds() (Verdict, string, error) {
	if c.base.outside == 0 {
		return OK, fmt.Sprintf("%d observations", c.base.observed), nil
	}
	return Failed, fmt.Sprintf("%d of %d observations, first: %s", c.base.outside, c.base.observed, c.base.firstOutside), nil
}

func (c *checker) ends() (Verdict, string, error) {
	if c.base.episodes() > 0 {
		return OK, fmt.Sprintf("%d terminated, %d truncated, longest %d env steps", c.base.terminated, c.base.truncated, c.base.longest), nil
	}
	return Warning, fmt.Sprintf("no episode ended within %d env steps", c.o.Steps), nil
}

func (c *checker) timeLimit() (Verdict, string, error) {
	limit := c.spec.EpisodeLimit
	switch {
	case limit == 0:
		return Warning, "the description has no episode_limit", nil
	case c.base.longest > limit:
		c.help = "set truncated at the step that the description names, or describe the limit that holds"
		return Failed, fmt.Sprintf("the description has episode_limit %d, and an episode goes on for %d env steps or more", limit, c.base.longest), nil
	}
	return OK, fmt.Sprintf("%d env steps", limit), nil
}

// again compares a trace of another run with the first one.
func (c *checker) again(r run, what, fine string) (Verdict, string, error) {
	t, err := c.record(r)
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := c.base.differ(t, r.envs); differ {
		return Failed, fmt.Sprintf(what, env, step), nil
	}
	return OK, fine, nil
}

func (c *checker) sameSeed() (Verdict, string, error) {
	return c.again(run{envs: c.o.Envs, seed: c.o.Seed}, "env %d differs from %s on",
		fmt.Sprintf("2 instances, %d steps, bit-equal", c.o.Steps))
}

func (c *checker) otherSeed() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed + 1})
	if err != nil {
		return Failed, "", err
	}
	if _, _, differ := c.base.differ(t, c.o.Envs); differ {
		return OK, "traces differ", nil
	}
	return Warning, "two seeds give one trace: an environment without chance, or one that ignores its seed", nil
}

// independent steps the first environment alone: it must not notice that the others are missing.
func (c *checker) independent() (Verdict, string, error) {
	if c.o.Envs == 1 {
		return OK, "the environment takes one at a time", nil
	}
	if c.watch().beyond != "" {
		c.help = "begin with M02: what is written beyond a tensor belongs to the next environment"
	}
	what := fmt.Sprintf("env %%d alone differs from env 0 of %d from %%s on", c.o.Envs)
	return c.again(run{envs: 1, seed: c.o.Seed}, what, "env 0 alone is bit-equal to env 0 of the batch")
}

func (c *checker) resetSeed() (Verdict, string, error) {
	return c.again(run{envs: c.o.Envs, seed: c.o.Seed, warmUp: 57}, "after 57 other steps, env %d differs from %s on",
		"bit-equal after other steps")
}

func (c *checker) snapshot() (Verdict, string, error) {
	at := c.o.Steps / 2
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, changeAt: at})
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := c.base.differ(t, c.o.Envs); differ {
		return Failed, fmt.Sprintf("restored at step %d, env %d differs from %s on", at, env, step), nil
	}
	if t.unsaved != "" {
		return Warning, fmt.Sprintf("no snapshot, so runs on it cannot be resumed exactly: %s", t.unsaved), nil
	}
	return OK, fmt.Sprintf("restored at step %d into a new instance, bit-equal", at), nil
}

// moved saves each environment and loads it elsewhere: in an instance of another size, at another place.
func (c *checker) moved() (Verdict, string, error) {
	at := c.o.Steps / 2
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, changeAt: at, moved: true})
	if err != nil {
		return Failed, "", fmt.Errorf("saved and loaded at step %d: %w", at, err)
	}
	if env, step, differ := c.base.differ(t, c.o.Envs); differ {
		return Failed, fmt.Sprintf("saved at step %d and loaded into another instance, env %d differs from %s on", at, env, step), nil
	}
	if t.unsaved != "" {
		return OK, "it does not save environments one by one", nil
	}
	return OK, fmt.Sprintf("saved at step %d, loaded into a larger batch, bit-equal", at), nil
}

// strides compares with traces stepped at other addresses and, where offered, with columns of elements in place of
// rows.
func (c *checker) strides() (Verdict, string, error) {
	c.watch()
	if c.guardedErr != nil {
		return Failed, "", c.guardedErr
	}
	if env, step, differ := c.base.differ(c.guarded, c.o.Envs); differ {
		return Failed, fmt.Sprintf("in a block that is laid out otherwise, env %d differs from %s on", env, step), nil
	}
	if c.spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return OK, "bit-equal in a block that is laid out otherwise", nil
	}
	return c.again(run{envs: c.o.Envs, seed: c.o.Seed, soa: true}, "laid out [elem][env], env %d differs from %s on",
		"bit-equal in a block that is laid out otherwise, and laid out [elem][env]")
}
