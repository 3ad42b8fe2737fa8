// Package stat counts and measures without locks: counters, gauges and histograms under names, and rates.
//
//	steps := registry.Counter("rollout/env_steps")
//	steps.Add(64) // any goroutine, no allocation
//	registry.Histogram("learn/policy_lag").Observe(3)
//	for _, s := range registry.Snapshot() {
//		fmt.Println(s.Name, s.Value)
//	}
//
// Names read area/name_unit, such as rollout/env_steps_per_s. A component gets its metrics once, when it is
// made, and keeps the pointers: the look-up by name takes a lock, the update does not.
//
// The package has no clock, writes nothing anywhere, and remembers no history except within a Rate.
package stat
