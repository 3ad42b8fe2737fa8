// Package players finds the weights that policies act with, in the saved states of a run's components, in its checkpoints, in other
// runs and in files; plays evaluations with them; and rates the versions that a run has of its policy in matches against each
// other.
//
//	r := players.Reader{Parts: parts, Graph: g, States: checkpoint.Components, Spec: plugin.Spec()}
//	p, err := r.Player("main")
//	ratings, err := r.Rate(ctx, g.Policy("main"), plugin, evaluation.Options{Episodes: 100})
//
// It trains nothing and keeps nothing.
package players
