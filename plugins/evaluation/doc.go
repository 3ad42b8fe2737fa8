// Package evaluation measures a frozen policy: it plays a fixed list of episodes and reports their returns.
//
// Each episode has its own seed and its own random stream of actions, both derived from the evaluation's seed and
// the episode's index alone; a training with the same seed draws from other streams. So the result is the same for
// any number of environments that play at the same time, and early finishers do not displace long episodes.
//
//	result, err := evaluation.Run(ctx, evaluation.Options{Plugin: plugin, Actor: actor, Episodes: 100, Seed: 1})
//	fmt.Println(result.Mean())
//
// Several players may share an environment's agents. PlayMatch has one play against another, fairly, and Elo rates players by
// their matches.
//
// Compare compares two versions of an environment in the same way.
package evaluation
