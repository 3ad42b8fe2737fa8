// Package compare finds, filters, groups and compares the runs of a folder.
//
//	list, err := compare.List("runs")                              // run.json of each, newest last
//	list, err = compare.Where(list, []string{"env=cartpole@1", "eval_return>=475", "component.learner.epochs=4"})
//	groups, err := compare.By(list, "component.learner.learning_rate")
//	keys, err := compare.Differences(list)                         // keys of their pipelines whose values differ
//
// Pipelines are read when a filter, a group or a difference asks for a key of theirs, and otherwise not.
package compare
