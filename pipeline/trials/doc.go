// Package trials runs a search: the orders of package search as trainings in processes, and its journal in the folder of a set.
//
//	set, err := trials.New(dir, name, file, sets, trials.Sweep{Config: *config, First: seed})
//	s := trials.Search{Set: set, Runner: &trials.Runner{…}, Jobs: 2, Observe: view.Observe}
//	err = s.Run(ctx)
//	history, err := trials.History(set)
//
// A trial is a run for each of its seeds; a rung is a resume. The journal is all the state that there is: a search that was killed folds
// it and continues.
package trials
