package envcheck

import (
	"context"
	"fmt"

	"github.com/rlhost/rlhost/core/rollout"
)

// Verdict is the outcome of one check.
type Verdict string

// Verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warn"
	Failed  Verdict = "FAIL"
)

// Result is one check and what it found.
type Result struct {
	ID      string  `json:"id"` // such as D01
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"` // what was seen
	Help    string  `json:"help,omitempty"`
}

// Options bound the checks.
type Options struct {
	Envs  int    // stepped together; default 4
	Steps int    // of each trace; default 1000
	Seed  uint64 // of environments and actions
}

// check is one entry of the list: what it is called and how it is found out.
type check struct {
	id, title, help string
	run             func(*checker) (Verdict, string, error)
}

// checks returns all checks in the order in which they run. Later ones are skipped once the environment cannot be
// stepped at all.
func checks() []check {
	return []check{
		{"A01", "steps without a fault", "see the reason above; a trap names the environment if rl_current_env is exported", (*checker).steps},
		{"S02", "observations inside the declared bounds", "declare wider bounds, or equal ones for none", (*checker).bounds},
		{"T01", "episodes end", "end episodes with terminated, or limit them with truncated", (*checker).ends},
		{"T02", "has a time limit", "set episode_limit in the description, or episode_limit = N of the rollout component", (*checker).timeLimit},
		{"D01", "same seed, same trace", "take random numbers from the environment's own stream alone", (*checker).sameSeed},
		{"D02", "other seed, other trace", "use the seeds that rl_reset is given", (*checker).otherSeed},
		{"D03", "environments do not share random numbers", "keep the random stream in each environment's own state", (*checker).independent},
		{"D04", "reset starts the stream anew", "a reset with a seed must not depend on what was before", (*checker).resetSeed},
		{"D05", "a snapshot gives the same future", "keep all state in the guest's memory and globals", (*checker).snapshot},
		{"E02", "autoreset as declared", "see the environment ABI on next_step, same_step and disabled", (*checker).autoreset},
	}
}

// Run runs all checks. An error of the environment fails the check in which it came up.
func Run(ctx context.Context, p rollout.Plugin, o Options) []Result {
	if o.Envs == 0 {
		o.Envs = 4
	}
	if o.Steps == 0 {
		o.Steps = 1000
	}
	spec := p.Spec()
	if spec.MaxEnvs > 0 {
		o.Envs = min(o.Envs, spec.MaxEnvs)
	}
	c := &checker{ctx: ctx, plugin: p, spec: spec, o: o}
	var results []Result
	for _, k := range checks() {
		r := Result{ID: k.id, Title: k.title}
		var err error
		r.Verdict, r.Detail, err = k.run(c)
		if err != nil {
			r.Verdict, r.Detail = Failed, err.Error()
		}
		if r.Verdict != OK {
			r.Help = k.help
		}
		results = append(results, r)
		if k.id == "A01" && r.Verdict == Failed {
			break
		}
	}
	return results
}

// checker holds what the checks share.
type checker struct {
	ctx    context.Context
	plugin rollout.Plugin
	spec   rollout.EnvSpec
	o      Options
	base   *trace // of the first run
}

// steps records the trace that the other checks compare with.
func (c *checker) steps() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, steps: c.o.Steps})
	if err != nil {
		return Failed, "", err
	}
	c.base = t
	return OK, fmt.Sprintf("%d steps of %d environments, %d episodes, all values finite, all flags 0 or 1",
		c.o.Steps, c.o.Envs, t.episodes()), nil
}

func (c *checker) bounds() (Verdict, string, error) {
	if c.base.outside == 0 {
		return OK, fmt.Sprintf("%d observations", c.o.Steps*c.o.Envs), nil
	}
	return Failed, fmt.Sprintf("%d of %d observations, first: %s", c.base.outside, c.o.Steps*c.o.Envs, c.base.firstOutside), nil
}

func (c *checker) ends() (Verdict, string, error) {
	if c.base.episodes() > 0 {
		return OK, fmt.Sprintf("%d terminated, %d truncated, longest %d env steps", c.base.terminated, c.base.truncated, c.base.longest), nil
	}
	return Warning, fmt.Sprintf("no episode ended within %d env steps", c.o.Steps), nil
}

func (c *checker) timeLimit() (Verdict, string, error) {
	if c.spec.EpisodeLimit > 0 {
		return OK, fmt.Sprintf("%d env steps", c.spec.EpisodeLimit), nil
	}
	return Warning, "the description has no episode_limit", nil
}

func (c *checker) sameSeed() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, steps: c.o.Steps})
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := c.base.differ(t, c.o.Envs); differ {
		return Failed, fmt.Sprintf("env %d differs from step %d on", env, step), nil
	}
	return OK, fmt.Sprintf("2 instances, %d steps, bit-equal", c.o.Steps), nil
}

func (c *checker) otherSeed() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed + 1, steps: c.o.Steps})
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
	t, err := c.record(run{envs: 1, seed: c.o.Seed, steps: c.o.Steps})
	if err != nil {
		return Failed, "", err
	}
	if _, step, differ := c.base.differ(t, 1); differ {
		return Failed, fmt.Sprintf("env 0 alone differs from env 0 of %d from step %d on", c.o.Envs, step), nil
	}
	return OK, "env 0 alone is bit-equal to env 0 of the batch", nil
}

func (c *checker) resetSeed() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, steps: c.o.Steps, warmUp: 57})
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := c.base.differ(t, c.o.Envs); differ {
		return Failed, fmt.Sprintf("after 57 other steps, env %d differs from step %d on", env, step), nil
	}
	return OK, "bit-equal after other steps", nil
}

func (c *checker) snapshot() (Verdict, string, error) {
	t, err := c.record(run{envs: c.o.Envs, seed: c.o.Seed, steps: c.o.Steps, snapshotAt: c.o.Steps / 2})
	if err != nil {
		return Failed, "", err
	}
	if env, step, differ := c.base.differ(t, c.o.Envs); differ {
		return Failed, fmt.Sprintf("restored at step %d, env %d differs from step %d on", c.o.Steps/2, env, step), nil
	}
	if t.noSnapshot != "" {
		return Warning, fmt.Sprintf("no snapshot, so runs on it cannot be resumed exactly: %s", t.noSnapshot), nil
	}
	return OK, fmt.Sprintf("restored at step %d into a new instance, bit-equal", c.o.Steps/2), nil
}
