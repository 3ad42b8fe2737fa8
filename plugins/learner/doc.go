// Package learner is the component that improves a policy: it takes a dataset, lets the policy's backend make its
// optimiser steps, and publishes the result as the next policy version in a weights arena.
//
// A dataset's blocks are claimed for the duration of the update and read where they lie. The normaliser of
// observations is frozen while a dataset is learned from and moves on once afterwards, so that acting and learning
// use the same statistics for one version. Learning rate and clip follow the env steps learned from, not the stop
// rule, so that changing when a run ends does not change its learning.
//
//	kinds := map[string]func() component.Component{"learner": learner.New}
package learner
