// Package env defines environments for the host.
//
// An Env steps N environments at a time and writes their observations straight into a block of a trajectory arena. A
// Plugin makes Envs from one loaded source. Everything that runs environments (the rollout component, evaluation,
// benchmarks, the checker) uses the same Env, whatever its runtime. Driver is an Env with its own block, for users that
// keep no trajectories.
//
//	e, err := plugin.NewEnv(env.Options{Name: "rollout[0]", Envs: 32})
//	err = e.Bind(env.Block{Trajectory: tr})
//	err = e.Reset(0, nil, seeds)
//	tr.Int32(trajectory.Action)[0] = 1
//	err = e.Step(0) // writes reward[0], terminated[0], truncated[0], obs[1]
//
// How blocks are laid out belongs to core/trajectory, an environment's description to hostabi.
package env
