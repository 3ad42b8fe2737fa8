// Package placement says which host of a run has which instance of its pipeline.
//
//	plan := placement.Place(g, hosts, nil)      // hosts[0] is the run's own
//	plan.Hosts[placement.Instance{Component: "rollout", Index: 3}]
//	err := plan.Err(g)                          // what no host has room for, and why
//
// A unit is what it moves: an instance, or the instances of one number of a group with a count. A unit with a rule, which the key place gives,
// takes one slot of its host; units without a rule stay on the run's own host and take none. The same graph and hosts always give the same plan.
// A plan that is given stays as it is, but for what it cannot keep: a host that comes moves nothing, and one that goes moves its own units alone.
//
// It starts nothing and knows no clock, no file and no connection.
package placement
