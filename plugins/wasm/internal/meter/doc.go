// Package meter reads core WebAssembly modules and rewrites them so that their running time is under control.
//
//	module, err := meter.Decode(file)
//	result, err := module.Rewrite()
//	compile(result.Code)
//
// The rewritten module counts down an exported global, its fuel, at the start of each function and of each turn
// of a loop, by roughly the number of instructions that follow, and before bulk operations by their length. When
// fuel falls below zero it calls the import rl.yield, where the host hands out more or ends the call. So a guest
// can be stopped anywhere it could spend time, without another thread, and continue with nothing lost.
//
// Rewrite also makes snapshots possible: it exports every mutable global, turns the start function into an export,
// and data segments into a call, so that an instance can be made without running anything.
//
// Decode is strict about bounds and about every index space that the rewriter extends, so that a module which is
// not valid cannot become valid. All other validation is the compiler's.
package meter
