// Package search decides which settings of a pipeline are tried, for how long, and in what order. It is pure: it has no clock, starts no
// process and opens no file.
//
//	c := search.Default()                       // and the keys of [sweep]
//	plan, err := search.NewPlan(c, nil, nil)
//	h := search.NewHistory(c)                   // of nothing, or folded from a journal
//	orders, done, err := plan.Next(h)
//
// Plan.Next depends on the history alone, and the history on the journal's records alone. So a search that was killed continues as if
// it had not been: package trials runs the orders as processes.
package search
