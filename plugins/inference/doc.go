// Package inference is the component that acts: it collects the rows that rollouts wait on, runs the policy on
// all of them at once, and writes actions, log-probabilities and values into the rows' own blocks.
//
// Requests that are queued together are served together: the first one posts a flush after everything that the
// loop has received, so nothing waits on a clock. A row's outputs do not depend on the others in its batch.
// Weights are replaced between batches by the newest version that has arrived.
//
//	kinds := map[string]func() component.Component{"inference": inference.New}
package inference
