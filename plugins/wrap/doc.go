// Package wrap puts wrappers around environments: time limits, shaped rewards and others that an [env] table lists in
// wrap.
//
// A wrapper is an env.Plugin that makes Envs around another plugin's, so that everything that runs environments can run
// wrapped ones without knowing it. A wrapper that changes no tensor steps the inner environments in the caller's own
// block; nothing is copied.
//
//	p, err := wrap.New(inner, []env.Wrapper{{"time_limit": 500}, {"reward_clip": 1.0}}, nil)
//	e, err := p.NewEnv(env.Options{Name: "rollout[0]", Envs: 32})
//
// kinds is the table of wrappers. A wrapper is a file with its configuration, which is a row of that table, and a layer: its
// work around a step. wrapped is the code that they share: calls, episodes, saved states. A wrapper that turns pictures into
// others has a brush instead, and apart is the batch that steps in separate memory for it.
package wrap
