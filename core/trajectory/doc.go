// Package trajectory defines how the steps of environments are laid out in memory.
//
// A Schema lays a block out: one column per quantity, T steps of N environments each. A Trajectory is a typed view of
// one block. Messages between writers and readers of blocks are here too: ActRequest, Episode, and the list of handles
// that is a dataset.
//
//	schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: 64, Envs: 32})
//	tr := trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}
//	tr.Int32(trajectory.Action)[0] = 1
//
// How a block is loaned and handed on belongs to core/arena, writing its rows to core/env, and acting on
// observations to plugins/inference.
package trajectory
