// Package cartpole is CartPole-v1 with Gymnasium's equations in float32. The guest in the folder above serves
// it; native programs run the same code as a measure for guests:
//
//	b := cartpole.NewBatch(64, cartpole.DefaultMaxSteps)
//	b.Reset(seeds, obs)
//	b.Step(actions, obs, rewards, terminated, truncated, final)
//
// Every operation is a single IEEE operation in the order that the C and Rust versions share, so that the same
// seeds give the same bits in all of them. It is not a general physics package, and it does not render.
package cartpole
