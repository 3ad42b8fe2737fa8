// Package reduce adds up the vectors of several learners, so that all of them get the same bits or none gets anything.
//
//	team := reduce.New(2)
//	go func() { … }                                 // the other learner, with team.Seat(1)
//	sum, all, err := team.Seat(0).Sum(own, numbers) // both have the same sum of what each calls own
//
// Seats add in the order of their numbers, not in that of their arrival, and each adds one part of the vector for all. A seat that leaves
// ends the sum under way for every other one: a sum that one seat has got, all have got.
//
// It knows no gradient, and starts nothing. A Team holds its own lock, and calls nobody while it does.
package reduce
