// Package wrap puts wrappers around environments: time limits, shaped rewards and what else an [env] table lists in wrap.
//
// A wrapper is an env.Plugin that makes Envs around those of another one, so that whatever runs environments runs wrapped
// ones without knowing it. One that changes no tensor steps the inner environments in the caller's own block; nothing is
// copied.
//
//	p, err := wrap.New(inner, []env.Wrapper{{"time_limit": 500}, {"reward_clip": 1.0}}, nil)
//	e, err := p.NewEnv(env.Options{Name: "rollout[0]", Envs: 32})
//
// kinds is the table of what there is. A wrapper is a file with its configuration, which is a row of that table, and a
// layer: what it does around a step. wrapped is all that they have in common: calls, episodes, saved states. One that makes
// other pictures of those that are observed has a brush instead, and apart is the batch that steps in memory of its own for it.
package wrap
