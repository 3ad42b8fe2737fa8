// Package spawn starts native plugins, programs in any language that run as child processes, and talks to them.
// go-plugin starts them and carries control calls; plugins/process/proxy and plugins/process/worker use rings and a
// socket for files.
//
//	r, err := spawn.New(spawn.Options{Log: log})
//	defer r.Close()
//	d, err := r.Describe(ctx, spawn.Program{Name: "shaper", Path: "bin/shaper"})
//	p, err := r.Start(ctx, program, spawn.StartOptions{Log: log, Handle: frame, Broken: kill})
//	err = p.Call(ctx, native.MethodConfigure, configuration, &configured)
//
// The host checks everything that a process does to it: a handle that it sends is claimed before any component sees
// it, numbers that it writes into shared memory are clamped, files that it sends are read and never mapped. Its
// effects on the machine are not limited here: a native plugin is a program of the user, not a sandbox. It gets three
// files, few variables of the environment, no core dump that holds shared memory, and dies with its host; so do the
// other processes of its group.
//
// Locks, in the order in which they are taken: describer.mu, Runtime.mu.
package spawn
