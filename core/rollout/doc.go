// Package rollout says what environments are to the host and how their steps lie in memory.
//
// An Env steps N environments at a time and writes what it observes straight into a block of a trajectory
// arena. A Schema lays that block out: one column per quantity, T steps of N environments each. A Trajectory is
// a typed view of one block. Everything that runs environments (the rollout component, evaluation, benchmarks,
// the checker) drives the same Env, whatever runtime it comes from.
//
//	schema, err := rollout.NewSchema(env.Spec(), rollout.Shape{Steps: 64, Envs: 32})
//	tr := rollout.Trajectory{Schema: schema, Mem: loan.Bytes()}
//	err = env.Bind(rollout.Block{Trajectory: tr})
//	err = env.Reset(0, nil, seeds)
//	tr.Int32(rollout.ColAction)[0] = 1
//	err = env.Step(0) // writes reward[0], terminated[0], truncated[0], obs[1]
//
// How a block is loaned and handed on belongs to core/arena, who acts on observations to plugins/inference.
package rollout
