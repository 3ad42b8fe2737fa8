// Package profile finds where the time of an environment's module goes: by function, with lines where the module has them, from samples
// of its stack.
//
//	result, err := profile.Run(ctx, profile.Options{Source: source, Envs: 64, Time: 5 * time.Second})
//	err = result.WritePprof(file) // for go tool pprof
//
// The sandbox samples where a slice of fuel ends, so that the profiled code is the one that runs.
package profile
